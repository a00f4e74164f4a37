/*
 * stat.c - stat, lstat, fstat and access; and os.stat_result, built field by field.
 *
 * os.stat_result(...) called from outside costs 1.5 µs; PyStructSequence_New and one store for each
 * field cost 0.15.
 */
#include <sys/stat.h>

#include <fcntl.h>

#include "core/fd.h"
#include "core/route.h"
#include "python/gil.h"

/* ---- os.stat_result ---- */

enum field {
    MODE,
    INO,
    DEV,
    NLINK,
    UID,
    GID,
    SIZE,
    ATIME_S, /* whole seconds: reached by position only */
    MTIME_S,
    CTIME_S,
    ATIME,
    MTIME,
    CTIME,
    ATIME_NS,
    MTIME_NS,
    CTIME_NS,
    BLKSIZE,
    BLOCKS,
    RDEV,
    FIELD_COUNT,
};

static const char *const field_names[FIELD_COUNT] = {
    [MODE] = "st_mode",         [INO] = "st_ino",           [DEV] = "st_dev",
    [NLINK] = "st_nlink",       [UID] = "st_uid",           [GID] = "st_gid",
    [SIZE] = "st_size",         [ATIME] = "st_atime",       [MTIME] = "st_mtime",
    [CTIME] = "st_ctime",       [ATIME_NS] = "st_atime_ns", [MTIME_NS] = "st_mtime_ns",
    [CTIME_NS] = "st_ctime_ns", [BLKSIZE] = "st_blksize",   [BLOCKS] = "st_blocks",
    [RDEV] = "st_rdev",
};

/* Where each field is in this Python's stat_result, and how many it has. Set once. */
static Py_ssize_t position[FIELD_COUNT];
static Py_ssize_t position_count;

static long long_attribute(PyObject *object, const char *name)
{
    PyObject *value = PyObject_GetAttrString(object, name);
    long number = value ? PyLong_AsLong(value) : -1;
    Py_XDECREF(value);
    return number;
}

/* A stat_result of 0, 1, 2 ... tells where its fields are. */
static PyObject *make_probe(void)
{
    PyObject *numbers = PyTuple_New(position_count);
    for (Py_ssize_t i = 0; numbers && i < position_count; i++)
        PyTuple_SetItem(numbers, i, PyLong_FromSsize_t(i));
    PyObject *probe =
        numbers ? PyObject_CallFunctionObjArgs((PyObject *)df_fast.stat_result, numbers, NULL)
                : NULL;
    Py_XDECREF(numbers);
    return probe;
}

static int find_positions(void)
{
    position_count = long_attribute((PyObject *)df_fast.stat_result, "n_fields");
    if (position_count < 0)
        return -1;
    PyObject *probe = make_probe();
    for (int field = 0; probe && field < FIELD_COUNT; field++) {
        position[field] = field_names[field] ? long_attribute(probe, field_names[field]) : field;
        if (position[field] < 0)
            Py_CLEAR(probe);
    }
    Py_XDECREF(probe);
    return probe ? 0 : -1;
}

/* Nanoseconds since 1970; a year after 2262 does not fit in 64 bits. */
static PyObject *nanoseconds(const struct timespec *time)
{
    long long total;
    if (!__builtin_mul_overflow((long long)time->tv_sec, 1000000000LL, &total) &&
        !__builtin_add_overflow(total, (long long)time->tv_nsec, &total))
        return PyLong_FromLongLong(total);

    PyObject *seconds = PyLong_FromLongLong(time->tv_sec);
    PyObject *scale = PyLong_FromLong(1000000000);
    PyObject *rest = PyLong_FromLong(time->tv_nsec);
    PyObject *product = seconds && scale ? PyNumber_Multiply(seconds, scale) : NULL;
    PyObject *sum = product && rest ? PyNumber_Add(product, rest) : NULL;
    Py_XDECREF(seconds);
    Py_XDECREF(scale);
    Py_XDECREF(rest);
    Py_XDECREF(product);
    return sum;
}

