/*
 * execute_gone.c - what clients had that are gone, or asked for and did not hear: it is closed,
 * unlocked and written back, as by the kernel at the end of a process.
 */
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>

#include "channel/ofd.h"
#include "channel/sys.h"
#include "core/caller.h"
#include "core/lock.h"
#include "core/masked_thread.h"
#include "server/server_private.h"

void df_execute_close(struct df_server *server, struct df_thread *thread,
                      const struct df_last_file *last)
{
    df_execute_judge(server, last);
    df_framer_close(&server->framer, last->content);
    df_file_put(thread, last->file);
    if (last->locked)
        df_files_unplace(server->options->shadow, last->locked);
    df_watch_closed(&server->watcher, last->handle);
    df_execute_unwatch(server, last->handle);
    if (last->mapped)
        df_mapped_closed(server, last->mount, last->ino);
    df_server_closed(server);
}

static void take_back(struct df_server *server, uint32_t client, uint64_t handle)
{
    struct df_last_file last;
    int error;
    struct df_thread *thread = df_gate_enter(&error);

    if (!thread)
        return;
    if (df_files_drop(&server->files, client, handle, &last) == 0 && last.file)
        df_execute_close(server, thread, &last);
    df_gate_leave(thread);
}

/* As df_unanswered_settle() does for a server that has died. Who adopts a file had it not. */
void df_execute_unheard(void *arg, struct df_slot *slot)
{
    uint32_t client = df_slot_client(atomic_load(&slot->word));
    const struct df_message *m = &slot->message;

    if (df_message_opens(m) && m->result == 0)
        take_back(arg, client, m->out.file.handle);
    else if (m->op == DF_MESSAGE_ADOPT && m->result == 0)
        take_back(arg, client, m->files[0]);
    else if (m->op == DF_MESSAGE_FORK && m->result > 0)
        df_execute_gone(arg, (uint32_t)m->result);
    else if (m->op == DF_MESSAGE_poll) /* who is there still hangs another one */
        df_bell_end(&((struct df_server *)arg)->bells, m->args.poll.bell);
}

/* Nobody waits for what was posted: who has only become another program still wants it done. */
static bool is_left(const struct df_slot *slot, uint32_t word, uint32_t client,
                    const struct df_slot *but)
{
    return df_slot_client(word) == client && df_slot_state(word) != DF_SLOT_FREE &&
           (!but || (slot != but && df_slot_state(word) != DF_SLOT_POSTED));
}

/* Those that run are interrupted, and freed when the worker is done. */
void df_execute_reap(struct df_server *server, uint32_t client, const struct df_slot *but)
{
    struct df_segment *segment = server->own.segment;

    for (unsigned i = 0; i < DF_SLOT_COUNT; i++) {
        struct df_slot *slot = &df_segment_slots(segment)[i];
        uint32_t word = atomic_load(&slot->word);
        uint32_t abandoned = df_slot_word(client, DF_SLOT_ABANDONED);

        if (!is_left(slot, word, client, but))
            continue;
        if (df_slot_state(word) == DF_SLOT_RUNNING &&
            atomic_compare_exchange_strong(&slot->word, &word, abandoned)) {
            df_pool_signal(&server->pool, i);
            continue;
        }
        if (df_slot_state(word) != DF_SLOT_ABANDONED &&
            atomic_compare_exchange_strong(&slot->word, &word, DF_SLOT_FREE))
            df_link_freed(segment, slot);
        else if (df_slot_state(word) != DF_SLOT_ABANDONED)
            i--; /* it changed just now: look again */
    }
}

void df_execute_flush(struct df_thread *thread, struct df_file *file, uint64_t owner)
{
    struct df_call call;

    if (atomic_load(&file->flags) & O_PATH)
        return;
    df_call_start(&call, thread, atomic_load_explicit(&file->mount, memory_order_relaxed));
    if (!(file->traits & DF_FILE_NOFLUSH))
        df_call_result(&call, file->fs->ops->flush(file->fs, &call, file, owner));
    df_lock_close(&call, file, owner);
}

/* What the kernel does when a process ends. */
static void close_for(struct df_server *server, struct df_thread *thread, uint32_t client,
                      uint32_t index)
{
    struct df_ofd *ofd = &df_segment_ofds(server->own.segment)[index];
    struct df_file *file = df_files_get(&server->files, atomic_load(&ofd->handle));
    struct df_last_file last;

    df_ofd_break(ofd, client);
    if (file) {
        df_execute_flush(thread, file, df_execute_owner(client));
        df_file_put(thread, file);
    }
    df_files_drop_gone(&server->files, index, &last);
    if (last.file)
        df_execute_close(server, thread, &last);
}

static void close_all(struct df_server *server, uint32_t client, const uint64_t *had)
{
    int error;
    struct df_thread *thread = df_gate_enter(&error);

    for (uint32_t i = 0; thread && i < DF_OFD_COUNT / 64; i++)
        for (uint64_t bits = had[i]; bits != 0; bits &= bits - 1)
            close_for(server, thread, client, i * 64 + (uint32_t)__builtin_ctzll(bits));
    if (thread)
        df_gate_leave(thread);
}

/* False: there is no such client. */
static bool take_away(struct df_server *server, uint32_t client, uint64_t **had)
{
    if (!df_files_client_gone(&server->files, client, had))
        return false;
    if (!atomic_load(&server->pool.stopping)) /* at the end answers lie there that are wanted */
        df_execute_reap(server, client, NULL);
    return true;
}

static void close_what_it_had(struct df_server *server, uint32_t client, uint64_t *had)
{
    if (had)
        df_mapped_gone(server, client, had);
    df_mapped_forget(server, client);
    if (had)
        close_all(server, client, had);
    df_files_free_set(&server->files, had);
}

void df_execute_gone(struct df_server *server, uint32_t client)
{
    uint64_t *had;

    if (take_away(server, client, &had))
        close_what_it_had(server, client, had);
}

struct burial {
    struct df_server *server;
    uint32_t client;
    uint64_t *had;
};

static void *bury(void *argument)
{
    struct burial burial = *(struct burial *)argument;
    _Atomic uint32_t *burials = &burial.server->burials;

    free(argument);
    close_what_it_had(burial.server, burial.client, burial.had);
    atomic_fetch_sub(burials, 1); /* from here on the server may be gone */
    df_sys_wake(burials, INT_MAX);
    return NULL;
}

static bool start_burial(struct df_server *server, uint32_t client, uint64_t *had)
{
    struct burial *burial = malloc(sizeof(*burial));
    pthread_t thread;

    if (!burial)
        return false;
    *burial = (struct burial){server, client, had};
    atomic_fetch_add(&server->burials, 1);
    if (df_masked_thread_create(&thread, NULL, bury, burial) == 0) {
        pthread_detach(thread);
        return true;
    }
    atomic_fetch_sub(&server->burials, 1);
    free(burial);
    return false;
}

void df_execute_bury(struct df_server *server, uint32_t client)
{
    uint64_t *had;

    if (take_away(server, client, &had) && (!had || !start_burial(server, client, had)))
        close_what_it_had(server, client, had);
}
