/*
 * control.h - how a server's process asks the helper for its channel: the one protocol behind the
 * preloaded open("/dev/fuse") and mount(2), and behind the stand-in for fusermount.
 *
 * The helper listens on a socket in a directory of its own (mode 0700) and names it in the
 * environment of the server. One connection, one message, one answer.
 */
#ifndef HELPER_CONTROL_H
#define HELPER_CONTROL_H

#include <limits.h>
#include <stdint.h>

#define CONTROL_VARIABLE "DIRECTFUSE_HELPER" /* path of the socket */

enum control_kind {
    CONTROL_OPEN = 'o',    /* answered with the server's end of the channel, once */
    CONTROL_MOUNT = 'm',   /* the channel is to be mounted */
    CONTROL_UNMOUNT = 'u', /* the server wants the mount to end */
};

enum control_way { CONTROL_PRELOAD = 'p', CONTROL_FUSERMOUNT = 'f' };

/* Sent as it is: both sides come from one build. Texts are NUL-terminated. */
struct control_message {
    uint8_t kind, way;
    char target[PATH_MAX]; /* MOUNT, UNMOUNT: the mountpoint */
    char source[PATH_MAX]; /* MOUNT: mount(2)'s source, or "" */
    char type[64];         /* MOUNT: "fuse", "fuse.sshfs" ..., or "" */
    char options[4096];    /* MOUNT: comma-separated, as fusermount and mount(2) take them */
};

/* For the server's side. Returns 0, or a positive errno; for OPEN *fd is a descriptor with
 * close-on-exec. ENOTCONN: this process does not belong to a helper. */
int control_ask(const struct control_message *message, int *fd);

/* For the helper. A listening socket at `path`, or -1 with errno. */
int control_listen(const char *path);

/* Takes one connection and its message: a descriptor to answer on, or -1 with errno. */
int control_take(int listener, struct control_message *message);

/* Answers, passing `fd` along unless it is negative, and closes the connection. 0, or -1 and errno:
 * the asker did not get it. */
int control_answer(int connection, int error, int fd);

#endif
