/*
 * versions4.c - what libfuse3.so.4 (libfuse 3.17 to 3.18) has otherwise than libfuse3.so.3: the
 * version of its headers in every entry point, structures that have grown or moved, and new names.
 *
 *   fuse_operations, fuse_lowlevel_ops   longer: statx, tmpfile
 *   fuse_file_info                       longer; the host has room behind its own
 *   fuse_conn_info                       capabilities in 64 bits, beside those in 32
 *   fuse_config                          no_rofd_flush moved; fmask, dmask
 *   fuse_buf                             longer, so the second and later ones of a vector moved
 *
 * Where a structure goes through an operation, the operation is replaced by one here, which
 * converts and calls the program's. To find that, the user data of a layer and of a low-level
 * session are ours, and what asks for them (fuse_get_context, fuse_req_userdata) tells the
 * program's own.
 */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "highlevel/highlevel.h"
#include "libfuse/versions4.h"
#include "lowlevel/lowlevel.h"

const struct df_abi_version df_abi_version = {
    .number = 318,
    .name = "3.18.0",
    .help = "    -o fmask=M             permission bits of files to hide (octal)\n"
            "    -o dmask=M             permission bits of directories to hide (octal)\n",
};

/* ---- negotiation ----------------------------------------------------------------------------- */

static struct fuse4_conn_info conn_4(const struct fuse_conn_info *conn)
{
    struct fuse4_conn_info shown = {0};
    memcpy(&shown, conn, offsetof(struct fuse4_conn_info, max_backing_stack_depth));
    shown.capable_ext = conn->capable;
    shown.want_ext = conn->want;
    return shown;
}

/* A program changes what it wants in either field. Nothing above the lower 32 bits is offered; who
 * wants it all the same is refused by way of what was not offered below. */
static void conn_3(struct fuse_conn_info *conn, const struct fuse4_conn_info *from)
{
    uint32_t before = conn->want;
    uint32_t changed = (from->want ^ before) | ((uint32_t)from->want_ext ^ before);
    memcpy(conn, from, offsetof(struct fuse4_conn_info, max_backing_stack_depth));
    conn->want = from->want_ext >> 32 ? ~conn->capable : before ^ changed;
}

bool fuse4_set_feature_flag(struct fuse4_conn_info *conn, uint64_t flag)
{
    if (!(conn->capable_ext & flag))
        return false;
    conn->want_ext |= flag;
    conn->want |= (uint32_t)flag;
    return true;
}
VERSION(fuse4_set_feature_flag, "fuse_set_feature_flag@@FUSE_3.17.3");

void fuse4_unset_feature_flag(struct fuse4_conn_info *conn, uint64_t flag)
{
    conn->want_ext &= ~flag;
    conn->want &= ~(uint32_t)flag;
}
VERSION(fuse4_unset_feature_flag, "fuse_unset_feature_flag@@FUSE_3.17.3");

bool fuse4_get_feature_flag(struct fuse4_conn_info *conn, uint64_t flag)
{
    return conn->capable_ext & flag;
}
VERSION(fuse4_get_feature_flag, "fuse_get_feature_flag@@FUSE_3.17.3");

/* Of libfuse's own tests: makes both fields say what the older one says. */
int fuse4_convert_to_conn_want_ext(struct fuse4_conn_info *conn)
{
    conn->want_ext = (conn->want_ext & ~(uint64_t)UINT32_MAX) | conn->want;
    return 0;
}
VERSION(fuse4_convert_to_conn_want_ext, "fuse_convert_to_conn_want_ext@@FUSE_3.17.3");

/* ---- configuration --------------------------------------------------------------------------- */

/* What moved is copied by name, what did not as it stands. */
enum {
    CONFIG_HEAD = offsetof(struct fuse_config, no_rofd_flush),
    CONFIG_TAIL = offsetof(struct fuse4_config, ac_attr_timeout),
};
_Static_assert(CONFIG_HEAD == offsetof(struct fuse4_config, ac_attr_timeout_set), "to auto_cache");

