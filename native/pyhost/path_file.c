/*
 * path_file.c - open files and directories of a path-keyed Python file system.
 */
#include <errno.h>
#include <string.h>

#include "pyhost/path.h"

/* ---- opening ---- */

/* What a method that opens returns is the handle. */
static int take_handle(struct df_path_call *call, PyObject *result, struct fuse_file_info *fi)
{
    if (result)
        df_args_unsigned(result, call->name->text, UINT64_MAX, &fi->fh);
    return df_path_end(call, 0);
}

static int op_open(const char *path, struct fuse_file_info *fi)
{
    struct df_path_call call;
    if (!df_path_begin(&call, "open"))
        return -EIO;
    return take_handle(&call, df_path_send(&call, df_path_text(path), PyLong_FromLong(fi->flags)),
                       fi);
}

static int op_create(const char *path, mode_t mode, struct fuse_file_info *fi)
{
    struct df_path_call call;
    PyObject *result;
    if (!df_path_begin(&call, "create"))
        return -EIO;
    PyObject *bits = PyLong_FromUnsignedLong(mode);
    if (call.session->create_flags)
        result = df_path_send(&call, df_path_text(path), bits, PyLong_FromLong(fi->flags));
    else
        result = df_path_send(&call, df_path_text(path), bits);
    return take_handle(&call, result, fi);
}

static int op_opendir(const char *path, struct fuse_file_info *fi)
{
    struct df_path_call call;
    if (!df_path_begin(&call, "opendir"))
        return -EIO;
    return take_handle(&call, df_path_send(&call, df_path_text(path)), fi);
}

/* ---- with a handle ---- */

static int with_handle(struct df_path_name *name, const char *path, struct fuse_file_info *fi)
{
    struct df_path_call call;
    if (!df_path_enter(&call, name))
        return -EIO;
    return df_path_do(&call, df_path_text(path), df_path_handle(fi));
}

static int op_flush(const char *path, struct fuse_file_info *fi)
{
    static struct df_path_name name = {"flush", NULL};
    return with_handle(&name, path, fi);
}

static int op_release(const char *path, struct fuse_file_info *fi)
{
    static struct df_path_name name = {"release", NULL};
    return with_handle(&name, path, fi);
}

static int op_releasedir(const char *path, struct fuse_file_info *fi)
{
    static struct df_path_name name = {"releasedir", NULL};
    return with_handle(&name, path, fi);
}

static int sync_it(struct df_path_name *name, const char *path, int datasync,
                   struct fuse_file_info *fi)
{
    struct df_path_call call;
    if (!df_path_enter(&call, name))
        return -EIO;
    return df_path_do(&call, df_path_text(path), PyLong_FromLong(datasync), df_path_handle(fi));
}

static int op_fsync(const char *path, int datasync, struct fuse_file_info *fi)
{
    static struct df_path_name name = {"fsync", NULL};
    return sync_it(&name, path, datasync, fi);
}

static int op_fsyncdir(const char *path, int datasync, struct fuse_file_info *fi)
{
    static struct df_path_name name = {"fsyncdir", NULL};
    return sync_it(&name, path, datasync, fi);
}

static int op_fallocate(const char *path, int mode, off_t offset, off_t size,
                        struct fuse_file_info *fi)
{
    struct df_path_call call;
    if (!df_path_begin(&call, "fallocate"))
        return -EIO;
    return df_path_do(&call, df_path_text(path), PyLong_FromLong(mode), PyLong_FromLongLong(offset),
                      PyLong_FromLongLong(size), df_path_handle(fi));
}

static int op_flock(const char *path, struct fuse_file_info *fi, int operation)
{
    struct df_path_call call;
    if (!df_path_begin(&call, "flock"))
        return -EIO;
    return df_path_do(&call, df_path_text(path), df_path_handle(fi), PyLong_FromLong(operation));
}

/* ---- data ---- */

/* What is false is nothing, as fusepy takes it: None, and also "". */
static long long copy_data(PyObject *result, char *to, size_t room)
{
    Py_buffer data;
    if (result == Py_None || (!PyObject_CheckBuffer(result) && PyObject_IsTrue(result) == 0))
        return 0;
    if (PyObject_GetBuffer(result, &data, PyBUF_CONTIG_RO) < 0)
        return 0;
    Py_ssize_t size = data.len;
    if ((size_t)size <= room)
        memcpy(to, data.buf, (size_t)size);
    else
        PyErr_Format(PyExc_ValueError, "read returned %zd bytes where at most %zu were asked for",
                     size, room);
    PyBuffer_Release(&data);
    return size;
}

static int op_read(const char *path, char *to, size_t size, off_t offset, struct fuse_file_info *fi)
{
    struct df_path_call call;
    long long count = 0;
    if (!df_path_begin(&call, "read"))
        return -EIO;
    PyObject *result = df_path_send(&call, df_path_text(path), PyLong_FromSize_t(size),
                                    PyLong_FromLongLong(offset), df_path_handle(fi));
    if (result)
        count = copy_data(result, to, size);
    return df_path_end(&call, count);
}

