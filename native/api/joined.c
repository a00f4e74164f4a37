/*
 * joined.c - attaches the file system of a mount server here, and ends that.
 */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "api/joined_private.h"
#include "channel/join.h"
#include "channel/remote.h"
#include "channel/room.h"
#include "core/fork.h"
#include "core/mount.h"

struct df_joined {
    struct df_remote remote; /* the df_fs; its `end` says when the core is done with it */
    struct df_link link;
    struct df_joined *next; /* under list_lock */
    uint32_t child;         /* between fork's halves: id of the child to be; 0: none */
    pid_t starter;          /* the process that started the server; 0: it was found */
    int mount_id;           /* here */
};

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER; /* protects the list */
static struct df_joined *list;

/* ---- fork ------------------------------------------------------------------------------------ */

static struct df_trip trip_of(struct df_joined *joined)
{
    return (struct df_trip){.link = &joined->link, .mount = joined->remote.mount};
}

static void before_fork(void)
{
    pthread_mutex_lock(&list_lock);
    for (struct df_joined *j = list; j; j = j->next) {
        struct df_trip trip = trip_of(j);
        int64_t child = df_trip_fork(&trip);

        j->child = child > 0 ? (uint32_t)child : 0;
    }
}

static void in_parent(void)
{
    pthread_mutex_unlock(&list_lock);
}

/* The server refuses what it asks for. It keeps nothing of the parent's end, else the server would
 * not see the parent's end. */
static void be_nobody(struct df_link *link)
{
    link->client = 0;
    if (link->control >= 0)
        close(link->control);
    link->control = -1;
}

static void in_child(void)
{
    for (struct df_joined *j = list; j; j = j->next)
        if (j->child == 0 || df_join_born(&j->link, j->link.control, j->child) < 0)
            be_nobody(&j->link);
    pthread_mutex_unlock(&list_lock);
}

/* A file that another thread opens is its process's alone, or also the child's, who knows of it:
 * never the child's without its knowledge. */
static void listen_to_forks(void)
{
    static struct df_fork_listener listener = {before_fork, in_parent, in_child, NULL};

    df_fork_listen(&listener);
}

static void enlist(struct df_joined *joined)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, listen_to_forks);
    pthread_mutex_lock(&list_lock);
    joined->next = list;
    list = joined;
    pthread_mutex_unlock(&list_lock);
}

static void delist(struct df_joined *joined)
{
    struct df_joined **at = &list;

    pthread_mutex_lock(&list_lock);
    while (*at && *at != joined)
        at = &(*at)->next;
    if (*at)
        *at = joined->next;
    pthread_mutex_unlock(&list_lock);
}

/* ---- trouble --------------------------------------------------------------------------------- */

static _Atomic(void (*)(int, const char *)) listener;

void df_joined_listen(void (*function)(int mount, const char *words))
{
    atomic_store(&listener, function);
}

/* How it ended, as far as it could say. */
static void describe_end(int end, char *out, size_t size)
{
    const char *signal = end > 0 ? sigdescr_np(end) : NULL;

    if (end == DF_END_ASKED)
        snprintf(out, size, "has ended");
    else if (end == DF_END_HUNG)
        snprintf(out, size, "has ended without its file system, which answered nothing");
    else if (end > 0)
        snprintf(out, size, "crashed in its file system (%s)", signal ? signal : "unknown signal");
    else
        snprintf(out, size, "was killed");
}

static void tell(struct df_remote *remote, enum df_remote_trouble trouble)
{
    void (*heard)(int, const char *) = atomic_load(&listener);
    const struct df_joined *joined =
        (struct df_joined *)((char *)remote - offsetof(struct df_joined, remote));
    const struct df_segment *segment = joined->link.segment;
    const char *point = remote->shared && remote->shared->point[0] ? remote->shared->point : "/";
    char end[128], words[PATH_MAX + 256];

    if (!heard)
        return;
    describe_end(atomic_load(trouble == DF_REMOTE_AGAIN ? &segment->last_end : &segment->end), end,
                 sizeof(end));
    switch (trouble) {
    case DF_REMOTE_GONE:
        snprintf(words, sizeof(words),
                 "%s: its mount server (process %d) %s: calls end in ENOTCONN until it is mounted "
                 "again",
                 point, segment->server_pid, end);
        break;
    case DF_REMOTE_AGAIN:
        snprintf(words, sizeof(words),
                 "%s: its mount server %s and was started again (for the %u. time, process %d): "
                 "calls went on",
                 point, end, atomic_load(&segment->starts) - 1, segment->server_pid);
        break;
    case DF_REMOTE_LATE:
        snprintf(
            words, sizeof(words),
            "%s: its mount server (process %d) has not answered within %g s: such calls end in "
            "ETIMEDOUT",
            point, segment->server_pid, (double)atomic_load(&joined->link.patience) / 1e9);
        break;
    case DF_REMOTE_FULL:
        snprintf(words, sizeof(words),
                 "%s: there is no shared memory left for its mount server (process %d): calls go "
                 "on with what they have, without more of the cache and at most %d at a time",
                 point, segment->server_pid, DF_ROOM_SLOTS);
        break;
    }
    heard(joined->mount_id, words);
}

