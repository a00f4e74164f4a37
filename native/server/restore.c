/*
 * restore.c - each open file of the ledger, opened by its path once more.
 *
 * On behalf of this process, not of who opened it: that one has the right already, as on Linux,
 * where an open file asks for none again.
 */
#include "server/restore.h"

#include <fcntl.h>
#include <unistd.h>

#include "core/caller.h"

#define CREATION_FLAGS (O_CLOEXEC | O_CREAT | O_EXCL | O_NOCTTY | O_TRUNC) /* open(2) */

/* Inside the gate, the mount pinned. NULL: it cannot be opened, or is something else by now. */
static struct df_file *open_again(struct df_server *server, struct df_thread *thread,
                                  struct df_mount *mount, uint32_t index)
{
    const struct df_ledger *ledger = server->files.ledger;
    const struct df_ofd *ofd = &df_segment_ofds(server->own.segment)[index];
    const struct df_where where = {.name = ledger->paths[index],
                                   .len = ledger->files[index].path_len,
                                   .flags = ledger->files[index].where_flags};
    int flags = ledger->files[index].flags & ~CREATION_FLAGS;
    struct df_fs *fs = atomic_load(&mount->fs);
    struct df_file *file = df_file_new(thread, mount, fs, flags);
    struct df_call call;

    if (!file)
        return NULL;
    df_call_start(&call, thread, mount);
    if (where.len == 0 ||
        df_call_result(&call, fs->ops->open(fs, &call, &where, file, flags, 0)) != 0) {
        df_file_discard(thread, file);
        return NULL;
    }
    df_file_opened(file);
    if (file->kind == ofd->kind)
        return file;
    df_file_put(thread, file);
    return NULL;
}

static void restore(struct df_server *server, struct df_thread *thread, uint32_t index)
{
    const struct df_ofd *ofd = &df_segment_ofds(server->own.segment)[index];
    struct df_served *served = df_server_mount(server, ofd->mount);
    struct df_file *file;

    if (atomic_load(&ofd->handle) == 0 || !served ||
        !df_gate_pin(thread, served->mount, served->id))
        return;
    file = open_again(server, thread, served->mount, index);
    if (file)
        df_files_restore(&server->files, index, file);
}

/* Each inside the gate of its own: a pin lasts until it is left. */
void df_restore_files(struct df_server *server)
{
    const struct df_caller self = {.uid = geteuid(),
                                   .gid = getegid(),
                                   .real_uid = getuid(),
                                   .real_gid = getgid(),
                                   .pid = getpid(),
                                   .capable = true,
                                   .size_limit = INT64_MAX};

    for (uint32_t i = 1; i < server->files.ledger->used; i++) {
        int error;
        struct df_thread *thread = df_gate_enter(&error);
        const struct df_caller *before;

        if (!thread)
            return;
        before = thread->caller;
        thread->caller = &self;
        restore(server, thread, i);
        thread->caller = before;
        df_gate_leave(thread);
    }
}
