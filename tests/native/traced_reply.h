/*
 * traced_reply.h - lets a low-level file system's source answer the node lane directly, without the
 * ABI library between: libfuse's functions by the lane's names for them.
 */
#ifndef DF_TESTS_TRACED_REPLY_H
#define DF_TESTS_TRACED_REPLY_H

#include "lowlevel/lowlevel.h"

#define fuse_reply_err         df_reply_err
#define fuse_reply_none        df_reply_none
#define fuse_reply_entry       df_reply_entry
#define fuse_reply_create      df_reply_create
#define fuse_reply_attr        df_reply_attr
#define fuse_reply_readlink    df_reply_readlink
#define fuse_reply_open        df_reply_open
#define fuse_reply_write       df_reply_write
#define fuse_reply_buf         df_reply_buf
#define fuse_reply_data        df_reply_data
#define fuse_reply_iov         df_reply_iov
#define fuse_reply_statfs      df_reply_statfs
#define fuse_reply_xattr       df_reply_xattr
#define fuse_reply_lock        df_reply_lock
#define fuse_reply_ioctl       df_reply_ioctl
#define fuse_reply_poll        df_reply_poll
#define fuse_reply_lseek       df_reply_lseek
#define fuse_add_direntry      df_reply_direntry
#define fuse_add_direntry_plus df_reply_direntry_plus
#define fuse_req_userdata      df_req_userdata
#define fuse_req_ctx           df_req_ctx

#endif
