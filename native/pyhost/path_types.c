/*
 * path_types.c - the dictionaries that getattr() and statfs() return, and times.
 */
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>

#include "pyhost/path.h"

enum { NS_PER_S = 1000000000 };

/* Keys of a dictionary, interned once. */
struct key {
    const char *name;
    size_t offset;
    size_t size; /* bytes of the number; 0: a struct timespec */
    PyObject *key;
};

#define NUMBER(type, member) {#member, offsetof(type, member), sizeof(((type *)0)->member), NULL}

static struct key stat_keys[] = {
    NUMBER(struct stat, st_mode),
    NUMBER(struct stat, st_ino),
    NUMBER(struct stat, st_nlink),
    NUMBER(struct stat, st_uid),
    NUMBER(struct stat, st_gid),
    NUMBER(struct stat, st_rdev),
    NUMBER(struct stat, st_size),
    NUMBER(struct stat, st_blksize),
    NUMBER(struct stat, st_blocks),
    {"st_atime", offsetof(struct stat, st_atim), 0, NULL},
    {"st_mtime", offsetof(struct stat, st_mtim), 0, NULL},
    {"st_ctime", offsetof(struct stat, st_ctim), 0, NULL},
};

static struct key statvfs_keys[] = {
    NUMBER(struct statvfs, f_bsize),  NUMBER(struct statvfs, f_frsize),
    NUMBER(struct statvfs, f_blocks), NUMBER(struct statvfs, f_bfree),
    NUMBER(struct statvfs, f_bavail), NUMBER(struct statvfs, f_files),
    NUMBER(struct statvfs, f_ffree),  NUMBER(struct statvfs, f_favail),
    NUMBER(struct statvfs, f_flag),   NUMBER(struct statvfs, f_namemax),
};

enum {
    STAT_KEYS = sizeof(stat_keys) / sizeof(*stat_keys),
    STATVFS_KEYS = sizeof(statvfs_keys) / sizeof(*statvfs_keys),
};

static int intern(struct key *keys, int count)
{
    for (int i = 0; i < count; i++) {
        keys[i].key = PyUnicode_InternFromString(keys[i].name);
        if (!keys[i].key)
            return -1;
    }
    return 0;
}

int df_path_types_prepare(void)
{
    return intern(stat_keys, STAT_KEYS) < 0 ? -1 : intern(statvfs_keys, STATVFS_KEYS);
}

/* ---- times ---- */

static void split(long long nanoseconds, struct timespec *out)
{
    out->tv_sec = nanoseconds / NS_PER_S;
    out->tv_nsec = nanoseconds % NS_PER_S;
    if (out->tv_nsec < 0) {
        out->tv_sec--;
        out->tv_nsec += NS_PER_S;
    }
}

/* Before 1677 and after 2262, more nanoseconds than 64 bits hold. */
static int split_far(PyObject *nanoseconds, struct timespec *out)
{
    PyObject *scale = PyLong_FromLong(NS_PER_S);
    PyObject *seconds = scale ? PyNumber_FloorDivide(nanoseconds, scale) : NULL;
    PyObject *rest = seconds ? PyNumber_Remainder(nanoseconds, scale) : NULL;
    if (rest)
        *out = (struct timespec){PyLong_AsLongLong(seconds), PyLong_AsLong(rest)};
    Py_XDECREF(rest);
    Py_XDECREF(seconds);
    Py_XDECREF(scale);
    return PyErr_Occurred() ? -1 : 0;
}

static int read_int(PyObject *value, bool nanoseconds, struct timespec *out)
{
    int beyond;
    long long number = PyLong_AsLongLongAndOverflow(value, &beyond);
    if (beyond && nanoseconds)
        return split_far(value, out);
    if (beyond) {
        PyErr_Format(PyExc_OverflowError, "%R is no time", value);
        return -1;
    }
    if (nanoseconds)
        split(number, out);
    else
        *out = (struct timespec){.tv_sec = number};
    return 0;
}

