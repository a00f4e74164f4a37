/*
 * node_ops.c - struct fuse_lowlevel_ops of a pyfuse3 file system: each request becomes the
 * arguments of a method, in pyfuse3's order.
 */
#include <errno.h>
#include <string.h>
#include <sys/xattr.h>

#include "pyhost/node.h"

static const char *const names[DF_NODE_OP_COUNT] = {
#define DF_NODE_OP(number, method, member, reply) [DF_NODE_##number] = #method,
#define DF_NODE_HELPER_OP(number, method, reply)  [DF_NODE_##number] = #method,
#include "pyhost/node_ops.def"
#undef DF_NODE_OP
#undef DF_NODE_HELPER_OP
};

const char *df_node_op_name(enum df_node_op op)
{
    return names[op];
}

/* ---- begin and end of each ---- */

struct visit {
    struct df_node_request request;
    struct df_thread_stay stay;
};

/* False: the interpreter has gone, and the request is answered. */
static bool begin(struct visit *visit, fuse_req_t req, enum df_node_op op)
{
    visit->request = (struct df_node_request){
        .session = fuse_req_userdata(req),
        .req = req,
        .op = op,
    };
    if (df_thread_enter(&visit->stay))
        return true;
    if (op == DF_NODE_FORGET)
        fuse_reply_none(req);
    else
        fuse_reply_err(req, EIO);
    return false;
}

static void end(struct visit *visit, PyObject *args)
{
    df_node_call(&visit->request, args);
    df_thread_leave(&visit->stay);
}

/* ---- arguments ---- */

static PyObject *number(unsigned long long value)
{
    return PyLong_FromUnsignedLongLong(value);
}

static PyObject *offset(off_t value)
{
    return PyLong_FromLongLong(value);
}

static PyObject *bytes(const char *text)
{
    return PyBytes_FromString(text);
}

/* ---- names ---- */

static void op_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    struct visit visit;
    if (begin(&visit, req, DF_NODE_LOOKUP))
        end(&visit, df_args_pack(3, number(parent), bytes(name), df_node_context(req)));
}

static void op_mknod(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, dev_t rdev)
{
    struct visit visit;
    if (begin(&visit, req, DF_NODE_MKNOD))
        end(&visit, df_args_pack(5, number(parent), bytes(name), number(mode), number(rdev),
                                 df_node_context(req)));
}

static void op_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode)
{
    struct visit visit;
    mode = (mode & ~(mode_t)S_IFMT) | S_IFDIR; /* as pyfuse3 does */
    if (begin(&visit, req, DF_NODE_MKDIR))
        end(&visit,
            df_args_pack(4, number(parent), bytes(name), number(mode), df_node_context(req)));
}

static void op_symlink(fuse_req_t req, const char *target, fuse_ino_t parent, const char *name)
{
    struct visit visit;
    if (begin(&visit, req, DF_NODE_SYMLINK))
        end(&visit,
            df_args_pack(4, number(parent), bytes(name), bytes(target), df_node_context(req)));
}

static void op_link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t parent, const char *name)
{
    struct visit visit;
    if (begin(&visit, req, DF_NODE_LINK))
        end(&visit,
            df_args_pack(4, number(ino), number(parent), bytes(name), df_node_context(req)));
}

static void remove_entry(enum df_node_op op, fuse_req_t req, fuse_ino_t parent, const char *name)
{
    struct visit visit;
    if (begin(&visit, req, op))
        end(&visit, df_args_pack(3, number(parent), bytes(name), df_node_context(req)));
}

static void op_unlink(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    remove_entry(DF_NODE_UNLINK, req, parent, name);
}

static void op_rmdir(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    remove_entry(DF_NODE_RMDIR, req, parent, name);
}

static void op_rename(fuse_req_t req, fuse_ino_t parent, const char *name, fuse_ino_t to,
                      const char *to_name, unsigned flags)
{
    struct visit visit;
    if (begin(&visit, req, DF_NODE_RENAME))
        end(&visit, df_args_pack(6, number(parent), bytes(name), number(to), bytes(to_name),
                                 number(flags), df_node_context(req)));
}

/* ---- nodes ---- */

static PyObject *forgotten(size_t count, const struct fuse_forget_data *list)
{
    PyObject *pairs = PyList_New(0);
    for (size_t i = 0; pairs && i < count; i++) {
        PyObject *pair = df_args_pack(2, number(list[i].ino), number(list[i].nlookup));
        if (!pair || PyList_Append(pairs, pair) < 0)
            Py_CLEAR(pairs);
        Py_XDECREF(pair);
    }
    return df_args_pack(1, pairs);
}

static void op_forget_multi(fuse_req_t req, size_t count, struct fuse_forget_data *list)
{
    struct visit visit;
    if (begin(&visit, req, DF_NODE_FORGET))
        end(&visit, forgotten(count, list));
}

