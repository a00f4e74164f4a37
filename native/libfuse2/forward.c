/*
 * forward.c - what has not changed between FUSE 2 and FUSE 3: each call goes to libdf3.so.3 as it
 * is.
 */
#include <linux/fuse.h>
#include <stdint.h>
#include <sys/statvfs.h>

#include "libfuse2/abi2.h"

/* FORWARD(result, name, version, (parameters), (arguments)) */
#define FORWARD(type, name, version, parameters, arguments)                                        \
    type fuse2_##name parameters                                                                   \
    {                                                                                              \
        return df3_##name arguments;                                                               \
    }                                                                                              \
    EXPORT(fuse2_##name, "fuse_" #name "@@" version)

/* ---- options ---- */
FORWARD(int, opt_parse, "FUSE_2.5",
        (struct fuse_args * args, void *data, const struct fuse_opt opts[], fuse_opt_proc_t proc),
        (args, data, opts, proc));
FORWARD(int, opt_add_opt, "FUSE_2.5", (char **opts, const char *opt), (opts, opt));
FORWARD(int, opt_add_opt_escaped, "FUSE_2.8", (char **opts, const char *opt), (opts, opt));
FORWARD(int, opt_add_arg, "FUSE_2.5", (struct fuse_args * args, const char *arg), (args, arg));
FORWARD(int, opt_insert_arg, "FUSE_2.6", (struct fuse_args * args, int pos, const char *arg),
        (args, pos, arg));
FORWARD(void, opt_free_args, "FUSE_2.5", (struct fuse_args * args), (args));
FORWARD(int, opt_match, "FUSE_2.5", (const struct fuse_opt opts[], const char *opt), (opts, opt));

EXPORT_ALSO(fuse2_opt_insert_arg, fuse2_opt_insert_arg_25, "fuse_opt_insert_arg@FUSE_2.5");

/* ---- process ---- */
FORWARD(int, daemonize, "FUSE_2.6", (int foreground), (foreground));
FORWARD(int, getgroups, "FUSE_2.8", (int size, gid_t list[]), (size, list));
FORWARD(int, interrupted, "FUSE_2.6", (void), ());
FORWARD(int, notify_poll, "FUSE_2.8", (struct fuse_pollhandle * handle), (handle));
FORWARD(void, pollhandle_destroy, "FUSE_2.8", (struct fuse_pollhandle * handle), (handle));
FORWARD(int, lowlevel_notify_poll, "FUSE_2.8", (struct fuse_pollhandle * handle), (handle));

/* The library that programs of this ABI are written for. */
int fuse2_version(void)
{
    return 29;
}
EXPORT(fuse2_version, "fuse_version@@FUSE_2.7");

/* ---- buffers ---- */
FORWARD(size_t, buf_size, "FUSE_2.9", (const struct fuse_bufvec *buf), (buf));
FORWARD(ssize_t, buf_copy, "FUSE_2.9",
        (struct fuse_bufvec * to, struct fuse_bufvec *from, enum fuse_buf_copy_flags flags),
        (to, from, flags));

/* ---- requests ---- */
FORWARD(int, req_getgroups, "FUSE_2.8", (fuse_req_t req, int size, gid_t list[]),
        (req, size, list));
FORWARD(int, req_interrupted, "FUSE_2.6", (fuse_req_t req), (req));
FORWARD(void, req_interrupt_func, "FUSE_2.6",
        (fuse_req_t req, fuse_interrupt_func_t func, void *data), (req, func, data));
FORWARD(const struct fuse_ctx *, req_ctx, "FUSE_2.8", (fuse_req_t req), (req));
EXPORT_ALSO(fuse2_req_ctx, fuse2_req_ctx_24, "fuse_req_ctx@FUSE_2.4");

/* ---- replies ---- */
FORWARD(int, reply_err, "FUSE_2.4", (fuse_req_t req, int err), (req, err));
FORWARD(void, reply_none, "FUSE_2.4", (fuse_req_t req), (req));
FORWARD(int, reply_entry, "FUSE_2.4", (fuse_req_t req, const struct fuse_entry_param *entry),
        (req, entry));
FORWARD(int, reply_attr, "FUSE_2.4", (fuse_req_t req, const struct stat *attr, double timeout),
        (req, attr, timeout));
FORWARD(int, reply_readlink, "FUSE_2.4", (fuse_req_t req, const char *target), (req, target));
FORWARD(int, reply_write, "FUSE_2.4", (fuse_req_t req, size_t size), (req, size));
FORWARD(int, reply_buf, "FUSE_2.4", (fuse_req_t req, const char *buf, size_t size),
        (req, buf, size));
FORWARD(int, reply_data, "FUSE_2.9",
        (fuse_req_t req, struct fuse_bufvec *buf, enum fuse_buf_copy_flags flags),
        (req, buf, flags));
FORWARD(int, reply_iov, "FUSE_2.7", (fuse_req_t req, const struct iovec *iov, int count),
        (req, iov, count));
FORWARD(int, reply_statfs, "FUSE_2.5", (fuse_req_t req, const struct statvfs *out), (req, out));
FORWARD(int, reply_xattr, "FUSE_2.4", (fuse_req_t req, size_t size), (req, size));
FORWARD(int, reply_lock, "FUSE_2.6", (fuse_req_t req, const struct flock *lock), (req, lock));
FORWARD(int, reply_bmap, "FUSE_2.7.5", (fuse_req_t req, uint64_t index), (req, index));
FORWARD(int, reply_ioctl, "FUSE_2.8", (fuse_req_t req, int result, const void *buf, size_t size),
        (req, result, buf, size));
FORWARD(int, reply_ioctl_iov, "FUSE_2.8",
        (fuse_req_t req, int result, const struct iovec *iov, int count),
        (req, result, iov, count));
FORWARD(int, reply_ioctl_retry, "FUSE_2.8",
        (fuse_req_t req, const struct iovec *in, size_t in_count, const struct iovec *out,
         size_t out_count),
        (req, in, in_count, out, out_count));
FORWARD(int, reply_poll, "FUSE_2.8", (fuse_req_t req, unsigned events), (req, events));
FORWARD(size_t, add_direntry, "FUSE_2.6",
        (fuse_req_t req, char *buf, size_t size, const char *name, const struct stat *st,
         off_t off),
        (req, buf, size, name, st, off));

/* Before 2.6: the size of an entry, and the entry, for which the caller has made sure of room. */
size_t fuse2_dirent_size(size_t name_length)
{
    return FUSE_DIRENT_ALIGN(FUSE_NAME_OFFSET + name_length);
}
EXPORT(fuse2_dirent_size, "fuse_dirent_size@@FUSE_2.4");

char *fuse2_add_dirent(char *buf, const char *name, const struct stat *st, off_t off)
{
    return buf + fuse_add_direntry(NULL, buf, SIZE_MAX, name, st, off);
}
EXPORT(fuse2_add_dirent, "fuse_add_dirent@@FUSE_2.4");

/* ---- character devices ---- */

/* FORWARD() for names without "fuse_". */
#define FORWARD_CUSE(type, name, parameters, arguments)                                            \
    type fuse2_##name parameters                                                                   \
    {                                                                                              \
        return df3_##name arguments;                                                               \
    }                                                                                              \
    EXPORT(fuse2_##name, #name "@@FUSE_2.8")

FORWARD_CUSE(struct fuse_session *, cuse_lowlevel_new,
             (struct fuse_args * args, const struct cuse_info *info,
              const struct cuse_lowlevel_ops *ops, void *userdata),
             (args, info, ops, userdata));
FORWARD_CUSE(struct fuse_session *, cuse_lowlevel_setup,
             (int argc, char *argv[], const struct cuse_info *info,
              const struct cuse_lowlevel_ops *ops, int *multithreaded, void *userdata),
             (argc, argv, info, ops, multithreaded, userdata));
FORWARD_CUSE(void, cuse_lowlevel_teardown, (struct fuse_session * se), (se));
FORWARD_CUSE(int, cuse_lowlevel_main,
             (int argc, char *argv[], const struct cuse_info *info,
              const struct cuse_lowlevel_ops *ops, void *userdata),
             (argc, argv, info, ops, userdata));
