/*
 * record.c - the gate of native/core where there is no thread-local storage and nothing to wait
 * for: mounts and open files belong to the server, which knows who uses them.
 */
#include "client/record.h"

#include <errno.h>
#include <string.h>

#include "client/files.h"
#include "core/caller.h"
#include "core/mount.h"
#include "core/route.h"
#include "intercept/intercept.h"

struct dfi_record *dfi_record_now(void)
{
    return dfi_of_thread(dfi_self())->record;
}

static void set_now(struct dfi_record *record)
{
    dfi_of_thread(dfi_self())->record = record;
}

void dfi_record_begin(struct dfi_record *record)
{
    record->outer = dfi_record_now();
    record->files = dfi_process()->files;
    if (__builtin_expect(record->files->ids_awaited, false))
        dfi_identity_look(record->files);
    record->used = 0;
    record->opened = NULL;
    record->changes = record->lent = record->gone = false;
    record->foreign = record->here = 0;
    record->thread.caller = dfi_caller(record->files);
    record->thread.depth = 0;
    record->thread.follow_real_links = 0;
    record->thread.left_paths = 0;
    set_now(record);
}

void dfi_record_begin_of(struct dfi_record *record, uint64_t handle)
{
    dfi_record_begin(record);
    record->foreign = handle;
    record->lent = true;
}

void dfi_record_end(struct dfi_record *record)
{
    if (__builtin_expect(record->here != 0, false))
        dfi_fd_drop(record->files, record->here, false);
    set_now(record->outer);
}

/* Apart: the usual end needs no stack. */
__attribute__((noinline)) static long end_unusually(struct dfi_record *record, long ret)
{
    dfi_record_end(record);
    return ret == -EBADF && record->gone ? DFI_PASS : ret;
}

long dfi_record_end_of_fd(struct dfi_record *record, long ret)
{
    if (__builtin_expect(record->here != 0 || ret == -EBADF, false))
        return end_unusually(record, ret);
    set_now(record->outer);
    return ret;
}

/* ---- gate.h -------------------------------------------------------------------------------- */

struct df_thread *df_gate_thread(void)
{
    return &dfi_record_now()->thread;
}

struct df_thread *df_gate_enter(int *error)
{
    struct df_thread *thread = df_gate_thread();

    if (thread->depth == DF_GATE_DEPTH) {
        *error = -ELOOP;
        return NULL;
    }
    atomic_init(&thread->levels[thread->depth].pin, NULL);
    atomic_init(&thread->levels[thread->depth].use, NULL);
    thread->depth++;
    return thread;
}

/* The files of the call end with it; df_file_new()'s is still read by who opened it. */
void df_gate_leave(struct df_thread *thread)
{
    if (--thread->depth == 0)
        ((struct dfi_record *)thread)->used = 0;
}

bool df_gate_pin(struct df_thread *thread, struct df_mount *mount, int id)
{
    (void)thread, (void)mount, (void)id;
    return true;
}

void df_gate_unpin(struct df_thread *thread)
{
    (void)thread;
}

void df_gate_sleep(struct df_thread *thread)
{
    (void)thread;
}

void df_gate_awake(struct df_thread *thread)
{
    (void)thread;
}

int df_gate_refuse(enum df_call_number number, int error)
{
    (void)number;
    return error;
}

void df_mount_await_verdict(int id)
{
    (void)id;
}

/* Every record has its caller. */
_Atomic(const struct df_caller *) df_caller_process DFI_HOT;

/* ---- call.h -------------------------------------------------------------------------------- */

/* The ops of remote.c are never late. */
ssize_t df_call_wait(struct df_call *call)
{
    return call->result;
}
