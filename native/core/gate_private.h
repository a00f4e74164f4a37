/*
 * gate_private.h - what gate.c and gate_retired.c share: the records of all threads.
 */
#ifndef DF_CORE_GATE_PRIVATE_H
#define DF_CORE_GATE_PRIVATE_H

#include "core/gate.h"

/* All records, by df_thread.next; grows only. */
extern _Atomic(struct df_thread *) df_gate_threads;

/* Between two looks of somebody who waits for threads to leave. */
void df_gate_pause(void);

/* In the child of a fork. */
void df_gate_forget_freeing(void);

#endif