static void op_forget(fuse_req_t req, fuse_ino_t ino, uint64_t nlookup)
{
    struct fuse_forget_data one = {ino, nlookup};
    op_forget_multi(req, 1, &one);
}

static void op_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    struct visit visit;
    (void)fi;
    if (begin(&visit, req, DF_NODE_GETATTR))
        end(&visit, df_args_pack(2, number(ino), df_node_context(req)));
}

static void op_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *attr, int to_set,
                       struct fuse_file_info *fi)
{
    struct visit visit;
    if (begin(&visit, req, DF_NODE_SETATTR))
        end(&visit,
            df_args_pack(5, number(ino), df_node_attributes(attr, to_set), df_node_fields(to_set),
                         fi ? number(fi->fh) : Py_NewRef(Py_None), df_node_context(req)));
}

/* What takes a node and nothing else. */
static void about_node(enum df_node_op op, fuse_req_t req, fuse_ino_t ino, size_t size)
{
    struct visit visit;
    if (!begin(&visit, req, op))
        return;
    visit.request.size = size;
    end(&visit, df_args_pack(2, number(ino), df_node_context(req)));
}

static void op_readlink(fuse_req_t req, fuse_ino_t ino)
{
    about_node(DF_NODE_READLINK, req, ino, 0);
}

static void op_listxattr(fuse_req_t req, fuse_ino_t ino, size_t size)
{
    about_node(DF_NODE_LISTXATTR, req, ino, size);
}

static void op_statfs(fuse_req_t req, fuse_ino_t ino)
{
    struct visit visit;
    (void)ino;
    if (begin(&visit, req, DF_NODE_STATFS))
        end(&visit, df_args_pack(1, df_node_context(req)));
}

static void op_access(fuse_req_t req, fuse_ino_t ino, int mask)
{
    struct visit visit;
    if (begin(&visit, req, DF_NODE_ACCESS))
        end(&visit, df_args_pack(3, number(ino), number((unsigned)mask), df_node_context(req)));
}

/* ---- extended attributes ---- */

/* With flags the helper looks first whether the attribute is there, as pyfuse3 does. */
static void op_setxattr(fuse_req_t req, fuse_ino_t ino, const char *name, const char *value,
                        size_t size, int flags)
{
    struct visit visit;
    bool plain = !(flags & (XATTR_CREATE | XATTR_REPLACE));
    if (!begin(&visit, req, plain ? DF_NODE_SETXATTR : DF_NODE_SETXATTR_FLAGS))
        return;
    PyObject *data = PyBytes_FromStringAndSize(value, (Py_ssize_t)size);
    if (plain)
        end(&visit, df_args_pack(4, number(ino), bytes(name), data, df_node_context(req)));
    else
        end(&visit, df_args_pack(5, number(ino), bytes(name), data, number((unsigned)flags),
                                 df_node_context(req)));
}

static void op_getxattr(fuse_req_t req, fuse_ino_t ino, const char *name, size_t size)
{
    struct visit visit;
    if (!begin(&visit, req, DF_NODE_GETXATTR))
        return;
    visit.request.size = size;
    end(&visit, df_args_pack(3, number(ino), bytes(name), df_node_context(req)));
}

static void op_removexattr(fuse_req_t req, fuse_ino_t ino, const char *name)
{
    struct visit visit;
    if (begin(&visit, req, DF_NODE_REMOVEXATTR))
        end(&visit, df_args_pack(3, number(ino), bytes(name), df_node_context(req)));
}

/* ---- open files ---- */

static void op_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    struct visit visit;
    if (!begin(&visit, req, DF_NODE_OPEN))
        return;
    visit.request.fi = *fi;
    end(&visit, df_args_pack(3, number(ino), number((unsigned)fi->flags), df_node_context(req)));
}

static void op_create(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode,
                      struct fuse_file_info *fi)
{
    struct visit visit;
    if (!begin(&visit, req, DF_NODE_CREATE))
        return;
    visit.request.fi = *fi;
    end(&visit, df_args_pack(5, number(parent), bytes(name), number(mode),
                             number((unsigned)fi->flags), df_node_context(req)));
}

static void op_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
                    struct fuse_file_info *fi)
{
    struct visit visit;
    (void)ino;
    if (!begin(&visit, req, DF_NODE_READ))
        return;
    visit.request.size = size;
    end(&visit, df_args_pack(3, number(fi->fh), offset(off), number(size)));
}

/* The bytes of a write, wherever they are. */
static PyObject *written(struct fuse_bufvec *from, size_t size)
{
    struct fuse_bufvec to = FUSE_BUFVEC_INIT(size);
    PyObject *data = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)size);
    if (!data)
        return NULL;
    to.buf[0].mem = PyBytes_AsString(data);
    ssize_t copied = fuse_buf_copy(&to, from, 0);
    if (copied == (ssize_t)size)
        return data;
    Py_DECREF(data);
    errno = copied < 0 ? (int)-copied : EIO;
    return PyErr_SetFromErrno(PyExc_OSError);
}

