/*
 * mounted.h - the mounts that this process has made, each a plugin or the client of a mount server,
 * with its counters, under one number: from df_mount() until df_unmount(), also when the program
 * has ended by itself.
 */
#ifndef DF_API_MOUNTED_H
#define DF_API_MOUNTED_H

#include <stdbool.h>
#include <sys/types.h>

#include "api/joined.h"
#include "loader/plugin.h"
#include "wrap/count.h"

/* Everything but `unmounting` and `next` is fixed once it is in the list. */
struct df_mounted {
    struct df_mounted *next;
    int id;
    struct df_plugin *plugin;     /* inline, or */
    struct df_joined *joined;     /* in a mount server */
    struct df_counters *counters; /* with a reference; NULL: DF_MOUNT_NOSTATS */
    pid_t pid;                    /* the process that mounted it */
    bool unmounting;              /* a thread has claimed it */
};

/* Enters it as the newest. The list takes it over. */
void df_mounted_add(struct df_mounted *mounted);

/* Marks it as the caller's to unmount: to be given up or removed. NULL and *error = 0: it is not in
 * the list; NULL and -EBUSY: another thread has claimed it. */
struct df_mounted *df_mounted_claim(int id, int *error);
void df_mounted_give_up(struct df_mounted *mounted);

/* Takes a claimed one out of the list, and frees it. */
void df_mounted_remove(struct df_mounted *mounted);

/* Frees one that is in no list. */
void df_mounted_free(struct df_mounted *mounted);

/* The newest mount of this process that nobody is unmounting; 0: there is none. */
int df_mounted_newest(void);

/* Between lock and unlock what find returns (NULL: none) stays. */
void df_mounted_lock(void);
void df_mounted_unlock(void);
struct df_mounted *df_mounted_find(int id);

#endif