static struct fuse4_config config_4(const struct fuse_config *config, const struct fuse *f)
{
    struct fuse4_config shown = {0};
    memcpy(&shown, config, CONFIG_HEAD);
    shown.ac_attr_timeout_set = config->ac_attr_timeout_set;
    shown.ac_attr_timeout = config->ac_attr_timeout;
    shown.nullpath_ok = config->nullpath_ok;
    shown.show_help = config->show_help;
    shown.modules = config->modules;
    shown.debug = config->debug;
    shown.no_rofd_flush = config->no_rofd_flush;
    if (f) {
        shown.fmask = f->fmask;
        shown.dmask = f->dmask;
    }
    return shown;
}

static void config_3(struct fuse_config *config, const struct fuse4_config *from, struct fuse *f)
{
    memcpy(config, from, CONFIG_HEAD);
    config->ac_attr_timeout_set = from->ac_attr_timeout_set;
    config->ac_attr_timeout = from->ac_attr_timeout;
    config->nullpath_ok = from->nullpath_ok;
    config->no_rofd_flush = from->no_rofd_flush;
    if (f)
        df_highlevel_set_masks(f->session->fs, from->fmask, from->dmask);
}

#define MASK(template, member) {template, offsetof(struct fuse, member), 0}
#define SET_MODE(template)     {template, offsetof(struct fuse, config.set_mode), 1}
#define ACCEPT(template)       FUSE_OPT_KEY(template, FUSE_OPT_KEY_DISCARD)
/* How requests come from the kernel; times, which are the file system's business. nosymfollow is
 * unknown, so refused: it would promise what is not kept. */
#define ACCEPT_OF_MOUNT                                                                            \
    ACCEPT("io_uring"), ACCEPT("io_uring_q_depth="), ACCEPT("nodiratime"),                         \
        ACCEPT("nostrictatime"), ACCEPT("symfollow")

static const struct fuse_opt later_opts[] = {
    SET_MODE("fmask="),
    MASK("fmask=%o", fmask),
    SET_MODE("dmask="),
    MASK("dmask=%o", dmask),
    ACCEPT("parallel_direct_write="), /* what the kernel serialises and we do not */
    ACCEPT_OF_MOUNT,
    FUSE_OPT_END,
};

static const struct fuse_opt low_later_opts[] = {
    ACCEPT_OF_MOUNT,
    FUSE_OPT_END,
};

df_abi_factory *df_abi_find_factory(const char *name)
{
    (void)name; /* in FUSE 3 there is no function to register one */
    return NULL;
}

int df_abi_take_later_options(struct fuse_args *args, struct fuse *f)
{
    return fuse_opt_parse(args, f, later_opts, NULL);
}

/* ---- high-level operations --------------------------------------------------------------------
 */

/* The user data of a layer. */
struct layer4 {
    struct fuse4_operations ops;
    void *private_data; /* user data, then what init returned */
};

static struct layer4 *layer_here(void)
{
    return df_highlevel_context()->private_data;
}

/* What is negotiated with while init of a layer runs on this thread: for fuse_fs_init() inside. */
static _Thread_local struct {
    struct fuse_conn_info *conn;
    struct fuse_config *config;
} negotiation;

static void *do_init(struct fuse_conn_info *conn, struct fuse_config *config)
{
    struct layer4 *layer = layer_here();
    init4_function *init = (init4_function *)(void *)layer->ops.same.init;
    struct fuse *f = df_highlevel_context()->fuse;
    __auto_type before = negotiation;
    struct fuse4_conn_info conn4 = conn_4(conn);
    struct fuse4_config config4 = config_4(config, f);
    if (!init)
        return layer;
    negotiation.conn = conn;
    negotiation.config = config;
    layer->private_data = init(&conn4, &config4);
    negotiation = before;
    conn_3(conn, &conn4);
    config_3(config, &config4, f);
    return layer;
}