/* With nanoseconds an int (a float is cut); else a number of seconds. */
static int read_time(PyObject *value, bool nanoseconds, struct timespec *out)
{
    if (PyIndex_Check(value)) {
        PyObject *whole = PyNumber_Index(value);
        int error = whole ? read_int(whole, nanoseconds, out) : -1;
        Py_XDECREF(whole);
        return error;
    }
    double number = PyFloat_AsDouble(value);
    if (number == -1 && PyErr_Occurred())
        return -1;
    if (!(number > -9.2e18 && number < 9.2e18)) {
        PyErr_Format(PyExc_OverflowError, "%R is no time", value);
        return -1;
    }
    if (nanoseconds) {
        split((long long)number, out);
        return 0;
    }
    long long whole = (long long)number - (number < (double)(long long)number);
    out->tv_sec = whole;
    out->tv_nsec = (long)((number - (double)whole) * 1e9);
    return 0;
}

/* The opposite of split(), as far as times go. */
static PyObject *join(const struct timespec *time)
{
    const __int128 total = (__int128)time->tv_sec * NS_PER_S + time->tv_nsec;
    const unsigned __int128 size = total < 0 ? -(unsigned __int128)total : (unsigned __int128)total;
    char text[40];

    if (total == (long long)total)
        return PyLong_FromLongLong((long long)total);
    snprintf(text, sizeof(text), "%s%llu%09llu", total < 0 ? "-" : "",
             (unsigned long long)(size / NS_PER_S), (unsigned long long)(size % NS_PER_S));
    return PyLong_FromString(text, NULL, 10);
}

PyObject *df_path_time(const struct timespec *time, bool nanoseconds)
{
    if (nanoseconds)
        return join(time);
    return PyFloat_FromDouble((double)time->tv_sec + (double)time->tv_nsec / 1e9);
}

/* ---- dictionaries ---- */

static int read_number(PyObject *value, const struct key *key, char *to)
{
    PyObject *number = PyNumber_Index(value);
    unsigned long long bits = number ? PyLong_AsUnsignedLongLongMask(number) : 0;
    Py_XDECREF(number);
    if (PyErr_Occurred()) {
        PyErr_Format(PyExc_TypeError, "%s: an int was expected, not %R", key->name,
                     (PyObject *)Py_TYPE(value));
        return -1;
    }
    memcpy(to, &bits, key->size); /* little-endian, as every machine this is built for */
    return 0;
}

/* A key that is missing leaves its field. */
static int read_key(PyObject *mapping, const struct key *key, bool nanoseconds, char *out)
{
    PyObject *value;
    int done = 0;
    if (PyDict_CheckExact(mapping)) {
        value = Py_XNewRef(PyDict_GetItemWithError(mapping, key->key));
    } else {
        value = PyObject_GetItem(mapping, key->key);
        if (!value && PyErr_ExceptionMatches(PyExc_KeyError))
            PyErr_Clear();
    }
    if (!value)
        return PyErr_Occurred() ? -1 : 0;
    if (key->size > 0)
        done = read_number(value, key, out + key->offset);
    else
        done = read_time(value, nanoseconds, (struct timespec *)(void *)(out + key->offset));
    Py_DECREF(value);
    return done;
}

/* These libraries take whatever has items(). */
static int read_keys(PyObject *mapping, const struct key *keys, int count, bool nanoseconds,
                     char *out)
{
    if (!PyDict_Check(mapping) && !PyObject_HasAttrString(mapping, "items")) {
        PyErr_Format(PyExc_TypeError, "a dict was expected, not %R", (PyObject *)Py_TYPE(mapping));
        return -1;
    }
    for (int i = 0; i < count; i++)
        if (read_key(mapping, &keys[i], nanoseconds, out) < 0)
            return -1;
    return 0;
}

int df_path_read_stat(PyObject *mapping, bool nanoseconds, struct stat *st)
{
    memset(st, 0, sizeof(*st));
    return read_keys(mapping, stat_keys, STAT_KEYS, nanoseconds, (char *)st);
}

int df_path_read_statvfs(PyObject *mapping, struct statvfs *st)
{
    return read_keys(mapping, statvfs_keys, STATVFS_KEYS, false, (char *)st);
}
