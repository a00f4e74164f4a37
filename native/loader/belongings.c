/*
 * belongings.c - what a loaded program would take with it when its process ends; see belongings.h.
 */
#include "loader/belongings.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

struct df_belonging {
    enum { SOCKET, PIPE, CHILD, OPENED } kind;
    int fd;      /* of a child: its pidfd, which is ours */
    ino_t inode; /* of all else */
    dev_t device;
};

/* Children that outlived their programs; they are reaped when they have ended. */
static struct df_belongings orphans = {.lock = PTHREAD_MUTEX_INITIALIZER};

void df_belongings_init(struct df_belongings *belongings)
{
    *belongings = (struct df_belongings){0};
    pthread_mutex_init(&belongings->lock, NULL);
}

void df_belongings_destroy(struct df_belongings *belongings)
{
    free(belongings->items);
    pthread_mutex_destroy(&belongings->lock);
}

/* Under the lock. Returns false when memory is short. */
static bool add(struct df_belongings *belongings, struct df_belonging item)
{
    if (belongings->count == belongings->capacity) {
        size_t capacity = belongings->capacity ? belongings->capacity * 2 : 8;
        void *items = realloc(belongings->items, capacity * sizeof(item));
        if (!items)
            return false;
        belongings->items = items;
        belongings->capacity = capacity;
    }
    belongings->items[belongings->count++] = item;
    return true;
}

/* ---- sockets, pipes and files -------------------------------------------------------------- */

/* The signal that tells of input on a file (F_SETSIG): a file never has any. 0, the default, means
 * SIGIO, too, so the mark changes nothing. */
enum { MARK = SIGIO };

/* The number may be anybody's by now, who closes it at this moment: thread sanitizer, which would
 * take fstat(2) for a use of theirs, does not know this one. */
static bool is_still(const struct df_belonging *item)
{
    struct stat st;
    return fstatat(item->fd, "", &st, AT_EMPTY_PATH) == 0 && st.st_ino == item->inode &&
           st.st_dev == item->device && (item->kind != OPENED || fcntl(item->fd, F_GETSIG) == MARK);
}

/* A child that somebody has waited for: by its number, as system(3) does, or libc itself. */
static bool was_waited_for(const struct df_belonging *child)
{
    siginfo_t info;
    int saved = errno, options = WEXITED | WNOHANG | WNOWAIT;
    bool gone = waitid((idtype_t)P_PIDFD, (id_t)child->fd, &info, options) != 0 && errno == ECHILD;
    errno = saved;
    return gone;
}

static bool is_over(const struct df_belonging *item)
{
    if (item->kind != CHILD)
        return !is_still(item);
    if (!was_waited_for(item))
        return false;
    close(item->fd);
    return true;
}

/* Forgets what was closed or waited for since, by the program or by a library of its. Under the
 * lock. */
static void forget_what_is_over(struct df_belongings *belongings)
{
    size_t kept = 0;
    for (size_t i = 0; i < belongings->count; i++)
        if (!is_over(&belongings->items[i]))
            belongings->items[kept++] = belongings->items[i];
    belongings->count = kept;
}

static bool remember(struct df_belongings *belongings, struct df_belonging item)
{
    pthread_mutex_lock(&belongings->lock);
    if (belongings->count == belongings->capacity)
        forget_what_is_over(belongings);
    bool added = add(belongings, item);
    pthread_mutex_unlock(&belongings->lock);
    return added;
}

void df_belongings_add_fd(struct df_belongings *belongings, int fd)
{
    int saved = errno;
    struct stat st;
    if (fd >= 0 && fstat(fd, &st) == 0 && (S_ISSOCK(st.st_mode) || S_ISFIFO(st.st_mode)))
        remember(belongings, (struct df_belonging){.kind = S_ISSOCK(st.st_mode) ? SOCKET : PIPE,
                                                   .fd = fd,
                                                   .inode = st.st_ino,
                                                   .device = st.st_dev});
    errno = saved;
}

void df_belongings_add_file(struct df_belongings *belongings, int fd)
{
    int saved = errno;
    struct stat st;
    if (fstat(fd, &st) == 0 && (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode)) &&
        fcntl(fd, F_SETSIG, MARK) == 0)
        remember(belongings,
                 (struct df_belonging){
                     .kind = OPENED, .fd = fd, .inode = st.st_ino, .device = st.st_dev});
    errno = saved;
}

static bool have(struct df_belongings *belongings, int kind, int fd)
{
    bool found = false;
    pthread_mutex_lock(&belongings->lock);
    for (size_t i = 0; i < belongings->count && !found; i++)
        found = (int)belongings->items[i].kind == kind && belongings->items[i].fd == fd;
    pthread_mutex_unlock(&belongings->lock);
    return found;
}

bool df_belongings_have_socket(struct df_belongings *belongings, int fd)
{
    return have(belongings, SOCKET, fd);
}

