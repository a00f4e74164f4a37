/*
 * files.c - the life of what a process knows of mounts: its start, its end, its memory. The
 * functions dfi_files_* that intercept.h asks for are here, in files_child.c and in files_next.c.
 *
 * The configuration of a run has lines "server=N" (a descriptor that leads to the mount server),
 * "shadow=PATH" (a directory of its own, or of all runs that join the server), "mapped=BYTES" (what
 * a process may hold of mapped files), and perhaps "memory=BYTES" and "cgroup=PATH" (memory.h).
 */
#include <fcntl.h>
#include <string.h>

#include "channel/join.h"
#include "client/ids.h"
#include "client/table.h"
#include "intercept/brief.h"
#include "intercept/run.h"
#include "intercept/text.h"
#include "shadows/linger.h"
#include "shadows/map.h"
#include "shadows/map_copies.h"
#include "shadows/memory.h"
#include "shadows/placeholder.h"
#include "shadows/sent.h"
#include "shadows/shadow.h"
#include "syscalls/files_private.h"
#include "ways/cwd.h"
#include "ways/root.h"

/* ---- memory ---------------------------------------------------------------------------------- */

void dfi_files_free(struct dfi_files *files)
{
    struct df_trip trip;

    if (!files)
        return;
    if (files->unborn && files->link.segment) { /* it was not made after all */
        trip = dfi_trip_of(files);
        df_trip_unfork(&trip, files->link.client);
    }
    if (files->lender)
        dfi_maps_unpin(files->lender, files);
    dfi_fd_free(files);
    dfi_maps_free(files->maps);
    dfi_copies_free(&files->copies);
    dfi_free(files);
}

/* ---- what it has ----------------------------------------------------------------------------- */

size_t dfi_files_count_mappings(const struct dfi_files *files)
{
    return files->maps ? files->maps->count : 0;
}

bool dfi_files_any(const struct dfi_files *files)
{
    int top = atomic_load(&files->top);

    for (int fd = 0; fd < top; fd++)
        if (files->map[fd])
            return true;
    return dfi_cwd_handle(files) != 0 || dfi_root_of(files) != 0;
}

/* The server forgets those that the new program, or the child, has not. */
long dfi_files_keep(struct dfi_files *files, bool executed)
{
    struct df_trip trip = dfi_trip_of(files);
    size_t mappings = dfi_files_count_mappings(files), count = 0;
    int top = atomic_load(&files->top);
    uint64_t *list = dfi_alloc(((size_t)top + mappings + 2) * sizeof(*list));
    long ret;

    if (!list)
        return -ENOMEM;
    for (int fd = 0; fd < top; fd++)
        if (files->map[fd])
            list[count++] = dfi_handle_in(files->map[fd]);
    for (size_t i = 0; i < mappings; i++)
        list[count++] = files->maps->list[i].handle;
    if (dfi_cwd_handle(files))
        list[count++] = dfi_cwd_handle(files);
    if (dfi_root_of(files))
        list[count++] = dfi_root_of(files);
    ret = df_trip_keep(&trip, list, count, executed);
    dfi_free(list);
    return ret;
}

bool dfi_files_rooted(const struct dfi_process *process)
{
    return process->files && dfi_root_of(process->files) != 0;
}

bool dfi_files_belong(const struct dfi_process *process, const char *shadow)
{
    return process->files && process->files->shadow_len > 0 &&
           strcmp(process->files->shadow, shadow) == 0;
}

bool dfi_files_stands_in(const struct dfi_process *process, const char *name)
{
    const struct dfi_files *files = process->files;
    const char *rest = files && files->shadow_len > 0 ? dfi_shadow_behind(files, name) : NULL;

    return rest && rest[0] == '/';
}

void dfi_files_count_trips(struct df_link *link)
{
    dfi_count_more(DFI_EVENT_TRIPS, atomic_exchange(&link->trips, 0));
    dfi_count_more(DFI_EVENT_HITS, atomic_exchange(&link->hits, 0));
}

/* ---- start ----------------------------------------------------------------------------------- */

/* The value of a line of the configuration; NULL: there is none. */
static const char *value_of(const char *config, size_t size, const char *key, size_t *len)
{
    size_t key_len = strlen(key);

    for (size_t at = 0; at < size && config[at] != '\0';) {
        const char *line = config + at;
        size_t end = 0;

        while (at + end < size && line[end] != '\n' && line[end] != '\0')
            end++;
        if (end > key_len && memcmp(line, key, key_len) == 0 && line[key_len] == '=') {
            *len = end - key_len - 1;
            return line + key_len + 1;
        }
        at += end + 1;
    }
    return NULL;
}

int dfi_files_keep_fd(struct dfi_process *process, int fd)
{
    int hidden = dfi_hide_fd(process, fd);

    if (hidden >= 0)
        dfi_kernel(__NR_fcntl, hidden, F_SETFD, 0);
    return hidden;
}

/* Nobody becomes a client. Who cannot, for want of descriptors, say, goes on as nobody, whom the
 * server gives no files: ENFILE, which remote.c makes the reason. */
void dfi_files_meet(struct df_link *link)
{
    struct dfi_process *process = dfi_process();
    struct dfi_files *files = process->files;
    unsigned long limit;
    int64_t client;
    int control, hidden;

    dfi_lock(&files->joining);
    if (link->client == 0 && files->entry >= 0) {
        limit = dfi_limit_raise();
        dfi_brief_enter();
        client = df_join_late(link, files->entry, &control);
        files->unmet = client < 0 ? (int)client : 0;
        if (client > 0) {
            hidden = dfi_files_keep_fd(process, control);
            link->control = hidden < 0 ? control : hidden;
            files->caller.lock_owner = (uint64_t)client;
            __atomic_store_n(&link->client, (uint32_t)client, __ATOMIC_RELEASE);
        }
        dfi_brief_leave(-EBADF); /* it has a number that stays its */
        dfi_limit_restore(limit);
    }
    dfi_unlock(&files->joining);
}

