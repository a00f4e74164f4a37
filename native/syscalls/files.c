/*
 * files.c - the life of what a process knows of mounts: its start, its children, the next program,
 * its end. The functions dfi_files_* that intercept.h asks for.
 *
 * The configuration of a run has lines "server=N" (a descriptor that leads to the mount server) and
 * "shadow=PATH" (a directory of its own, or of all runs that join the server). What one program
 * tells the next is "client control memory entry keep", then "fd handle" for each file that stays
 * open.
 *
 * A child of a process that has no file of a mount is nobody to the server until it asks for
 * something (decision 069): most never do.
 */
#include "syscalls/files.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "channel/join.h"
#include "channel/map.h"
#include "intercept/run.h"
#include "intercept/text.h"
#include "syscalls/cwd.h"
#include "syscalls/linger.h"
#include "syscalls/map.h"
#include "syscalls/shadow.h"
#include "syscalls/table.h"

static struct df_trip trip_of(struct dfi_files *files)
{
    return (struct df_trip){.link = &files->link, .caller = &files->caller};
}

/* ---- memory ---------------------------------------------------------------------------------- */

void dfi_files_free(struct dfi_files *files)
{
    struct df_trip trip;

    if (!files)
        return;
    if (files->unborn && files->link.segment) { /* it was not made after all */
        trip = trip_of(files);
        df_trip_unfork(&trip, files->link.client);
    }
    dfi_fd_free(files);
    dfi_maps_free(files->maps);
    dfi_free(files->copies.list);
    dfi_free(files);
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

/* Out of the program's way, and passed on to the next one. */
static int keep_fd(struct dfi_process *process, int fd)
{
    int hidden = dfi_hide_fd(process, fd);

    if (hidden >= 0)
        dfi_kernel(__NR_fcntl, hidden, F_SETFD, 0);
    return hidden;
}

/* Nobody becomes a client. Who cannot, for want of descriptors, say, goes on as nobody, whom the
 * server gives no files: ENFILE. */
static void meet(struct df_link *link)
{
    struct dfi_process *process = dfi_process();
    struct dfi_files *files = process->files;
    unsigned long limit;
    int64_t client;
    int control, hidden;

    dfi_lock(&files->joining);
    if (link->client == 0 && files->entry >= 0) {
        limit = dfi_limit_raise();
        client = df_join_late(link, files->entry, &control);
        if (client > 0) {
            hidden = keep_fd(process, control);
            link->control = hidden < 0 ? control : hidden;
            files->caller.lock_owner = (uint64_t)client;
            __atomic_store_n(&link->client, (uint32_t)client, __ATOMIC_RELEASE);
        }
        dfi_limit_restore(limit);
    }
    dfi_unlock(&files->joining);
}

static long join(struct dfi_process *process, int socket)
{
    struct dfi_files *files = process->files;
    struct df_link *link = &files->link;
    long ret = df_join_hello(link, socket, NULL);

    if (ret < 0)
        return ret;
    if ((link->control = keep_fd(process, link->control)) < 0)
        return link->control;
    if ((link->memory = keep_fd(process, link->memory)) < 0)
        return link->memory;
    if ((files->entry = keep_fd(process, socket)) < 0)
        return files->entry;
    link->meet = meet;
    return 0;
}

static void hide(struct dfi_process *process, int fd)
{
    process->hidden[process->hidden_count++] = fd;
}

/* The same client in another program. */
static long join_again(struct dfi_process *process, const char **text)
{
    struct dfi_files *files = process->files;
    struct df_link *link = &files->link;
    uint32_t client = (uint32_t)dfi_text_number(text);
    int control = (int)dfi_text_number(text), memory = (int)dfi_text_number(text);
    struct stat st;
    long at, ret = dfi_kernel(__NR_fstat, memory, &st);

    if (ret < 0)
        return ret;
    at = df_segment_map(memory, (uint64_t)st.st_size);
    if (at < 0 && at > -4096)
        return at;
    if ((ret = df_link_init(link, (void *)at, (uint64_t)st.st_size)) < 0)
        return ret;
    link->client = client;
    link->control = client == 0 ? -1 : control;
    link->memory = memory;
    link->meet = meet;
    files->entry = (int)dfi_text_number(text);
    if (link->control >= 0)
        hide(process, link->control);
    hide(process, memory);
    hide(process, files->entry);
    return 0;
}

/* Every descriptor is looked at: there were too many to be told. */
static void find_files(struct dfi_files *files)
{
    for (int fd = 0; fd < DFI_FD_MAX; fd++) {
        uint64_t handle = dfi_shadow_handle(files, fd);

        if (handle)
            dfi_fd_enter(files, fd, handle);
        else if (fd > 4096 && dfi_kernel(__NR_fcntl, fd, F_GETFD) < 0)
            break;
    }
}

static size_t count_mappings(const struct dfi_files *files)
{
    return files->maps ? files->maps->count : 0;
}

/* The server forgets those that the new program, or the child, has not. */
static long keep_files(struct dfi_files *files)
{
    struct df_trip trip = trip_of(files);
    size_t mappings = count_mappings(files), count = 0;
    int top = atomic_load(&files->top);
    uint64_t *list = dfi_alloc(((size_t)top + mappings + 1) * sizeof(*list));
    long ret;

    if (!list)
        return -ENOMEM;
    for (int fd = 0; fd < top; fd++)
        if (files->map[fd])
            list[count++] = files->map[fd];
    for (size_t i = 0; i < mappings; i++)
        list[count++] = files->maps->list[i].handle;
    if (dfi_cwd_handle(files))
        list[count++] = dfi_cwd_handle(files);
    ret = df_trip_keep(&trip, list, count);
    dfi_free(list);
    return ret;
}

#define KEEP_NONE 0
#define KEEP_LIST 1
#define KEEP_FIND 2

static long begin_again(struct dfi_process *process, const char *text, size_t size)
{
    struct dfi_files *files = process->files;
    const char *end = text + size;
    long ret = join_again(process, &text);
    unsigned long keep;

    if (ret < 0)
        return ret;
    if ((ret = dfi_shadow_begin(files)) == -ENOENT)
        ret = dfi_shadow_gone(files); /* as below: the program runs */
    if (ret < 0)
        return ret;
    dfi_held_forget(files);
    keep = dfi_text_number(&text);
    if (keep != KEEP_NONE && !dfi_fd_room(files))
        return -ENOMEM;
    while (keep == KEEP_LIST && text < end) {
        int fd = (int)dfi_text_number(&text);

        dfi_fd_enter(files, fd, dfi_text_number(&text));
    }
    if (keep == KEEP_FIND)
        find_files(files);
    dfi_linger_inherited(files);
    dfi_cwd_changed(files);
    if (keep != KEEP_NONE && (ret = keep_files(files)) == -ENOTCONN)
        ret = 0; /* the server is gone: the program runs, its files answer EIO */
    return ret;
}

static long begin(struct dfi_process *process, const char *config, size_t size, const char *text,
                  size_t text_size)
{
    struct dfi_files *files = process->files;
    size_t len;
    const char *shadow = value_of(config, size, "shadow", &len), *mapped;
    const char *socket;
    long ret = dfi_identity_read(files);

    if (ret < 0)
        return ret;
    if (!shadow) /* a run without mounts */
        return 0;
    if (len >= sizeof(files->shadow))
        return -ENAMETOOLONG;
    memcpy(files->shadow, shadow, len);
    files->shadow_len = (uint32_t)len;
    if ((mapped = value_of(config, size, "mapped", &len)))
        files->hold.limit = (uint32_t)(dfi_text_number(&mapped) / DF_HELD_CHUNK);
    if (text && text_size > 0) {
        ret = begin_again(process, text, text_size);
    } else {
        socket = value_of(config, size, "server", &len);
        if (!socket)
            return -EINVAL;
        ret = join(process, dfi_run_socket >= 0 ? dfi_run_socket : (int)dfi_text_number(&socket));
        if (ret == 0)
            ret = dfi_shadow_begin(files);
    }
    if (ret < 0)
        return ret;
    files->caller.lock_owner = files->link.client;
    dfi_table_refresh(files->link.segment);
    dfi_cwd_begin(files);
    return 0;
}

int dfi_files_begin(struct dfi_process *process, const char *config, size_t size, const char *text,
                    size_t text_size)
{
    process->files = dfi_alloc(sizeof(*process->files));
    return process->files ? (int)begin(process, config, size, text, text_size) : -ENOMEM;
}

/* ---- children -------------------------------------------------------------------------------- */

/* Of the fork under way, under its locks. */
static uint32_t unborn DFI_HOT;    /* client id of the child */
static bool among_threads DFI_HOT; /* others may be opening and closing files meanwhile */

static bool has_files(const struct dfi_files *files)
{
    int top = atomic_load(&files->top);

    for (int fd = 0; fd < top; fd++)
        if (files->map[fd])
            return true;
    return dfi_cwd_handle(files) != 0;
}

/* It will have nothing that the server counts, and no other thread is about to change that. A
 * server that may be started again does not know who connected to the one before it. */
static bool may_be_nobody(const struct dfi_files *files)
{
    return dfi_is_alone() && !has_files(files) && !files->maps && files->entry >= 0 &&
           atomic_load(&files->link.segment->keeper) == 0;
}

/* The id of a child to be; 0: it is nobody, by itself or because the server has no place for it. */
static uint32_t announce_child(struct dfi_files *files)
{
    struct df_trip trip = trip_of(files);
    int64_t client;

    if (!files->link.segment)
        return 0;
    if (may_be_nobody(files)) {
        df_link_settle(&files->link); /* what the child asks for comes later */
        return 0;
    }
    client = df_trip_fork(&trip);
    return client > 0 ? (uint32_t)client : 0;
}

void dfi_files_fork_prepare(void)
{
    struct dfi_files *files = dfi_process()->files;
    uint32_t child = announce_child(files);

    dfi_linger_shared(files);
    dfi_lock(&files->cwd.lock);
    dfi_maps_lock(files);
    dfi_table_lock();
    dfi_lock(&files->joining);
    unborn = child;
    among_threads = dfi_process()->threads > 1;
}

void dfi_files_fork_parent(bool born)
{
    struct dfi_files *files = dfi_process()->files;
    struct df_trip trip = trip_of(files);

    dfi_unlock(&files->joining);
    dfi_table_unlock();
    dfi_maps_unlock(files);
    dfi_unlock(&files->cwd.lock);
    if (!born && unborn)
        df_trip_unfork(&trip, unborn);
}

/* The child's own socket takes the number of the parent's, which is hidden already; unless limits
 * have sunk below it since. */
static void move_control(struct dfi_process *process, struct df_link *link, int number)
{
    if (dfi_kernel(__NR_dup3, link->control, number, 0) < 0) {
        number = keep_fd(process, link->control);
        link->control = number < 0 ? link->control : number;
        return;
    }
    dfi_kernel(__NR_close, link->control);
    link->control = number;
}

/* What the program has asked of mounts is counted for the run. */
static void count_link(struct df_link *link)
{
    dfi_count_more(DFI_EVENT_TRIPS, atomic_exchange(&link->trips, 0));
    dfi_count_more(DFI_EVENT_HITS, atomic_exchange(&link->hits, 0));
}

/* Of the copy that a child has: its parent counts them. */
static void count_anew(struct df_link *link)
{
    atomic_store(&link->trips, 0);
    atomic_store(&link->hits, 0);
}

/* The parent may have used up its descriptors. False: even the hard limit leaves none. */
static bool tell_birth(struct dfi_process *process, struct df_link *link, uint32_t client)
{
    int control = link->control;
    unsigned long limit = dfi_limit_raise();
    bool told = df_join_born(link, client) == 0;

    if (told)
        move_control(process, link, control);
    dfi_limit_restore(limit);
    return told;
}

/* The child keeps nothing of the parent's end, else the server would not see the parent's end. */
static void be_nobody(struct dfi_process *process, struct df_link *link)
{
    if (link->control < 0)
        return;
    dfi_kernel(__NR_close, link->control);
    dfi_unhide_fd(process, link->control);
    link->control = -1;
}

static void be_born(struct dfi_process *process, uint32_t client)
{
    struct dfi_files *files = process->files;
    struct df_link *link = &files->link;

    files->caller.pid = process->pid;
    files->caller.lock_owner = client;
    files->unborn = false;
    link->client = 0;
    count_anew(link);
    if (link->segment && (client == 0 || !tell_birth(process, link, client)))
        be_nobody(process, link);
}

/* Other threads of the parent may have been between one step and the next. */
static void count_uses(struct dfi_files *files)
{
    uint32_t indexes = atomic_load(&files->shared->top);
    int top = atomic_load(&files->top);

    for (uint32_t i = 0; i < indexes && i < DF_OFD_COUNT; i++)
        if (atomic_load_explicit(&dfi_uses(files)[i], memory_order_relaxed) != 0)
            atomic_store_explicit(&dfi_uses(files)[i], 0, memory_order_relaxed);
    for (int fd = 0; fd < top; fd++)
        if (files->map[fd])
            dfi_fd_hold(files, files->map[fd]);
    for (size_t i = 0; i < count_mappings(files); i++)
        dfi_fd_hold(files, files->maps->list[i].handle);
    if (dfi_cwd_handle(files))
        dfi_fd_hold(files, dfi_cwd_handle(files));
}

/* What the server gave the child before it was made, other threads may have changed until then: a
 * file of which the child knows nothing would be open until it ends. */
static void settle_files(struct dfi_files *files)
{
    if (!among_threads || !files->link.segment || !files->link.client)
        return;
    if (files->map)
        count_uses(files);
    keep_files(files);
}

void dfi_files_fork_child(struct dfi_process *process)
{
    dfi_unlock(&process->files->joining);
    dfi_table_unlock();
    dfi_maps_born(process->files);
    dfi_maps_unlock(process->files);
    dfi_unlock(&process->files->cwd.lock);
    be_born(process, unborn);
    settle_files(process->files);
}

void dfi_files_born(struct dfi_process *process)
{
    be_born(process, process->files->link.client);
}

struct dfi_files *dfi_files_copy(struct dfi_files *files)
{
    struct dfi_files *copy = dfi_alloc(sizeof(*copy));
    uint32_t client;
    int top;

    if (!copy)
        return NULL;
    top = atomic_load(&files->top);
    if ((top > 0 || dfi_cwd_handle(files)) && !dfi_fd_room(copy)) {
        dfi_free(copy);
        return NULL;
    }
    copy->entry = files->entry;
    copy->shared = files->shared;
    memcpy(copy->shadow, files->shadow, sizeof(copy->shadow));
    copy->shadow_len = files->shadow_len;
    copy->top = top;
    dfi_cwd_copy(&copy->cwd, &files->cwd);
    if (copy->cwd.handle)
        dfi_fd_hold(copy, copy->cwd.handle);
    copy->lender = files->lender ? files->lender : files;
    copy->hold.limit = files->hold.limit;
    dfi_linger_shared(files);
    for (int fd = 0; fd < top; fd++) {
        copy->map[fd] = files->map[fd];
        if (copy->map[fd])
            dfi_uses(copy)[df_handle_index(copy->map[fd])]++;
    }
    client = announce_child(files);
    copy->link = files->link;
    copy->caller = files->caller;
    copy->link.client = client;
    copy->unborn = client != 0;
    return copy;
}

/* ---- the next program ------------------------------------------------------------------------ */

static bool stays_open(int fd)
{
    long flags = dfi_kernel(__NR_fcntl, fd, F_GETFD);

    return flags >= 0 && !(flags & FD_CLOEXEC);
}

static void add_number(struct dfi_text *text, unsigned long number)
{
    dfi_text_add_number(text, number);
    dfi_text_add(text, " ");
}

static void add_files(struct dfi_text *text, const struct dfi_files *files)
{
    int top = atomic_load(&files->top);

    for (int fd = 0; fd < top && !text->full; fd++)
        if (files->map[fd] && stays_open(fd)) {
            add_number(text, (unsigned)fd);
            add_number(text, files->map[fd]);
        }
}

/* Mappings end with the program: what they changed is written back. */
long dfi_files_exec(struct dfi_process *process, char *out, size_t size)
{
    struct dfi_files *files = process->files;
    struct dfi_text text = {.start = out, .size = size}, start;
    bool any = has_files(files) || files->maps;

    if (!files->link.segment)
        return 0;
    dfi_maps_sync(files);
    df_link_settle(&files->link);
    add_number(&text, files->link.client);
    add_number(&text, files->link.client != 0 ? (unsigned)files->link.control : 0);
    add_number(&text, (unsigned)files->link.memory);
    add_number(&text, (unsigned)files->entry);
    start = text;
    add_number(&text, any ? KEEP_LIST : KEEP_NONE);
    add_files(&text, files);
    if (text.full) {
        text = start;
        add_number(&text, KEEP_FIND);
    }
    count_link(&files->link);
    return text.full ? -E2BIG : (long)text.used;
}

/* ---- the end --------------------------------------------------------------------------------- */

static void keep_for_receivers(struct dfi_files *files)
{
    struct df_trip trip = trip_of(files);

    df_trip_fork(&trip);
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
    if (files->sent) /* a child that is never born keeps the files for the server's patience */
        keep_for_receivers(files);
    for (int fd = 0; fd < top; fd++) {
        uint64_t handle = files->map[fd];
        const struct df_ofd *ofd = handle ? dfi_ofd(files, handle) : NULL;

        if (ofd && !(ofd->traits & DF_FILE_NOFLUSH))
            dfi_fd_close(files, fd);
    }
    df_link_settle(&files->link);
    count_link(&files->link);
}