static void do_destroy(void *data)
{
    struct layer4 *layer = data;
    if (layer->ops.same.destroy)
        layer->ops.same.destroy(layer->private_data);
    free(layer);
}

/* The caller frees the vector, and what is in it. */
static int do_read_buf(const char *path, struct fuse_bufvec **bufp, size_t size, off_t off,
                       struct fuse_file_info *fi)
{
    struct fuse4_bufvec *vector = NULL;
    read_buf4_function *read_buf = (read_buf4_function *)(void *)layer_here()->ops.same.read_buf;
    int result = read_buf(path, &vector, size, off, fi);
    *bufp = (struct fuse_bufvec *)vector;
    if (!vector || vector->count <= 1)
        return result;
    *bufp = df4_vector_3(vector);
    free(vector);
    return *bufp ? result : -ENOMEM;
}

static int do_write_buf(const char *path, struct fuse_bufvec *buf, off_t off,
                        struct fuse_file_info *fi)
{
    write_buf4_function *write_buf =
        (write_buf4_function *)(void *)layer_here()->ops.same.write_buf;
    struct fuse4_bufvec *vector = df4_vector_4(buf);
    int result = vector ? write_buf(path, vector, off, fi) : -ENOMEM;
    free(vector);
    return result;
}

struct fuse_fs *df_abi_layer_new(const struct fuse_operations *op, size_t op_size, void *user_data)
{
    struct layer4 *layer = calloc(1, sizeof(*layer));
    if (!layer) {
        df_abi_no_memory();
        return NULL;
    }
    if (op)
        memcpy(&layer->ops, op, op_size < sizeof(layer->ops) ? op_size : sizeof(layer->ops));
    layer->private_data = user_data;
    struct fuse_operations ops = layer->ops.same;
    ops.init = do_init;
    ops.destroy = do_destroy;
    ops.read_buf = ops.read_buf ? do_read_buf : NULL;
    ops.write_buf = ops.write_buf ? do_write_buf : NULL;
    struct fuse_fs *fs = df_abi_fs_new(&ops, sizeof(ops), layer);
    if (!fs) {
        free(layer);
        return NULL;
    }
    fs->discard = free;
    fs->statx = layer->ops.statx;
    return fs;
}

struct fuse_context *fuse_get_context(void)
{
    static _Thread_local struct fuse_context shown;
    const struct fuse_context *real = df_highlevel_context();
    if (!real)
        return NULL;
    shown = *real;
    shown.private_data = layer_here()->private_data;
    return &shown;
}

/* ---- fuse_new, fuse_main -----------------------------------------------------------------------
 */

VERSION(fuse_new_30, "fuse_new@FUSE_3.0");
VERSION(fuse_new_31, "fuse_new@FUSE_3.1");

struct fuse *fuse_new_30(struct fuse_args *args, const struct fuse_operations *op, size_t op_size,
                         void *user_data)
{
    return df_abi_fuse_new_30(args, op, op_size, user_data,
                              df_abi_plugin(__builtin_return_address(0)));
}

struct fuse *fuse_new_31(struct fuse_args *args, const struct fuse_operations *op, size_t op_size,
                         void *user_data)
{
    return df_abi_fuse_new(args, op, op_size, user_data,
                           df_abi_plugin(__builtin_return_address(0)));
}

struct fuse *_fuse_new_30(struct fuse_args *args, const struct fuse_operations *op, size_t op_size,
                          const struct libfuse_version *version, void *user_data)
{
    (void)version;
    return df_abi_fuse_new_30(args, op, op_size, user_data,
                              df_abi_plugin(__builtin_return_address(0)));
}

struct fuse *_fuse_new_31(struct fuse_args *args, const struct fuse_operations *op, size_t op_size,
                          const struct libfuse_version *version, void *user_data)
{
    (void)version;
    return df_abi_fuse_new(args, op, op_size, user_data,
                           df_abi_plugin(__builtin_return_address(0)));
}

