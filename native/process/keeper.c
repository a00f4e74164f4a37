/*
 * keeper.c - forks servers, holds what outlives them, gives up when they fail too often.
 */
#include "process/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "channel/layout.h"
#include "ledger/files.h"
#include "process/keeper_message.h"
#include "process/output.h"

#define STARTS_MAX 5 /* again, within WINDOW_S; then it gives up */
#define WINDOW_S   60
#define PAUSE_MS   100 /* before the second start in that time; doubled each time */

struct keeper {
    const char *said;
    int report;
    int ledger, memory;         /* memfds */
    struct rlimit limit;        /* of descriptors, as a server is to begin with it */
    int signals;                /* signalfd: a child's end, SIGTERM, SIGINT, SIGHUP */
    struct df_segment *segment; /* its first page; NULL: not made yet */
    struct df_kept_client *clients;
    size_t count, room;
    time_t starts[STARTS_MAX]; /* of the last servers that were started again; a ring */
    unsigned started;
    bool asked; /* it is told to end */
};

/* ---- what is kept ---------------------------------------------------------------------------- */

/* On this thread's robust futex list, as the server's life is (segment/segment.c): clients know by
 * it whether to wait for another server. libc's list of the main thread, which holds no robust
 * mutex, is given up for it. */
static void begin_life(struct df_segment *segment)
{
    static struct robust_list_head head;
    static struct robust_list entry;

    head.list.next = &entry;
    entry.next = &head.list;
    head.futex_offset = (char *)&segment->keeper - (char *)&entry;
    syscall(SYS_set_robust_list, &head, sizeof(head)); /* first: as in segment/segment.c */
    atomic_store(&segment->keeper, (uint32_t)syscall(SYS_gettid));
}

