/*
 * path_ops.c - names and attributes of a path-keyed Python file system.
 */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "pyhost/path.h"

/* ---- arguments ---- */

/* The last path, as who reads a file names it again and again; protected by the GIL. */
static struct {
    char text[256];
    PyObject *object;
} last;

PyObject *df_path_text(const char *path)
{
    size_t size = path ? strlen(path) + 1 : 0;
    if (size == 0)
        return Py_NewRef(Py_None);
    if (size > sizeof(last.text))
        return df_args_text(path);
    if (!last.object || memcmp(last.text, path, size) != 0) {
        PyObject *object = df_args_text(path);
        if (!object)
            return NULL;
        memcpy(last.text, path, size);
        PyObject *former = last.object;
        last.object = object;
        Py_XDECREF(former);
    }
    return Py_NewRef(last.object);
}

PyObject *df_path_handle(const struct fuse_file_info *fi)
{
    return fi ? PyLong_FromUnsignedLongLong(fi->fh) : Py_NewRef(Py_None);
}

static PyObject *number(unsigned long long value)
{
    return PyLong_FromUnsignedLongLong(value);
}

/* (uid_t)-1 means: leave it. */
static PyObject *identity(uint32_t id)
{
    return PyLong_FromLongLong(id == UINT32_MAX ? -1 : (long long)id);
}

/* ---- attributes ---- */

/* A type that there is not would be EIO without a word, as behind the kernel. */
static void check_type(mode_t mode)
{
    if (!S_ISREG(mode) && !S_ISDIR(mode) && !S_ISLNK(mode) && !S_ISCHR(mode) && !S_ISBLK(mode) &&
        !S_ISFIFO(mode) && !S_ISSOCK(mode))
        PyErr_Format(PyExc_ValueError, "st_mode: 0x%x has no type, such as stat.S_IFREG",
                     (unsigned)mode);
}

static int op_getattr(const char *path, struct stat *st, struct fuse_file_info *fi)
{
    struct df_path_call call;
    if (!df_path_begin(&call, "getattr"))
        return -EIO;
    PyObject *result = df_path_send(&call, df_path_text(path), df_path_handle(fi));
    if (result && df_path_read_stat(result, call.session->nanoseconds, st) == 0)
        check_type(st->st_mode);
    return df_path_end(&call, 0);
}

static int op_access(const char *path, int mask)
{
    struct df_path_call call;
    if (!df_path_begin(&call, "access"))
        return -EIO;
    return df_path_do(&call, df_path_text(path), number((unsigned)mask));
}

static int op_chmod(const char *path, mode_t mode, struct fuse_file_info *fi)
{
    struct df_path_call call;
    (void)fi;
    if (!df_path_begin(&call, "chmod"))
        return -EIO;
    return df_path_do(&call, df_path_text(path), number(mode));
}

static int op_chown(const char *path, uid_t uid, gid_t gid, struct fuse_file_info *fi)
{
    struct df_path_call call;
    (void)fi;
    if (!df_path_begin(&call, "chown"))
        return -EIO;
    return df_path_do(&call, df_path_text(path), identity(uid), identity(gid));
}

static int op_truncate(const char *path, off_t size, struct fuse_file_info *fi)
{
    struct df_path_call call;
    if (!df_path_begin(&call, "truncate"))
        return -EIO;
    PyObject *length = PyLong_FromLongLong(size);
    if (fi)
        return df_path_do(&call, df_path_text(path), length, df_path_handle(fi));
    return df_path_do(&call, df_path_text(path), length);
}

/* What UTIME_OMIT leaves, for a method that sets both. */
static int present_times(struct df_path_call *call, const char *path, struct timespec times[2])
{
    static struct df_path_name getattr_name = {"getattr", NULL};
    struct df_path_name *asked_for = call->name;
    struct stat st;
    call->name = &getattr_name; /* which is named when it fails */
    PyObject *result = df_path_send(call, df_path_text(path), Py_NewRef(Py_None));
    if (!result || df_path_read_stat(result, call->session->nanoseconds, &st) < 0)
        return -1;
    Py_CLEAR(call->result);
    call->name = asked_for;
    times[0] = st.st_atim;
    times[1] = st.st_mtim;
    return 0;
}