static inline void put(PyObject *result, enum field field, PyObject *value)
{
    PyStructSequence_SetItem(result, position[field], value); /* takes value, which may be NULL */
}

static void put_time(PyObject *result, int which, const struct timespec *time)
{
    put(result, ATIME_S + which, PyLong_FromLongLong(time->tv_sec));
    put(result, ATIME + which,
        PyFloat_FromDouble((double)time->tv_sec + 1e-9 * (double)time->tv_nsec));
    put(result, ATIME_NS + which, nanoseconds(time));
}

/* The same objects for an equal time: often all three are. */
static void share_time(PyObject *result, int which, int with)
{
    for (int group = ATIME_S; group <= ATIME_NS; group += 3) {
        PyObject *value = PyStructSequence_GetItem(result, position[group + with]);
        Py_XINCREF(value);
        put(result, group + which, value);
    }
}

static bool same_time(const struct timespec *a, const struct timespec *b)
{
    return a->tv_nsec == b->tv_nsec && a->tv_sec == b->tv_sec;
}

static void put_times(PyObject *result, const struct stat *st)
{
    put_time(result, 0, &st->st_atim);
    if (same_time(&st->st_mtim, &st->st_atim))
        share_time(result, 1, 0);
    else
        put_time(result, 1, &st->st_mtim);
    if (same_time(&st->st_ctim, &st->st_mtim))
        share_time(result, 2, 1);
    else
        put_time(result, 2, &st->st_ctim);
}

static PyObject *new_result(void)
{
    PyObject *type = df_fast_own((PyObject *)df_fast.stat_result, "os", "stat_result");
    PyObject *result = type ? PyStructSequence_New((PyTypeObject *)type) : NULL;
    Py_XDECREF(type);
    return result;
}

static PyObject *make_result(const struct stat *st)
{
    PyObject *result = new_result();
    if (!result)
        return NULL;
    put(result, MODE, PyLong_FromUnsignedLong(st->st_mode));
    put(result, INO, PyLong_FromUnsignedLongLong(st->st_ino));
    put(result, DEV, PyLong_FromUnsignedLongLong(st->st_dev));
    put(result, NLINK, PyLong_FromUnsignedLong(st->st_nlink));
    put(result, UID, PyLong_FromUnsignedLong(st->st_uid));
    put(result, GID, PyLong_FromUnsignedLong(st->st_gid));
    put(result, SIZE, PyLong_FromLongLong(st->st_size));
    put_times(result, st);
    put(result, BLKSIZE, PyLong_FromLong(st->st_blksize));
    put(result, BLOCKS, PyLong_FromLongLong(st->st_blocks));
    put(result, RDEV, PyLong_FromUnsignedLongLong(st->st_rdev));
    for (Py_ssize_t i = FIELD_COUNT; i < position_count; i++) /* fields of a later Python */
        PyStructSequence_SetItem(result, i, Py_NewRef(Py_None));
    if (DF_UNLIKELY(PyErr_Occurred() != NULL))
        Py_CLEAR(result);
    return result;
}

/* ---- stat, lstat ---- */

struct stat_request {
    struct df_request request;
    struct df_path path;
    int dirfd;
    int flags;
};

PyObject *df_stat_at(int dirfd, const char *text, int flags, PyObject *filename)
{
    struct stat st;
    int result;
    DF_GIL_CALL(result, 0, df_call_fstatat(dirfd, text, &st, flags));
    if (DF_LIKELY(result == 0))
        return make_result(&st);
    if (result == DF_NOT_OURS)
        return NULL;
    return df_error_raise(result, filename, NULL);
}

static PyObject *try_stat(struct df_request *request)
{
    struct stat_request *stat = (struct stat_request *)request;
    PyObject *result = df_stat_at(stat->dirfd, stat->path.text, stat->flags, stat->path.object);
    request->not_ours = !result && !PyErr_Occurred();
    return result;
}