static void op_write_buf(fuse_req_t req, fuse_ino_t ino, struct fuse_bufvec *buf, off_t off,
                         struct fuse_file_info *fi)
{
    struct visit visit;
    (void)ino;
    if (!begin(&visit, req, DF_NODE_WRITE))
        return;
    visit.request.size = fuse_buf_size(buf);
    end(&visit, df_args_pack(3, number(fi->fh), offset(off), written(buf, visit.request.size)));
}

/* What takes a handle and nothing else. */
static void about_handle(enum df_node_op op, fuse_req_t req, const struct fuse_file_info *fi)
{
    struct visit visit;
    if (begin(&visit, req, op))
        end(&visit, df_args_pack(1, number(fi->fh)));
}

static void op_flush(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    (void)ino;
    about_handle(DF_NODE_FLUSH, req, fi);
}

static void op_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    (void)ino;
    about_handle(DF_NODE_RELEASE, req, fi);
}

static void op_releasedir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    (void)ino;
    about_handle(DF_NODE_RELEASEDIR, req, fi);
}

static void sync_handle(enum df_node_op op, fuse_req_t req, int datasync,
                        const struct fuse_file_info *fi)
{
    struct visit visit;
    if (begin(&visit, req, op))
        end(&visit, df_args_pack(2, number(fi->fh), PyBool_FromLong(datasync)));
}

static void op_fsync(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi)
{
    (void)ino;
    sync_handle(DF_NODE_FSYNC, req, datasync, fi);
}

static void op_fsyncdir(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi)
{
    (void)ino;
    sync_handle(DF_NODE_FSYNCDIR, req, datasync, fi);
}

static void op_poll(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi,
                    struct fuse_pollhandle *handle)
{
    struct visit visit;
    if (begin(&visit, req, DF_NODE_POLL))
        end(&visit, df_args_pack(4, number(ino), number(fi ? fi->fh : 0), df_node_poll_new(handle),
                                 df_node_context(req)));
    else if (handle)
        fuse_pollhandle_destroy(handle);
}

/* ---- directories ---- */

static void op_opendir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    struct visit visit;
    if (!begin(&visit, req, DF_NODE_OPENDIR))
        return;
    visit.request.fi = *fi;
    end(&visit, df_args_pack(2, number(ino), df_node_context(req)));
}

static void op_readdirplus(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
                           struct fuse_file_info *fi)
{
    struct visit visit;
    (void)ino;
    if (!begin(&visit, req, DF_NODE_READDIR))
        return;
    visit.request.size = size;
    visit.request.token = df_node_token(req, size);
    end(&visit, df_args_pack(3, number(fi->fh), offset(off), Py_XNewRef(visit.request.token)));
}

/* ---- INIT, and the table ---- */

/* What pyfuse3 sets: READDIRPLUS always, nothing adaptive. A file system that writes back does not
 * look at O_TRUNC: the size is the cache's. */
static void op_init(void *userdata, struct fuse_conn_info *conn)
{
    const struct df_node_session *session = userdata;
    if (session->writes_back)
        conn->want &= ~(unsigned)FUSE_CAP_ATOMIC_O_TRUNC;
    conn->want &= ~(unsigned)FUSE_CAP_READDIRPLUS_AUTO;
    conn->want |= conn->capable & FUSE_CAP_READDIRPLUS;
    if (session->acls)
        conn->want |= conn->capable & FUSE_CAP_POSIX_ACL;
}

/* An operation without a method does not exist: libfuse answers ENOSYS. */
static bool has(PyObject *ops, enum df_node_op op)
{
    PyObject *method = PyObject_GetAttrString(ops, names[op]);
    if (!method)
        PyErr_Clear();
    Py_XDECREF(method);
    return method != NULL;
}

int df_node_ops_fill(struct fuse_lowlevel_ops *table, PyObject *ops)
{
    if (!has(ops, DF_NODE_LOOKUP) || !has(ops, DF_NODE_GETATTR)) {
        PyErr_Format(PyExc_TypeError,
                     "%R is no file system: it has no methods lookup() and getattr()",
                     (PyObject *)Py_TYPE(ops));
        return -1;
    }
    *table = (struct fuse_lowlevel_ops){
        .init = op_init,
        .forget_multi = has(ops, DF_NODE_FORGET) ? op_forget_multi : NULL,
    };
#define DF_NODE_OP(number, method, member, reply)                                                  \
    if (has(ops, DF_NODE_##number))                                                                \
        table->member = op_##member;
#define DF_NODE_HELPER_OP(number, method, reply)
#include "pyhost/node_ops.def"
#undef DF_NODE_OP
#undef DF_NODE_HELPER_OP
    return 0;
}
