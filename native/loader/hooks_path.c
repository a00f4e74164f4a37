/*
 * hooks_path.c - paths as a guest means them: relative to its own working directory, modes under
 * its own umask.
 *
 * Every function that takes a path gets the translated one (guest.h); there is no second list of
 * *at variants. The umask belongs to the whole process and is never touched: where the guest's
 * umask is more generous, the mode of what it has just made is widened to what the guest asked for.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/time.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <utime.h>

#include "core/caller.h"
#include "core/gate.h"
#include "loader/guest.h"
#include "loader/hooks.h"

/* A hook that takes a path declares BUFFER, uninitialised room for the translation. */
#define BUFFER(name)       char name[DF_GUEST_PATH_ROOM]
#define HERE(path, buffer) df_guest_path(df_guest_current(), (path), (buffer))

/* For the *at family: only AT_FDCWD means the working directory. */
#define HERE_AT(dirfd, path, buffer) ((dirfd) == AT_FDCWD ? HERE(path, buffer) : (path))

/* ---- working directory and umask -------------------------------------------------------- */

/* Under the number that it has had: another thread may be using a path that has it. */
static int move_to(struct df_guest *guest, int fd)
{
    if (fd < 0)
        return -1;
    pthread_mutex_lock(&guest->lock);
    int before = guest->cwd_fd, now = before < 0 ? fd : dup3(fd, before, O_CLOEXEC), error = errno;
    if (now >= 0)
        guest->cwd_fd = now;
    pthread_mutex_unlock(&guest->lock);
    if (now != fd)
        close(fd);
    errno = error;
    return now < 0 ? -1 : 0;
}

int df_hooks_chdir(const char *path)
{
    BUFFER(room);
    struct df_guest *guest = df_guest_current();
    if (!guest)
        return chdir(path);
    return move_to(guest, open(HERE(path, room), O_PATH | O_DIRECTORY | O_CLOEXEC));
}

static int hook_fchdir(int fd)
{
    struct df_guest *guest = df_guest_current();
    if (!guest)
        return fchdir(fd);
    return move_to(guest, fcntl(fd, F_DUPFD_CLOEXEC, 0));
}

/* The kernel adds words to the name that a removed directory had. */
static bool is_removed(int fd, const char *name)
{
    static const char words[] = " (deleted)";
    struct stat directory, named;
    size_t length = strlen(name), end = sizeof(words) - 1;
    return length > end && strcmp(name + length - end, words) == 0 && fstat(fd, &directory) == 0 &&
           (stat(name, &named) != 0 || named.st_ino != directory.st_ino ||
            named.st_dev != directory.st_dev);
}

static char *hook_getcwd(char *buffer, size_t size)
{
    struct df_guest *guest = df_guest_current();
    if (!guest || guest->cwd_fd < 0)
        return getcwd(buffer, size);
    char link[64], target[PATH_MAX];
    snprintf(link, sizeof(link), "/proc/self/fd/%d", guest->cwd_fd);
    ssize_t length = readlink(link, target, sizeof(target) - 1);
    if (length < 0)
        return NULL;
    target[length] = '\0';
    if (is_removed(guest->cwd_fd, target)) {
        errno = ENOENT;
        return NULL;
    }
    if (!buffer)
        return strdup(target);
    if ((size_t)length >= size) {
        errno = ERANGE;
        return NULL;
    }
    return memcpy(buffer, target, length + 1);
}

static char *hook_getcwd_chk(char *buffer, size_t size, size_t capacity)
{
    return hook_getcwd(buffer, size < capacity ? size : capacity);
}

/* Not by $PWD, which says where the host was started. */
static char *hook_get_current_dir_name(void)
{
    return df_guest_current() ? hook_getcwd(NULL, 0) : get_current_dir_name();
}