static PyObject *stat_path(struct stat_request *stat, PyObject *value)
{
    if (df_path_read(&stat->path, value) < 0)
        return NULL;
    PyObject *result = NULL;
    if (!stat->path.text) {
        result = df_os_call(&stat->request.args);
    } else {
        result = try_stat(&stat->request);
        if (stat->request.not_ours)
            result = df_os_by_path(&stat->request);
    }
    df_path_clear(&stat->path);
    return result;
}

/* NULL with no exception: not ours. `filename` may be NULL. */
static PyObject *stat_fd(int fd, PyObject *filename)
{
    struct stat st;
    int result;
    DF_GIL_CALL(result, 0, df_call_fstat(fd, &st));
    if (result == 0)
        return make_result(&st);
    return df_error_raise(result, filename, NULL);
}

static struct df_signature stat_signature = {
    .os_name = "stat",
    .names = {"path", "dir_fd", "follow_symlinks"},
    .total = 3,
    .positional = 1,
    .required = 1,
};

static PyObject *fast_stat(PyObject *module, PyObject *const *values, Py_ssize_t count,
                           PyObject *names)
{
    (void)module;
    struct stat_request stat = {
        .request = {.args = {&stat_signature, values, count, names}, .try_ours = try_stat},
        .dirfd = AT_FDCWD,
    };
    PyObject *slots[DF_ARGS_MAX];
    bool follow = true;
    int fd = -1;
    if (!df_args_read(&stat.request.args, slots) || !df_args_dir_fd(slots[1], &stat.dirfd) ||
        !df_args_flag(slots[2], &follow))
        return df_os_call(&stat.request.args);
    if (df_args_is_fd(slots[0])) {
        bool plain = stat.dirfd == AT_FDCWD && follow; /* else os says what it thinks of it */
        if (plain && df_args_fd(slots[0], &fd) && df_fd_ours(fd))
            return stat_fd(fd, slots[0]);
        return df_os_call(&stat.request.args);
    }
    stat.flags = follow ? 0 : AT_SYMLINK_NOFOLLOW;
    return stat_path(&stat, slots[0]);
}

static struct df_signature lstat_signature = {
    .os_name = "lstat",
    .names = {"path", "dir_fd"},
    .total = 2,
    .positional = 1,
    .required = 1,
};

static PyObject *fast_lstat(PyObject *module, PyObject *const *values, Py_ssize_t count,
                            PyObject *names)
{
    (void)module;
    struct stat_request stat = {
        .request = {.args = {&lstat_signature, values, count, names}, .try_ours = try_stat},
        .dirfd = AT_FDCWD,
        .flags = AT_SYMLINK_NOFOLLOW,
    };
    PyObject *slots[DF_ARGS_MAX];
    if (!df_args_read(&stat.request.args, slots) || !df_args_dir_fd(slots[1], &stat.dirfd))
        return df_os_call(&stat.request.args);
    return stat_path(&stat, slots[0]);
}

/* ---- fstat ---- */

static struct df_signature fstat_signature = {
    .os_name = "fstat",
    .names = {"fd"},
    .total = 1,
    .positional = 1,
    .required = 1,
};

static PyObject *fast_fstat(PyObject *module, PyObject *const *values, Py_ssize_t count,
                            PyObject *names)
{
    (void)module;
    struct df_args args = {&fstat_signature, values, count, names};
    PyObject *slots[DF_ARGS_MAX];
    int fd;
    if (!df_args_read(&args, slots) || !df_args_fd(slots[0], &fd) || !df_fd_ours(fd))
        return df_os_call(&args);
    return stat_fd(fd, NULL);
}

/* ---- access ---- */

struct access_request {
    struct df_request request;
    struct df_path path;
    int dirfd;
    int mode;
    int flags;
};

/* Any error is "no", as with os.access. */
static PyObject *try_access(struct df_request *request)
{
    struct access_request *access = (struct access_request *)request;
    int result;
    DF_GIL_CALL(result, 0,
                df_call_faccessat(access->dirfd, access->path.text, access->mode, access->flags));
    request->not_ours = result == DF_NOT_OURS;
    if (request->not_ours || PyErr_Occurred())
        return NULL;
    return PyBool_FromLong(result == 0);
}

