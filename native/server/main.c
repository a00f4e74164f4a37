/*
 * main.c - directfuse-server: one FUSE program in a process of its own, served to many.
 *
 *     directfuse-server [--control FD] [--listen FD] [--stay] [--library FILE] [--words N]...
 *                       [--report FD] [--restart [--say]] -- COMMAND [ARG...]
 *
 * Not for people: `directfuse serve` and df_mount(..., DF_MOUNT_SERVER) start it. The command line
 * is the FUSE program's, as df_mount() takes it; with --words there are several, the first of them
 * of N words, and so on. What goes wrong is told by the control socket, and the exit status is 1;
 * or else on standard error, and it is the error's number. 2: wrong arguments.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "channel/join.h"
#include "directfuse.h"
#include "process/abandoned.h"
#include "process/keeper.h"
#include "process/shadow.h"
#include "server/process.h"
#include "server/server.h"

struct arguments {
    int control; /* descriptors; -1: none */
    int listener;
    int report;
    bool stay;
    const char *library;
    unsigned seconds;          /* that a mount may take; 0: any */
    bool restart, say;         /* started again when it fails; on standard error */
    int words[DF_MOUNT_COUNT]; /* of each command line */
    int count;
    char **argv; /* of all, one behind the other */
};

/* Every command line has a word, and all words belong to one. */
static bool check_words(struct arguments *a, int total)
{
    if (a->count == 0)
        a->words[a->count++] = total;
    for (int i = 0; i < a->count; total -= a->words[i++])
        if (a->words[i] <= 0)
            return false;
    return total == 0;
}

static bool parse(int argc, char *argv[], struct arguments *out)
{
    int i;

    *out = (struct arguments){.control = -1, .listener = -1, .report = -1};
    for (i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (strcmp(argv[i], "--stay") == 0)
            out->stay = true;
        else if (strcmp(argv[i], "--restart") == 0)
            out->restart = true;
        else if (strcmp(argv[i], "--say") == 0)
            out->say = true;
        else if (i + 1 == argc)
            return false;
        else if (strcmp(argv[i], "--control") == 0)
            out->control = atoi(argv[++i]);
        else if (strcmp(argv[i], "--listen") == 0)
            out->listener = atoi(argv[++i]);
        else if (strcmp(argv[i], "--library") == 0)
            out->library = argv[++i];
        else if (strcmp(argv[i], "--seconds") == 0)
            out->seconds = (unsigned)atoi(argv[++i]);
        else if (strcmp(argv[i], "--report") == 0)
            out->report = atoi(argv[++i]);
        else if (strcmp(argv[i], "--words") == 0 && out->count < DF_MOUNT_COUNT)
            out->words[out->count++] = atoi(argv[++i]);
        else
            return false;
    }
    out->argv = argv + i + 1;
    return check_words(out, argc - i - 1);
}

/* An exit status: where no message is read, the error, from which `directfuse serve` knows it. */
static int report(const struct arguments *a, int error, const char *message)
{
    struct df_join_message body = {.magic = DF_JOIN_MAGIC, .kind = DF_JOIN_READY, .error = error};
    struct iovec iov[] = {{&body, sizeof(body)}, {(char *)message, strlen(message)}};
    struct msghdr header = {.msg_iov = iov, .msg_iovlen = 2};

    memcpy(body.build, df_build, DF_BUILD_SIZE);
    if (a->control >= 0) {
        sendmsg(a->control, &header, MSG_NOSIGNAL);
        return 1;
    }
    /* What a file system says itself is EIO to who starts it, and nothing to who reads it. */
    fprintf(stderr, "directfuse-server: %s\n", *message ? message : strerror(-error));
    return -error;
}

/* Who started this waits for the process it made: that one ends here, and the server belongs to
 * nobody whose wait() it could disturb. */
static int detach(void)
{
    pid_t pid = fork();

    if (pid > 0)
        _exit(0);
    return pid < 0 ? -errno : 0;
}

/* A program that no process can load (Go, thread-local storage, a script) runs in one of its own,
 * which our half of the helper serves here. A shared object is no program to start. */
static int mount_by_helper(unsigned flags, int argc, char **argv, char *message, size_t size)
{
    char **words = calloc((size_t)argc + 2, sizeof(*words));

    if (!words)
        return -1;
    words[0] = (char[]){"helper"};
    memcpy(words + 1, argv, (size_t)argc * sizeof(*words));
    int id = df_mount(NULL, argc + 1, words, flags, message, size);
    int error = errno;
    free(words);
    errno = error;
    return id;
}

static bool is_program(const char *path)
{
    size_t length = strlen(path);

    return access(path, X_OK) == 0 && (length < 3 || strcmp(path + length - 3, ".so") != 0);
}

