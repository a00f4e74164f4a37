/*
 * node_types.c - pyfuse3's types in memory.
 *
 * Its types are C structures behind an object's header, in the order in which pyfuse3 declares
 * their fields, and some fields only its own C code can set (RequestContext, ReaddirToken). So they
 * are written and read in place, which also spares two dozen attribute look-ups for each entry.
 * Nothing is taken for granted: check_*() compare the layout with what Python sees of an object.
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "pyhost/node.h"

struct context {
    PyObject ob_base;
    uid_t uid;
    pid_t pid;
    gid_t gid;
    mode_t umask;
};

struct fields {
    PyObject ob_base;
    PyObject *update[7]; /* atime mtime ctime mode uid gid size */
};

struct attributes {
    PyObject ob_base;
    struct fuse_entry_param entry;
    struct stat *attr; /* in entry */
};

struct file_info {
    PyObject ob_base;
    const void *methods; /* it has some that are C */
    uint64_t fh;
    int direct_io;
    int keep_cache;
    int nonseekable;
};

struct statvfs_data {
    PyObject ob_base;
    struct statvfs stat;
};

struct token {
    PyObject ob_base;
    fuse_req_t req;
    char *start; /* of malloc(3), made by the first readdir_reply() */
    char *next;
    size_t room;
};

/* Set once by df_node_types_prepare(); never freed. */
static PyTypeObject *context_type, *fields_type, *attributes_type, *file_info_type, *statvfs_type,
    *token_type;
PyObject *df_node_fuse_error;

/* ---- writing ---- */

static void *make(PyTypeObject *type)
{
    return PyObject_CallNoArgs((PyObject *)type);
}

PyObject *df_node_context(fuse_req_t req)
{
    const struct fuse_ctx *from = fuse_req_ctx(req);
    struct context *context = make(context_type);
    if (!context)
        return NULL;
    context->uid = from->uid;
    context->pid = from->pid;
    context->gid = from->gid;
    context->umask = from->umask;
    return (PyObject *)context;
}

static void set_field(struct fields *fields, int index, bool wanted)
{
    PyObject *former = fields->update[index];
    fields->update[index] = wanted ? Py_True : Py_False;
    Py_INCREF(fields->update[index]);
    Py_XDECREF(former);
}

static const int field_flags[7] = {
    FUSE_SET_ATTR_ATIME | FUSE_SET_ATTR_ATIME_NOW,
    FUSE_SET_ATTR_MTIME | FUSE_SET_ATTR_MTIME_NOW,
    FUSE_SET_ATTR_CTIME,
    FUSE_SET_ATTR_MODE,
    FUSE_SET_ATTR_UID,
    FUSE_SET_ATTR_GID,
    FUSE_SET_ATTR_SIZE,
};

PyObject *df_node_fields(int to_set)
{
    struct fields *fields = make(fields_type);
    for (int i = 0; fields && i < 7; i++)
        set_field(fields, i, to_set & field_flags[i]);
    return (PyObject *)fields;
}

static bool is_a(PyObject *object, PyTypeObject *type, const char *name);

/* mark(fields, to_set): these are to be set as well. */
static PyObject *mark(PyObject *module, PyObject *args)
{
    PyObject *fields;
    int to_set;
    (void)module;
    if (!PyArg_ParseTuple(args, "Oi", &fields, &to_set) ||
        !is_a(fields, fields_type, "SetattrFields"))
        return NULL;
    for (int i = 0; i < 7; i++)
        if (to_set & field_flags[i])
            set_field((struct fields *)fields, i, true);
    Py_RETURN_NONE;
}

PyMethodDef df_node_types_methods[] = {
    {"mark", mark, METH_VARARGS,
     PyDoc_STR("mark(fields, to_set, /)\n--\n\nSets fields of a SetattrFields: FUSE_SET_ATTR_*.")},
    {NULL, NULL, 0, NULL},
};

PyObject *df_node_attributes(const struct stat *attr, int to_set)
{
    struct attributes *attributes = make(attributes_type);
    struct timespec now;
    if (!attributes)
        return NULL;
    attributes->entry.attr = *attr;
    clock_gettime(CLOCK_REALTIME, &now);
    if (to_set & FUSE_SET_ATTR_ATIME_NOW)
        attributes->entry.attr.st_atim = now;
    if (to_set & FUSE_SET_ATTR_MTIME_NOW)
        attributes->entry.attr.st_mtim = now;
    return (PyObject *)attributes;
}