static PyObject *new_times(struct df_path_call *call, const char *path,
                           const struct timespec given[2])
{
    struct timespec times[2], now;
    bool omits = given[0].tv_nsec == UTIME_OMIT || given[1].tv_nsec == UTIME_OMIT;
    if (given[0].tv_nsec == UTIME_NOW && given[1].tv_nsec == UTIME_NOW)
        return Py_NewRef(Py_None);
    if (omits && present_times(call, path, times) < 0)
        return NULL;
    clock_gettime(CLOCK_REALTIME, &now);
    for (int i = 0; i < 2; i++) {
        if (given[i].tv_nsec == UTIME_NOW)
            times[i] = now;
        else if (given[i].tv_nsec != UTIME_OMIT)
            times[i] = given[i];
    }
    return df_args_pack(2, df_path_time(&times[0], call->session->nanoseconds),
                        df_path_time(&times[1], call->session->nanoseconds));
}

static int op_utimens(const char *path, const struct timespec times[2], struct fuse_file_info *fi)
{
    struct df_path_call call;
    (void)fi;
    if (!df_path_begin(&call, "utimens"))
        return -EIO;
    PyObject *pair = new_times(&call, path, times);
    return df_path_do(&call, df_path_text(path), pair);
}

static int op_statfs(const char *path, struct statvfs *st)
{
    struct df_path_call call;
    if (!df_path_begin(&call, "statfs"))
        return -EIO;
    PyObject *result = df_path_send(&call, df_path_text(path));
    if (result)
        df_path_read_statvfs(result, st);
    return df_path_end(&call, 0);
}

/* ---- extended attributes ---- */

static int op_setxattr(const char *path, const char *name, const char *value, size_t size,
                       int flags)
{
    struct df_path_call call;
    if (!df_path_begin(&call, "setxattr"))
        return -EIO;
    PyObject *data = PyBytes_FromStringAndSize(value, (Py_ssize_t)size);
    return df_path_do(&call, df_path_text(path), df_args_text(name), data, number((unsigned)flags));
}

/* A value as getxattr(2) wants it: its size, and itself where there is room. */
static long long give(PyObject *value, char *to, size_t room)
{
    Py_buffer data;
    long long result;
    if (PyObject_GetBuffer(value, &data, PyBUF_CONTIG_RO) < 0)
        return 0;
    result = data.len;
    if (room > 0 && (size_t)data.len > room)
        result = -ERANGE;
    else if (room > 0)
        memcpy(to, data.buf, (size_t)data.len);
    PyBuffer_Release(&data);
    return result;
}

static int op_getxattr(const char *path, const char *name, char *value, size_t size)
{
    struct df_path_call call;
    long long given = 0;
    if (!df_path_begin(&call, "getxattr"))
        return -EIO;
    PyObject *result = df_path_send(&call, df_path_text(path), df_args_text(name));
    if (result)
        given = give(result, value, size);
    return df_path_end(&call, given);
}

/* Appends a name and its NUL to `all`, a bytearray. */
static int append_name(PyObject *all, PyObject *name)
{
    PyObject *encoded = NULL;
    if (!PyUnicode_FSConverter(name, &encoded))
        return -1;
    Py_ssize_t at = PyByteArray_Size(all), size = PyBytes_Size(encoded);
    int result = PyByteArray_Resize(all, at + size + 1);
    if (result == 0)
        memcpy(PyByteArray_AsString(all) + at, PyBytes_AsString(encoded), (size_t)size + 1);
    Py_DECREF(encoded);
    return result;
}

static PyObject *join_names(PyObject *names)
{
    PyObject *all = PyByteArray_FromStringAndSize(NULL, 0);
    PyObject *iterator = all ? PyObject_GetIter(names) : NULL;
    PyObject *name;
    int error = iterator ? 0 : -1;
    while (error == 0 && (name = PyIter_Next(iterator))) {
        error = append_name(all, name);
        Py_DECREF(name);
    }
    Py_XDECREF(iterator);
    if (error < 0 || PyErr_Occurred())
        Py_CLEAR(all);
    return all;
}