static long join(struct dfi_process *process, int socket)
{
    struct dfi_files *files = process->files;
    struct df_link *link = &files->link;
    long ret = df_join_hello(link, socket, (struct df_join_wait){.patience = -1}, NULL);

    if (ret < 0)
        return ret;
    if ((link->control = dfi_files_keep_fd(process, link->control)) < 0)
        return link->control;
    if ((link->memory = dfi_files_keep_fd(process, link->memory)) < 0)
        return link->memory;
    if ((files->entry = dfi_files_keep_fd(process, socket)) < 0)
        return files->entry;
    link->meet = dfi_files_meet;
    return 0;
}

/* What a process may hold of mapped files: a part of a chunk, too, for 0 is no limit. */
static uint32_t chunks_of(uint64_t bytes)
{
    uint64_t chunks = bytes / DF_HELD_CHUNK + (bytes % DF_HELD_CHUNK != 0);

    return chunks < UINT32_MAX ? (uint32_t)chunks : UINT32_MAX;
}

/* Of mapped files. */
static void limits_begin(struct dfi_hold *hold, const char *config, size_t size)
{
    size_t len;
    const char *mapped = value_of(config, size, "mapped", &len);
    const char *memory = value_of(config, size, "memory", &len);
    const char *cgroup = value_of(config, size, "cgroup", &len);

    if (mapped)
        hold->limit = chunks_of((uint64_t)dfi_text_number(&mapped));
    if (!memory || !cgroup || len > DFI_CGROUP_MAX)
        return;
    hold->memory = (uint64_t)dfi_text_number(&memory);
    hold->cgroup = cgroup;
    hold->cgroup_len = (uint32_t)len;
}

static long begin(struct dfi_process *process, const char *config, size_t size, const char *text,
                  size_t text_size)
{
    struct dfi_files *files = process->files;
    size_t len;
    const char *shadow = value_of(config, size, "shadow", &len), *socket;
    long ret = dfi_identity_read(files);

    if (ret < 0)
        return ret;
    if (!shadow) /* a run without mounts */
        return 0;
    if (len >= sizeof(files->shadow))
        return -ENAMETOOLONG;
    memcpy(files->shadow, shadow, len);
    files->shadow_len = (uint32_t)len;
    limits_begin(&files->hold, config, size);
    if (text && text_size > 0) {
        ret = dfi_files_begin_again(process, text, text_size);
    } else {
        socket = value_of(config, size, "server", &len);
        if (!socket)
            return -EINVAL;
        ret = join(process, dfi_run_socket >= 0 ? dfi_run_socket : (int)dfi_text_number(&socket));
        if (ret == 0)
            ret = dfi_shadow_begin(files);
        if (ret == 0)
            dfi_cwd_changed(files);
    }
    if (ret < 0)
        return ret;
    files->caller.lock_owner = files->link.client;
    dfi_table_refresh(files->link.segment);
    dfi_cwd_begin(files);
    dfi_ids_begin(files);
    return 0;
}

int dfi_files_begin(struct dfi_process *process, const char *config, size_t size, const char *text,
                    size_t text_size)
{
    process->files = dfi_alloc(sizeof(*process->files));
    return process->files ? (int)begin(process, config, size, text, text_size) : -ENOMEM;
}

/* ---- the end --------------------------------------------------------------------------------- */

/* Other threads go on until the kernel ends them all: what they use stays open. */
static void flush_open(struct dfi_files *files, uint64_t handle, const struct df_ofd *ofd)
{
    struct df_trip trip = dfi_trip_of(files);

    if (!(atomic_load_explicit(&ofd->flags, memory_order_relaxed) & O_PATH))
        df_trip_flush(&trip, handle, files->caller.lock_owner, false);
}

/* Who maps such a file next, and finds it open still, is shown what was brought for us, not what
 * others have made of it meanwhile. So nothing is left to be dropped later. */
static void close_mapped(struct dfi_files *files)
{
    struct df_trip trip = dfi_trip_of(files);

    df_trip_keep(&trip, NULL, 0, false);
}

static void end_file(struct dfi_process *process, int fd, uint64_t handle, const struct df_ofd *ofd)
{
    if (ofd->traits & DF_FILE_NOFLUSH)
        return;
    if (process->threads > 1)
        flush_open(process->files, handle, ofd);
    else
        dfi_placeholder_close(process->files, fd);
}

/* The server drops what a process had when it is gone; what close(2) would report is lost, as ever.
 * But a FLUSH, and what was closed before, has to come before whoever waits for the process goes
 * on. */
void dfi_files_end(struct dfi_process *process)
{
    struct dfi_files *files = process->files;
    int top = atomic_load(&files->top);

    if (!files->link.segment)
        return;
    dfi_maps_sync(files);
    dfi_sent_leave(files);
    for (int fd = 0; fd < top; fd++) {
        uint64_t handle = dfi_file_of(files, fd);
        const struct df_ofd *ofd = handle ? dfi_ofd(files, handle) : NULL;

        if (ofd)
            end_file(process, fd, handle, ofd);
    }
    if (process->threads <= 1 && dfi_maps_are_there(files) && files->link.client)
        close_mapped(files);
    df_link_settle(&files->link);
    dfi_files_count_trips(&files->link);
}
