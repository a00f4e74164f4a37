/*
 * crash.h - the last words of a server whose file system crashes.
 */
#ifndef DF_PROCESS_CRASH_H
#define DF_PROCESS_CRASH_H

#include <signal.h>

#include "channel/layout.h"

/* From now on the signal of a crash is noted in the segment, and told on the descriptor `report` (a
 * line "crash N"; -1: none), before the process ends by it as it would have. Handlers are the
 * process's: a plugin that sets its own has its own way. */
void df_crash_watch(struct df_segment *segment, int report);

/* Room for the last words of a thread whose own stack is full; untouched until then. */
enum { DF_CRASH_ROOM = 64 * 1024 }; /* bytes; a frame of all registers takes up to 11 KiB */

/* The calling thread says them there from now on; and no more, before the room goes. `before` is
 * what sigaltstack(2) said it had. */
void df_crash_stand_by(void *room, stack_t *before);
void df_crash_stand_down(const stack_t *before);

#endif
