/*
 * channel_rig.h - a mount server and its client in one process, without a file system: messages are
 * answered by the rig itself. Of test_channel.c, test_posted.c.
 */
#ifndef DF_TEST_CHANNEL_RIG_H
#define DF_TEST_CHANNEL_RIG_H

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "channel/sys.h"
#include "channel/trip.h"
#include "core/file.h"
#include "segment/segment.h"
#include "workers/pool.h"

/* A server that answers by itself, without a file system. */
struct rig {
    struct df_own_segment own;
    struct df_pool pool;
    struct df_link link;
    struct df_trip trip;
    struct df_caller caller;
    gid_t groups[2];
    char leave[PATH_MAX];
    _Atomic uint32_t gate; /* futex: ops named "/wait", and drops of HELD, return when it is 1 */
    _Atomic uint32_t entered;
    _Atomic uint32_t synced;
    _Atomic uint64_t dropped; /* handle */
    _Atomic uint64_t flushed; /* the same, by a flush that drops */
    char *written;            /* what writes bring is put there, unless it is NULL */
    _Atomic bool told;        /* of a signal, an op named "/hear" */
    bool told_in_time;        /* before that op had ended its hearing */
};

#define HELD 7777 /* a handle */

static void wait_at_gate(struct rig *rig)
{
    atomic_fetch_add(&rig->entered, 1);
    while (atomic_load(&rig->gate) == 0)
        df_sys_wait(&rig->gate, 0, -1);
}

static inline void open_gate(struct rig *rig)
{
    atomic_store(&rig->gate, 1);
    df_sys_wake(&rig->gate, INT_MAX);
}

/* As a lock that is waited for, by a worker that falls asleep only when its client has had a
 * signal.
 */
static int64_t sleep_late(struct rig *rig, struct df_message *m)
{
    const struct df_slot *slot =
        (const struct df_slot *)((char *)m - offsetof(struct df_slot, message));
    size_t index = (size_t)(slot - df_segment_slots(rig->own.segment));
    long ret = 0;

    df_pool_sleep_begin(&rig->pool, slot);
    atomic_fetch_add(&rig->entered, 1);
    while (!atomic_load(&rig->pool.signalled[index]))
        sched_yield();
    while (ret == 0 && atomic_load(&rig->gate) == 0)
        ret = df_sys_wait(&rig->gate, 0, -1);
    df_pool_sleep_end(&rig->pool, slot);
    return ret;
}

/* Needs the pool, as another op would, and goes on when its own op has. */
static void take_in(void *data)
{
    struct rig *rig = data;

    df_pool_sleeping(&rig->pool);
    open_gate(rig);
    for (int i = 0; i < 100; i++)
        sched_yield();
    atomic_store(&rig->told, true);
}

static void hear(struct rig *rig)
{
    df_call_hear_signals(take_in, rig);
    wait_at_gate(rig);
    df_call_hear_signals(NULL, NULL);
    rig->told_in_time = rig->told;
}

