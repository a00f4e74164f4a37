/*
 * directory.c - see directory.h; of the helper and its janitor.
 */
#include "directory.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

void directory_remove(const char *directory)
{
    static const struct {
        const char *name;
        int flags;
    } things[] = {{DIRECTORY_POLL_FILE, 0},
                  {DIRECTORY_CONTROL, 0},
                  {DIRECTORY_TOOLS, 0},
                  {DIRECTORY_MNT, AT_REMOVEDIR}};
    int fd = open(directory, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    for (size_t i = 0; fd >= 0 && i < sizeof(things) / sizeof(things[0]); i++)
        unlinkat(fd, things[i].name, things[i].flags);
    if (fd >= 0)
        close(fd);
    rmdir(directory);
}

/* Its standard input is this process, its standard output where it hears that it is not needed. It
 * leaves its parent at once, which is not to find a child that it never had. */
static pid_t spawn(const char *program, const char *directory, int self, int socket)
{
    char *argv[] = {"df-janitor", (char *)(uintptr_t)directory, NULL}, *environment[] = {NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none;
    pid_t pid = -1;

    sigemptyset(&none);
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    posix_spawn_file_actions_adddup2(&actions, self, 0);
    posix_spawn_file_actions_adddup2(&actions, socket, 1);
    posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSID);
    if (posix_spawn(&pid, program, &actions, &attributes, argv, environment) != 0)
        pid = -1;
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return pid;
}

int directory_watch(const char *tools, const char *directory)
{
    char program[2 * PATH_MAX + 32];
    int self = (int)syscall(SYS_pidfd_open, getpid(), 0), pair[2] = {-1, -1};
    pid_t pid = -1;

    snprintf(program, sizeof(program), "%s/df-janitor", tools);
    if (self >= 0 && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0)
        pid = spawn(program, directory, self, pair[1]);
    if (pid > 0)
        waitpid(pid, NULL, 0);
    if (self >= 0)
        close(self);
    if (pair[1] >= 0)
        close(pair[1]);
    if (pid < 0 && pair[0] >= 0)
        close(pair[0]);
    return pid > 0 ? pair[0] : -1;
}

void directory_entrust(int janitor, int pidfd)
{
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(int))];
    } rights = {.header = {.cmsg_len = CMSG_LEN(sizeof(int)),
                           .cmsg_level = SOL_SOCKET,
                           .cmsg_type = SCM_RIGHTS}};
    struct iovec iov = {(char[]){0}, 1};
    struct msghdr message = {
        .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &rights, .msg_controllen = sizeof(rights)};

    memcpy(CMSG_DATA(&rights.header), &pidfd, sizeof(pidfd));
    if (janitor >= 0)
        sendmsg(janitor, &message, MSG_NOSIGNAL);
}

/* A byte, and not the end of the socket, of which forked children have a copy. */
void directory_dismiss(int janitor)
{
    if (janitor < 0)
        return;
    send(janitor, "", 1, MSG_NOSIGNAL);
    close(janitor);
}
