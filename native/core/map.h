/*
 * map.h - memory with a file's bytes: what calls_map.c keeps of each df_mmap().
 */
#ifndef DF_CORE_MAP_H
#define DF_CORE_MAP_H

void df_map_lock(void); /* for fork.c */
void df_map_unlock(void);
void df_map_after_fork(void); /* in the child */

#endif