static void take_memory(struct keeper *k, int fd)
{
    void *at = mmap(NULL, sizeof(struct df_segment), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    if (k->memory >= 0 || at == MAP_FAILED) {
        close(fd);
        return;
    }
    k->memory = fd;
    k->segment = at;
    begin_life(k->segment);
}

static void drop_client(struct keeper *k, uint32_t client)
{
    for (size_t i = 0; i < k->count; i++)
        if (k->clients[i].client == client) {
            close(k->clients[i].fd);
            k->clients[i] = k->clients[--k->count];
            return;
        }
}

/* Above what a server may have before it has mounted, which its file systems are to find free.
 * Where the hard limit leaves no room there, it stays. */
static int put_above(const struct keeper *k, int fd)
{
    int above = fcntl(fd, F_DUPFD_CLOEXEC, (int)k->limit.rlim_cur);

    if (above < 0)
        return fd;
    close(fd);
    return above;
}

static void take_client(struct keeper *k, uint32_t client, int fd)
{
    if (k->count == k->room) {
        size_t room = k->room ? 2 * k->room : 16;
        struct df_kept_client *larger = realloc(k->clients, room * sizeof(*larger));

        if (!larger) { /* the next server finds it gone */
            close(fd);
            return;
        }
        k->clients = larger;
        k->room = room;
    }
    k->clients[k->count++] = (struct df_kept_client){client, put_above(k, fd)};
}

static void take_message(struct keeper *k, const struct df_keeper_message *body, int fd)
{
    if (body->kind == DF_KEEPER_MEMORY && fd >= 0)
        take_memory(k, fd);
    else if (body->kind == DF_KEEPER_CLIENT && fd >= 0)
        take_client(k, body->client, fd);
    else if (body->kind == DF_KEEPER_CLIENT)
        drop_client(k, body->client);
}

/* All that the server has said so far. False: it says nothing any more. */
static bool read_messages(struct keeper *k, int socket)
{
    for (;;) {
        struct df_keeper_message body;
        union {
            struct cmsghdr header;
            char room[CMSG_SPACE(sizeof(int))];
        } control;
        struct iovec iov = {&body, sizeof(body)};
        struct msghdr header = {.msg_iov = &iov,
                                .msg_iovlen = 1,
                                .msg_control = &control,
                                .msg_controllen = sizeof(control)};
        ssize_t size = recvmsg(socket, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
        int fd = -1;

        if (size < 0 && errno == EINTR)
            continue;
        if (size <= 0)
            return size < 0 && errno == EAGAIN;
        if (CMSG_FIRSTHDR(&header) && control.header.cmsg_type == SCM_RIGHTS)
            memcpy(&fd, CMSG_DATA(&control.header), sizeof(fd));
        if (size == sizeof(body))
            take_message(k, &body, fd);
    }
}

/* ---- one server ------------------------------------------------------------------------------ */

/* SIGCHLD and the limit go back to what they were: file systems have children. */
static pid_t start(struct keeper *k, int (*serve)(const struct df_kept *, void *), void *arg,
                   int *socket)
{
    int pair[2];
    pid_t pid;

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return -1;
    pid = fork();
    if (pid == 0) {
        const struct df_kept kept = {pair[1], k->ledger, k->memory, k->clients, k->count};
        sigset_t child;

        setrlimit(RLIMIT_NOFILE, &k->limit);
        close(pair[0]);
        close(k->signals);
        sigemptyset(&child);
        sigaddset(&child, SIGCHLD);
        sigprocmask(SIG_UNBLOCK, &child, NULL);
        exit(serve(&kept, arg));
    }
    close(pair[1]);
    *socket = pair[0];
    if (pid < 0)
        close(pair[0]);
    return pid;
}

static void take_signals(struct keeper *k, pid_t pid)
{
    struct signalfd_siginfo info;

    while (read(k->signals, &info, sizeof(info)) == sizeof(info))
        if (info.ssi_signo == SIGHUP) {
            df_output_let_go();
            kill(pid, SIGHUP);
        } else if (info.ssi_signo != SIGCHLD) {
            k->asked = true;
            kill(pid, SIGTERM);
        }
}

/* Its wait status. */
static int await(struct keeper *k, pid_t pid, int socket)
{
    struct pollfd fds[] = {{.fd = k->signals, .events = POLLIN}, {.fd = socket, .events = POLLIN}};
    int status = 0; /* where the ends of children are ignored it is not known */

    while (waitpid(pid, &status, WNOHANG) == 0) {
        if (poll(fds, 2, -1) < 0 && errno != EINTR) { /* of its end it hears all the same */
            waitpid(pid, &status, 0);
            break;
        }
        take_signals(k, pid);
        if (fds[1].fd >= 0 && !read_messages(k, socket))
            fds[1].fd = -1;
    }
    read_messages(k, socket);
    close(socket);
    return status;
}

/* ---- again and again ------------------------------------------------------------------------- */

static void say(const struct keeper *k, const char *words)
{
    if (k->said)
        fprintf(stderr, "directfuse: %s: the mount server %s\n", k->said, words);
}

static void describe(int status, char *out, size_t size)
{
    int number = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    const char *name = sigdescr_np(number);

    if (number == SIGKILL)
        snprintf(out, size, "was killed");
    else if (number != 0)
        snprintf(out, size, "crashed in its file system (%s)", name ? name : "unknown signal");
    else
        snprintf(out, size, "failed with status %d", WEXITSTATUS(status));
}

/* A sleep that SIGTERM ends. */
static void pause_for(struct keeper *k, int milliseconds)
{
    struct pollfd fd = {.fd = k->signals, .events = POLLIN};
    struct signalfd_siginfo info;

    poll(&fd, 1, milliseconds);
    while (read(k->signals, &info, sizeof(info)) == sizeof(info))
        if (info.ssi_signo == SIGHUP)
            df_output_let_go();
        else
            k->asked = k->asked || info.ssi_signo != SIGCHLD;
}

/* How often it was started again within the window, this time included. */
static unsigned count_start(struct keeper *k)
{
    struct timespec now;
    unsigned count = 1;

    clock_gettime(CLOCK_MONOTONIC, &now);
    for (unsigned i = 0; i < STARTS_MAX && i < k->started; i++)
        count += k->starts[i] > now.tv_sec - WINDOW_S;
    k->starts[k->started++ % STARTS_MAX] = now.tv_sec;
    return count;
}

static void give_up(const struct keeper *k, const char *how)
{
    char words[256];

    snprintf(words, sizeof(words), "%s; started again %d times within %d s, given up: calls fail",
             how, STARTS_MAX, WINDOW_S);
    if (k->report < 0)
        say(k, words);
    else
        dprintf(k->report, "given up\n");
}

/* Whether there shall be another server. */
static bool goes_on(struct keeper *k, int status)
{
    char how[128], words[256];
    unsigned count;

    if (k->asked || !k->segment || atomic_load(&k->segment->end) == DF_END_HUNG ||
        (WIFEXITED(status) && WEXITSTATUS(status) == 0))
        return false;
    describe(status, how, sizeof(how));
    if (WIFSIGNALED(status))
        atomic_store(&k->segment->end, WTERMSIG(status) == SIGKILL ? 0 : WTERMSIG(status));
    count = count_start(k);
    if (count > STARTS_MAX) {
        give_up(k, how);
        return false;
    }
    snprintf(words, sizeof(words), "%s: started again (%u of %d)", how, count, STARTS_MAX);
    say(k, words);
    if (count > 1)
        pause_for(k, PAUSE_MS << (count - 2));
    return !k->asked;
}

/* As many as there may be clients, and those of its own. */
static void raise_descriptors(struct keeper *k)
{
    const rlim_t more = DF_CLIENT_MAX + 64;
    struct rlimit raised;

    if (getrlimit(RLIMIT_NOFILE, &k->limit) < 0)
        return;
    raised = k->limit;
    raised.rlim_cur =
        raised.rlim_max - raised.rlim_cur < more ? raised.rlim_max : raised.rlim_cur + more;
    setrlimit(RLIMIT_NOFILE, &raised);
}

static int begin(struct keeper *k)
{
    sigset_t set;

    raise_descriptors(k);

    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    sigaddset(&set, SIGCHLD);
    sigprocmask(SIG_BLOCK, &set, NULL);
    k->memory = -1;
    k->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    k->ledger = memfd_create("directfuse-ledger", MFD_CLOEXEC);
    return k->signals < 0 || k->ledger < 0 || ftruncate(k->ledger, sizeof(struct df_ledger)) < 0
               ? -errno
               : 0;
}

/* By errno. An exit status. */
static int tell_unstarted(const struct keeper *k)
{
    char words[128];

    snprintf(words, sizeof(words), "cannot be started: %s: calls fail", strerror(errno));
    say(k, words);
    return 1;
}

int df_keep(int (*serve)(const struct df_kept *kept, void *arg), void *arg, const char *said,
            int report)
{
    struct keeper k = {.said = said, .report = report};
    int status, socket;
    pid_t pid;

    if (begin(&k) < 0)
        return 1;
    do {
        pid = start(&k, serve, arg, &socket);
        if (pid < 0)
            return tell_unstarted(&k);
        status = await(&k, pid, socket);
    } while (goes_on(&k, status));
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
