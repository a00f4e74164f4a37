/*
 * calls_socket.c - sockets: names of unix sockets in mounts, and descriptors sent along.
 *
 * A socket bound to a path in a mount is a node of type socket there, and a real socket in the
 * shadow directory (node.h). A descriptor of ours that is sent is its placeholder; who receives one
 * finds by it the open file (dfi_fd_adopt()).
 */
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "core/calls.h"
#include "core/route.h"
#include "core/table.h"
#include "syscalls/cwd.h"
#include "syscalls/node.h"
#include "syscalls/table.h"

/* An address with a path, terminated. */
struct address {
    struct sockaddr_un un;
    char nul;
};

/* False: no path is in it; the kernel's. */
static bool take_address(unsigned long program, unsigned long len, struct address *a)
{
    memset(a, 0, sizeof(*a));
    if (!program || len <= offsetof(struct sockaddr_un, sun_path) || len > sizeof(a->un) ||
        dfi_copy_from(&a->un, (const void *)program, len) < 0)
        return false;
    return a->un.sun_family == AF_UNIX && a->un.sun_path[0] != '\0';
}

/* The path as native/core is to be asked for it. 0 or -errno. */
static int path_of(struct dfi_files *files, const struct address *a, char path[PATH_MAX])
{
    strcpy(path, a->un.sun_path);
    if (path[0] == '/')
        return 0;
    return dfi_cwd_join(files, path, path) < 0 ? -ENOENT : 0;
}

static long call_kernel(struct dfi_frame *frame, int at, const struct stat *st)
{
    struct sockaddr_un real = {.sun_family = AF_UNIX};
    char name[DFI_SHADOW_NAME_MAX];
    unsigned long args[6];

    dfi_node_name(dfi_process()->files, st, name);
    if (strlen(name) >= sizeof(real.sun_path))
        return -ENAMETOOLONG;
    strcpy(real.sun_path, name);
    memcpy(args, frame->args, sizeof(args));
    args[at] = (unsigned long)&real;
    args[at + 1] = offsetof(struct sockaddr_un, sun_path) + strlen(name) + 1;
    return dfi_kernel_wait6(frame->nr, args[0], args[1], args[2], args[3], args[4], args[5]);
}

/* ---- names ----------------------------------------------------------------------------------- */

/* The name the socket is known by, for getsockname(2): a link beside it. */
static void keep_name(const struct dfi_files *files, const struct stat *st, const char *name)
{
    char link[DFI_SHADOW_NAME_MAX];

    dfi_shadow_name(files, 'p', st->st_dev, st->st_ino, link);
    dfi_kernel(__NR_unlink, link);
    dfi_kernel(__NR_symlink, name, link);
}

/* Else the kernel says what is wrong, before it looks at a path. */
static bool is_unix(unsigned long fd)
{
    int domain = 0;
    socklen_t len = sizeof(domain);

    return dfi_kernel(__NR_getsockopt, fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) == 0 &&
           domain == AF_UNIX;
}

/* bind(2) where the path is a mount's: the node first, then what it stands for. */
static long bind_there(struct dfi_frame *frame, struct dfi_files *files, const struct address *a,
                       const char *path)
{
    mode_t mode = S_IFSOCK | (0777 & ~files->caller.umask);
    char name[DFI_SHADOW_NAME_MAX];
    struct stat st;
    long ret = df_call_mknodat(AT_FDCWD, path, mode, 0);

    if (ret < 0)
        return ret == -EEXIST ? -EADDRINUSE : ret;
    ret = df_call_fstatat(AT_FDCWD, path, &st, AT_SYMLINK_NOFOLLOW);
    if (ret == 0) {
        dfi_node_name(files, &st, name);
        dfi_kernel(__NR_unlink, name);
        ret = call_kernel(frame, 1, &st);
    }
    if (ret < 0) {
        df_call_unlinkat(AT_FDCWD, path, 0);
        return ret;
    }
    dfi_kernel(__NR_chmod, name, 0777); /* who may connect the node's mode says */
    keep_name(files, &st, a->un.sun_path);
    return 0;
}

long dfi_do_bind(struct dfi_frame *frame)
{
    struct dfi_files *files = dfi_process()->files;
    struct dfi_record record;
    char path[PATH_MAX];
    struct address a;
    long ret;

    if (!df_table_any() || !take_address(frame->args[1], frame->args[2], &a) ||
        !is_unix(frame->args[0]))
        return DFI_PASS;
    dfi_record_begin(&record);
    ret = path_of(files, &a, path);
    if (ret == 0)
        ret = bind_there(frame, files, &a, path);
    dfi_record_end(&record);
    return ret == DF_NOT_OURS ? DFI_PASS : ret;
}

/* connect(2) and its like, with the address in args[at]. */
static long to_address(struct dfi_frame *frame, int at)
{
    struct dfi_files *files = dfi_process()->files;
    struct dfi_record record;
    char path[PATH_MAX];
    struct address a;
    struct stat st;
    long ret;

    if (!df_table_any() || !take_address(frame->args[at], frame->args[at + 1], &a) ||
        !is_unix(frame->args[0]))
        return DFI_PASS;
    dfi_record_begin(&record);
    ret = path_of(files, &a, path);
    if (ret == 0)
        ret = df_call_fstatat(AT_FDCWD, path, &st, 0);
    if (ret == 0)
        ret = df_call_faccessat(AT_FDCWD, path, W_OK, AT_EACCESS);
    if (ret == 0)
        ret = S_ISSOCK(st.st_mode) ? call_kernel(frame, at, &st) : -ECONNREFUSED;
    dfi_record_end(&record);
    return ret == DF_NOT_OURS                       ? DFI_PASS
           : ret == -ENOENT && S_ISSOCK(st.st_mode) ? -ECONNREFUSED
                                                    : ret;
}

