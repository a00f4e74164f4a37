/*
 * placed.c - locks that the kernel keeps on placeholders.
 *
 * Placeholders are in a list: those of files that were ever locked and are still open, few. They
 * are descriptors of the application's table, which may close them all: so each is looked at before
 * it is used or closed, and one that is another file by now is left alone.
 */
#include "core/placed.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/flock.h"
#include "core/gate.h"
#include "core/lock_private.h"
#include "core/mount.h"

struct place {
    struct place *next;
    struct df_file *file;
    struct df_mount *mount; /* this and ino: of the file, whose POSIX locks are one process's */
    ino_t ino;
    int fd;    /* -1: none yet */
    dev_t dev; /* this and inode: of the placeholder */
    ino_t inode;
    bool posix; /* a POSIX lock was asked for by it */
    bool asked; /* by a thread that waits for the answer, without the lock */
};

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER; /* protects all of the list */
static pthread_cond_t answered = PTHREAD_COND_INITIALIZER;    /* some place is not asked any more */
static struct place *list;

static struct df_mount *mount_of(const struct df_file *file)
{
    return atomic_load_explicit(&file->mount, memory_order_relaxed);
}

static struct place *find(const struct df_file *file)
{
    struct place *place = list;

    while (place && place->file != file)
        place = place->next;
    return place;
}

/* It has not been closed from under us. */
static bool is_there(const struct place *place)
{
    struct stat st;

    return place->fd >= 0 && fstat(place->fd, &st) == 0 && st.st_dev == place->dev &&
           st.st_ino == place->inode;
}

/* ---- having one ---------------------------------------------------------------------------- */

/* Under list_lock, which is released while the server is asked: it may hang, and others close files
 * of other servers meanwhile, or fork. */
static int ask(struct place *place)
{
    struct stat st;
    int fd;

    place->asked = true;
    pthread_mutex_unlock(&list_lock);
    fd = place->file->far->place(place->file);
    pthread_mutex_lock(&list_lock);
    place->asked = false;
    pthread_cond_broadcast(&answered);
    if (fd < 0)
        return fd == -ENOTCONN ? fd : -ENOLCK;
    fstat(fd, &st);
    place->fd = fd;
    place->dev = st.st_dev;
    place->inode = st.st_ino;
    place->posix = false;
    return 0;
}

/* Under list_lock. NULL: no memory. */
static struct place *add(struct df_file *file)
{
    struct place *place = calloc(1, sizeof(*place));

    if (!place)
        return NULL;
    place->file = file;
    place->mount = mount_of(file);
    place->ino = file->ino;
    place->fd = -1;
    place->next = list;
    list = place;
    atomic_fetch_add_explicit(&place->mount->lock_count, 1, memory_order_relaxed);
    return place;
}

/* Under list_lock, which is released while another thread asks for the same file's: two of one file
 * there cannot be, for the end of one would drop the process's locks. */
static struct place *find_answered(const struct df_file *file)
{
    struct place *place;

    while ((place = find(file)) && place->asked)
        pthread_cond_wait(&answered, &list_lock);
    return place;
}

/* Under list_lock. The descriptor to lock by; or -ENOLCK, -ENOTCONN. */
static int place_of(struct df_file *file, bool posix)
{
    struct place *place = find_answered(file);
    int error;

    if (!place && !(place = add(file)))
        return -ENOLCK;
    if (!is_there(place) && (error = ask(place)) < 0)
        return error;
    place->posix = place->posix || posix;
    return place->fd;
}

static int descriptor(struct df_file *file, bool posix)
{
    int fd;

    pthread_mutex_lock(&list_lock);
    fd = place_of(file, posix);
    pthread_mutex_unlock(&list_lock);
    return fd;
}

/* ---- locking ------------------------------------------------------------------------------- */

/* The system call itself, which is no cancellation point. `waits`: outside the gate. */
static int locked(struct df_call *call, bool waits, long number, int fd, long command, void *arg)
{
    int saved = errno, ret;

    if (waits)
        df_gate_sleep(call->thread);
    ret = syscall(number, fd, command, arg) < 0 ? -errno : 0;
    errno = saved;
    if (waits)
        df_gate_awake(call->thread);
    return ret;
}

static void take_conflict(struct df_lock *lock, const struct flock *range)
{
    lock->type = range->l_type;
    if (range->l_type == F_UNLCK)
        return;
    df_flock_range(range, 0, lock);
    lock->pid = range->l_pid;
}

static int placed_range(struct df_call *call, struct df_file *file, struct df_lock *lock)
{
    bool ofd = lock->pid == -1;
    struct flock range = {
        .l_type = lock->type,
        .l_whence = SEEK_SET,
        .l_start = lock->start,
        .l_len = lock->end == INT64_MAX ? 0 : lock->end - lock->start + 1,
    };
    int command, fd, ret;

    if (lock->test)
        command = ofd ? F_OFD_GETLK : F_GETLK;
    else if (lock->wait)
        command = ofd ? F_OFD_SETLKW : F_SETLKW;
    else
        command = ofd ? F_OFD_SETLK : F_SETLK;
    fd = descriptor(file, !ofd);
    if (fd < 0)
        return fd;
    ret = locked(call, lock->wait, SYS_fcntl, fd, command, &range);
    if (ret == 0 && lock->test)
        take_conflict(lock, &range);
    return ret;
}

static int placed_flock(struct df_call *call, struct df_file *file, int operation)
{
    int fd = descriptor(file, false);

    if (fd < 0)
        return fd;
    return locked(call, !(operation & (LOCK_NB | LOCK_UN)), SYS_flock, fd, operation, NULL);
}

/* ---- the end ------------------------------------------------------------------------------- */

static void unlock_posix(const struct place *place)
{
    struct flock all = {.l_type = F_UNLCK, .l_whence = SEEK_SET};
    int saved = errno;

    if (is_there(place))
        syscall(SYS_fcntl, place->fd, F_SETLK, &all);
    errno = saved;
}

/* The process is the owner. */
static void placed_close(struct df_file *file, uint64_t owner)
{
    struct df_mount *mount = mount_of(file);

    (void)owner;
    pthread_mutex_lock(&list_lock);
    for (struct place *p = list; p; p = p->next)
        if (p->posix && p->mount == mount && p->ino == file->ino) {
            unlock_posix(p);
            p->posix = false;
        }
    pthread_mutex_unlock(&list_lock);
}

static void placed_release(struct df_file *file)
{
    struct place **at = &list, *place;
    int saved = errno;

    pthread_mutex_lock(&list_lock);
    while (*at && (*at)->file != file)
        at = &(*at)->next;
    if ((place = *at)) {
        *at = place->next;
        if (is_there(place))
            close(place->fd);
        atomic_fetch_sub_explicit(&place->mount->lock_count, 1, memory_order_relaxed);
        free(place);
    }
    pthread_mutex_unlock(&list_lock);
    errno = saved;
}

const struct df_lock_keeper df_placed_keeper = {
    .range = placed_range,
    .flock = placed_flock,
    .close = placed_close,
    .release = placed_release,
};

/* ---- fork ---------------------------------------------------------------------------------- */

void df_placed_lock(void)
{
    pthread_mutex_lock(&list_lock);
}

void df_placed_unlock(void)
{
    pthread_mutex_unlock(&list_lock);
}

/* Who was asking does not exist in the child: it asks again. */
void df_placed_after_fork(void)
{
    for (struct place *place = list; place; place = place->next)
        place->asked = false;
    pthread_cond_init(&answered, NULL);
}
