/*
 * real.h - libdf3.so.3's functions under names of our own.
 *
 * This library exports the same names in versions of libfuse.so.2, and a call by the plain name
 * would be bound to itself. So libdf3.so.3 exports what we call a second time as df3_<name>
 * (real.ld); in the code here it stands as fuse_<name> all the same.
 */
#ifndef DF_LIBFUSE2_REAL_H
#define DF_LIBFUSE2_REAL_H

#include "host/libfuse.h"
#include "libfuse/translator.h"

#define REAL(name) extern __typeof__(fuse_##name) df3_##name

REAL(add_direntry);
REAL(buf_copy);
REAL(buf_size);
REAL(clean_cache);
REAL(cmdline_help);
REAL(daemonize);
REAL(destroy);
REAL(fs_access);
REAL(fs_bmap);
REAL(fs_chmod);
REAL(fs_chown);
REAL(fs_create);
REAL(fs_destroy);
REAL(fs_fallocate);
REAL(fs_flock);
REAL(fs_flush);
REAL(fs_fsync);
REAL(fs_fsyncdir);
REAL(fs_getattr);
REAL(fs_getxattr);
REAL(fs_init);
REAL(fs_ioctl);
REAL(fs_link);
REAL(fs_listxattr);
REAL(fs_lock);
REAL(fs_mkdir);
REAL(fs_mknod);
REAL(fs_open);
REAL(fs_opendir);
REAL(fs_poll);
REAL(fs_read);
REAL(fs_read_buf);
REAL(fs_readdir);
REAL(fs_readlink);
REAL(fs_release);
REAL(fs_releasedir);
REAL(fs_removexattr);
REAL(fs_rename);
REAL(fs_rmdir);
REAL(fs_setxattr);
REAL(fs_statfs);
REAL(fs_symlink);
REAL(fs_truncate);
REAL(fs_unlink);
REAL(fs_utimens);
REAL(fs_write);
REAL(fs_write_buf);
REAL(get_context);
REAL(get_session);
REAL(getgroups);
REAL(interrupted);
REAL(lib_help);
REAL(log);
REAL(lowlevel_notify_delete);
REAL(lowlevel_notify_inval_entry);
REAL(lowlevel_notify_inval_inode);
REAL(lowlevel_notify_poll);
REAL(lowlevel_notify_retrieve);
REAL(lowlevel_notify_store);
REAL(lowlevel_version);
REAL(mount);
REAL(notify_poll);
REAL(opt_add_arg);
REAL(opt_add_opt);
REAL(opt_add_opt_escaped);
REAL(opt_free_args);
REAL(opt_insert_arg);
REAL(opt_match);
REAL(opt_parse);
REAL(pollhandle_destroy);
REAL(reply_attr);
REAL(reply_bmap);
REAL(reply_buf);
REAL(reply_create);
REAL(reply_data);
REAL(reply_entry);
REAL(reply_err);
REAL(reply_ioctl);
REAL(reply_ioctl_iov);
REAL(reply_ioctl_retry);
REAL(reply_iov);
REAL(reply_lock);
REAL(reply_none);
REAL(reply_open);
REAL(reply_poll);
REAL(reply_readlink);
REAL(reply_statfs);
REAL(reply_write);
REAL(reply_xattr);
REAL(req_ctx);
REAL(req_getgroups);
REAL(req_interrupt_func);
REAL(req_interrupted);
REAL(req_userdata);
REAL(session_destroy);
REAL(session_exit);
REAL(session_exited);
REAL(session_loop);
REAL(session_mount);
REAL(session_new);
REAL(session_process_buf);
REAL(session_receive_buf);
REAL(session_reset);
REAL(session_unmount);
REAL(start_cleanup_thread);
REAL(stop_cleanup_thread);