int fuse_main_real_versioned(int argc, char *argv[], const struct fuse_operations *op,
                             size_t op_size, const struct libfuse_version *version, void *user_data)
{
    (void)version;
    return df_abi_main(argc, argv, op, op_size, user_data,
                       df_abi_plugin(__builtin_return_address(0)));
}

/* ---- layers ------------------------------------------------------------------------------------
 */

struct fuse_fs *fuse_fs_new(const struct fuse_operations *op, size_t op_size, void *private_data)
{
    return df_abi_layer_new(op, op_size, private_data);
}

/* By the init of the layer above, with what that has made of the negotiation so far. */
void fuse4_fs_init(struct fuse_fs *fs, struct fuse4_conn_info *conn4, struct fuse4_config *config4)
{
    struct fuse_conn_info alone_conn = {0};
    struct fuse_config alone_config = {0};
    struct fuse_conn_info *conn = negotiation.conn ? negotiation.conn : &alone_conn;
    struct fuse_config *config = negotiation.config ? negotiation.config : &alone_config;
    conn_3(conn, conn4);
    config_3(config, config4, NULL);
    df_abi_fs_init(fs, conn, config);
    *conn4 = conn_4(conn);
    *config4 = config_4(config, NULL);
}
VERSION(fuse4_fs_init, "fuse_fs_init@@FUSE_3.0");

/* The layer's own operation hands it over in its own structure; see do_read_buf(). */
int fuse4_fs_read_buf(struct fuse_fs *fs, const char *path, struct fuse4_bufvec **bufp, size_t size,
                      off_t off, struct fuse_file_info *fi)
{
    struct fuse_bufvec *vector = NULL;
    int result = df_abi_fs_read_buf(fs, path, &vector, size, off, fi);
    *bufp = vector ? df4_vector_4(vector) : NULL;
    free(vector);
    return *bufp || result < 0 ? result : -ENOMEM;
}
VERSION(fuse4_fs_read_buf, "fuse_fs_read_buf@@FUSE_3.0");

int fuse4_fs_write_buf(struct fuse_fs *fs, const char *path, struct fuse4_bufvec *buf, off_t off,
                       struct fuse_file_info *fi)
{
    struct fuse_bufvec *vector = df4_vector_3(buf);
    int result = vector ? df_abi_fs_write_buf(fs, path, vector, off, fi) : -ENOMEM;
    free(vector);
    return result;
}
VERSION(fuse4_fs_write_buf, "fuse_fs_write_buf@@FUSE_3.0");

int fuse_fs_statx(struct fuse_fs *fs, const char *path, int flags, int mask, struct statx *st,
                  struct fuse_file_info *fi)
{
    return df_abi_fs_statx(fs, path, flags, mask, st, fi);
}

/* ---- low-level sessions -------------------------------------------------------------------------
 */

/* A session's user data; it goes with the session. */
struct low4 {
    struct df_lowlevel_ops ops; /* init, write_buf: with the structures of versions4.h */
    void *userdata;
};

static void low_init(void *data, struct fuse_conn_info *conn)
{
    const struct low4 *low = data;
    struct fuse4_conn_info conn4 = conn_4(conn);
    ((low_init4_function *)(void *)low->ops.ops.init)(low->userdata, &conn4);
    conn_3(conn, &conn4);
}

static void low_destroy(void *data)
{
    const struct low4 *low = data;
    low->ops.ops.destroy(low->userdata);
}

static void low_write_buf(fuse_req_t req, fuse_ino_t ino, struct fuse_bufvec *buf, off_t off,
                          struct fuse_file_info *fi)
{
    const struct low4 *low = df_req_userdata(req);
    struct fuse4_bufvec *vector = df4_vector_4(buf);
    if (vector)
        ((low_write_buf4_function *)(void *)low->ops.ops.write_buf)(req, ino, vector, off, fi);
    else
        df_reply_err(req, ENOMEM);
    free(vector);
}

