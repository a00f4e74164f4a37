/*
 * server.c - starting a FUSE server that never meets the kernel's FUSE, and ending it.
 *
 * The server gets two doors to the helper, and takes the one it knows: libdf-helper.so, preloaded,
 * answers open("/dev/fuse") and mount(2) of a dynamically linked program; a stand-in for fusermount
 * comes first on its PATH, which is how programs in Go mount.
 */
#include "server.h"

#include "channel.h"
#include "directory.h"
#include "farewell.h"
#include "surroundings.h"

#ifndef FUSE_USE_VERSION
#define FUSE_USE_VERSION 312
#endif
#include <errno.h>
#include <fcntl.h>
#include <fuse_lowlevel.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define LOOK_AROUND 200 /* ms between looks for a mount that is none of ours */

static int fail(const char *what, const char *name, int error)
{
    fuse_log(FUSE_LOG_ERR, "helper: %s %s: %s\n", what, name, strerror(error));
    return -1;
}

/* ---- starting -----------------------------------------------------------------------------------
 */

/* A session of its own, so that the terminal's signals are not for it; none blocked or ignored. */
static int set_attributes(posix_spawnattr_t *attributes)
{
    sigset_t none, all;

    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(attributes, &none);
    posix_spawnattr_setsigdefault(attributes, &all);
    return posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
                                                    POSIX_SPAWN_SETSID);
}

static int spawn(struct server *server, char *const argv[], char *const environment[], int output)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;

    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, output, 1);
    posix_spawn_file_actions_adddup2(&actions, output, 2);
    posix_spawn_file_actions_adddup2(&actions, server->lives[1], server->lives[1]); /* stays open */
    set_attributes(&attributes);
    int error = posix_spawnp(&server->pid, argv[0], &actions, &attributes, argv, environment);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

/* A host that is killed sees nobody off. Returns the pidfd of the process; -1: it has ended. */
static int entrust(const struct server *server, pid_t pid)
{
    int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);

    if (pidfd >= 0)
        directory_entrust(server->janitor, pidfd);
    return pidfd;
}

static void *print_output(void *argument)
{
    struct server *server = argument;
    FILE *lines = fdopen(server->output, "r");
    char *line = NULL;
    size_t size = 0;

    while (lines && getline(&line, &size, lines) > 0)
        fuse_log(FUSE_LOG_INFO, "%s", line);
    free(line);
    if (lines)
        fclose(lines);
    else
        close(server->output);
    return NULL;
}

static int run(struct server *server, char *const argv[], const char *tools)
{
    struct surroundings environment;
    int pipes[2];

    if (!surroundings_begin(&environment, server->directory, tools))
        return ENOMEM;
    int error = pipe2(pipes, O_CLOEXEC) < 0 ? errno : 0;
    if (!error) {
        error = spawn(server, argv, environment.entries, pipes[1]);
        int child = error ? -1 : entrust(server, server->pid);
        if (child >= 0)
            close(child);
        close(pipes[1]);
        server->output = pipes[0];
        server->prints = pthread_create(&server->printer, NULL, print_output, server) == 0;
        if (!server->prints)
            close(pipes[0]);
    }
    surroundings_end(&environment);
    return error;
}

#define OURS "/directfuse-XXXXXX" /* in a directory for what is temporary */

/* Without symlinks, as a program names its mountpoint when it mounts: what is in our directory is
 * known by its name. */
static bool find_base(const char *path, char *base, size_t size)
{
    char *resolved = *path ? realpath(path, NULL) : NULL;
    int length = snprintf(base, size, "%s", resolved ? resolved : path);

    free(resolved);
    return length > 0 && (size_t)length < size;
}

/* Says why there is none. */
static bool make_directory(struct server *server)
{
    const char *wanted = secure_getenv("TMPDIR");
    char base[sizeof(server->directory) - (sizeof(OURS) - 1)];

    if (!wanted || !find_base(wanted, base, sizeof(base)))
        find_base("/tmp", base, sizeof(base));
    snprintf(server->directory, sizeof(server->directory), "%s" OURS, base);
    if (mkdtemp(server->directory) && chmod(server->directory, 0700) == 0) /* whatever the umask */
        return true;
    fuse_log(
        FUSE_LOG_ERR,
        "helper: no directory can be made in %s: %s; let TMPDIR be one that you can write to\n",
        base, strerror(errno));
    server->directory[0] = '\0';
    return false;
}

