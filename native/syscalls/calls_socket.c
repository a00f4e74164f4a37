/*
 * calls_socket.c - sockets: names of unix sockets in mounts.
 *
 * A socket bound to a path in a mount is a node of type socket there, and a real socket in the
 * shadow directory (node.h).
 */
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "client/number.h"
#include "client/table.h"
#include "core/calls.h"
#include "core/route.h"
#include "core/table.h"
#include "intercept/brief.h"
#include "syscalls/calls_socket.h"
#include "ways/cwd.h"
#include "ways/node.h"
#include "ways/proc.h"
#include "ways/root.h"
#include "ways/steps.h"

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

/* The address of a name. 0 or -ENAMETOOLONG. */
static int put_name(const char *name, struct sockaddr_un *real, socklen_t *len)
{
    if (strlen(name) >= sizeof(real->sun_path))
        return -ENAMETOOLONG;
    memset(real, 0, sizeof(*real));
    real->sun_family = AF_UNIX;
    strcpy(real->sun_path, name);
    *len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(name) + 1);
    return 0;
}

/* The real socket of the node. */
static int shadow_address(const struct dfi_files *files, const struct stat *st,
                          struct sockaddr_un *real, socklen_t *len)
{
    char name[DFI_SHADOW_NAME_MAX];

    dfi_node_name(files, st, name);
    return put_name(name, real, len);
}

/* The program's call with another address in args[at]. */
static long call_kernel(struct dfi_frame *frame, int at, const struct sockaddr_un *real,
                        socklen_t len)
{
    unsigned long args[6];

    memcpy(args, frame->args, sizeof(args));
    args[at] = (unsigned long)real;
    args[at + 1] = len;
    return dfi_kernel_wait6(frame->nr, args[0], args[1], args[2], args[3], args[4], args[5]);
}

/* ---- ways ------------------------------------------------------------------------------------ */

/* What an address leads to. */
struct search {
    struct dfi_record record;
    struct address a;
    int dirfd;               /* to native/core: */
    char path[PATH_MAX];     /* begins there; "": it is that file */
    struct sockaddr_un real; /* for the kernel */
    socklen_t len;
    mode_t mode; /* of a node that is made */
    struct stat st;
};

/* Behind the descriptor of a mount's file that stands for what comes before. */
static long begin_at_fd(struct search *s, int fd, const char *rest)
{
    const char *name = rest + strspn(rest, "/");

    s->dirfd = DF_FD_BASE + fd;
    if (*rest != '\0' && *name == '\0')
        name = ".";
    memmove(s->path, name, strlen(name) + 1);
    return 0;
}

/* Of the working directory in a mount: one that has no name is known as a descriptor is. */
static long begin_at_cwd(struct search *s, const char *rest)
{
    if (dfi_cwd_take(&s->record))
        return begin_at_fd(s, DFI_FD_HERE, rest);
    return dfi_cwd_join(s->record.files, rest, s->path) < 0 ? -ENOENT : 0;
}

/* `path`, which may be s->path, leads by /proc to what the process has in a mount: it begins there.
 * Else s->path stays. 0 or -errno. */
static long begin_at_proc(struct search *s, const char *path)
{
    const char *rest;
    int fd;

    switch (dfi_proc_look(s->record.files, path, &fd, &rest)) {
    case DFI_PROC_FD:
        return begin_at_fd(s, fd, rest);
    case DFI_PROC_CWD:
        return begin_at_cwd(s, rest);
    default:
        return 0;
    }
}

/* By a link to /proc/self/cwd, too, where that is in a mount. */
static long begin_at_root(struct search *s)
{
    struct dfi_steps steps;
    char left[PATH_MAX];
    long ret = begin_at_proc(s, s->path);

    if (ret < 0 || s->dirfd != AT_FDCWD || !dfi_cwd_is_ours(s->record.files))
        return ret;
    dfi_steps_init(&steps, &s->record, false, 0);
    if (dfi_steps_walk(&steps, AT_FDCWD, s->path) != DF_NOT_OURS ||
        dfi_steps_left(&steps, left) < 0)
        return 0;
    return begin_at_proc(s, left);
}

