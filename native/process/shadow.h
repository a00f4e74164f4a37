/*
 * shadow.h - the directory of a run's placeholders, as far as its mount server keeps and removes it
 * (directfuse/_shadow.py has the rule).
 */
#ifndef DF_PROCESS_SHADOW_H
#define DF_PROCESS_SHADOW_H

#include "core/export.h"

/* Locks the directory around that which DIRECTFUSE_SHADOW names, if any, for as long as this
 * process or a forked child is there; once. Without the lock it may be removed by another run. */
DF_PRIVATE_EXPORT void df_shadow_hold(void);

/* The server has ended: removes both, unless others need them. */
void df_shadow_leave(void);

#endif
