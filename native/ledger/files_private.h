/*
 * files_private.h - between files.c (open files), files_client.c (clients and their sets),
 * files_number.c (numbers of open inodes) and files_restart.c (what outlives a server).
 *
 * All but df_files_ofd() under files->lock, or before anybody else knows the table.
 */
#ifndef DF_LEDGER_FILES_PRIVATE_H
#define DF_LEDGER_FILES_PRIVATE_H

#include "ledger/files.h"

#define DF_FILES_TOGETHER 512 /* entries of the df_ofd table that get memory together */

static inline struct df_ofd *df_files_ofd(struct df_files *files, uint32_t index)
{
    return &df_segment_ofds(files->segment)[index];
}

/* ---- files_client.c ---- */

/* NULL: no such client. */
struct df_client *df_files_client_find(struct df_files *files, uint32_t id);

static inline bool df_files_client_has(const struct df_client *client, uint32_t index)
{
    return client->files && client->files[index / 64] >> index % 64 & 1;
}

/* One more client has the file, unless it has it already. */
void df_files_client_give(struct df_files *files, struct df_client *client, uint32_t index);

/* The client that was in that place of the ledger, with its set. */
void df_files_client_take(struct df_files *files, uint32_t place);

/* ---- files_number.c ---- */

/* The file of that index is one more description of the inode. Its number, which it has now. */
uint32_t df_files_number_take(struct df_files *files, uint32_t index, int mount, uint64_t ino);

/* That description is gone, which was perhaps locked. Its number if no file will have that again,
 * else 0. */
uint32_t df_files_number_give_back(struct df_files *files, uint32_t index, bool locked);

/* After a restart: the number that the file of that index has had all along. */
void df_files_number_keep(struct df_files *files, uint32_t index);

/* After all are kept: those between them are free. */
void df_files_number_find_free(struct df_files *files);

#endif