/* The path as native/core is to be asked for it. 0 or -errno. */
static long begin(struct search *s, bool follows)
{
    struct dfi_files *files = s->record.files;
    long ret;

    s->dirfd = AT_FDCWD;
    strcpy(s->path, s->a.un.sun_path);
    if (dfi_root_of(files)) {
        ret = dfi_root_name(&s->record, s->path, follows);
        if (ret != DF_NOT_OURS)
            return ret;
    }
    return s->path[0] == '/' ? begin_at_root(s) : begin_at_cwd(s, s->path);
}

/* The same without "..", and without links: an address has little room. */
static const char *shorten(struct search *s, const char *path, bool follows, char out[PATH_MAX])
{
    struct dfi_steps steps;

    dfi_steps_init(&steps, &s->record, false, 0);
    steps.follows = follows;
    if (dfi_steps_walk(&steps, AT_FDCWD, path) != DF_NOT_OURS || dfi_steps_left(&steps, out) < 0)
        return path;
    return out;
}

/* What is no mount's: the kernel's as the program wrote it (DF_NOT_OURS), or, where the working
 * directory or a link is in a mount, by the name that the way out has led to. */
static long take_outside(struct search *s, bool follows)
{
    const char *left = df_left_path(0);
    char physical[PATH_MAX];
    int ret;

    if (!left && s->dirfd == AT_FDCWD)
        left = s->path;
    if (!left || strcmp(left, s->a.un.sun_path) == 0)
        return DF_NOT_OURS;
    if (strlen(left) >= sizeof(s->real.sun_path))
        left = shorten(s, left, follows, physical);
    ret = put_name(left, &s->real, &s->len);
    return ret < 0 ? ret : DFI_SOCKET_OUTSIDE;
}

/* Where the kernel finds nothing a real symlink on the path may lead to a mount. */
static bool may_lead(const struct search *s, long outside)
{
    const char *path = outside == DF_NOT_OURS ? s->a.un.sun_path : s->real.sun_path;
    long ret;

    if (outside != DF_NOT_OURS && outside != DFI_SOCKET_OUTSIDE)
        return false;
    ret = dfi_kernel(__NR_access, path, F_OK);
    return ret == -ENOENT || ret == -ENOTDIR;
}

