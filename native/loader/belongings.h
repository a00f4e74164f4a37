/*
 * belongings.h - what a loaded program would take with it when its process ends: its sockets and
 * pipes, the children that wait at their other ends (sshfs and its ssh), and the files that it has
 * opened for good (an image).
 *
 * Each is remembered by an identity that no other can have (the inode of a socket or a pipe, the
 * pidfd of a child), so what the host opens under a number that was free again is never touched. An
 * inode does not tell whose descriptor of a file it is: a program's gets a mark that nobody else's
 * has, in the open file description itself.
 */
#ifndef DF_LOADER_BELONGINGS_H
#define DF_LOADER_BELONGINGS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct df_belonging;

struct df_belongings {
    pthread_mutex_t lock; /* protects the rest */
    struct df_belonging *items;
    size_t count, capacity; /* elements */
};

void df_belongings_init(struct df_belongings *belongings);
void df_belongings_destroy(struct df_belongings *belongings);

/* Remembers a socket or a pipe; anything else is ignored, and so is what memory is too short for.
 * errno is kept. */
void df_belongings_add_fd(struct df_belongings *belongings, int fd);

/* Remembers a regular file or a directory, and marks its open file description; anything else is
 * ignored, and so is what memory is too short for. errno is kept. */
void df_belongings_add_file(struct df_belongings *belongings, int fd);

/* True if fd is one of the sockets, or of the pipes. */
bool df_belongings_have_socket(struct df_belongings *belongings, int fd);
bool df_belongings_have_pipe(struct df_belongings *belongings, int fd);

/* Remembers a child of this process. errno is kept. */
void df_belongings_add_child(struct df_belongings *belongings, pid_t pid);

/* True if it has started children and not waited for all of them. */
bool df_belongings_any_child(struct df_belongings *belongings);

/*
 * waitid(P_ALL) among these children only: fills *status as wait(2) does and returns the pid; 0 if
 * none has ended and `options` has WNOHANG; -ECHILD, -EINTR.
 */
pid_t df_belongings_wait(struct df_belongings *belongings, int *status, int options);

/*
 * The program has ended: connections are shut down. All is closed, too, unless threads of the
 * program may still name it (`lingers`): then that is for a second call. Children that have ended
 * are reaped, now or after later programs.
 */
void df_belongings_let_go(struct df_belongings *belongings, bool lingers);

#endif