/* os.access raises nothing that would tell df_os_by_path() to look for a mount behind a link. */
static PyObject *access_elsewhere(struct df_request *request)
{
    PyObject *answer = df_os_by_path(request);
    if (answer != Py_False || !df_retry_begin(ENOENT))
        return answer;
    PyObject *ours = request->try_ours(request);
    df_retry_end();
    bool outside = !ours && request->not_ours;
    if (outside && !df_left_path(0))
        return answer;
    Py_DECREF(answer);
    return outside ? df_os_by_path(request) : ours;
}

static struct df_signature access_signature = {
    .os_name = "access",
    .names = {"path", "mode", "dir_fd", "effective_ids", "follow_symlinks"},
    .total = 5,
    .positional = 2,
    .required = 2,
};

static bool read_access(struct access_request *access, PyObject *slots[DF_ARGS_MAX])
{
    bool effective = false, follow = true;
    if (!df_args_read(&access->request.args, slots) || !df_args_int(slots[1], &access->mode) ||
        !df_args_dir_fd(slots[2], &access->dirfd) || !df_args_flag(slots[3], &effective) ||
        !df_args_flag(slots[4], &follow))
        return false;
    access->flags = (effective ? AT_EACCESS : 0) | (follow ? 0 : AT_SYMLINK_NOFOLLOW);
    return true;
}

static PyObject *fast_access(PyObject *module, PyObject *const *values, Py_ssize_t count,
                             PyObject *names)
{
    (void)module;
    struct access_request access = {
        .request = {.args = {&access_signature, values, count, names}, .try_ours = try_access},
        .dirfd = AT_FDCWD,
    };
    PyObject *slots[DF_ARGS_MAX];
    if (!read_access(&access, slots))
        return df_os_call(&access.request.args);
    if (df_path_read(&access.path, slots[0]) < 0)
        return NULL;
    PyObject *answer = NULL;
    if (!access.path.text) {
        answer = df_os_call(&access.request.args);
    } else {
        answer = try_access(&access.request);
        if (access.request.not_ours)
            answer = access_elsewhere(&access.request);
    }
    df_path_clear(&access.path);
    return answer;
}

/* ---- the module ---- */

int df_stat_prepare(void)
{
    if (find_positions() < 0 || df_args_prepare(&stat_signature) < 0 ||
        df_args_prepare(&lstat_signature) < 0 || df_args_prepare(&fstat_signature) < 0)
        return -1;
    return df_args_prepare(&access_signature);
}

PyMethodDef df_stat_methods[] = {
    DF_FAST_METHOD("stat", fast_stat, METH_FASTCALL | METH_KEYWORDS,
                   "stat($module, /, path, *, dir_fd=None, follow_symlinks=True)\n--\n\n"
                   "os.stat: attributes of a path or an open descriptor as os.stat_result.\n\n"
                   "Source: stat(2)."),
    DF_FAST_METHOD("lstat", fast_lstat, METH_FASTCALL | METH_KEYWORDS,
                   "lstat($module, /, path, *, dir_fd=None)\n--\n\n"
                   "os.lstat: like stat(), of a symbolic link itself.\n\nSource: lstat(2)."),
    DF_FAST_METHOD(
        "fstat", fast_fstat, METH_FASTCALL | METH_KEYWORDS,
        "fstat($module, /, fd)\n--\n\n"
        "os.fstat: attributes of an open descriptor as os.stat_result.\n\nSource: fstat(2)."),
    DF_FAST_METHOD("access", fast_access, METH_FASTCALL | METH_KEYWORDS,
                   "access($module, /, path, mode, *, dir_fd=None, effective_ids=False,\n"
                   "       follow_symlinks=True)\n--\n\n"
                   "os.access: whether the caller may use the path so; errors are False.\n\n"
                   "Source: access(2)."),
    {NULL, NULL, 0, NULL},
};
