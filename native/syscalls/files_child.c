/*
 * files_child.c - what a process knows of mounts at a fork: what its child gets, and says.
 *
 * A child of a process that has no file of a mount is nobody to the server until it asks for
 * something (decision 069): most never do.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "channel/join.h"
#include "client/table.h"
#include "intercept/exec.h"
#include "shadows/linger.h"
#include "shadows/map.h"
#include "shadows/sent.h"
#include "shadows/shadow.h"
#include "syscalls/files_private.h"
#include "ways/cwd.h"
#include "ways/root.h"

/* Of the fork under way, under its locks. */
static uint32_t unborn DFI_HOT;    /* client id of the child */
static bool among_threads DFI_HOT; /* others may be opening and closing files meanwhile */

/* It will have nothing that the server counts, and no other thread is about to change that. A
 * server that may be started again does not know who connected to the one before it. */
static bool may_be_nobody(const struct dfi_files *files)
{
    return dfi_is_alone() && !dfi_files_any(files) && !files->maps && files->entry >= 0 &&
           atomic_load(&files->link.segment->keeper) == 0;
}

/* The id of a child to be; 0: it is nobody, by itself or because the server has no place for it. */
static uint32_t announce_child(struct dfi_files *files)
{
    struct df_trip trip = dfi_trip_of(files);
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
    dfi_lock(&files->root.lock);
    dfi_maps_lock(files);
    dfi_table_lock();
    dfi_lock(&files->joining);
    unborn = child;
    among_threads = dfi_process()->threads > 1;
}

void dfi_files_fork_parent(long child)
{
    struct dfi_files *files = dfi_process()->files;
    struct df_trip trip = dfi_trip_of(files);

    if (child > 0 && unborn)
        files->young[files->youngest++ % DFI_YOUNG] = (struct dfi_young){(int)child, unborn};
    dfi_unlock(&files->joining);
    dfi_table_unlock();
    dfi_maps_unlock(files);
    dfi_unlock(&files->root.lock);
    dfi_unlock(&files->cwd.lock);
    if (child < 0 && unborn)
        df_trip_unfork(&trip, unborn);
}

/* Its client, which is not a child's any more; 0: of none that is known. */
static uint32_t take_young(struct dfi_files *files, int pid)
{
    uint32_t client = 0;

    dfi_lock(&files->joining);
    for (int i = 0; i < DFI_YOUNG; i++)
        if (files->young[i].pid == pid) {
            client = files->young[i].client;
            files->young[i].pid = 0;
        }
    dfi_unlock(&files->joining);
    return client;
}

/* Who was killed before it could say that it is born would have its parent's files until the server
 * gives it up (strace(1) begins with such a child). Whoever has waited finds on Linux that a child
 * has closed and unlocked what it had; here that is done by the server, which learns of an end on
 * its own, a little later. */
void dfi_files_child_killed(int pid)
{
    struct dfi_files *files = dfi_process()->files;
    struct df_trip trip;
    uint32_t client;

    if (!files || !files->link.segment)
        return;
    client = take_young(files, pid);
    trip = dfi_trip_of(files);
    if (client)
        df_trip_unfork(&trip, client);
    df_trip_bury(&trip);
}

/* The child's own socket takes the number of the parent's, which is hidden already; unless limits
 * have sunk below it since. */
static void move_control(struct dfi_process *process, struct df_link *link, int number)
{
    if (dfi_kernel(__NR_dup3, link->control, number, 0) < 0) {
        number = dfi_files_keep_fd(process, link->control);
        link->control = number < 0 ? link->control : number;
        return;
    }
    dfi_kernel(__NR_close, link->control);
    link->control = number;
}

/* Of the copy that a child has: its parent counts them. */
static void count_anew(struct df_link *link)
{
    atomic_store(&link->trips, 0);
    atomic_store(&link->hits, 0);
}

/* Where no number is left: that of the parent's socket, which it does not keep, and that of the
 * loader's, which it opens again. A child that shares our memory may not touch the latter. */
static bool tell_without_numbers(struct dfi_process *process, struct df_link *link, uint32_t client)
{
    struct dfi_files *files = process->files;
    int control = link->control;
    bool told;

    atomic_fetch_add(&link->segment->astray, 1); /* before the server can see the socket's end */
    dfi_kernel(__NR_close, control);
    link->control = -1;
    told = df_join_born(link, files->entry, client) == 0;
    if (!told && !files->lender) {
        dfi_loader_leave(process);
        told = df_join_born(link, files->entry, client) == 0;
        dfi_loader_return(process);
    }
    atomic_fetch_sub(&link->segment->astray, 1);
    if (!told)
        link->control = control; /* for be_nobody() */
    return told;
}