PyObject *df_node_token(fuse_req_t req, size_t size)
{
    struct token *token = make(token_type);
    if (!token)
        return NULL;
    token->req = req;
    token->start = NULL;
    token->room = size;
    return (PyObject *)token;
}

const char *df_node_token_data(PyObject *object, size_t room, size_t *size)
{
    struct token *token = (struct token *)object;
    *size = token->start ? room - token->room : 0;
    return token->start;
}

/* The file system may have kept it: what it would add goes nowhere. */
void df_node_token_end(PyObject *object)
{
    struct token *token = (struct token *)object;
    free(token->start);
    token->start = token->next = NULL;
    token->req = NULL;
    token->room = 0;
}

/* ---- reading ---- */

static bool is_a(PyObject *object, PyTypeObject *type, const char *name)
{
    if (PyObject_TypeCheck(object, type))
        return true;
    PyErr_Format(PyExc_TypeError, "a pyfuse3.%s was expected, not %R", name,
                 (PyObject *)Py_TYPE(object));
    return false;
}

const struct fuse_entry_param *df_node_entry(PyObject *object)
{
    if (!is_a(object, attributes_type, "EntryAttributes"))
        return NULL;
    return &((struct attributes *)object)->entry;
}

const struct statvfs *df_node_statvfs(PyObject *object)
{
    if (!is_a(object, statvfs_type, "StatvfsData"))
        return NULL;
    return &((struct statvfs_data *)object)->stat;
}

int df_node_file_info(PyObject *object, struct fuse_file_info *fi)
{
    const struct file_info *info = (struct file_info *)object;
    if (!is_a(object, file_info_type, "FileInfo"))
        return -1;
    fi->fh = info->fh;
    fi->direct_io = info->direct_io != 0;
    fi->keep_cache = info->keep_cache != 0;
    fi->nonseekable = info->nonseekable != 0;
    return 0;
}

/* ---- is it so? ---- */

static bool has_size(PyTypeObject *type, size_t size)
{
    PyObject *value = PyObject_GetAttrString((PyObject *)type, "__basicsize__");
    size_t is = value ? PyLong_AsSize_t(value) : 0;
    Py_XDECREF(value);
    return is == size;
}

/* Whether Python sees `number` as the attribute. */
static bool shows(void *object, const char *name, long number)
{
    PyObject *value = PyObject_GetAttrString(object, name);
    long is = value ? PyLong_AsLong(value) : -1;
    Py_XDECREF(value);
    return is == number;
}

static bool put(void *object, const char *name, long number)
{
    PyObject *value = PyLong_FromLong(number);
    int result = value ? PyObject_SetAttrString(object, name, value) : -1;
    Py_XDECREF(value);
    return result == 0;
}

static bool check_context(void)
{
    struct context *probe = has_size(context_type, sizeof(*probe)) ? make(context_type) : NULL;
    if (!probe)
        return false;
    probe->uid = 11;
    probe->pid = 12;
    probe->gid = 13;
    probe->umask = 14;
    bool good = shows(probe, "uid", 11) && shows(probe, "pid", 12) && shows(probe, "gid", 13) &&
                shows(probe, "umask", 14);
    Py_DECREF((PyObject *)probe);
    return good;
}

static bool check_fields(void)
{
    static const char *const names[7] = {"update_atime", "update_mtime", "update_ctime",
                                         "update_mode",  "update_uid",   "update_gid",
                                         "update_size"};
    bool good = has_size(fields_type, sizeof(struct fields));
    for (int i = 0; good && i < 7; i++) {
        struct fields *probe = make(fields_type);
        if (!probe)
            return false;
        set_field(probe, i, true);
        for (int j = 0; j < 7; j++)
            good = good && shows(probe, names[j], i == j);
        Py_DECREF((PyObject *)probe);
    }
    return good;
}

static bool check_entry(const struct fuse_entry_param *entry)
{
    const struct stat *st = &entry->attr;
    return entry->ino == 21 && entry->generation == 22 && entry->entry_timeout == 23 &&
           entry->attr_timeout == 24 && st->st_ino == 21 && st->st_mode == 25 &&
           st->st_nlink == 26 && st->st_uid == 27 && st->st_gid == 28 && st->st_rdev == 29 &&
           st->st_size == 30 && st->st_blocks == 31 && st->st_blksize == 32 &&
           st->st_atim.tv_nsec == 33 && st->st_mtim.tv_nsec == 34 && st->st_ctim.tv_nsec == 35;
}

