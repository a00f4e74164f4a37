/*
 * joined_start.c - starts a mount server, waits until it is ready and joins it.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api/joined_private.h"
#include "channel/join.h"
#include "loader/plugin.h"

extern char **environ;

/* <directory of this library>/../bin/directfuse-server */
static int find_server(char out[PATH_MAX])
{
    Dl_info info;
    const char *slash;
    int len;

    if (!dladdr((void *)find_server, &info) || !(slash = strrchr(info.dli_fname, '/')))
        return -ENOENT;
    len = snprintf(out, PATH_MAX, "%.*s/../bin/directfuse-server", (int)(slash - info.dli_fname),
                   info.dli_fname);
    return len < PATH_MAX ? 0 : -ENAMETOOLONG;
}

#define CONTROL_FD 3 /* of the server */

/* A caller may have closed 0, 1 and 2: so `control` is above them, and 2 is the caller's if it has
 * one. */
static int add_actions(posix_spawn_file_actions_t *actions, int control)
{
    int error = posix_spawn_file_actions_addopen(actions, 0, "/dev/null", O_RDONLY, 0);

    if (error == 0)
        error = posix_spawn_file_actions_addopen(actions, 1, "/dev/null", O_WRONLY, 0);
    if (error == 0 && fcntl(2, F_GETFD) < 0)
        error = posix_spawn_file_actions_addopen(actions, 2, "/dev/null", O_WRONLY, 0);
    if (error == 0) /* also where both are equal: then it clears close-on-exec */
        error = posix_spawn_file_actions_adddup2(actions, control, CONTROL_FD);
    return -error;
}

static int set_attributes(posix_spawnattr_t *attributes)
{
    sigset_t none, all;

    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(attributes, &none);
    posix_spawnattr_setsigdefault(attributes, &all);
    return -posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
                                                     POSIX_SPAWN_SETSID);
}

static int spawn(const char *server, char *const argv[], int control, pid_t *pid)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int error = -posix_spawn_file_actions_init(&actions);

    if (error < 0)
        return error;
    error = -posix_spawnattr_init(&attributes);
    if (error == 0) {
        if ((error = add_actions(&actions, control)) == 0 &&
            (error = set_attributes(&attributes)) == 0)
            error = -posix_spawn(pid, server, &actions, &attributes, argv, environ);
        posix_spawnattr_destroy(&attributes);
    }
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

/* The process that was spawned forks the server and ends: it is nobody's child that waits. */
static void reap(pid_t pid)
{
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
}

static int launch(const struct df_plugin_program *program, bool restart, int control)
{
    char server[PATH_MAX], seconds[16];
    const char *first[] = {"directfuse-server", "--control", "3",  "--library", program->library,
                           "--seconds",         seconds,     "--", "--"};
    const int count = restart ? 9 : 8;
    char **vector = calloc((size_t)(program->argc + count + 1), sizeof(*vector));
    pid_t pid;
    int error;

    if (!vector)
        return -ENOMEM;
    snprintf(seconds, sizeof(seconds), "%u", program->seconds);
    if (restart)
        first[count - 2] = "--restart";
    for (int i = 0; i < count; i++)
        vector[i] = (char *)first[i];
    for (int i = 0; i < program->argc; i++)
        vector[count + i] = program->argv[i];
    error = find_server(server);
    if (error == 0)
        error = spawn(server, vector, control, &pid);
    if (error == 0)
        reap(pid);
    free(vector);
    return error;
}

/* What the server says when it is ready, or why it never will be. */
static int await_ready(int socket, char *message, size_t size)
{
    char text[4096];
    struct df_join_message body;
    struct iovec iov[] = {{&body, sizeof(body)}, {text, sizeof(text) - 1}};
    struct msghdr header = {.msg_iov = iov, .msg_iovlen = 2};
    ssize_t got;

    do
        got = recvmsg(socket, &header, 0);
    while (got < 0 && errno == EINTR);
    if (got < (ssize_t)sizeof(body) || body.magic != DF_JOIN_MAGIC || body.kind != DF_JOIN_READY) {
        df_joined_say(message, size, "the mount server ended before it had mounted anything");
        return -EIO;
    }
    text[got - (ssize_t)sizeof(body)] = '\0';
    if (body.error < 0)
        df_joined_say(message, size, text);
    return body.error;
}

int df_joined_meet(int socket, struct df_joined **out, int *mount_id, char *message, size_t size)
{
    const struct df_joined_order order = {.socket = socket, .starter = getpid()};
    int error = await_ready(socket, message, size);

    return error < 0 ? error : df_joined_join(&order, out, mount_id, message, size);
}

int df_joined_launch(const struct df_plugin_program *program, bool restart, char *message,
                     size_t size)
{
    int pair[2];
    int error;

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return -errno;
    pair[1] = df_join_above_standard(pair[1]); /* those below become the server's own */
    error = pair[1] > 2 ? launch(program, restart, pair[1]) : -EMFILE;
    close(pair[1]);
    if (error == 0)
        return pair[0];
    if (message)
        snprintf(message, size, "directfuse-server cannot be started: %s", strerror(-error));
    close(pair[0]);
    return error;
}

int df_joined_start(const struct df_plugin_program *program, bool restart, struct df_joined **out,
                    int *mount_id, char *message, size_t size)
{
    int socket = df_joined_launch(program, restart, message, size);
    int error;

    if (socket < 0)
        return socket;
    error = df_joined_meet(socket, out, mount_id, message, size);
    close(socket);
    return error;
}