static int64_t answer(struct rig *rig, struct df_message *m, struct df_area *area)
{
    switch (m->op) {
    case DF_MESSAGE_flock:
        return sleep_late(rig, m);
    case DF_MESSAGE_getattr:
        if (strcmp(area->names[0], "/wait") == 0)
            wait_at_gate(rig);
        if (strcmp(area->names[0], "/hear") == 0)
            hear(rig);
        if (strcmp(area->names[0], "/out") == 0) {
            strcpy(area->names[0], "/elsewhere");
            m->leave_second = true;
            return DF_LEAVE;
        }
        m->out.st = (struct stat){.st_size = m->wheres[0].len,
                                  .st_uid = m->caller.uid,
                                  .st_gid = m->caller.group_count ? area->groups[1] : 0};
        return 0;
    case DF_MESSAGE_read:
        memset(area->payload, (int)(m->args.read.offset >> 20) + 'a', m->args.read.size);
        return (int64_t)m->args.read.size;
    case DF_MESSAGE_write:
        m->out.offset = m->args.write.offset + 1000;
        if (rig->written)
            memcpy(rig->written, area->payload, m->args.write.size);
        return area->payload[0] == 'w' ? (int64_t)m->args.write.size : -EIO;
    case DF_MESSAGE_read_batch: {
        struct df_message_extent *e = (struct df_message_extent *)area->payload;
        char *bytes = (char *)(e + m->args.read_batch.count);

        for (uint64_t i = 0; i < m->args.read_batch.count; i++) {
            memset(bytes, 'A' + (int)e[i].handle, e[i].size);
            bytes += (e[i].size + 7) & ~UINT64_C(7);
            e[i].result = (int64_t)e[i].size;
        }
        return 0;
    }
    case DF_MESSAGE_DROP:
        if (m->files[0] == HELD)
            wait_at_gate(rig);
        for (int i = 0; i < 2000; i++)
            df_sys_relax();
        atomic_store(&rig->dropped, m->files[0]);
        return 0;
    case DF_MESSAGE_flush:
        atomic_store(&rig->flushed, m->args.flush.drop && m->caller.uid == 5 ? m->files[0] : 0);
        return 0;
    case DF_MESSAGE_fsync:
        atomic_fetch_add(&rig->synced, 1);
        return atomic_load(&rig->dropped) == m->files[0] ? 0 : -EBUSY;
    case DF_MESSAGE_FORK:
        return m->args.fork.keeps ? 200 : 100;
    case DF_MESSAGE_NOTHING:
        return 0;
    default:
        return -ENOSYS;
    }
}

static void serve(void *arg, struct df_slot *slot, struct df_area *area)
{
    slot->message.result = answer(arg, &slot->message, area);
}

static int set_up(void **state)
{
    struct rig *rig = calloc(1, sizeof(*rig));

    rig->groups[1] = 77;
    rig->caller = (struct df_caller){.uid = 5, .group_count = 2, .groups = rig->groups};
    assert_int_equal(df_segment_create(&rig->own, 0, 0), 0);
    assert_int_equal(df_pool_start(&rig->pool, rig->own.segment, serve, NULL, rig), 0);
    assert_int_equal(df_link_init(&rig->link, rig->own.segment, rig->own.segment->size), 0);
    rig->link.client = 1;
    rig->trip = (struct df_trip){
        .link = &rig->link, .caller = &rig->caller, .mount = 1, .leave = rig->leave};
    *state = rig;
    return 0;
}

static int tear_down(void **state)
{
    struct rig *rig = *state;

    open_gate(rig);
    df_pool_stop(&rig->pool);
    df_segment_end(&rig->own);
    df_segment_free(&rig->own);
    free(rig);
    return 0;
}

static inline struct df_trip_where named(const char *name)
{
    return (struct df_trip_where){.name = name, .len = (uint32_t)strlen(name)};
}

static inline unsigned busy_slots(struct rig *rig)
{
    unsigned busy = 0;

    for (unsigned i = 0; i < DF_SLOT_COUNT; i++)
        busy += atomic_load(&df_segment_slots(rig->own.segment)[i].word) != DF_SLOT_FREE;
    return busy;
}

static inline void fill_slots(struct rig *rig, uint32_t word)
{
    for (unsigned i = 0; i < DF_SLOT_COUNT; i++)
        atomic_store(&df_segment_slots(rig->own.segment)[i].word, word);
}

static inline void *ask(struct rig *rig, const char *name)
{
    struct df_trip trip = rig->trip;
    struct df_trip_where where = named(name);
    struct stat st;

    return (void *)(intptr_t)df_trip_getattr(&trip, &where, &st);
}

static inline void *ask_and_wait(void *argument)
{
    return ask(argument, "/wait");
}

static inline void await_entered(struct rig *rig, uint32_t count)
{
    while (atomic_load(&rig->entered) < count)
        sched_yield();
}

#endif
