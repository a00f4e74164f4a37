/*
 * server.h - the FUSE server in a process of its own: started, listened to, ended.
 */
#ifndef HELPER_SERVER_H
#define HELPER_SERVER_H

#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/types.h>

#include "control.h"

struct channel;
struct fuse_session;

struct server {
    char directory[64]; /* of our own, mode 0700: the control socket, a mountpoint to show */
    int janitor;        /* of that directory; -1 */
    char *mountpoint;   /* what the user calls it: absolute */
    bool guessed;       /* which word of the command line that is */
    bool misled;        /* it was another, for which the program has an empty directory of ours:
                           what it keeps there is lost */
    int listener;       /* the control socket */
    struct channel *channel;
    int theirs;                   /* the server's end of it, until it was handed out; -1 */
    int output;                   /* read end of the pipe that it prints to */
    pid_t pid;                    /* our child; 0: reaped */
    int status;                   /* of the child, as waitpid(2) gives it */
    int lives[2];                 /* a pipe whose second end the child has, and its children; -1 */
    int daemon;                   /* pidfd of the process that answers, when that is another; -1 */
    struct control_message mount; /* what it asked for */
    struct fuse_session *session; /* ended when the server wants that; set by server_watch() */
    pthread_t printer, watcher;
    bool prints, watched;
};

/*
 * Starts argv (argc words, the first looked for on PATH) so that its "/dev/fuse" or fusermount is
 * ours; takes `theirs` over, its end of `channel`. The word of argv that names the mountpoint is
 * replaced by an empty directory of ours: the word for `known`, or, if that is NULL, the one that
 * looks like it. 0, or -1 after a message.
 */
int server_start(struct server *server, int argc, char *const argv[], const char *known,
                 struct channel *channel, int theirs);

/* Waits until it asks to be mounted. 0, or -1 after a message: it ended, or cannot be served. */
int server_await_mount(struct server *server);

/* Where: as the user's command line says, or, where that has no such word, as the server says. */
const char *server_mountpoint(const struct server *server);

/* From here on the session, or NULL, ends when the server unmounts itself. `answers` is the process
 * that answered INIT, or 0. */
void server_watch(struct server *server, struct fuse_session *session, pid_t answers);

/* Waits for its end, which the closed channel has told it, with less and less patience. Returns the
 * exit status of the program that was started. */
int server_end(struct server *server);

#endif