static mode_t hook_umask(mode_t mask)
{
    struct df_guest *guest = df_guest_current();
    if (!guest)
        return umask(mask);
    pthread_mutex_lock(&guest->lock);
    mode_t before = guest->umask;
    guest->umask = mask & 0777;
    pthread_mutex_unlock(&guest->lock);
    return before;
}

/* The bits that the process's umask will take away although the guest's would not. */
static mode_t lost_bits(mode_t mode)
{
    struct df_guest *guest = df_guest_current();
    return guest ? mode & df_caller_of(df_gate_thread())->umask & ~guest->umask : 0;
}

/* Applies the guest's umask to a mode; the process's is applied by the kernel. */
static mode_t guest_mode(mode_t mode)
{
    struct df_guest *guest = df_guest_current();
    return guest ? mode & ~guest->umask : mode;
}

static int widen_path(int result, int dirfd, const char *path, mode_t mode)
{
    if (result == 0 && lost_bits(mode)) {
        int saved = errno;
        fchmodat(dirfd, path, guest_mode(mode) & 07777, 0);
        errno = saved;
    }
    return result;
}

/* ---- opening ---------------------------------------------------------------------------- */

/* Only a file that this very call made may have its mode widened: O_EXCL tells. */
static int open_file(int dirfd, const char *path, int flags, mode_t mode)
{
    if (!(flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE || !lost_bits(mode))
        return openat(dirfd, path, flags, guest_mode(mode));
    int fd = openat(dirfd, path, flags | O_EXCL, guest_mode(mode));
    if (fd >= 0) {
        fchmod(fd, guest_mode(mode) & 07777);
        return fd;
    }
    if (errno != EEXIST || (flags & O_EXCL))
        return -1;
    return openat(dirfd, path, flags, guest_mode(mode));
}

/* What a program opens before it mounts (an image) it has until it ends. A library may keep a file
 * for longer: the program's own calls only, by where they return to. */
static int noted(int fd, const void *caller)
{
    struct df_guest *guest = df_guest_current();
    if (guest && fd >= 0 && !atomic_load(&guest->mounted) && df_guest_is_code(guest, caller))
        df_belongings_add_file(&guest->belongings, fd);
    return fd;
}

#define CALLER __builtin_return_address(0)

static mode_t mode_argument(int flags, va_list arguments)
{
    bool wanted = (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE;
    return wanted ? va_arg(arguments, mode_t) : 0;
}

static int hook_open(const char *path, int flags, ...)
{
    BUFFER(room);
    va_list arguments;
    va_start(arguments, flags);
    mode_t mode = mode_argument(flags, arguments);
    va_end(arguments);
    return noted(open_file(AT_FDCWD, HERE(path, room), flags, mode), CALLER);
}

static int hook_openat(int dirfd, const char *path, int flags, ...)
{
    BUFFER(room);
    va_list arguments;
    va_start(arguments, flags);
    mode_t mode = mode_argument(flags, arguments);
    va_end(arguments);
    return noted(open_file(dirfd, HERE_AT(dirfd, path, room), flags, mode), CALLER);
}

static int hook_open_2(const char *path, int flags)
{
    BUFFER(room);
    return noted(open_file(AT_FDCWD, HERE(path, room), flags, 0), CALLER);
}

static int hook_openat_2(int dirfd, const char *path, int flags)
{
    BUFFER(room);
    return noted(open_file(dirfd, HERE_AT(dirfd, path, room), flags, 0), CALLER);
}

static int hook_creat(const char *path, mode_t mode)
{
    BUFFER(room);
    return noted(open_file(AT_FDCWD, HERE(path, room), O_CREAT | O_WRONLY | O_TRUNC, mode), CALLER);
}

/* What fopen(3) opens with such a mode; -1 where it makes nothing. */
static int making_flags(const char *mode)
{
    int flags = O_CREAT | (strchr(mode, 'x') ? O_EXCL : 0) | (strchr(mode, 'e') ? O_CLOEXEC : 0);
    flags |= strchr(mode, '+') ? O_RDWR : O_WRONLY;
    return mode[0] == 'w' ? flags | O_TRUNC : mode[0] == 'a' ? flags | O_APPEND : -1;
}

/* As the guest's umask has it. (fdopen(3) does not know "x".) */
static FILE *make_file(const char *path, const char *mode)
{
    const char plain[] = {mode[0], strchr(mode, '+') ? '+' : '\0', '\0'};
    int fd = open_file(AT_FDCWD, path, making_flags(mode), 0666);
    FILE *stream = fd < 0 ? NULL : fdopen(fd, plain);
    if (fd >= 0 && !stream)
        close(fd);
    return stream;
}

static FILE *hook_fopen(const char *path, const char *mode)
{
    BUFFER(room);
    bool plain = !df_guest_current() || strchr(mode, ',') || making_flags(mode) < 0;
    return plain ? fopen(HERE(path, room), mode) : make_file(HERE(path, room), mode);
}

static DIR *hook_opendir(const char *path)
{
    BUFFER(room);
    return opendir(HERE(path, room));
}

static char *hook_realpath(const char *path, char *resolved)
{
    BUFFER(room);
    return realpath(HERE(path, room), resolved);
}

static char *hook_realpath_chk(const char *path, char *resolved, size_t size)
{
    BUFFER(room);
    (void)size;
    return realpath(HERE(path, room), resolved);
}

/* ---- making ----------------------------------------------------------------------------- */

static int hook_mkdirat(int dirfd, const char *path, mode_t mode)
{
    BUFFER(room);
    const char *here = HERE_AT(dirfd, path, room);
    return widen_path(mkdirat(dirfd, here, guest_mode(mode)), dirfd, here, mode);
}

static int hook_mkdir(const char *path, mode_t mode)
{
    return hook_mkdirat(AT_FDCWD, path, mode);
}

static int hook_mknodat(int dirfd, const char *path, mode_t mode, dev_t device)
{
    BUFFER(room);
    const char *here = HERE_AT(dirfd, path, room);
    return widen_path(mknodat(dirfd, here, guest_mode(mode), device), dirfd, here, mode);
}

static int hook_mknod(const char *path, mode_t mode, dev_t device)
{
    return hook_mknodat(AT_FDCWD, path, mode, device);
}

static int hook_xmknod(int version, const char *path, mode_t mode, dev_t *device)
{
    (void)version;
    return hook_mknodat(AT_FDCWD, path, mode, *device);
}

static int hook_xmknodat(int version, int dirfd, const char *path, mode_t mode, dev_t *device)
{
    (void)version;
    return hook_mknodat(dirfd, path, mode, *device);
}

static int hook_mkfifoat(int dirfd, const char *path, mode_t mode)
{
    return hook_mknodat(dirfd, path, mode | S_IFIFO, 0);
}

static int hook_mkfifo(const char *path, mode_t mode)
{
    return hook_mknodat(AT_FDCWD, path, mode | S_IFIFO, 0);
}

static int hook_symlink(const char *target, const char *path)
{
    BUFFER(room);
    return symlink(target, HERE(path, room));
}

static int hook_symlinkat(const char *target, int dirfd, const char *path)
{
    BUFFER(room);
    return symlinkat(target, dirfd, HERE_AT(dirfd, path, room));
}

/* ---- names that are made up --------------------------------------------------------------- */

/* The template's own end, which is what has changed, back to where the guest has it. */
static void give_back(char *template, const char *here)
{
    if (template != here)
        strcpy(template, here + strlen(here) - strlen(template));
}

#define MADE_UP(type, name, parameters, arguments)                                                 \
    static type hook_##name parameters                                                             \
    {                                                                                              \
        BUFFER(room);                                                                              \
        char *here = (char *)HERE(template, room);                                                 \
        type result = name arguments;                                                              \
        give_back(template, here);                                                                 \
        return result;                                                                             \
    }

MADE_UP(int, mkstemp, (char *template), (here))
MADE_UP(int, mkostemp, (char *template, int flags), (here, flags))
MADE_UP(int, mkstemps, (char *template, int suffix), (here, suffix))
MADE_UP(int, mkostemps, (char *template, int suffix, int flags), (here, suffix, flags))

static char *hook_mkdtemp(char *template)
{
    BUFFER(room);
    char *here = (char *)HERE(template, room), *made = mkdtemp(here);
    give_back(template, here);
    return made ? template : NULL;
}

/* ---- the rest: the real function on the translated path --------------------------------- */

#define ONE_PATH(type, name, parameters, arguments)                                                \
    static type hook_##name parameters                                                             \
    {                                                                                              \
        BUFFER(first);                                                                             \
        BUFFER(second);                                                                            \
        (void)second;                                                                              \
        return name arguments;                                                                     \
    }

ONE_PATH(int, stat, (const char *path, struct stat *st), (HERE(path, first), st))
ONE_PATH(int, lstat, (const char *path, struct stat *st), (HERE(path, first), st))
ONE_PATH(int, fstatat, (int dirfd, const char *path, struct stat *st, int flags),
         (dirfd, HERE_AT(dirfd, path, first), st, flags))
ONE_PATH(int, statx, (int dirfd, const char *path, int flags, unsigned mask, struct statx *stx),
         (dirfd, HERE_AT(dirfd, path, first), flags, mask, stx))
ONE_PATH(int, access, (const char *path, int mode), (HERE(path, first), mode))
ONE_PATH(int, euidaccess, (const char *path, int mode), (HERE(path, first), mode))
ONE_PATH(int, faccessat, (int dirfd, const char *path, int mode, int flags),
         (dirfd, HERE_AT(dirfd, path, first), mode, flags))
ONE_PATH(int, chmod, (const char *path, mode_t mode), (HERE(path, first), mode))
ONE_PATH(int, fchmodat, (int dirfd, const char *path, mode_t mode, int flags),
         (dirfd, HERE_AT(dirfd, path, first), mode, flags))
ONE_PATH(int, chown, (const char *path, uid_t uid, gid_t gid), (HERE(path, first), uid, gid))
ONE_PATH(int, lchown, (const char *path, uid_t uid, gid_t gid), (HERE(path, first), uid, gid))
ONE_PATH(int, fchownat, (int dirfd, const char *path, uid_t uid, gid_t gid, int flags),
         (dirfd, HERE_AT(dirfd, path, first), uid, gid, flags))
ONE_PATH(int, truncate, (const char *path, off_t size), (HERE(path, first), size))
ONE_PATH(int, unlink, (const char *path), (HERE(path, first)))
ONE_PATH(int, unlinkat, (int dirfd, const char *path, int flags),
         (dirfd, HERE_AT(dirfd, path, first), flags))
ONE_PATH(int, rmdir, (const char *path), (HERE(path, first)))
ONE_PATH(int, remove, (const char *path), (HERE(path, first)))
ONE_PATH(int, rename, (const char *from, const char *to), (HERE(from, first), HERE(to, second)))
ONE_PATH(int, renameat, (int fromfd, const char *from, int tofd, const char *to),
         (fromfd, HERE_AT(fromfd, from, first), tofd, HERE_AT(tofd, to, second)))
ONE_PATH(int, renameat2, (int fromfd, const char *from, int tofd, const char *to, unsigned flags),
         (fromfd, HERE_AT(fromfd, from, first), tofd, HERE_AT(tofd, to, second), flags))
ONE_PATH(int, link, (const char *from, const char *to), (HERE(from, first), HERE(to, second)))
ONE_PATH(int, linkat, (int fromfd, const char *from, int tofd, const char *to, int flags),
         (fromfd, HERE_AT(fromfd, from, first), tofd, HERE_AT(tofd, to, second), flags))
ONE_PATH(ssize_t, readlink, (const char *path, char *buffer, size_t size),
         (HERE(path, first), buffer, size))
ONE_PATH(ssize_t, readlinkat, (int dirfd, const char *path, char *buffer, size_t size),
         (dirfd, HERE_AT(dirfd, path, first), buffer, size))
ONE_PATH(int, utime, (const char *path, const struct utimbuf *times), (HERE(path, first), times))
ONE_PATH(int, utimes, (const char *path, const struct timeval times[2]), (HERE(path, first), times))
ONE_PATH(int, lutimes, (const char *path, const struct timeval times[2]),
         (HERE(path, first), times))
ONE_PATH(int, utimensat, (int dirfd, const char *path, const struct timespec times[2], int flags),
         (dirfd, HERE_AT(dirfd, path, first), times, flags))
ONE_PATH(int, statfs, (const char *path, struct statfs *out), (HERE(path, first), out))
ONE_PATH(int, statvfs, (const char *path, struct statvfs *out), (HERE(path, first), out))
ONE_PATH(ssize_t, getxattr, (const char *path, const char *name, void *value, size_t size),
         (HERE(path, first), name, value, size))
ONE_PATH(ssize_t, lgetxattr, (const char *path, const char *name, void *value, size_t size),
         (HERE(path, first), name, value, size))
ONE_PATH(int, setxattr,
         (const char *path, const char *name, const void *value, size_t size, int flags),
         (HERE(path, first), name, value, size, flags))
ONE_PATH(int, lsetxattr,
         (const char *path, const char *name, const void *value, size_t size, int flags),
         (HERE(path, first), name, value, size, flags))
ONE_PATH(ssize_t, listxattr, (const char *path, char *list, size_t size),
         (HERE(path, first), list, size))
ONE_PATH(ssize_t, llistxattr, (const char *path, char *list, size_t size),
         (HERE(path, first), list, size))
ONE_PATH(int, removexattr, (const char *path, const char *name), (HERE(path, first), name))
ONE_PATH(int, lremovexattr, (const char *path, const char *name), (HERE(path, first), name))

ONE_PATH(int, scandir,
         (const char *path, struct dirent ***list, int (*wanted)(const struct dirent *),
          int (*order)(const struct dirent **, const struct dirent **)),
         (HERE(path, first), list, wanted, order))
ONE_PATH(int, inotify_add_watch, (int fd, const char *path, uint32_t mask),
         (fd, HERE(path, first), mask))
ONE_PATH(long, pathconf, (const char *path, int name), (HERE(path, first), name))
ONE_PATH(char *, canonicalize_file_name, (const char *path), (HERE(path, first)))

/* Before glibc 2.33 stat was an inline call of __xstat(version, ...). */
static int hook_xstat(int version, const char *path, struct stat *st)
{
    BUFFER(room);
    (void)version;
    return stat(HERE(path, room), st);
}

static int hook_lxstat(int version, const char *path, struct stat *st)
{
    BUFFER(room);
    (void)version;
    return lstat(HERE(path, room), st);
}

static int hook_fxstatat(int version, int dirfd, const char *path, struct stat *st, int flags)
{
    BUFFER(room);
    (void)version;
    return fstatat(dirfd, HERE_AT(dirfd, path, room), st, flags);
}

static ssize_t hook_readlink_chk(const char *path, char *buffer, size_t size, size_t capacity)
{
    BUFFER(room);
    return readlink(HERE(path, room), buffer, size < capacity ? size : capacity);
}

/* On 64-bit machines the "64" names are the same functions. */
const struct df_hook df_hooks_path[] = {
    {"chdir", df_hooks_chdir},
    {"fchdir", hook_fchdir},
    {"getcwd", hook_getcwd},
    {"__getcwd_chk", hook_getcwd_chk},
    {"get_current_dir_name", hook_get_current_dir_name},
    {"umask", hook_umask},
    {"open", hook_open},
    {"open64", hook_open},
    {"openat", hook_openat},
    {"openat64", hook_openat},
    {"__open_2", hook_open_2},
    {"__open64_2", hook_open_2},
    {"__openat_2", hook_openat_2},
    {"__openat64_2", hook_openat_2},
    {"creat", hook_creat},
    {"creat64", hook_creat},
    {"fopen", hook_fopen},
    {"fopen64", hook_fopen},
    {"opendir", hook_opendir},
    {"scandir", hook_scandir},
    {"scandir64", hook_scandir},
    {"inotify_add_watch", hook_inotify_add_watch},
    {"pathconf", hook_pathconf},
    {"canonicalize_file_name", hook_canonicalize_file_name},
    {"realpath", hook_realpath},
    {"__realpath_chk", hook_realpath_chk},
    {"mkdir", hook_mkdir},
    {"mkdirat", hook_mkdirat},
    {"mknod", hook_mknod},
    {"mknodat", hook_mknodat},
    {"__xmknod", hook_xmknod},
    {"__xmknodat", hook_xmknodat},
    {"mkfifo", hook_mkfifo},
    {"mkfifoat", hook_mkfifoat},
    {"mkstemp", hook_mkstemp},
    {"mkstemp64", hook_mkstemp},
    {"mkostemp", hook_mkostemp},
    {"mkostemp64", hook_mkostemp},
    {"mkstemps", hook_mkstemps},
    {"mkstemps64", hook_mkstemps},
    {"mkostemps", hook_mkostemps},
    {"mkostemps64", hook_mkostemps},
    {"mkdtemp", hook_mkdtemp},
    {"symlink", hook_symlink},
    {"symlinkat", hook_symlinkat},
    {"stat", hook_stat},
    {"stat64", hook_stat},
    {"lstat", hook_lstat},
    {"lstat64", hook_lstat},
    {"fstatat", hook_fstatat},
    {"fstatat64", hook_fstatat},
    {"statx", hook_statx},
    {"__xstat", hook_xstat},
    {"__xstat64", hook_xstat},
    {"__lxstat", hook_lxstat},
    {"__lxstat64", hook_lxstat},
    {"__fxstatat", hook_fxstatat},
    {"__fxstatat64", hook_fxstatat},
    {"access", hook_access},
    {"euidaccess", hook_euidaccess},
    {"eaccess", hook_euidaccess},
    {"faccessat", hook_faccessat},
    {"chmod", hook_chmod},
    {"fchmodat", hook_fchmodat},
    {"chown", hook_chown},
    {"lchown", hook_lchown},
    {"fchownat", hook_fchownat},
    {"truncate", hook_truncate},
    {"truncate64", hook_truncate},
    {"unlink", hook_unlink},
    {"unlinkat", hook_unlinkat},
    {"rmdir", hook_rmdir},
    {"remove", hook_remove},
    {"rename", hook_rename},
    {"renameat", hook_renameat},
    {"renameat2", hook_renameat2},
    {"link", hook_link},
    {"linkat", hook_linkat},
    {"readlink", hook_readlink},
    {"__readlink_chk", hook_readlink_chk},
    {"readlinkat", hook_readlinkat},
    {"utime", hook_utime},
    {"utimes", hook_utimes},
    {"lutimes", hook_lutimes},
    {"utimensat", hook_utimensat},
    {"statfs", hook_statfs},
    {"statfs64", hook_statfs},
    {"statvfs", hook_statvfs},
    {"statvfs64", hook_statvfs},
    {"getxattr", hook_getxattr},
    {"lgetxattr", hook_lgetxattr},
    {"setxattr", hook_setxattr},
    {"lsetxattr", hook_lsetxattr},
    {"listxattr", hook_listxattr},
    {"llistxattr", hook_llistxattr},
    {"removexattr", hook_removexattr},
    {"lremovexattr", hook_lremovexattr},
    {NULL, NULL},
};