/* The parent may have used up its descriptors. False: even the hard limit leaves none. */
static bool tell_birth(struct dfi_process *process, struct df_link *link, uint32_t client)
{
    int control = link->control;
    unsigned long limit = dfi_limit_raise();
    bool told = df_join_born(link, control, client) == 0 ||
                (process->files->entry >= 0 && tell_without_numbers(process, link, client));

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

/* Who shares our memory has nothing that its parent has not: the server need not wait for it. */
static void forget_birth(struct dfi_files *files, uint32_t client)
{
    struct df_trip trip = dfi_trip_of(files);

    df_trip_unfork(&trip, client);
}

static void be_born(struct dfi_process *process, uint32_t client)
{
    struct dfi_files *files = process->files;
    struct df_link *link = &files->link;

    files->caller.pid = process->pid;
    files->caller.lock_owner = client;
    files->unborn = false;
    memset(files->young, 0, sizeof(files->young)); /* they are its parent's */
    link->client = 0;
    count_anew(link);
    if (link->segment && client != 0 && !tell_birth(process, link, client) && files->lender)
        forget_birth(files, client);
    if (link->segment && link->client == 0)
        be_nobody(process, link);
}

/* The kernel copies descriptors at one moment, and what is known of them is copied at another:
 * other threads of the parent may have opened or closed a file between the two. The number of what
 * is known, but is not there, would be that of the next file, whatever it is. */
static void forget_absent(struct dfi_files *files)
{
    int top = atomic_load(&files->top);

    for (int fd = 0; fd < top; fd++)
        if (files->map[fd] && dfi_kernel(__NR_fcntl, fd, F_GETFD) == -EBADF)
            atomic_store(&files->map[fd], 0);
}

/* What another thread was closing is not known any more, and is there all the same: the child has
 * the file open, and its lock. */
static void find_present(struct dfi_files *files)
{
    int top = atomic_load(&files->top);

    for (int fd = 0; fd < top; fd++)
        if (!files->map[fd])
            atomic_store(&files->map[fd], dfi_shadow_entry(files, fd));
}

/* Other threads of the parent may have been between one step and the next. */
static void count_uses(struct dfi_files *files)
{
    uint32_t indexes = atomic_load(&files->link.segment->files_used);
    int top = atomic_load(&files->top);

    for (uint32_t i = 0; i < indexes && i < DF_OFD_COUNT; i++)
        if (atomic_load_explicit(&dfi_uses(files)[i], memory_order_relaxed) != 0)
            atomic_store_explicit(&dfi_uses(files)[i], 0, memory_order_relaxed);
    for (int fd = 0; fd < top; fd++)
        if (files->map[fd])
            dfi_fd_hold(files, dfi_handle_in(files->map[fd]));
    for (size_t i = 0; i < dfi_files_count_mappings(files); i++)
        dfi_fd_hold(files, files->maps->list[i].handle);
    if (dfi_cwd_handle(files))
        dfi_fd_hold(files, dfi_cwd_handle(files));
    if (dfi_root_of(files))
        dfi_fd_hold(files, dfi_root_of(files));
}

static void know_anew(struct dfi_files *files)
{
    if (!files->map)
        return;
    forget_absent(files);
    find_present(files);
    count_uses(files);
}

/* What the server gave the child before it was made, other threads may have changed until then: a
 * file of which the child knows nothing would be open until it ends. So would one that its parent
 * has sent and closed, and keeps for the receiver. */
static void settle_files(struct dfi_files *files)
{
    bool knows = !among_threads && !files->sent;

    if (files->sent)
        dfi_sent_forget(files);
    if (knows || !files->link.segment)
        return;
    know_anew(files);
    if (files->link.client)
        dfi_files_keep(files, false);
}

void dfi_files_fork_child(struct dfi_process *process)
{
    dfi_unlock(&process->files->joining);
    dfi_table_unlock();
    dfi_maps_born(process->files);
    dfi_maps_unlock(process->files);
    dfi_unlock(&process->files->root.lock);
    dfi_unlock(&process->files->cwd.lock);
    be_born(process, unborn);
    settle_files(process->files);
    dfi_maps_settle(process->files);
}

/* What it is given too much by the server is closed when it executes a program, or ends. */
void dfi_files_born(struct dfi_process *process)
{
    struct dfi_files *files = process->files;

    be_born(process, files->link.client);
    if (files->among_threads)
        know_anew(files);
}

struct dfi_files *dfi_files_copy(struct dfi_files *files)
{
    struct dfi_files *copy = dfi_alloc(sizeof(*copy));
    uint64_t root = dfi_root_of(files);
    uint32_t client;
    int top;

    if (!copy)
        return NULL;
    top = atomic_load(&files->top);
    if ((top > 0 || dfi_cwd_handle(files) || root) && !dfi_fd_room(copy)) {
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
    if (root)
        dfi_root_inherit(copy, root);
    copy->lender = files->lender ? files->lender : files;
    copy->hold.limit = files->hold.limit;
    dfi_linger_shared(files);
    for (int fd = 0; fd < top; fd++) {
        copy->map[fd] = files->map[fd];
        if (copy->map[fd])
            dfi_uses(copy)[df_handle_index(dfi_handle_in(copy->map[fd]))]++;
    }
    client = announce_child(files);
    copy->link = files->link;
    copy->caller = *dfi_caller(files);
    copy->ids = files->ids;
    copy->ids_above = files->ids_above;
    copy->ids_awaited = files->ids_awaited;
    copy->outer_uid = files->outer_uid;
    copy->outer_gid = files->outer_gid;
    copy->link.client = client;
    copy->unborn = client != 0;
    copy->among_threads = dfi_process()->threads > 1;
    return copy;
}
