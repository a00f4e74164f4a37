/*
 * guest.h - what a loaded program takes for its own process: working directory, umask, standard
 * output, the process it believes to be. One per plugin; the hooks look it up by thread.
 *
 * A thread works for a guest while it runs its main(), while it is a thread that the guest made,
 * and while it is inside one of its ops (guarded.h). A child that the guest forks works for nobody.
 */
#ifndef DF_LOADER_GUEST_H
#define DF_LOADER_GUEST_H

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

#include "loader/belongings.h"
#include "loader/cxx.h"
#include "loader/host_fds.h"

struct df_ending;
struct df_plugin;
struct df_variable;

/* The program's own copies of libc's globals, by COPY relocation; NULL where it has none. */
struct df_guest_globals {
    char **optarg;
    int *optind;
    int *opterr;
    int *optopt;
    char ***environment;
    FILE **stdout_stream;
    FILE **stderr_stream;
    void *cxx_streams[3]; /* cout, cerr, clog: std::ostream */
};

struct df_guest {
    struct df_plugin *plugin; /* receives what it prints; told when it exits */
    const void *map;          /* its struct link_map, once it is loaded */
    FILE *output;             /* its stdout and stderr: lines go to df_plugin_log */
    max_align_t cxx_buffers[3][DF_CXX_BUFFER_ROOM / sizeof(max_align_t)]; /* of cxx_streams */
    struct df_guest_globals globals; /* written while loading, then by the guest's own main */

    struct df_belongings belongings; /* connections, children, files */
    struct df_host_fds host_fds;     /* not its own; found before its main runs */
    pid_t pid;                       /* the process that it was loaded into */

    _Atomic unsigned users; /* threads that run its code: main's and those it made */
    _Atomic bool mounted;   /* what it opens from now on its operations close again */

    bool severed; /* in a forked child: it had threads, which are not here. Set before any call. */
    pthread_mutex_t lock; /* protects all below */
    int cwd_fd;           /* its working directory, O_PATH; -1: the process's own */
    mode_t umask;
    struct df_ending *endings;       /* what is to run at its end, newest first */
    struct df_variable *variables;   /* what it has changed of the environment, newest first */
    int child_output[2];             /* a pipe: what its children print; -1 until it forks */
    struct sigaction actions[_NSIG]; /* for signals that it sends to itself */
};

/* Takes the process's working directory and umask as the guest's first. 0 or -errno. */
int df_guest_init(struct df_guest *guest, struct df_plugin *plugin);
void df_guest_destroy(struct df_guest *guest);

/* Its main has returned, but threads of its own may go on (`lingers`): gives back its directory,
 * its connections and its children. */
void df_guest_retire(struct df_guest *guest, bool lingers);

/* Before it forks: where the child's stdout and stderr are to lead; -1: where the host's do. */
int df_guest_child_output(struct df_guest *guest);

/* In a child that it forked: makes real what it believes of its process. */
void df_guest_become_process(struct df_guest *guest, int output);

/* In such a child: whose it is. NULL: this is the host. */
const struct df_guest *df_guest_parent(void);

/* Moves what its children have printed since to its log. */
void df_guest_drain(struct df_guest *guest);

/* Points the guest's own `stdout` and `stderr` at its log, once its globals are known. */
void df_guest_redirect(struct df_guest *guest);

/* In a forked child. A program with threads of its own cannot go on: nobody is there to answer. */
void df_guest_after_fork(struct df_guest *guest);

/* Makes this thread work for `guest` (NULL: for nobody); returns whom it worked for. */
struct df_guest *df_guest_enter(struct df_guest *guest);

/* The guest this thread works for; NULL: nobody, and every hook is the real function. */
struct df_guest *df_guest_current(void);

enum { DF_GUEST_PATH_ROOM = 4096 + 64 };

/* True for an address in the program itself; not in its libraries, which may outlive it. */
bool df_guest_is_code(const struct df_guest *guest, const void *address);

/* `path` as the process must say it to mean what the guest means by it: an absolute path unchanged,
 * a relative one from the guest's working directory, written to buffer. */
const char *df_guest_path(struct df_guest *guest, const char *path,
                          char buffer[DF_GUEST_PATH_ROOM]);

#endif