static bool check_attributes(void)
{
    static const char *const names[] = {
        "st_ino",    "generation", "entry_timeout", "attr_timeout", "st_mode",
        "st_nlink",  "st_uid",     "st_gid",        "st_rdev",      "st_size",
        "st_blocks", "st_blksize", "st_atime_ns",   "st_mtime_ns",  "st_ctime_ns",
    };
    struct attributes *probe =
        has_size(attributes_type, sizeof(*probe)) ? make(attributes_type) : NULL;
    if (!probe)
        return false;
    bool good = probe->attr == &probe->entry.attr;
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        good = good && put(probe, names[i], 21 + (long)i);
    good = good && check_entry(&probe->entry);
    Py_DECREF((PyObject *)probe);
    return good;
}

static bool check_file_info(void)
{
    struct file_info *probe =
        has_size(file_info_type, sizeof(*probe)) ? make(file_info_type) : NULL;
    if (!probe)
        return false;
    bool good = put(probe, "fh", 41) && put(probe, "direct_io", 1) && put(probe, "keep_cache", 0) &&
                put(probe, "nonseekable", 1) && probe->fh == 41 && probe->direct_io == 1 &&
                probe->keep_cache == 0 && probe->nonseekable == 1;
    Py_DECREF((PyObject *)probe);
    return good;
}

static bool check_statvfs(void)
{
    struct statvfs_data *probe = has_size(statvfs_type, sizeof(*probe)) ? make(statvfs_type) : NULL;
    if (!probe)
        return false;
    const struct statvfs *st = &probe->stat;
    bool good = put(probe, "f_bsize", 51) && put(probe, "f_blocks", 52) &&
                put(probe, "f_favail", 53) && put(probe, "f_namemax", 54) && st->f_bsize == 51 &&
                st->f_blocks == 52 && st->f_favail == 53 && st->f_namemax == 54;
    Py_DECREF((PyObject *)probe);
    return good;
}

/* readdir_reply() itself fills it, with the same records that our libfuse makes. */
static bool check_token(PyObject *pyfuse3)
{
    enum { ROOM = 512 };
    char expected[ROOM];
    size_t size = 0;
    struct attributes *entry = make(attributes_type);
    PyObject *token = has_size(token_type, sizeof(struct token)) ? df_node_token(NULL, ROOM) : NULL;
    PyObject *more = NULL;
    bool good = false;

    if (entry && token) {
        entry->entry.ino = entry->entry.attr.st_ino = 61;
        more = PyObject_CallMethod(pyfuse3, "readdir_reply", "OyOl", token, "name",
                                   (PyObject *)entry, 62L);
        size_t wanted =
            fuse_add_direntry_plus(NULL, expected, sizeof(expected), "name", &entry->entry, 62);
        const char *data = df_node_token_data(token, ROOM, &size);
        good = more == Py_True && size == wanted && data && memcmp(data, expected, size) == 0;
        df_node_token_end(token);
    }
    Py_XDECREF(more);
    Py_XDECREF(token);
    Py_XDECREF((PyObject *)entry);
    return good;
}

/* ---- finding them ---- */

static PyTypeObject *find(PyObject *pyfuse3, const char *name)
{
    return (PyTypeObject *)PyObject_GetAttrString(pyfuse3, name);
}

static int find_types(PyObject *pyfuse3)
{
    context_type = find(pyfuse3, "RequestContext");
    fields_type = find(pyfuse3, "SetattrFields");
    attributes_type = find(pyfuse3, "EntryAttributes");
    file_info_type = find(pyfuse3, "FileInfo");
    statvfs_type = find(pyfuse3, "StatvfsData");
    token_type = find(pyfuse3, "ReaddirToken");
    df_node_fuse_error = (PyObject *)find(pyfuse3, "FUSEError");
    return context_type && fields_type && attributes_type && file_info_type && statvfs_type &&
                   token_type && df_node_fuse_error
               ? 0
               : -1;
}

int df_node_types_prepare(PyObject *pyfuse3)
{
    static bool prepared;
    if (prepared)
        return 0;
    if (find_types(pyfuse3) < 0)
        return -1;
    const char *wrong = !check_context()        ? "RequestContext"
                        : !check_fields()       ? "SetattrFields"
                        : !check_attributes()   ? "EntryAttributes"
                        : !check_file_info()    ? "FileInfo"
                        : !check_statvfs()      ? "StatvfsData"
                        : !check_token(pyfuse3) ? "ReaddirToken"
                                                : NULL;
    prepared = wrong == NULL;
    if (prepared)
        return 0;
    PyErr_Format(PyExc_ImportError,
                 "pyfuse3.%s of this version lies in memory in another way than in the versions "
                 "that directfuse knows (3.2 to 3.5)",
                 wrong);
    return -1;
}