static int op_listxattr(const char *path, char *list, size_t size)
{
    struct df_path_call call;
    long long given = 0;
    if (!df_path_begin(&call, "listxattr"))
        return -EIO;
    PyObject *result = df_path_send(&call, df_path_text(path));
    PyObject *joined = result && PyObject_IsTrue(result) > 0 ? join_names(result) : NULL;
    if (joined)
        given = give(joined, list, size);
    Py_XDECREF(joined);
    return df_path_end(&call, given);
}

static int op_removexattr(const char *path, const char *name)
{
    struct df_path_call call;
    if (!df_path_begin(&call, "removexattr"))
        return -EIO;
    return df_path_do(&call, df_path_text(path), df_args_text(name));
}

/* ---- names ---- */

static int op_mknod(const char *path, mode_t mode, dev_t rdev)
{
    struct df_path_call call;
    if (!df_path_begin(&call, "mknod"))
        return -EIO;
    return df_path_do(&call, df_path_text(path), number(mode), number(rdev));
}

static int op_mkdir(const char *path, mode_t mode)
{
    struct df_path_call call;
    if (!df_path_begin(&call, "mkdir"))
        return -EIO;
    return df_path_do(&call, df_path_text(path), number(mode));
}

static int op_unlink(const char *path)
{
    struct df_path_call call;
    if (!df_path_begin(&call, "unlink"))
        return -EIO;
    return df_path_do(&call, df_path_text(path));
}

static int op_rmdir(const char *path)
{
    struct df_path_call call;
    if (!df_path_begin(&call, "rmdir"))
        return -EIO;
    return df_path_do(&call, df_path_text(path));
}

/* The methods take the new name first. */
static int op_symlink(const char *content, const char *path)
{
    struct df_path_call call;
    if (!df_path_begin(&call, "symlink"))
        return -EIO;
    return df_path_do(&call, df_path_text(path), df_path_text(content));
}

static int op_link(const char *from, const char *to)
{
    struct df_path_call call;
    if (!df_path_begin(&call, "link"))
        return -EIO;
    return df_path_do(&call, df_path_text(to), df_path_text(from));
}

/* The methods know no flags: as with libfuse 2. */
static int op_rename(const char *from, const char *to, unsigned flags)
{
    struct df_path_call call;
    if (flags)
        return -EINVAL;
    if (!df_path_begin(&call, "rename"))
        return -EIO;
    return df_path_do(&call, df_path_text(from), df_path_text(to));
}

/* Its room is more than the kernel takes. */
static int op_readlink(const char *path, char *target, size_t size)
{
    struct df_path_call call;
    PyObject *encoded = NULL;
    (void)size;
    if (!df_path_begin(&call, "readlink"))
        return -EIO;
    PyObject *result = df_path_send(&call, df_path_text(path));
    if (result && PyUnicode_FSConverter(result, &encoded) && df_args_link(encoded))
        memcpy(target, PyBytes_AsString(encoded), (size_t)PyBytes_Size(encoded) + 1);
    Py_XDECREF(encoded);
    return df_path_end(&call, 0);
}

/* ---- the table ---- */

void df_path_ops_fill(struct fuse_operations *table, const struct df_path_session *session)
{
    DF_PATH_ADD(table, session, getattr);
    DF_PATH_ADD(table, session, access);
    DF_PATH_ADD(table, session, chmod);
    DF_PATH_ADD(table, session, chown);
    DF_PATH_ADD(table, session, truncate);
    DF_PATH_ADD(table, session, utimens);
    DF_PATH_ADD(table, session, statfs);
    DF_PATH_ADD(table, session, setxattr);
    DF_PATH_ADD(table, session, getxattr);
    DF_PATH_ADD(table, session, listxattr);
    DF_PATH_ADD(table, session, removexattr);
    DF_PATH_ADD(table, session, mknod);
    DF_PATH_ADD(table, session, mkdir);
    DF_PATH_ADD(table, session, unlink);
    DF_PATH_ADD(table, session, rmdir);
    DF_PATH_ADD(table, session, symlink);
    DF_PATH_ADD(table, session, link);
    DF_PATH_ADD(table, session, rename);
    DF_PATH_ADD(table, session, readlink);
}