/* Asks mounts for it. 0, DF_NOT_OURS, DFI_SOCKET_OUTSIDE or -errno. */
static long search(struct search *s, bool follows, long (*ask)(struct search *s))
{
    long outside, ret = begin(s, follows);

    if (ret != 0 || (ret = ask(s)) != DF_NOT_OURS)
        return ret;
    outside = take_outside(s, follows);
    if (!may_lead(s, outside))
        return outside;
    s->record.thread.follow_real_links = true;
    ret = ask(s);
    return ret == DF_NOT_OURS ? take_outside(s, follows) : ret;
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

static bool has_option(unsigned long fd, int option, int wanted)
{
    int value = -1;
    socklen_t len = sizeof(value);

    return dfi_kernel(__NR_getsockopt, fd, SOL_SOCKET, option, &value, &len) == 0 &&
           value == wanted;
}

/* Else the kernel says what is wrong, before it looks at a path. */
static bool is_unix(unsigned long fd)
{
    return dfi_other_fd(fd) == DFI_PASS && has_option(fd, SO_DOMAIN, AF_UNIX);
}

/* All users can read what sockets are bound to (/proc/net/unix), and the name of the shadow
 * directory is not for them: it is bound to by way of a descriptor. A prefix that programs hardly
 * use. */
#define BOUND_BY "/proc/thread-self/fd/"

/* The program's bind(2), to the real socket of the node. */
static long bind_real(struct dfi_frame *frame, const struct dfi_files *files, const char *name)
{
    size_t directory_len = files->shadow_len + sizeof("/s") - 1;
    struct sockaddr_un bound = {.sun_family = AF_UNIX};
    char directory[DFI_SHADOW_NAME_MAX], *end;
    long fd, ret;

    *(char *)mempcpy(directory, name, directory_len) = '\0';
    fd = dfi_brief(__NR_open, directory, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
    if (fd < 0)
        return dfi_shadow_result(fd);
    end = mempcpy(bound.sun_path, BOUND_BY, sizeof(BOUND_BY) - 1);
    strcpy(dfi_number_put(end, (uint64_t)fd), name + directory_len);
    ret = call_kernel(
        frame, 1, &bound,
        (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(bound.sun_path) + 1));
    dfi_brief_close(fd);
    return ret;
}

/* The node of an address that bind_real() has made. False: it is another one. */
static bool node_of(const struct sockaddr_un *un, uint64_t *mount, uint64_t *ino)
{
    const char *at = un->sun_path + sizeof(BOUND_BY) - 1;

    if (strncmp(un->sun_path, BOUND_BY, sizeof(BOUND_BY) - 1) != 0)
        return false;
    dfi_number_get(&at);
    if (*at++ != '/')
        return false;
    *mount = dfi_number_get(&at);
    if (*at++ != '.')
        return false;
    *ino = dfi_number_get(&at);
    return *at == '\0';
}

/* The mode that a socket's node is to have: that of the socket, which fchmod(2) may have set. */
static mode_t mode_of(const struct dfi_files *files, unsigned long fd)
{
    struct stat st = {.st_mode = 0777};

    dfi_kernel(__NR_fstat, fd, &st);
    return S_IFSOCK | (st.st_mode & 07777 & ~files->caller.umask);
}

/* The node of the socket. */
static long make_node(struct search *s)
{
    long ret = *s->path ? df_call_mknodat(s->dirfd, s->path, s->mode, 0) : -EEXIST;

    return ret == -EEXIST ? -EADDRINUSE : ret;
}

/* What the node, which is made, stands for. */
static long bind_node(struct dfi_frame *frame, struct search *s)
{
    const struct dfi_files *files = s->record.files;
    long ret = df_call_fstatat(s->dirfd, s->path, &s->st, AT_SYMLINK_NOFOLLOW);

    if (ret == 0)
        ret = shadow_address(files, &s->st, &s->real, &s->len);
    if (ret == 0) {
        dfi_kernel(__NR_unlink, s->real.sun_path);
        ret = bind_real(frame, files, s->real.sun_path);
    }
    if (ret < 0) {
        df_call_unlinkat(s->dirfd, s->path, 0);
        return ret;
    }
    dfi_kernel(__NR_chmod, s->real.sun_path, 0777); /* who may connect the node's mode says */
    keep_name(files, &s->st, s->a.un.sun_path);
    return 0;
}

long dfi_do_bind(struct dfi_frame *frame)
{
    struct search s;
    long ret;

    if (!df_table_any() || !take_address(frame->args[1], frame->args[2], &s.a) ||
        !is_unix(frame->args[0]))
        return dfi_other_fd(frame->args[0]);
    dfi_record_begin(&s.record);
    s.mode = mode_of(s.record.files, frame->args[0]);
    ret = search(&s, false, make_node);
    if (ret == 0)
        ret = bind_node(frame, &s);
    dfi_record_end(&s.record);
    if (ret == DFI_SOCKET_OUTSIDE)
        return call_kernel(frame, 1, &s.real, s.len);
    return ret == DF_NOT_OURS ? DFI_PASS : ret;
}

static long look(struct search *s)
{
    return df_call_fstatat(s->dirfd, s->path, &s->st, AT_EMPTY_PATH);
}

/* Where the kernel has the socket that is bound to the address. */
static long find_socket(struct search *s)
{
    long ret;

    dfi_record_begin(&s->record);
    ret = search(s, true, look);
    if (ret == 0)
        ret = df_call_faccessat(s->dirfd, s->path, W_OK, AT_EACCESS | AT_EMPTY_PATH);
    if (ret == 0)
        ret = S_ISSOCK(s->st.st_mode) ? shadow_address(s->record.files, &s->st, &s->real, &s->len)
                                      : -ECONNREFUSED;
    dfi_record_end(&s->record);
    return ret;
}

long dfi_socket_find(unsigned long fd, bool sends, unsigned long address, unsigned long size,
                     struct sockaddr_un *real, socklen_t *len)
{
    struct search s;
    long ret;

    if (!df_table_any() || !take_address(address, size, &s.a) || !is_unix(fd) ||
        (sends && !has_option(fd, SO_TYPE, SOCK_DGRAM)))
        return DF_NOT_OURS;
    ret = find_socket(&s);
    if (ret < 0 && ret != DF_NOT_OURS)
        put_name(DFI_PROC_NOTHING, &s.real, &s.len);
    *real = s.real;
    *len = s.len;
    return ret;
}

long dfi_socket_reached(long found, long ret)
{
    if (ret != -ENOENT || found == DFI_SOCKET_OUTSIDE)
        return ret;
    return found < 0 ? found : -ECONNREFUSED;
}

/* connect(2) and its like, with the address in args[at]. */
static long to_address(struct dfi_frame *frame, bool sends, int at)
{
    const unsigned long *a = frame->args;
    struct sockaddr_un real;
    socklen_t len;
    long found = dfi_socket_find(a[0], sends, a[at], a[at + 1], &real, &len);

    if (found == DF_NOT_OURS)
        return dfi_other_fd(a[0]);
    return dfi_socket_reached(found, call_kernel(frame, at, &real, len));
}

long dfi_do_connect(struct dfi_frame *frame)
{
    return to_address(frame, false, 1);
}

long dfi_do_sendto(struct dfi_frame *frame)
{
    return frame->args[4] ? to_address(frame, true, 4) : dfi_other_fd(frame->args[0]);
}

/* ---- names shown ----------------------------------------------------------------------------- */

bool dfi_socket_show(union dfi_socket_name *name, socklen_t *len)
{
    struct dfi_files *files = dfi_process()->files;
    const size_t before = offsetof(struct sockaddr_un, sun_path);
    char link[DFI_SHADOW_NAME_MAX], bound[sizeof(name->un.sun_path)];
    uint64_t mount, ino;
    long size;

    if (*len <= before || *len >= sizeof(name->un) || name->un.sun_family != AF_UNIX ||
        !node_of(&name->un, &mount, &ino))
        return false;
    dfi_shadow_name(files, 'p', mount, ino, link);
    size = dfi_kernel(__NR_readlink, link, bound, sizeof(bound));
    if (size < 0)
        return false;
    memset((char *)name + before, 0, sizeof(*name) - before);
    memcpy(name->un.sun_path, bound, (size_t)size);
    *len = (socklen_t)(before + (size_t)size + 1);
    return true;
}

/* Into the program's memory, which has so much room: as much as fits, and how much there is. */
static long tell(const struct dfi_frame *frame, int at, const union dfi_socket_name *name,
                 socklen_t len, socklen_t room)
{
    if (dfi_copy_to((void *)frame->args[at], name, room < len ? room : len) < 0)
        return -EFAULT;
    return dfi_copy_to((void *)frame->args[at + 1], &len, sizeof(len)) < 0 ? -EFAULT : 0;
}

/* The program's call, which puts an address into args[at] and its length behind: into ours first,
 * where it has room, and the name that was bound in the place of the shadow's. *told: 0, or why the
 * program was not told. */
static long from_address(struct dfi_frame *frame, int at, long *told)
{
    union dfi_socket_name name;
    socklen_t room, len = sizeof(name);
    unsigned long args[6];
    long ret;

    *told = 0;
    if (dfi_other_fd(frame->args[0]) != DFI_PASS)
        return -EBADF;
    if (!df_table_any() || !frame->args[at] ||
        dfi_copy_from(&room, (const void *)frame->args[at + 1], sizeof(room)) < 0 || (int)room < 0)
        return DFI_PASS;
    memset(&name, 0, sizeof(name));
    memcpy(args, frame->args, sizeof(args));
    args[at] = (unsigned long)&name;
    args[at + 1] = (unsigned long)&len;
    ret = dfi_kernel_wait6(frame->nr, args[0], args[1], args[2], args[3], args[4], args[5]);
    if (ret < 0)
        return ret;
    dfi_socket_show(&name, &len);
    *told = tell(frame, at, &name, len, room);
    return ret;
}

static long look_at_address(struct dfi_frame *frame, int at)
{
    long told, ret = from_address(frame, at, &told);

    return told < 0 ? told : ret;
}

long dfi_do_getsockname(struct dfi_frame *frame)
{
    return look_at_address(frame, 1);
}

long dfi_do_getpeername(struct dfi_frame *frame)
{
    return look_at_address(frame, 1);
}

long dfi_do_recvfrom(struct dfi_frame *frame)
{
    return look_at_address(frame, 4);
}

/* A connection that the program cannot be told of is lost, as in the kernel. */
long dfi_do_accept(struct dfi_frame *frame)
{
    long told, ret = from_address(frame, 1, &told);

    if (told < 0)
        dfi_kernel(__NR_close, ret);
    return told < 0 ? told : ret;
}
