/*
 * joined_private.h - between joined.c (joining and leaving), joined_start.c (servers that are
 * started) and joined_name.c (servers that are found by their name).
 */
#ifndef DF_API_JOINED_PRIVATE_H
#define DF_API_JOINED_PRIVATE_H

#include <sys/types.h>

#include "api/joined.h"

/* The server that `socket`, which stays the caller's, leads to. starter: the process that has
 * started it, 0: it was found. seconds: to wait until it has mounted; 0: any. The results are those
 * of df_joined_start(). */
int df_joined_join(int socket, pid_t starter, unsigned seconds, struct df_joined **out,
                   int *mount_id, char *message, size_t size);

/* To who asks why: message may be NULL. */
void df_joined_say(char *message, size_t size, const char *words);

#endif
