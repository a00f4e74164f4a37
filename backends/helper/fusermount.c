/*
 * fusermount.c - stands in for fusermount and fusermount3 on the PATH of a server: hands it the
 * helper's channel over the socket that _FUSE_COMMFD names, as the real one hands over /dev/fuse.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "control.h"

static int fail(const char *what, int error)
{
    fprintf(stderr, "fusermount (directfuse): %s: %s\n", what, strerror(error));
    return 1;
}

/* Sends the descriptor beside one byte: what every FUSE library waits for. */
static int hand_over(int socket, int fd)
{
    char byte = 0;
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(fd))];
    } rights = {.header = {.cmsg_len = CMSG_LEN(sizeof(fd)),
                           .cmsg_level = SOL_SOCKET,
                           .cmsg_type = SCM_RIGHTS}};
    struct iovec iov = {&byte, 1};
    struct msghdr message = {
        .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &rights, .msg_controllen = sizeof(rights)};

    memcpy(CMSG_DATA(&rights.header), &fd, sizeof(fd));
    return sendmsg(socket, &message, MSG_NOSIGNAL) < 0 ? errno : 0;
}

/* The value of one of the options that say what mount(2) gets as its source or type. */
static void pick(char *to, size_t size, const char *options, const char *name, const char *prefix)
{
    const char *at = options;
    size_t length = strlen(name);

    while (at && strncmp(at, name, length) != 0)
        at = (at = strchr(at, ',')) ? at + 1 : NULL;
    if (at)
        snprintf(to, size, "%s%.*s", prefix, (int)strcspn(at + length, ","), at + length);
}

static int mount_it(const char *target, const char *options)
{
    struct control_message message = {.kind = CONTROL_OPEN, .way = CONTROL_FUSERMOUNT};
    const char *number = getenv("_FUSE_COMMFD");
    int fd = -1;

    if (!number)
        return fail("no _FUSE_COMMFD: only a FUSE library may call this", EINVAL);
    int error = control_ask(&message, &fd);
    if (error)
        return fail("cannot get the channel", error);
    message.kind = CONTROL_MOUNT;
    snprintf(message.target, sizeof(message.target), "%s", target);
    snprintf(message.options, sizeof(message.options), "%s", options);
    pick(message.source, sizeof(message.source), options, "fsname=", "");
    pick(message.type, sizeof(message.type), options, "subtype=", "fuse.");
    int none = -1;
    error = control_ask(&message, &none);
    if (!error)
        error = hand_over(atoi(number), fd);
    close(fd);
    return error ? fail(target, error) : 0;
}

static int unmount_it(const char *target)
{
    struct control_message message = {.kind = CONTROL_UNMOUNT, .way = CONTROL_FUSERMOUNT};
    int none = -1;

    snprintf(message.target, sizeof(message.target), "%s", target);
    int error = control_ask(&message, &none);
    return error ? fail(target, error) : 0;
}

int main(int argc, char *argv[])
{
    static const struct option names[] = {
        {"unmount", no_argument, NULL, 'u'},
        {"lazy", no_argument, NULL, 'z'},
        {"quiet", no_argument, NULL, 'q'},
        {"version", no_argument, NULL, 'V'},
        {"options", required_argument, NULL, 'o'},
        {"auto-unmount", no_argument, NULL, 'U'},
        {NULL, 0, NULL, 0},
    };
    char options[4096] = "";
    int unmount = 0, key;

    while ((key = getopt_long(argc, argv, "uzqVo:U", names, NULL)) != -1) {
        if (key == 'V')
            return puts("fusermount3 version: 3.14.0") < 0;
        if (key == '?')
            return 1;
        if (key == 'u')
            unmount = 1;
        if (key == 'o') {
            size_t used = strlen(options);
            snprintf(options + used, sizeof(options) - used, "%s%s", used ? "," : "", optarg);
        }
    }
    if (optind + 1 != argc)
        return fail("one mountpoint is wanted", EINVAL);
    return unmount ? unmount_it(argv[optind]) : mount_it(argv[optind], options);
}
