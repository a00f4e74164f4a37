/*
 * fork.h - fork(2) while other threads call.
 */
#ifndef DF_CORE_FORK_H
#define DF_CORE_FORK_H

/* Registers the handlers; once, from the gate's initialisation. 0 or an error number. */
int df_fork_register(void);

#endif
