/*
 * joined_private.h - between joined.c (joining and leaving), joined_start.c (servers that are
 * started), joined_name.c (servers that are found by their name) and joined_mounts.c (what a server
 * has mounted).
 */
#ifndef DF_API_JOINED_PRIVATE_H
#define DF_API_JOINED_PRIVATE_H

#include <stdint.h>
#include <sys/types.h>

#include "api/joined.h"
#include "channel/layout.h"
#include "channel/link.h"

struct df_joined_order {
    int socket;        /* leads to the server; stays the caller's */
    pid_t starter;     /* the process that has started the server; 0: it was found */
    unsigned seconds;  /* to wait until it has mounted; 0: any */
    const char *point; /* the mountpoint of the file system that is meant; NULL: its only one */
};

/* Makes this process a client of the server. 0, or the errors of df_joined_start(). */
int df_joined_enter(struct df_link *link, const struct df_joined_order *order, char *message,
                    size_t size);

/* Ends that. */
void df_joined_part(struct df_link *link);

/* Enters the server and attaches its file system here. The results are those of df_joined_start().
 */
int df_joined_join(const struct df_joined_order *order, struct df_joined **out, int *mount_id,
                   char *message, size_t size);

/* The id of the mount that is meant by `point` as in an order, and where it is in the segment; or
 * -EIO: none is left, -ENOENT, -EINVAL: as df_joined_find(). */
int32_t df_joined_choose(const struct df_segment *segment, const char *point,
                         const struct df_shared_mount **out, char *message, size_t size);

/* Mountpoints as of df_joined_points(), with that byte behind each. Their number. */
int df_joined_list(const struct df_segment *segment, char behind, char *points, size_t room);

/* To who asks why: message may be NULL. */
void df_joined_say(char *message, size_t size, const char *words);

#endif