#define fuse_add_direntry                df3_add_direntry
#define fuse_buf_copy                    df3_buf_copy
#define fuse_buf_size                    df3_buf_size
#define fuse_clean_cache                 df3_clean_cache
#define fuse_daemonize                   df3_daemonize
#define fuse_destroy                     df3_destroy
#define fuse_fs_access                   df3_fs_access
#define fuse_fs_bmap                     df3_fs_bmap
#define fuse_fs_chmod                    df3_fs_chmod
#define fuse_fs_chown                    df3_fs_chown
#define fuse_fs_create                   df3_fs_create
#define fuse_fs_destroy                  df3_fs_destroy
#define fuse_fs_fallocate                df3_fs_fallocate
#define fuse_fs_flock                    df3_fs_flock
#define fuse_fs_flush                    df3_fs_flush
#define fuse_fs_fsync                    df3_fs_fsync
#define fuse_fs_fsyncdir                 df3_fs_fsyncdir
#define fuse_fs_getattr                  df3_fs_getattr
#define fuse_fs_getxattr                 df3_fs_getxattr
#define fuse_fs_init                     df3_fs_init
#define fuse_fs_ioctl                    df3_fs_ioctl
#define fuse_fs_link                     df3_fs_link
#define fuse_fs_listxattr                df3_fs_listxattr
#define fuse_fs_lock                     df3_fs_lock
#define fuse_fs_mkdir                    df3_fs_mkdir
#define fuse_fs_mknod                    df3_fs_mknod
#define fuse_fs_open                     df3_fs_open
#define fuse_fs_opendir                  df3_fs_opendir
#define fuse_fs_poll                     df3_fs_poll
#define fuse_fs_read                     df3_fs_read
#define fuse_fs_read_buf                 df3_fs_read_buf
#define fuse_fs_readdir                  df3_fs_readdir
#define fuse_fs_readlink                 df3_fs_readlink
#define fuse_fs_release                  df3_fs_release
#define fuse_fs_releasedir               df3_fs_releasedir
#define fuse_fs_removexattr              df3_fs_removexattr
#define fuse_fs_rename                   df3_fs_rename
#define fuse_fs_rmdir                    df3_fs_rmdir
#define fuse_fs_setxattr                 df3_fs_setxattr
#define fuse_fs_statfs                   df3_fs_statfs
#define fuse_fs_symlink                  df3_fs_symlink
#define fuse_fs_truncate                 df3_fs_truncate
#define fuse_fs_unlink                   df3_fs_unlink
#define fuse_fs_utimens                  df3_fs_utimens
#define fuse_fs_write                    df3_fs_write
#define fuse_fs_write_buf                df3_fs_write_buf
#define fuse_get_context                 df3_get_context
#define fuse_get_session                 df3_get_session
#define fuse_getgroups                   df3_getgroups
#define fuse_interrupted                 df3_interrupted
#define fuse_lib_help                    df3_lib_help
#define fuse_log                         df3_log
#define fuse_lowlevel_notify_delete      df3_lowlevel_notify_delete
#define fuse_lowlevel_notify_inval_entry df3_lowlevel_notify_inval_entry
#define fuse_lowlevel_notify_inval_inode df3_lowlevel_notify_inval_inode
#define fuse_lowlevel_notify_poll        df3_lowlevel_notify_poll
#define fuse_lowlevel_notify_retrieve    df3_lowlevel_notify_retrieve
#define fuse_lowlevel_notify_store       df3_lowlevel_notify_store
#define fuse_mount                       df3_mount
#define fuse_notify_poll                 df3_notify_poll
#define fuse_opt_add_arg                 df3_opt_add_arg
#define fuse_opt_add_opt                 df3_opt_add_opt
#define fuse_opt_add_opt_escaped         df3_opt_add_opt_escaped
#define fuse_opt_free_args               df3_opt_free_args
#define fuse_opt_insert_arg              df3_opt_insert_arg
#define fuse_opt_match                   df3_opt_match
#define fuse_opt_parse                   df3_opt_parse
#define fuse_pollhandle_destroy          df3_pollhandle_destroy
#define fuse_reply_attr                  df3_reply_attr
#define fuse_reply_bmap                  df3_reply_bmap
#define fuse_reply_buf                   df3_reply_buf
#define fuse_reply_create                df3_reply_create
#define fuse_reply_data                  df3_reply_data
#define fuse_reply_entry                 df3_reply_entry
#define fuse_reply_err                   df3_reply_err
#define fuse_reply_ioctl                 df3_reply_ioctl
#define fuse_reply_ioctl_iov             df3_reply_ioctl_iov
#define fuse_reply_ioctl_retry           df3_reply_ioctl_retry
#define fuse_reply_iov                   df3_reply_iov
#define fuse_reply_lock                  df3_reply_lock
#define fuse_reply_none                  df3_reply_none
#define fuse_reply_open                  df3_reply_open
#define fuse_reply_poll                  df3_reply_poll
#define fuse_reply_readlink              df3_reply_readlink
#define fuse_reply_statfs                df3_reply_statfs
#define fuse_reply_write                 df3_reply_write
#define fuse_reply_xattr                 df3_reply_xattr
#define fuse_req_ctx                     df3_req_ctx
#define fuse_req_getgroups               df3_req_getgroups
#define fuse_req_interrupt_func          df3_req_interrupt_func
#define fuse_req_interrupted             df3_req_interrupted
#define fuse_req_userdata                df3_req_userdata
#define fuse_session_destroy             df3_session_destroy
#define fuse_session_exit                df3_session_exit
#define fuse_session_exited              df3_session_exited
#define fuse_session_loop                df3_session_loop
#define fuse_session_mount               df3_session_mount
#define fuse_session_new                 df3_session_new
#define fuse_session_process_buf         df3_session_process_buf
#define fuse_session_receive_buf         df3_session_receive_buf
#define fuse_session_reset               df3_session_reset
#define fuse_session_unmount             df3_session_unmount
#define fuse_start_cleanup_thread        df3_start_cleanup_thread
#define fuse_stop_cleanup_thread         df3_stop_cleanup_thread

/* Under their own names: there is a fuse_lowlevel_new() as well. */
extern __typeof__(cuse_lowlevel_main) df3_cuse_lowlevel_main;
extern __typeof__(cuse_lowlevel_new) df3_cuse_lowlevel_new;
extern __typeof__(cuse_lowlevel_setup) df3_cuse_lowlevel_setup;
extern __typeof__(cuse_lowlevel_teardown) df3_cuse_lowlevel_teardown;

/* These have several versions in libdf3.so.3: the newest. */
extern struct fuse *df3_new(struct fuse_args *args, const struct fuse_operations *op,
                            size_t op_size, void *user_data);
extern int df3_session_loop_mt(struct fuse_session *se, struct fuse_loop_config *config);

#endif
