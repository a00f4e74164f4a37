/*
 * turn.h - beside libfuse's API, for native/pyhost: who keeps operations in turn by a lock of its
 * own says how to ask for it; and a program without code of its own says which threads are its.
 */
#ifndef DF_LIBFUSE_TURN_H
#define DF_LIBFUSE_TURN_H

#include <stdbool.h>

struct fuse_session;

/* is_my_turn(turn): the calling thread has the lock, so that no request of the session is answered
 * before it has gone on. Such a thread does not wait for one that waits for an answer: its call
 * into the mount fails with EDEADLK. Asked on any thread, until the session is destroyed. Before
 * the session's loop. */
void df3_session_turn(struct fuse_session *se, bool (*is_my_turn)(void *turn), void *turn);

struct df_plugin;

/* The program whose thread this is; NULL: nobody's. */
struct df_plugin *df3_program(void);

/* From here on this thread is the program's (NULL: nobody's), until its main has returned. Returns
 * whose it was. */
struct df_plugin *df3_program_enter(struct df_plugin *program);

/* Ends the mount of the program, from whichever thread. */
void df3_program_exit(struct df_plugin *program);

#endif