/* ---- life ------------------------------------------------------------------------------------ */

void df_joined_part(struct df_link *link)
{
    if (link->control >= 0)
        close(link->control); /* which tells the server */
    if (link->memory >= 0)
        close(link->memory);
    if (link->segment)
        munmap(link->segment, link->segment->size);
}

/* The core has no mount, no file and no call of it any more. */
static void end(struct df_remote *remote)
{
    struct df_joined *joined =
        (struct df_joined *)((char *)remote - offsetof(struct df_joined, remote));

    delist(joined);
    df_joined_part(&joined->link);
    free(joined);
}

void df_joined_say(char *message, size_t size, const char *words)
{
    if (message && size > 0)
        snprintf(message, size, "%s", words);
}

static int attach(struct df_joined *joined, const char *point, char *message, size_t size)
{
    const struct df_shared_mount *shared;
    struct df_mount *mount;
    int32_t id = df_joined_choose(joined->link.segment, point, &shared, message, size);
    int error;

    if (id < 0)
        return id;
    df_remote_init(&joined->remote, &joined->link, id);
    joined->remote.end = end;
    joined->remote.tell = tell;
    const struct df_mount_spec spec = {
        .point = shared->point[0] ? shared->point : "/",
        .fsname = shared->fsname,
        .subtype = shared->subtype,
        .flags = shared->flags & DF_SHARED_READONLY ? DF_ATTACH_READONLY : 0,
    };
    error = df_mount_attach(&spec, &joined->remote.fs, &mount);
    if (error < 0 && message)
        snprintf(message, size, "%s cannot be mounted on: %s", spec.point,
                 error == -EBUSY ? "something is mounted there: unmount it first, or name another "
                                   "mountpoint"
                                 : strerror(-error));
    if (error == 0)
        joined->mount_id = mount->id;
    return error;
}

/* By the credentials of who listens, or made the pair; 0: it is not known. */
static pid_t process_behind(int socket)
{
    struct ucred peer = {0};
    socklen_t size = sizeof(peer);

    return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 ? peer.pid : 0;
}

/* theirs: its build; "": so old that it has none. */
static void say_other_build(int socket, const char theirs[DF_BUILD_SIZE], char *message,
                            size_t size)
{
    if (message)
        snprintf(message, size,
                 "the mount server (process %d) is of another build of directfuse: %.*s, and this "
                 "is %s; end it and start it with this one, or join it with that one",
                 process_behind(socket), DF_BUILD_SIZE, theirs[0] ? theirs : "an older one",
                 df_build);
}

static const char *why_refused(int error)
{
    switch (error) {
    case -ETIMEDOUT:
        return "the mount server has not mounted anything within that time";
    case -EACCES:
        return "the mount server is another user's";
    case -ENOTCONN:
        return "the mount server does not answer: it has ended, is of an older build of "
               "directfuse, or may have no more files open (`ulimit -n`)";
    case -EAGAIN:
        return "the mount server has no room for another client";
    default: /* of this process: it may have no more descriptors, or no memory */
        return strerror(-error);
    }
}

static void say_refused(int socket, int error, const char theirs[DF_BUILD_SIZE], char *message,
                        size_t size)
{
    if (error == -EPROTO)
        say_other_build(socket, theirs, message, size);
    else if (error != -EINTR)
        df_joined_say(message, size, why_refused(error));
}

int df_joined_enter(struct df_link *link, const struct df_joined_order *order, char *message,
                    size_t size)
{
    const struct df_join_wait wait = {
        .patience = order->seconds ? (int64_t)order->seconds * 1000000000 : -1,
        .interruptible = order->starter == 0}; /* it may still mount */
    char theirs[DF_BUILD_SIZE] = "";
    int error = df_join_hello(link, order->socket, wait, theirs);

    if (error < 0)
        say_refused(order->socket, error, theirs, message, size);
    return error;
}