bool df_belongings_have_pipe(struct df_belongings *belongings, int fd)
{
    return have(belongings, PIPE, fd);
}

/* Shut down, also where a duplicate is left or a thread waits. */
static void disconnect(const struct df_belonging *item)
{
    if (item->kind == SOCKET && is_still(item))
        shutdown(item->fd, SHUT_RDWR);
}

/* A dead socket takes the number of a pipe, so that the pipe's other end sees it go. */
static void replace_pipe(struct df_belonging *item)
{
    struct stat st;
    int dead = is_still(item) ? socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0) : -1;
    if (dead < 0)
        return;
    if (fstat(dead, &st) == 0 && dup3(dead, item->fd, O_CLOEXEC) >= 0) {
        item->kind = SOCKET;
        item->inode = st.st_ino;
        item->device = st.st_dev;
    }
    close(dead);
}

/* ---- children ------------------------------------------------------------------------------ */

void df_belongings_add_child(struct df_belongings *belongings, pid_t pid)
{
    int saved = errno;
    int fd = (int)syscall(SYS_pidfd_open, pid, 0); /* close-on-exec from birth */
    if (fd >= 0 && !remember(belongings, (struct df_belonging){.kind = CHILD, .fd = fd}))
        close(fd);
    errno = saved;
}

bool df_belongings_any_child(struct df_belongings *belongings)
{
    bool any = false;
    pthread_mutex_lock(&belongings->lock);
    forget_what_is_over(belongings);
    for (size_t i = 0; i < belongings->count && !any; i++)
        any = belongings->items[i].kind == CHILD;
    pthread_mutex_unlock(&belongings->lock);
    return any;
}

static int status_of(const siginfo_t *info)
{
    if (info->si_code == CLD_EXITED)
        return (info->si_status & 0xff) << 8;
    return info->si_status | (info->si_code == CLD_DUMPED ? 0x80 : 0);
}

/* Reaps one that has ended. > 0: its pid; 0: none yet; -ECHILD: there are no children. */
static pid_t reap_one(struct df_belongings *belongings, int *status)
{
    pid_t result = -ECHILD;
    pthread_mutex_lock(&belongings->lock);
    for (size_t i = belongings->count; i-- > 0 && result <= 0;) {
        struct df_belonging *item = &belongings->items[i];
        siginfo_t info = {0};
        if (item->kind != CHILD)
            continue;
        int error = waitid((idtype_t)P_PIDFD, (id_t)item->fd, &info, WEXITED | WNOHANG);
        if (error == 0 && info.si_pid == 0) {
            result = 0;
            continue;
        }
        if (error == 0) { /* else somebody has waited for it */
            result = info.si_pid;
            if (status)
                *status = status_of(&info);
        }
        close(item->fd);
        *item = belongings->items[--belongings->count];
    }
    pthread_mutex_unlock(&belongings->lock);
    return result;
}

/* Sleeps until one of the first children has ended; there may be more than fit. */
static int sleep_for_child(struct df_belongings *belongings)
{
    struct pollfd waits[64];
    nfds_t count = 0;
    pthread_mutex_lock(&belongings->lock);
    for (size_t i = 0; i < belongings->count && count < sizeof(waits) / sizeof(waits[0]); i++)
        if (belongings->items[i].kind == CHILD)
            waits[count++] = (struct pollfd){.fd = belongings->items[i].fd, .events = POLLIN};
    pthread_mutex_unlock(&belongings->lock);
    return poll(waits, count, -1) < 0 ? -errno : 0;
}

pid_t df_belongings_wait(struct df_belongings *belongings, int *status, int options)
{
    for (;;) {
        pid_t pid = reap_one(belongings, status);
        if (pid != 0 || options & WNOHANG)
            return pid;
        int error = sleep_for_child(belongings);
        if (error)
            return error;
    }
}

/* ---- the end ------------------------------------------------------------------------------- */

static void adopt(const struct df_belonging *child)
{
    pthread_mutex_lock(&orphans.lock);
    bool added = add(&orphans, *child);
    pthread_mutex_unlock(&orphans.lock);
    if (!added)
        close(child->fd);
}

static void reap_orphans(void)
{
    while (reap_one(&orphans, NULL) > 0)
        continue;
}

void df_belongings_let_go(struct df_belongings *belongings, bool lingers)
{
    size_t kept = 0;
    pthread_mutex_lock(&belongings->lock);
    for (size_t i = 0; i < belongings->count; i++) {
        struct df_belonging item = belongings->items[i];
        if (item.kind == CHILD) {
            adopt(&item);
            continue;
        }
        disconnect(&item);
        if (item.kind == PIPE && lingers)
            replace_pipe(&item);
        if (lingers)
            belongings->items[kept++] = item;
        else if (is_still(&item))
            close(item.fd);
    }
    belongings->count = kept;
    pthread_mutex_unlock(&belongings->lock);
    reap_orphans();
}