/* Who names a library has looked at it before, and chosen. */
static int mount_one(const struct arguments *a, int argc, char **argv, char *message, size_t size)
{
    const unsigned flags = DF_MOUNT_SECONDS(a->seconds);
    int id = df_mount(a->library, argc, argv, flags, message, size);

    if (id < 0 && errno == ENOEXEC && !a->library && is_program(argv[0]))
        return mount_by_helper(flags, argc, argv, message, size);
    if (id < 0 && errno == ETIMEDOUT) { /* it ends with this process */
        snprintf(message, size, "%s has not mounted anything within %u seconds", argv[0],
                 a->seconds);
        errno = ETIMEDOUT;
    }
    return id;
}

/* One may have ended while others were still mounting. Programs would find what it covers, and
 * write to that. */
static int check_there(const struct arguments *a, char *message, size_t size)
{
    if (df_mounts(NULL, 0) >= a->count)
        return 0;
    snprintf(message, size, "a file system has ended before the programs could begin");
    return -EIO;
}

/* All or none: what is mounted already is unmounted again. */
static int mount_all(const struct arguments *a, char *message, size_t size)
{
    int ids[DF_MOUNT_COUNT], error = 0, count = 0;
    char **argv = a->argv;

    for (; count < a->count && error == 0; argv += a->words[count++]) {
        ids[count] = mount_one(a, a->words[count], argv, message, size);
        if (ids[count] < 0)
            error = -errno;
        else if (a->control < 0 && message[0])
            fprintf(stderr, "%s\n", message);
    }
    if (error == 0)
        error = check_there(a, message, size);
    for (int i = 0; error < 0 && i < count; i++)
        if (ids[i] >= 0)
            df_unmount(ids[i], 0);
    return error;
}

/* What we were given to inherit is not for the programs that we start. */
static void keep_to_ourselves(int fd)
{
    if (fd >= 0)
        fcntl(fd, F_SETFD, FD_CLOEXEC);
}

static bool again;           /* the server is started again when it dies */
static int died_report = -1; /* where it is told, too, that a file system has died */

/* A file system has ended in the middle of a call, or the program of its helper: to who starts the
 * server again that is the server's end. */
static void hear(int mount, const char *words)
{
    (void)mount;
    if (again)
        abort();
    df_serve_died();
    fprintf(stderr, "directfuse: %s\n", words);
    if (died_report >= 0)
        dprintf(died_report, "died\n");
}

/* The server's own thread takes these. To one that stays a terminal's hang-up is nothing. */
static void block_signals(void)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    signal(SIGHUP, SIG_IGN);
    signal(SIGPIPE, SIG_IGN);
}

/* restart: what is written is lost with a server that dies, so nothing may be. */
static int check_read_only(char *message, size_t size)
{
    struct df_mount_info mounts[DF_MOUNT_COUNT];
    int count = df_mounts(mounts, DF_MOUNT_COUNT);

    for (int i = 0; i < count; i++)
        if (!mounts[i].read_only) {
            snprintf(message, size,
                     "restart=on-failure is for file systems that cannot be written, whose state a "
                     "crash does not lose: mount %s with -o ro",
                     mounts[i].mountpoint);
            return -EROFS;
        }
    return 0;
}

static void unmount_all(void)
{
    struct df_mount_info mounts[DF_MOUNT_COUNT];
    int count = df_mounts(mounts, DF_MOUNT_COUNT);

    for (int i = 0; i < count; i++)
        df_unmount(mounts[i].id, 0);
}

/* Mounts everything and serves it. An exit status. */
static int serve(const struct df_kept *kept, void *arg)
{
    struct arguments *a = arg;
    char message[4096] = "";
    int error;

    again = kept;
    died_report = a->report;
    df_set_listener(hear);
    /* a later one is for all that have joined */
    df_abandoned_watch(!kept || kept->memory < 0 ? a->control : -1);
    error = mount_all(a, message, sizeof(message));
    df_abandoned_over();
    if (error < 0)
        return report(a, error, message);
    if (kept && (error = check_read_only(message, sizeof(message))) < 0) {
        unmount_all();
        return report(a, error, message);
    }
    error = df_server_process(a->control, a->listener, a->stay, a->report, kept);
    if (error >= 0)
        return 0;
    snprintf(message, sizeof(message), "the mount server cannot begin: %s", strerror(-error));
    return report(a, error, message);
}

int main(int argc, char *argv[])
{
    struct arguments a;
    char message[1024];
    int error;

    if (!parse(argc, argv, &a)) {
        fprintf(stderr,
                "usage: directfuse-server [--control FD] [--listen FD] [--stay] "
                "[--library FILE] [--words N]... [--report FD] [--restart [--say]] -- COMMAND "
                "[ARG...]\n");
        return 2;
    }
    if ((error = df_server_process_configure(message, sizeof(message))) < 0)
        return report(&a, error, message);
    block_signals();
    df_server_process_begin(a.control >= 0);
    keep_to_ourselves(a.control);
    keep_to_ourselves(a.listener);
    if (!a.stay)
        df_shadow_hold(); /* with a keeper, as long as that is there */
    if (a.control >= 0 && (error = detach()) < 0)
        return report(&a, error, "the server process cannot be made");
    return a.restart ? df_keep(serve, &a, a.say ? a.argv[0] : NULL, a.report) : serve(NULL, &a);
}