/* No operations: a session that only mounts, as fuse_session_new() of 3.17 allows. */
static struct fuse_session *low_new(struct fuse_args *args, const struct fuse_lowlevel_ops *op,
                                    size_t op_size, void *userdata, struct df_plugin *plugin)
{
    struct low4 *low = calloc(1, sizeof(*low));
    if (!low) {
        df_abi_no_memory();
        return NULL;
    }
    if (op)
        memcpy(&low->ops, op, op_size < sizeof(low->ops) ? op_size : sizeof(low->ops));
    low->userdata = userdata;
    struct df_lowlevel_ops all = low->ops;
    struct fuse_lowlevel_ops *ops = &all.ops;
    ops->init = ops->init ? low_init : NULL;
    ops->destroy = ops->destroy ? low_destroy : NULL;
    ops->write_buf = ops->write_buf ? low_write_buf : NULL;
    struct fuse_session *se = NULL;
    if (fuse_opt_parse(args, NULL, low_later_opts, NULL) == 0)
        se = df_abi_lowlevel_session(args, ops, sizeof(all), low, plugin);
    if (se)
        se->later = low;
    else
        free(low);
    return se;
}

struct fuse_session *fuse_session_new(struct fuse_args *args, const struct fuse_lowlevel_ops *op,
                                      size_t op_size, void *userdata)
{
    return low_new(args, op, op_size, userdata, df_abi_plugin(__builtin_return_address(0)));
}

struct fuse_session *fuse_session_new_versioned(struct fuse_args *args,
                                                const struct fuse_lowlevel_ops *op, size_t op_size,
                                                const struct libfuse_version *version,
                                                void *userdata)
{
    (void)version;
    return low_new(args, op, op_size, userdata, df_abi_plugin(__builtin_return_address(0)));
}

void *fuse_req_userdata(fuse_req_t req)
{
    const struct low4 *low = df_req_userdata(req);
    return low->userdata;
}

int fuse4_notify_expire_entry(struct fuse_session *se, fuse_ino_t parent, const char *name,
                              size_t namelen)
{
    return fuse_lowlevel_notify_inval_entry(se, parent, name, namelen);
}
VERSION(fuse4_notify_expire_entry, "fuse_lowlevel_notify_expire_entry@@FUSE_3.12");

/* ---- new names
 * ------------------------------------------------------------------------------------ */

VERSION(fuse_session_custom_io_30, "fuse_session_custom_io@FUSE_3.0");
VERSION(fuse_session_custom_io_317, "fuse_session_custom_io@@FUSE_3.17");

int fuse_session_custom_io_30(struct fuse_session *se, const struct fuse_custom_io *io, int fd)
{
    (void)se;
    return df_abi_custom_io(io, fd);
}

int fuse_session_custom_io_317(struct fuse_session *se, const struct fuse_custom_io *io,
                               size_t op_size, int fd)
{
    (void)op_size;
    return fuse_session_custom_io_30(se, io, fd);
}

/* Reads and writes of the kernel that pass the program by: nothing passes it by here. */
int fuse_passthrough_open(fuse_req_t req, int fd)
{
    (void)req;
    (void)fd;
    fuse_log(FUSE_LOG_ERR, "fuse: passthrough_open: %s\n", strerror(EOPNOTSUPP));
    return 0;
}

int fuse_passthrough_close(fuse_req_t req, int backing_id)
{
    (void)req;
    (void)backing_id;
    errno = EOPNOTSUPP;
    return -1;
}

/* The process's syslog is the host's; lines go where they go without it. */
void fuse_log_enable_syslog(const char *ident, int option, int facility)
{
    (void)ident;
    (void)option;
    (void)facility;
}

void fuse_log_close_syslog(void)
{
}

bool fuse_req_is_uring(fuse_req_t req)
{
    (void)req;
    return false;
}

int fuse_req_get_payload(fuse_req_t req, char **payload, size_t *payload_size, void **registration)
{
    (void)req;
    (void)payload;
    (void)payload_size;
    (void)registration;
    return -EINVAL; /* as for every request that did not come through io_uring */
}