static int enter_and_attach(struct df_joined *joined, const struct df_joined_order *order,
                            char *message, size_t size)
{
    int error = df_joined_enter(&joined->link, order, message, size);

    if (error < 0)
        return error;
    joined->starter = order->starter;
    error = attach(joined, order->point, message, size);
    if (error < 0)
        df_joined_part(&joined->link);
    return error;
}

int df_joined_join(const struct df_joined_order *order, struct df_joined **out, int *mount_id,
                   char *message, size_t size)
{
    struct df_joined *joined = calloc(1, sizeof(*joined));
    int error;

    if (!joined)
        return -ENOMEM;
    error = enter_and_attach(joined, order, message, size);
    if (error < 0) {
        free(joined);
        return error;
    }
    enlist(joined);
    *out = joined;
    *mount_id = joined->mount_id;
    return 0;
}

/* ---- leaving --------------------------------------------------------------------------------- */

#define END_MS    5000 /* to wait for a server that has unmounted */
#define SECOND_NS INT64_C(1000000000)

/* Its process ends now, and with it our connection: who unmounts finds nothing of it any more. */
static void await_end(const struct df_link *link)
{
    struct pollfd end = {.fd = link->control, .events = POLLRDHUP};

    while (poll(&end, 1, END_MS) < 0 && errno == EINTR)
        ;
}

/* The server gives its file system up after the patience, or at least a second (patience.h), and
 * may have to wait for another unmount before. What the file system does at its own end is not cut
 * off, only not waited for. */
static int64_t patience_to_unmount(const struct df_joined *joined)
{
    int64_t patience = atomic_load(&joined->link.patience);

    return patience < 0 ? -1 : 2 * (patience > SECOND_NS ? patience : SECOND_NS);
}

/* An end may take long: of a server that is stopped it is not asked, and the mount stays. */
static int ask_to_unmount(struct df_joined *joined, bool lazy, bool alone)
{
    struct df_trip trip = trip_of(joined);
    int64_t patience = patience_to_unmount(joined);

    if (patience < 0 && df_trip_nothing(&trip) == -ETIMEDOUT)
        return -EBUSY;
    return df_trip_unmount(&trip, lazy, alone, patience);
}

/* On the server, by who started it. A server that is gone has unmounted. */
static int unmount_there(struct df_joined *joined, bool lazy, bool alone)
{
    int ret;

    if (joined->starter != getpid())
        return 0;
    ret = ask_to_unmount(joined, lazy, alone);
    if (ret == 0 && !lazy)
        await_end(&joined->link);
    if (lazy && (ret == -ETIMEDOUT || ret == -EBUSY)) /* it leaves our table all the same */
        return 0;
    return ret == -ENOTCONN || ret == -EINVAL || ret == -EUSERS ? 0 : ret;
}

static bool has_hung(const struct df_joined *joined)
{
    return atomic_load(&joined->link.segment->end) == DF_END_HUNG;
}

/* Lazily here: files that are open on a lost server could not keep the mount otherwise. */
int df_joined_leave(struct df_joined *joined, bool lazy, bool alone, bool *hung)
{
    int id = joined->mount_id;
    int ret = unmount_there(joined, lazy, alone);

    if (ret < 0)
        return ret;
    *hung = joined->starter == getpid() && has_hung(joined);
    return df_mount_detach(id, lazy || joined->starter == getpid() ? DF_DETACH_LAZY : 0);
}

void df_joined_set_patience(struct df_joined *joined, int64_t patience)
{
    atomic_store(&joined->link.patience, patience);
    if (joined->starter == getpid())
        atomic_store(&joined->link.segment->patience, patience > 0 ? patience : 0);
}

void df_joined_stats(const struct df_joined *joined, struct df_joined_stats *stats)
{
    const struct df_link *link = &joined->link;

    *stats = (struct df_joined_stats){
        .trips = atomic_load_explicit(&link->trips, memory_order_relaxed),
        .spun = atomic_load_explicit(&link->spun, memory_order_relaxed),
        .slept = atomic_load_explicit(&link->slept, memory_order_relaxed),
        .hits = atomic_load_explicit(&link->hits, memory_order_relaxed),
    };
}
