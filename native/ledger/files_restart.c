/*
 * files_restart.c - what the next server needs to know of open files, and takes over from one that
 * has died.
 */
#include <limits.h>
#include <string.h>

#include "ledger/files_private.h"

void df_files_note(struct df_files *files, uint64_t handle, uint64_t base, const char *name,
                   uint32_t len, uint32_t where_flags, int flags)
{
    struct df_ledger *ledger = files->ledger;
    uint32_t index = df_handle_index(handle), base_index = df_handle_index(base) % DF_OFD_COUNT;
    uint32_t base_len = base ? ledger->files[base_index].path_len : 0;
    char *path;

    if (!files->noted || (base && base_len == 0) || base_len + len + 2 > PATH_MAX)
        return;
    path = ledger->paths[index];
    memcpy(path, ledger->paths[base_index], base_len);
    if (len > 0 && name[0] != '/')
        path[base_len++] = '/';
    memcpy(path + base_len, name, len);
    path[base_len + len] = '\0';
    ledger->files[index].flags = flags;
    ledger->files[index].where_flags = where_flags;
    ledger->files[index].path_len = base_len + len;
}

void df_files_restore(struct df_files *files, uint32_t index, struct df_file *file)
{
    atomic_store(&files->open[index].file, file);
}

bool df_files_lost(struct df_files *files, uint64_t handle)
{
    return df_segment_ofd(files->segment, handle) &&
           !atomic_load(&files->open[df_handle_index(handle)].file);
}

/* A file that nobody has any more is closed; free ones are listed, the lowest first. */
static void take_file(struct df_files *files, uint32_t index)
{
    struct df_open_file *entry = &files->open[index];
    struct df_ofd *ofd = df_files_ofd(files, index);

    entry->generation = files->ledger->files[index].generation;
    if (entry->clients > 0) {
        files->count++;
        df_files_number_keep(files, index);
        atomic_store(&ofd->content, 0); /* its number was the last server's */
        return;
    }
    atomic_store(&ofd->handle, 0);
    entry->next_free = files->first_free;
    files->first_free = index;
}

void df_files_take(struct df_files *files)
{
    for (uint32_t i = 0; i < DF_CLIENT_MAX; i++)
        df_files_client_take(files, i);
    files->first_free = files->ledger->used > 0 ? files->ledger->used : 1;
    files->made =
        (files->first_free + DF_FILES_TOGETHER - 1) / DF_FILES_TOGETHER * DF_FILES_TOGETHER;
    for (uint32_t i = files->ledger->used; i > 1;)
        take_file(files, --i);
    df_files_number_find_free(files);
}
