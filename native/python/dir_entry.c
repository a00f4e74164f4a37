/*
 * dir_entry.c - DirEntry: what a scan knows of one name, with the attributes looked up on demand
 * and kept, as os.DirEntry.
 */
#include <sys/stat.h>

#include "core/fd.h"
#include "python/gil.h"
#include "python/scandir.h"

struct dir_entry {
    PyObject_HEAD PyObject *name;
    PyObject *directory; /* path given to scandir; NULL: a descriptor */
    PyObject *path;      /* directory/name; NULL until asked for */
    PyObject *stat;      /* results, NULL until asked for */
    PyObject *lstat;
    ino_t ino;
    int dirfd;          /* AT_FDCWD, or the descriptor given to scandir */
    unsigned char type; /* DT_* */
};

static PyObject *stat_function; /* directfuse._fast.stat: paths that lead out of a mount */

/* ---- name and path ---- */

PyObject *df_dir_entry_new(PyObject *directory, int dirfd, bool as_bytes,
                           const struct dirent64 *record)
{
    PyObject *name =
        as_bytes ? PyBytes_FromString(record->d_name) : PyUnicode_DecodeFSDefault(record->d_name);
    if (!name)
        return NULL;
    allocfunc allocate = (allocfunc)PyType_GetSlot(df_fast.dir_entry, Py_tp_alloc);
    struct dir_entry *entry = (struct dir_entry *)allocate(df_fast.dir_entry, 0);
    if (!entry) {
        Py_DECREF(name);
        return NULL;
    }
    entry->name = name;
    entry->directory = Py_XNewRef(directory);
    entry->ino = record->d_ino;
    entry->dirfd = dirfd >= 0 ? dirfd : AT_FDCWD;
    entry->type = record->d_type;
    return (PyObject *)entry;
}

static PyObject *join_text(PyObject *directory, PyObject *name)
{
    Py_ssize_t length = PyUnicode_GetLength(directory);
    bool slash = length > 0 && PyUnicode_ReadChar(directory, length - 1) == '/';
    return PyUnicode_FromFormat(slash || length == 0 ? "%U%U" : "%U/%U", directory, name);
}

static PyObject *join_bytes(PyObject *directory, PyObject *name)
{
    Py_ssize_t length = PyBytes_Size(directory);
    const char *text = PyBytes_AsString(directory);
    bool slash = length > 0 && text[length - 1] == '/';
    return PyBytes_FromFormat(slash || length == 0 ? "%s%s" : "%s/%s", text,
                              PyBytes_AsString(name));
}

/* Borrowed; NULL with an exception. */
static PyObject *path_of(struct dir_entry *entry)
{
    if (!entry->path && !entry->directory)
        entry->path = Py_NewRef(entry->name);
    else if (!entry->path && PyBytes_Check(entry->name))
        entry->path = join_bytes(entry->directory, entry->name);
    else if (!entry->path)
        entry->path = join_text(entry->directory, entry->name);
    return entry->path;
}

static PyObject *get_path(PyObject *self, void *unused)
{
    (void)unused;
    return Py_XNewRef(path_of((struct dir_entry *)self));
}

static PyObject *entry_fspath(PyObject *self, PyObject *unused)
{
    (void)unused;
    return Py_XNewRef(path_of((struct dir_entry *)self));
}

/* ---- attributes ---- */

/* By the module's stat(): the slow way, which knows what to do outside mounts. */
static PyObject *stat_anywhere(const struct dir_entry *entry, bool follow)
{
    PyObject *args = PyTuple_Pack(1, entry->path);
    PyObject *options = PyDict_New();
    PyObject *dirfd = entry->dirfd == AT_FDCWD ? Py_NewRef(Py_None) : PyLong_FromLong(entry->dirfd);
    PyObject *result = NULL;
    if (args && options && dirfd && PyDict_SetItemString(options, "dir_fd", dirfd) == 0 &&
        PyDict_SetItem(options, df_fast.follow_symlinks, follow ? Py_True : Py_False) == 0)
        result = PyObject_Call(stat_function, args, options);
    Py_XDECREF(args);
    Py_XDECREF(options);
    Py_XDECREF(dirfd);
    return result;
}

