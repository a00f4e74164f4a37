/*
 * turn.h - the lock of one pyfuse3 file system: what trio promises its authors.
 *
 * Between two points where a coroutine may suspend, nothing else of the file system runs.
 * Operations driven inline hold the turn from their beginning to their end; the event loop holds it
 * always but while it waits for events (directfuse/_python/loops.py). So a call from outside runs
 * where the loop itself would have gone from one task to the next.
 */
#ifndef DF_PYHOST_TURN_H
#define DF_PYHOST_TURN_H

#include "pyhost/pyhost.h"

/* This thread has it. */
bool df_turn_is_mine(PyObject *turn);

/* Waits for the turn of somebody else, without the GIL. */
void df_turn_take(PyObject *turn);
void df_turn_give(PyObject *turn);

PyObject *df_turn_new(void);

#endif