static void close_end(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* The directory, who hears by it what the program mounts, and of its end: an errno. */
static int prepare(struct server *server, const char *tools)
{
    char path[96];

    server->janitor = directory_watch(tools, server->directory);
    snprintf(path, sizeof(path), "%s/" DIRECTORY_CONTROL, server->directory);
    server->listener = control_listen(path);
    return server->listener < 0 || pipe2(server->lives, O_CLOEXEC) < 0 ? errno : 0;
}

int server_start(struct server *server, int argc, char *const argv[], const char *known,
                 struct channel *channel, int theirs)
{
    char tools[2 * PATH_MAX], shown[96];
    char **words = calloc((size_t)argc + 1, sizeof(char *));
    int place =
        known ? surroundings_word_for(argc, argv, known) : surroundings_mountpoint(argc, argv);
    int error;

    *server = (struct server){.channel = channel,
                              .guessed = !known,
                              .theirs = theirs,
                              .listener = -1,
                              .lives = {-1, -1},
                              .daemon = -1,
                              .janitor = -1};
    if (!words)
        return fail("cannot start", argv[0], ENOMEM);
    memcpy(words, argv, (size_t)argc * sizeof(char *));
    if (!surroundings_tools(tools, sizeof(tools)))
        error = ENOENT;
    else if (make_directory(server))
        error = prepare(server, tools);
    else
        error = -1; /* it is said */
    if (!error && place)
        words[place] = surroundings_show(server->directory, words[place], shown, sizeof(shown),
                                         &server->mountpoint);
    if (!error)
        error = run(server, words, tools);
    close_end(&server->lives[1]);
    free(words);
    return error > 0 ? fail("cannot start", argv[0], error) : error;
}

/* ---- until it is mounted ------------------------------------------------------------------------
 */

/* Who opens the device may only want to know whether it can, and close it before it mounts. */
static bool was_a_try(const struct server *server)
{
    return server->theirs < 0 && !server->mount.kind && channel_has_ended(server->channel);
}

/* The channel is handed out once, then only the server has it: its death is seen. */
static void answer_open(struct server *server, int connection)
{
    if (was_a_try(server))
        server->theirs = channel_connect(server->channel);
    int error = server->theirs < 0 ? EBUSY : 0;

    if (control_answer(connection, error, server->theirs) == 0 && !error)
        close_end(&server->theirs);
}

static void show_poll_file(const struct server *server)
{
    char path[128];

    snprintf(path, sizeof(path), "%s/" DIRECTORY_POLL_FILE, server->directory);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd >= 0)
        close(fd);
}

/* Another mount's. A relative name may be seen from anywhere, so it is taken for ours. */
static bool is_elsewhere(const struct server *server, const char *target)
{
    const char *ours = server->mount.target;
    char here[PATH_MAX], there[PATH_MAX];

    if (target[0] != '/' || strcmp(target, ours) == 0 || !realpath(ours, here))
        return false;
    return !realpath(target, there) || strcmp(here, there) != 0;
}

/* Once it is mounted; before that there is nothing to end. */
static int unmount(const struct server *server, const char *target)
{
    if (!server->session)
        return 0;
    if (is_elsewhere(server, target))
        return EINVAL;
    fuse_session_exit(server->session);
    return 0;
}

/* Where it mounts is what it was shown. */
static bool is_shown(const struct server *server)
{
    return strncmp(server->mount.target, server->directory, strlen(server->directory)) == 0;
}

static void take_mount(struct server *server, const struct control_message *message)
{
    server->mount = *message;
    server->misled =
        server->guessed && server->mountpoint && message->target[0] == '/' && !is_shown(server);
    show_poll_file(server);
}

/* Answers one question; true: it was the one to be mounted. */
static bool answer(struct server *server)
{
    struct control_message message;
    int connection = control_take(server->listener, &message);
    bool mounts = connection >= 0 && message.kind == CONTROL_MOUNT;

    if (connection < 0)
        return false;
    if (message.kind == CONTROL_OPEN) {
        answer_open(server, connection);
        return false;
    }
    if (mounts)
        take_mount(server, &message);
    bool unmounts = message.kind == CONTROL_UNMOUNT;
    control_answer(connection, unmounts ? unmount(server, message.target) : 0, -1);
    return mounts;
}

static bool reap(struct server *server, int options)
{
    if (server->pid > 0 && waitpid(server->pid, &server->status, options) != 0)
        server->pid = 0; /* or somebody else in this process has waited for it */
    return server->pid == 0;
}