static int op_write(const char *path, const char *from, size_t size, off_t offset,
                    struct fuse_file_info *fi)
{
    struct df_path_call call;
    uint64_t count = 0;
    if (!df_path_begin(&call, "write"))
        return -EIO;
    PyObject *data = PyBytes_FromStringAndSize(from, (Py_ssize_t)size);
    PyObject *result = df_path_send(&call, df_path_text(path), data, PyLong_FromLongLong(offset),
                                    df_path_handle(fi));
    if (result)
        df_args_unsigned(result, "write", size, &count);
    return df_path_end(&call, (long long)count);
}

/* ---- directories ---- */

/* Where entries go. */
struct filling {
    void *buffer;
    fuse_fill_dir_t fill;
    bool offsets;
};

/* Of what a method may say of an entry only the type and the number count: a mode, or a dict. */
static int read_kind(PyObject *said, struct stat *st, bool *known)
{
    *known = said != Py_None;
    memset(st, 0, sizeof(*st));
    if (PyLong_Check(said)) {
        st->st_mode = (mode_t)PyLong_AsUnsignedLongMask(said);
        return PyErr_Occurred() ? -1 : 0;
    }
    return *known ? df_path_read_stat(said, true, st) : 0;
}

static bool is_triple(PyObject *entry)
{
    return PySequence_Check(entry) && PySequence_Size(entry) == 3;
}

static int split_entry(PyObject *entry, PyObject **name, struct stat *st, bool *known,
                       long long *offset)
{
    if (!is_triple(entry)) {
        PyErr_Format(PyExc_TypeError, "an entry is a name or (name, attributes, offset), not %R",
                     entry);
        return -1;
    }
    PyObject *said = PySequence_GetItem(entry, 1);
    PyObject *at = said ? PySequence_GetItem(entry, 2) : NULL;
    int error = -1;
    *name = at ? PySequence_GetItem(entry, 0) : NULL;
    if (*name) {
        *offset = PyLong_AsLongLong(at);
        error = PyErr_Occurred() ? -1 : read_kind(said, st, known);
    }
    Py_XDECREF(at);
    Py_XDECREF(said);
    return error;
}

/* The bytes of a name, or NULL. One that is a path, as an author's table of files has it, would be
 * refused further on without a word, as the kernel does. */
static PyObject *encode_name(PyObject *name)
{
    PyObject *encoded = NULL;
    if (!PyUnicode_FSConverter(name, &encoded))
        return NULL;
    const char *text = PyBytes_AsString(encoded);
    if (text && *text && !strchr(text, '/'))
        return encoded;
    PyErr_Format(PyExc_ValueError, "%R is no name of an entry: it is empty or has a slash", name);
    Py_DECREF(encoded);
    return NULL;
}

/* 1 when there is no more room, 0, or -1. */
static int fill_one(const struct filling *to, PyObject *entry)
{
    PyObject *name = NULL, *encoded = NULL;
    struct stat st;
    bool known = false;
    long long offset = 0;
    int result = -1;

    if (PyUnicode_Check(entry) || PyBytes_Check(entry))
        name = Py_NewRef(entry);
    else if (split_entry(entry, &name, &st, &known, &offset) < 0)
        goto out;
    encoded = encode_name(name);
    if (encoded)
        result = to->fill(to->buffer, PyBytes_AsString(encoded), known ? &st : NULL,
                          to->offsets ? offset : 0, 0);
out:
    Py_XDECREF(encoded);
    Py_XDECREF(name);
    return result;
}

static void fill_all(const struct filling *to, PyObject *entries)
{
    PyObject *iterator = PyObject_GetIter(entries);
    PyObject *entry;
    int full = 0;
    while (iterator && full == 0 && (entry = PyIter_Next(iterator))) {
        full = fill_one(to, entry);
        Py_DECREF(entry);
    }
    Py_XDECREF(iterator);
}

static int op_readdir(const char *path, void *buffer, fuse_fill_dir_t fill, off_t offset,
                      struct fuse_file_info *fi, enum fuse_readdir_flags flags)
{
    static struct df_path_name with_offset = {"readdir_with_offset", NULL};
    struct df_path_call call;
    (void)flags;
    if (!df_path_begin(&call, "readdir"))
        return -EIO;
    bool offsets = call.session->readdir_offset;
    PyObject *entries;
    if (offsets) {
        call.name = &with_offset;
        entries = df_path_send(&call, df_path_text(path), PyLong_FromLongLong(offset),
                               df_path_handle(fi));
    } else {
        entries = df_path_send(&call, df_path_text(path), df_path_handle(fi));
    }
    if (entries)
        fill_all(&(struct filling){buffer, fill, offsets}, entries);
    return df_path_end(&call, 0);
}

/* ---- the table ---- */

void df_path_file_fill(struct fuse_operations *table, const struct df_path_session *session)
{
    DF_PATH_ADD(table, session, open);
    DF_PATH_ADD(table, session, create);
    DF_PATH_ADD(table, session, opendir);
    DF_PATH_ADD(table, session, flush);
    DF_PATH_ADD(table, session, release);
    DF_PATH_ADD(table, session, releasedir);
    DF_PATH_ADD(table, session, fsync);
    DF_PATH_ADD(table, session, fsyncdir);
    DF_PATH_ADD(table, session, fallocate);
    DF_PATH_ADD(table, session, flock);
    DF_PATH_ADD(table, session, read);
    DF_PATH_ADD(table, session, write);
    if (df_path_has(session, "readdir") || session->readdir_offset)
        table->readdir = op_readdir;
}