long dfi_do_connect(struct dfi_frame *frame)
{
    return to_address(frame, 1);
}

long dfi_do_sendto(struct dfi_frame *frame)
{
    return frame->args[4] ? to_address(frame, 4) : DFI_PASS;
}

/* ---- addresses shown ---------------------------------------------------------------------------
 */

/* The name that was bound, in the place of the shadow's. */
static long show_address(struct dfi_frame *frame)
{
    struct dfi_files *files = dfi_process()->files;
    struct sockaddr_un un;
    socklen_t room, len = sizeof(un);
    char name[sizeof(un.sun_path) + 1];
    long ret, size;

    if (!df_table_any())
        return DFI_PASS;
    if (dfi_copy_from(&room, (const void *)frame->args[2], sizeof(room)) < 0)
        return DFI_PASS;
    memset(&un, 0, sizeof(un));
    ret = dfi_kernel(frame->nr, frame->args[0], &un, &len);
    if (ret < 0 || un.sun_family != AF_UNIX || len > sizeof(un) ||
        strncmp(un.sun_path, files->shadow, files->shadow_len) != 0 ||
        strncmp(un.sun_path + files->shadow_len, "/s/", 3) != 0)
        return DFI_PASS;
    un.sun_path[files->shadow_len + 1] = 'p';
    size = dfi_kernel(__NR_readlink, un.sun_path, name, sizeof(un.sun_path) - 1);
    if (size < 0)
        return DFI_PASS;
    name[size] = '\0';
    strcpy(un.sun_path, name);
    len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + (size_t)size + 1);
    if (dfi_copy_to((void *)frame->args[1], &un, room < len ? room : len) < 0)
        return -EFAULT;
    return dfi_copy_to((void *)frame->args[2], &len, sizeof(len));
}

long dfi_do_getsockname(struct dfi_frame *frame)
{
    return show_address(frame);
}

long dfi_do_getpeername(struct dfi_frame *frame)
{
    return show_address(frame);
}

/* ---- descriptors that arrive -------------------------------------------------------------------
 */

#define CONTROL_MAX                                                                                \
    4096 /* bytes of control messages that are looked at: 253 descriptors and more */

static void adopt_all(struct dfi_files *files, const struct msghdr *message, char *control)
{
    size_t size = message->msg_controllen < CONTROL_MAX ? message->msg_controllen : CONTROL_MAX;
    struct msghdr copy = {.msg_control = control, .msg_controllen = size};

    if (size == 0 || dfi_copy_from(control, message->msg_control, size) < 0)
        return;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(&copy); c && c->cmsg_len >= sizeof(*c);
         c = (struct cmsghdr *)((char *)c + CMSG_ALIGN(c->cmsg_len))) {
        const int *fds = (const int *)CMSG_DATA(c);

        if ((char *)c + c->cmsg_len > control + size)
            return;
        if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
            for (size_t i = 0; i < (c->cmsg_len - CMSG_LEN(0)) / sizeof(int); i++)
                dfi_fd_adopt(files, fds[i]);
        if ((char *)c + CMSG_ALIGN(c->cmsg_len) + sizeof(*c) > control + size)
            return;
    }
}

long dfi_do_recvmsg(struct dfi_frame *frame)
{
    char control[CONTROL_MAX] __attribute__((aligned(8)));
    struct msghdr message;
    long ret;

    if (!df_table_any() ||
        dfi_copy_from(&message, (const void *)frame->args[1], sizeof(message)) < 0 ||
        !message.msg_control || message.msg_controllen == 0)
        return DFI_PASS;
    ret = dfi_kernel_wait(__NR_recvmsg, frame->args[0], frame->args[1], frame->args[2]);
    if (ret >= 0 && dfi_copy_from(&message, (const void *)frame->args[1], sizeof(message)) == 0)
        adopt_all(dfi_process()->files, &message, control);
    return ret;
}

/* Of the message that is sent; the file is not to go before the receiver has it. */
static void hold_all(struct dfi_files *files, const struct msghdr *message, char *control)
{
    size_t size = message->msg_controllen < CONTROL_MAX ? message->msg_controllen : CONTROL_MAX;
    struct cmsghdr *c = (struct cmsghdr *)control;

    if (size < sizeof(*c) || dfi_copy_from(control, message->msg_control, size) < 0)
        return;
    while ((char *)c + sizeof(*c) <= control + size && c->cmsg_len >= sizeof(*c) &&
           (char *)c + c->cmsg_len <= control + size) {
        const int *fds = (const int *)CMSG_DATA(c);

        if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
            for (size_t i = 0; i < (c->cmsg_len - CMSG_LEN(0)) / sizeof(int); i++) {
                uint64_t handle = dfi_file_of(files, fds[i]);

                if (handle) {
                    dfi_fd_hold(files, handle);
                    files->sent = true;
                }
            }
        c = (struct cmsghdr *)((char *)c + CMSG_ALIGN(c->cmsg_len));
    }
}

/* A file that was sent stays this process's until it ends, and a little longer (files.c): nobody
 * says when it has arrived. */
long dfi_do_sendmsg(struct dfi_frame *frame)
{
    char control[CONTROL_MAX] __attribute__((aligned(8)));
    struct msghdr message;

    if (df_table_any() &&
        dfi_copy_from(&message, (const void *)frame->args[1], sizeof(message)) == 0 &&
        message.msg_control && message.msg_controllen > 0)
        hold_all(dfi_process()->files, &message, control);
    return DFI_PASS;
}