static PyObject *fetch_stat(struct dir_entry *entry, bool follow)
{
    struct df_path path;
    if (!path_of(entry) || df_path_read(&path, entry->path) < 0)
        return NULL;
    PyObject *result = NULL;
    if (path.text)
        result = df_stat_at(entry->dirfd, path.text, follow ? 0 : AT_SYMLINK_NOFOLLOW, entry->path);
    df_path_clear(&path);
    if (result || PyErr_Occurred())
        return result;
    return stat_anywhere(entry, follow);
}

static bool may_be_link(const struct dir_entry *entry)
{
    return entry->type == DT_LNK || entry->type == DT_UNKNOWN;
}

/* Borrowed; NULL with an exception. */
static PyObject *stat_of(struct dir_entry *entry, bool follow)
{
    PyObject **slot = follow && may_be_link(entry) ? &entry->stat : &entry->lstat;
    if (!*slot) {
        PyObject *fresh = fetch_stat(entry, slot == &entry->stat);
        if (!fresh)
            return NULL;
        if (*slot) /* another thread was faster while the GIL was free */
            Py_DECREF(fresh);
        else
            *slot = fresh;
    }
    return *slot;
}

/* The st_mode; 0 when the name is gone (the methods then say False); -1 with an exception. */
static long mode_of(struct dir_entry *entry, bool follow)
{
    PyObject *result = stat_of(entry, follow);
    if (!result) {
        if (!PyErr_ExceptionMatches(PyExc_FileNotFoundError))
            return -1;
        PyErr_Clear();
        return 0;
    }
    return PyLong_AsLong(PyTuple_GetItem(result, 0));
}

/* Whether the type is `wanted`, an S_IF*; d_type spares the stat. */
static PyObject *is_of_type(struct dir_entry *entry, bool follow, mode_t wanted)
{
    if (entry->type != DT_UNKNOWN && !(follow && entry->type == DT_LNK))
        return PyBool_FromLong((mode_t)DTTOIF(entry->type) == wanted);
    long mode = mode_of(entry, follow);
    if (mode < 0)
        return NULL;
    return PyBool_FromLong((mode & S_IFMT) == wanted);
}

/* The one keyword of three methods. 0, or -1 with an exception. */
static int read_follow(Py_ssize_t count, PyObject *const *values, PyObject *names, bool *follow)
{
    *follow = true;
    Py_ssize_t keywords = names ? PyTuple_Size(names) : 0;
    if (count != 0 || keywords > 1 ||
        (keywords == 1 &&
         PyUnicode_CompareWithASCIIString(PyTuple_GetItem(names, 0), "follow_symlinks") != 0)) {
        PyErr_SetString(PyExc_TypeError, "the only argument is the keyword follow_symlinks");
        return -1;
    }
    if (keywords == 0)
        return 0;
    int truth = PyObject_IsTrue(values[0]);
    *follow = truth > 0;
    return truth < 0 ? -1 : 0;
}

static PyObject *entry_is_dir(PyObject *self, PyObject *const *values, Py_ssize_t count,
                              PyObject *names)
{
    bool follow;
    if (read_follow(count, values, names, &follow) < 0)
        return NULL;
    return is_of_type((struct dir_entry *)self, follow, S_IFDIR);
}

static PyObject *entry_is_file(PyObject *self, PyObject *const *values, Py_ssize_t count,
                               PyObject *names)
{
    bool follow;
    if (read_follow(count, values, names, &follow) < 0)
        return NULL;
    return is_of_type((struct dir_entry *)self, follow, S_IFREG);
}

static PyObject *entry_is_symlink(PyObject *self, PyObject *unused)
{
    (void)unused;
    return is_of_type((struct dir_entry *)self, false, S_IFLNK);
}

static PyObject *entry_is_junction(PyObject *self, PyObject *unused)
{
    (void)self;
    (void)unused;
    Py_RETURN_FALSE;
}

