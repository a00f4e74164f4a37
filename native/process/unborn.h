/*
 * unborn.h - whether a child that was announced may still say that it is born.
 *
 * A forked child has its parent's socket until it has said its first word by it, and has closed it
 * then; who was killed before has closed it as well. So as long as any process besides the parent
 * has that socket, one of the parent's children is still to be born: stopped by SIGSTOP or by a
 * debugger, say. The kernel tells who has a socket in /proc/PID/fd only, and looking through it
 * takes milliseconds: this is asked when a child is late by a minute, never when one is made.
 */
#ifndef DF_PROCESS_UNBORN_H
#define DF_PROCESS_UNBORN_H

#include <stdbool.h>
#include <stdint.h>

/* socket: the inode number of the parent's end, as its /proc/PID/fd shows it; 0: not known. True
 * also if not even the parent is seen to have it (no /proc, another user's process, a process
 * outside of our PID namespace): nothing is known then, and a living child must not lose its
 * files. It ends with its parent at the latest. */
bool df_unborn_may_live(uint64_t socket);

#endif