/* One that ends well may have left the mounting to a child: it is over when that has ended, too,
 * which *end tells from then on. */
static bool is_over(const struct server *server, int *end)
{
    bool over = server->status != 0 || *end == server->lives[0];

    *end = server->lives[0];
    return over;
}

static void explain_end(const struct server *server)
{
    if (WIFSIGNALED(server->status))
        fuse_log(FUSE_LOG_ERR, "helper: the program was ended by signal %d before it mounted\n",
                 WTERMSIG(server->status));
    else
        fuse_log(FUSE_LOG_ERR,
                 "helper: the program ended with status %d before it mounted anything through "
                 "/dev/fuse or fusermount\n",
                 WEXITSTATUS(server->status));
}

/* A static program that knows no fusermount cannot be reached; with the right to mount it would do
 * so for real, on the directory that it was shown. */
static bool mounted_for_real(const struct server *server)
{
    FILE *mounts = fopen("/proc/self/mountinfo", "re");
    char *line = NULL;
    size_t size = 0;
    bool found = false;

    while (mounts && !found && getline(&line, &size, mounts) > 0)
        found = strstr(line, server->directory);
    free(line);
    if (mounts)
        fclose(mounts);
    return found;
}

static void undo_mount(const struct server *server)
{
    char path[96];

    snprintf(path, sizeof(path), "%s/" DIRECTORY_MNT, server->directory);
    umount2(path, MNT_DETACH);
    if (server->pid > 0)
        kill(server->pid, SIGTERM);
    fuse_log(FUSE_LOG_ERR, "helper: the program opens /dev/fuse and mounts by itself, past the "
                           "C library and fusermount; it can only be mounted through the kernel "
                           "(`directfuse mount`); what it had mounted is unmounted\n");
}

int server_await_mount(struct server *server)
{
    int child = (int)syscall(SYS_pidfd_open, server->pid, 0);
    struct pollfd events[2] = {{.fd = server->listener, .events = POLLIN},
                               {.fd = child, .events = POLLIN}};
    int result = -1;

    for (;;) {
        int ready = poll(events, 2, LOOK_AROUND);
        if (ready < 0 && errno != EINTR)
            break;
        if (ready == 0 && mounted_for_real(server)) {
            undo_mount(server);
            break;
        }
        if (ready <= 0)
            continue;
        if (events[0].revents) {
            if (answer(server)) {
                result = 0;
                break;
            }
        } else if (events[1].revents && reap(server, WNOHANG) && is_over(server, &events[1].fd)) {
            explain_end(server);
            break;
        }
    }
    if (child >= 0)
        close(child);
    return result;
}

const char *server_mountpoint(const struct server *server)
{
    return server->mountpoint && is_shown(server) ? server->mountpoint : server->mount.target;
}

/* ---- while it is mounted ------------------------------------------------------------------------
 */

/* A socket that is shut down accepts nothing more: that ends it. */
static void *watch_control(void *argument)
{
    struct server *server = argument;
    struct pollfd event = {.fd = server->listener, .events = POLLIN};

    for (;;) {
        if (poll(&event, 1, -1) < 0 && errno != EINTR)
            return NULL;
        if (event.revents & (POLLHUP | POLLERR | POLLNVAL))
            return NULL;
        if (event.revents & POLLIN)
            answer(server);
    }
}

void server_watch(struct server *server, struct fuse_session *session, pid_t answers)
{
    server->session = session;
    if (answers > 0 && answers != server->pid)
        server->daemon = entrust(server, answers);
    server->watched = pthread_create(&server->watcher, NULL, watch_control, server) == 0;
}

/* ---- the end ------------------------------------------------------------------------------------
 */

int server_end(struct server *server)
{
    int child = server->pid > 0 ? (int)syscall(SYS_pidfd_open, server->pid, 0) : -1;

    close_end(&server->theirs);
    close_end(&server->lives[0]);
    if (child >= 0) {
        farewell(child);
        close(child);
    }
    if (server->daemon >= 0)
        farewell(server->daemon);
    close_end(&server->daemon);
    reap(server, 0);
    if (server->watched) {
        shutdown(server->listener, SHUT_RDWR);
        pthread_join(server->watcher, NULL);
    }
    close_end(&server->listener);
    if (server->prints)
        pthread_join(server->printer, NULL);
    if (server->directory[0])
        directory_remove(server->directory);
    directory_dismiss(server->janitor);
    free(server->mountpoint);
    return WIFEXITED(server->status) ? WEXITSTATUS(server->status) : 1;
}