static PyObject *entry_stat(PyObject *self, PyObject *const *values, Py_ssize_t count,
                            PyObject *names)
{
    bool follow;
    if (read_follow(count, values, names, &follow) < 0)
        return NULL;
    return Py_XNewRef(stat_of((struct dir_entry *)self, follow));
}

static PyObject *entry_inode(PyObject *self, PyObject *unused)
{
    (void)unused;
    return PyLong_FromUnsignedLongLong(((struct dir_entry *)self)->ino);
}

static PyObject *entry_repr(PyObject *self)
{
    return PyUnicode_FromFormat("<DirEntry %R>", ((struct dir_entry *)self)->name);
}

static PyObject *refuse_pickle(PyObject *self, PyObject *unused)
{
    (void)self;
    (void)unused;
    PyErr_SetString(PyExc_TypeError, "cannot pickle 'directfuse.DirEntry' object");
    return NULL;
}

static void entry_dealloc(PyObject *self)
{
    struct dir_entry *entry = (struct dir_entry *)self;
    PyTypeObject *type = Py_TYPE(self);
    Py_XDECREF(entry->name);
    Py_XDECREF(entry->directory);
    Py_XDECREF(entry->path);
    Py_XDECREF(entry->stat);
    Py_XDECREF(entry->lstat);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

/* ---- the type ---- */

static PyMethodDef methods[] = {
    DF_FAST_METHOD("is_dir", entry_is_dir, METH_FASTCALL | METH_KEYWORDS,
                   "is_dir($self, /, *, follow_symlinks=True)\n--\n\n"
                   "Whether it is a directory; False when it is gone."),
    DF_FAST_METHOD("is_file", entry_is_file, METH_FASTCALL | METH_KEYWORDS,
                   "is_file($self, /, *, follow_symlinks=True)\n--\n\n"
                   "Whether it is a regular file; False when it is gone."),
    {"is_symlink", entry_is_symlink, METH_NOARGS,
     PyDoc_STR("is_symlink($self, /)\n--\n\nWhether it is a symbolic link.")},
    {"is_junction", entry_is_junction, METH_NOARGS,
     PyDoc_STR("is_junction($self, /)\n--\n\nFalse: Linux has none.")},
    DF_FAST_METHOD("stat", entry_stat, METH_FASTCALL | METH_KEYWORDS,
                   "stat($self, /, *, follow_symlinks=True)\n--\n\n"
                   "os.stat_result of the entry, looked up once and kept."),
    {"inode", entry_inode, METH_NOARGS,
     PyDoc_STR("inode($self, /)\n--\n\nThe inode number, as the directory tells it.")},
    {"__fspath__", entry_fspath, METH_NOARGS, PyDoc_STR("__fspath__($self, /)\n--\n\nThe path.")},
    {"__class_getitem__", Py_GenericAlias, METH_O | METH_CLASS, NULL},
    {"__reduce__", refuse_pickle, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef members[] = {
    {"name", T_OBJECT_EX, offsetof(struct dir_entry, name), READONLY,
     PyDoc_STR("The name without the directory; bytes for a bytes path.")},
    {NULL, 0, 0, 0, NULL},
};

static PyGetSetDef properties[] = {
    {"path", get_path, NULL,
     PyDoc_STR("The path given to scandir and the name; the name alone for a descriptor."), NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, (void *)PyDoc_STR("One entry of a directory, as os.DirEntry.")},
    {Py_tp_repr, entry_repr},
    {Py_tp_methods, methods},
    {Py_tp_members, members},
    {Py_tp_getset, properties},
    {Py_tp_dealloc, entry_dealloc},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "directfuse._fast.DirEntry",
    .basicsize = sizeof(struct dir_entry),
    .flags = DF_FAST_TYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = slots,
};

int df_dir_entry_prepare(PyObject *module)
{
    stat_function = PyObject_GetAttrString(module, "stat");
    df_fast.dir_entry = (PyTypeObject *)PyType_FromModuleAndSpec(module, &spec, NULL);
    if (!stat_function || !df_fast.dir_entry)
        return -1;
    return PyModule_AddType(module, df_fast.dir_entry);
}
