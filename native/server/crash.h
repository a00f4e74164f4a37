/*
 * crash.h - the last words of a server whose file system crashes.
 */
#ifndef DF_SERVER_CRASH_H
#define DF_SERVER_CRASH_H

#include "channel/layout.h"

/* From now on the signal of a crash is noted in the segment, and told on the descriptor `report` (a
 * line "crash N"; -1: none), before the process ends by it as it would have. Handlers are the
 * process's: a plugin that sets its own has its own way. */
void df_crash_watch(struct df_segment *segment, int report);

#endif
