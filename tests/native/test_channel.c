/*
 * test_channel.c - the transport between a mount server and its clients, in one process: messages
 * there and back, both ways of waiting, slots that run out, who dies when.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "channel/ofd.h"
#include "channel/spin.h"
#include "channel_rig.h"

/* ---- messages -------------------------------------------------------------------------------- */

static void a_message_brings_names_and_identity(void **state)
{
    struct rig *rig = *state;
    struct df_trip_where where = named("/some/name");
    struct stat st;

    assert_int_equal(df_trip_getattr(&rig->trip, &where, &st), 0);
    assert_int_equal(st.st_size, where.len);
    assert_int_equal(st.st_uid, 5);
    assert_int_equal(st.st_gid, 77);
    assert_int_equal(busy_slots(rig), 0);
}

static void a_way_out_comes_back_with_its_path(void **state)
{
    struct rig *rig = *state;
    struct df_trip_where where = named("/out");
    struct stat st;

    assert_int_equal(df_trip_getattr(&rig->trip, &where, &st), DF_LEAVE);
    assert_string_equal(rig->leave, "/elsewhere");
    assert_true(rig->trip.leave_second);
}

/* Its slot has the arguments of another message before. */
static void a_fork_says_whether_there_is_a_child(void **state)
{
    struct rig *rig = *state;

    for (int i = 0; i < 3; i++) {
        df_trip_fallocate(&rig->trip, 1, -1, -1, -1);
        assert_int_equal(df_trip_fork(&rig->trip), 100);
        assert_int_equal(df_trip_leave(&rig->trip), 200);
    }
    assert_int_equal(df_trip_fork(&rig->trip), 100);
}

static void what_the_server_refuses_is_handed_through(void **state)
{
    struct rig *rig = *state;

    assert_int_equal(df_trip_fallocate(&rig->trip, 1, 0, 0, 1), -ENOSYS);
    assert_int_equal(busy_slots(rig), 0);
}

static void large_reads_take_several_trips(void **state)
{
    struct rig *rig = *state;
    size_t size = 2 * DF_PAYLOAD_SIZE + 5;
    char *bytes = malloc(size);
    struct iovec iov[2] = {{bytes, 3}, {bytes + 3, size - 3}};
    uint64_t before = rig->link.trips;

    assert_int_equal(df_trip_read(&rig->trip, 1, iov, 2, 0), size);
    assert_int_equal(rig->link.trips - before, 3);
    assert_int_equal(bytes[0], 'a');
    assert_int_equal(bytes[DF_PAYLOAD_SIZE], 'b');
    assert_int_equal(bytes[size - 1], 'c');
    free(bytes);
}

/* What comes between the halves may be another message. */
static void a_read_is_on_its_way_meanwhile(void **state)
{
    struct rig *rig = *state;
    struct df_trip_early early, other;
    char bytes[101] = "";

    df_trip_read_ask(&rig->trip, 1, 100, 1 << 20, &early);
    assert_non_null(early.slot);
    assert_int_equal(early.size, 100);
    assert_int_equal(df_trip_nothing(&rig->trip), 0);
    df_trip_read_ask(&rig->trip, 1, 1, 0, &other);
    assert_int_equal(busy_slots(rig), 2);
    assert_int_equal(df_trip_read_take(&rig->trip, &early, bytes), 100);
    assert_int_equal(bytes[0], 'b');
    assert_int_equal(bytes[99], 'b');
    assert_int_equal(bytes[100], 0);
    assert_int_equal(df_trip_read_take(&rig->trip, &other, NULL), 1);
    assert_int_equal(busy_slots(rig), 0);
}

static unsigned whole_areas(struct rig *rig)
{
    unsigned whole = 0;

    for (unsigned i = 0; i < DF_SLOT_COUNT; i++)
        whole += atomic_load(&df_segment_slots(rig->own.segment)[i].made) == DF_PAYLOAD_SIZE;
    return whole;
}

/* A large file is read in pieces, each asked for before the one before it is taken; and another
 * file then. The memory of a slot stays: that of few is enough. */
static void pieces_take_the_same_slots_again(void **state)
{
    struct rig *rig = *state;
    struct df_trip_early early[2];

    for (int file = 0; file < DF_SLOT_COUNT; file++) {
        df_trip_read_ask(&rig->trip, 1, DF_PAYLOAD_SIZE, 0, &early[0]);
        df_trip_read_ask(&rig->trip, 1, DF_PAYLOAD_SIZE, DF_PAYLOAD_SIZE, &early[1]);
        assert_int_equal(df_trip_read_take(&rig->trip, &early[0], NULL), DF_PAYLOAD_SIZE);
        assert_int_equal(df_trip_read_take(&rig->trip, &early[1], NULL), DF_PAYLOAD_SIZE);
    }
    assert_int_equal(whole_areas(rig), 2);
}

static void what_is_no_single_message_is_not_asked_for_early(void **state)
{
    struct rig *rig = *state;
    struct df_trip_early early;

    df_trip_read_ask(&rig->trip, 1, 0, 0, &early);
    assert_null(early.slot);
    df_trip_read_ask(&rig->trip, 1, DF_PAYLOAD_SIZE + 1, 0, &early);
    assert_null(early.slot);
    assert_int_equal(busy_slots(rig), 0);
}

static void a_write_tells_where_it_went(void **state)
{
    struct rig *rig = *state;
    struct iovec iov = {(char[]){"what"}, 4};
    off_t offset = 10;

    assert_int_equal(df_trip_write(&rig->trip, 1, O_APPEND, DF_PLACED_BY_FLAGS, &iov, 1, &offset),
                     4);
    assert_int_equal(offset, 1010);
}

/* Some lines go past the caches, some do not; and none is there later than the message. */
static void a_write_brings_all_its_bytes_from_near_and_far(void **state)
{
    struct rig *rig = *state;
    const size_t pieces[] = {20000, 64, 8192, 3, 30000, 1}, count = 6;
    char *bytes = malloc(3 * 65536), *written = rig->written = malloc(65536);
    struct iovec iov[6];
    size_t size = 0;

    for (size_t i = 0; i < count; size += pieces[i++])
        iov[i] = (struct iovec){bytes + i + 3 * size / 2, pieces[i]};
    for (uint32_t round = 0; round < 100; round++) {
        off_t offset = 0;
        size_t at = 0;

        memset(bytes, (int)round, 3 * 65536);
        bytes[0] = 'w'; /* the rig asks for it */
        for (size_t i = 0; i < count; i++)
            memset((char *)iov[i].iov_base + 1, (int)(round + i), pieces[i] - 1);
        atomic_store(&rig->own.segment->far, round % 2);
        assert_int_equal(
            df_trip_write(&rig->trip, 1, 0, DF_PLACED_BY_FLAGS, iov, (int)count, &offset), size);
        for (size_t i = 0; i < count; at += pieces[i++])
            assert_memory_equal(written + at, iov[i].iov_base, pieces[i]);
    }
    rig->written = NULL;
    free(written);
    free(bytes);
}

static void a_batch_is_one_trip(void **state)
{
    struct rig *rig = *state;
    char a[5], b[9];
    struct df_trip_extent extents[] = {{1, a, sizeof(a), 0, 0}, {2, b, sizeof(b), 0, 0}};
    uint64_t before = rig->link.trips;

    assert_int_equal(df_trip_read_batch(&rig->trip, extents, 2), 0);
    assert_int_equal(rig->link.trips - before, 1);
    assert_int_equal(extents[1].result, 9);
    assert_int_equal(a[4], 'B');
    assert_int_equal(b[8], 'C');
}

/* ---- many at once ------------------------------------------------------------------------------
 */

static void blocked_ops_block_nobody_else(void **state)
{
    struct rig *rig = *state;
    pthread_t threads[20];
    void *result;

    for (int i = 0; i < 20; i++)
        pthread_create(&threads[i], NULL, ask_and_wait, rig);
    await_entered(rig, 20);
    assert_int_equal(df_trip_nothing(&rig->trip), 0);
    open_gate(rig);
    for (int i = 0; i < 20; i++) {
        pthread_join(threads[i], &result);
        assert_null(result);
    }
}

static void a_call_waits_for_a_slot(void **state)
{
    struct rig *rig = *state;
    pthread_t threads[DF_SLOT_COUNT + 2];
    struct df_trip trip = rig->trip;
    struct df_link hasty = rig->link;
    void *result;

    for (int i = 0; i < DF_SLOT_COUNT + 2; i++)
        pthread_create(&threads[i], NULL, ask_and_wait, rig);
    await_entered(rig, DF_SLOT_COUNT);
    hasty.patience = 100000000;
    trip.link = &hasty;
    assert_int_equal(df_trip_nothing(&trip), -ETIMEDOUT);
    open_gate(rig);
    for (int i = 0; i < DF_SLOT_COUNT + 2; i++) {
        pthread_join(threads[i], &result);
        assert_null(result);
    }
    assert_int_equal(busy_slots(rig), 0);
}

/* Sleeps in the child, which is killed there. */
static void kill_one_that_waits(struct rig *rig)
{
    pid_t client = fork();

    if (client == 0) {
        rig->link.client = 3;
        df_trip_nothing(&rig->trip);
        _exit(1);
    }
    while (atomic_load(&rig->own.segment->wanted) == 0)
        sched_yield();
    kill(client, SIGKILL);
    waitpid(client, NULL, 0);
}

static void who_is_killed_while_it_waits_for_a_slot_is_forgotten(void **state)
{
    struct rig *rig = *state;
    uint32_t freed;

    fill_slots(rig, df_slot_word(2, DF_SLOT_RUNNING));
    kill_one_that_waits(rig);
    fill_slots(rig, DF_SLOT_FREE);
    assert_int_equal(df_trip_nothing(&rig->trip), 0); /* frees a slot: that one is told */
    freed = atomic_load(&rig->own.segment->freed);
    for (int i = 0; i < 10; i++)
        assert_int_equal(df_trip_nothing(&rig->trip), 0);
    assert_int_equal(atomic_load(&rig->own.segment->freed), freed); /* and nobody since */
}

/* Its sleeps; negative: what it has asked for is wrong. */
static void *count_sleeps(void *argument)
{
    struct rusage used;
    bool wrong = ask_and_wait(argument) != NULL;

    getrusage(RUSAGE_THREAD, &used);
    return (void *)(intptr_t)(wrong ? -1 : used.ru_nvcsw);
}

/* 64 wait, and one after the other gets a slot. Were all woken each time, those that have none yet
 * would go to sleep again each time. */
static void a_slot_that_is_freed_wakes_one_of_many(void **state)
{
    struct rig *rig = *state;
    struct df_slot *slots = df_segment_slots(rig->own.segment);
    pthread_t threads[64];
    intptr_t sleeps = 0;
    void *result;

    fill_slots(rig, df_slot_word(2, DF_SLOT_RUNNING));
    for (int i = 0; i < 64; i++)
        pthread_create(&threads[i], NULL, count_sleeps, rig);
    for (int i = 0; i < 64; i++) {
        df_link_release(rig->own.segment, &slots[i]);
        await_entered(rig, i + 1);
    }
    open_gate(rig);
    for (int i = 0; i < 64; i++) {
        pthread_join(threads[i], &result);
        assert_true((intptr_t)result >= 0);
        sleeps += (intptr_t)result;
    }
    fill_slots(rig, DF_SLOT_FREE);
    assert_true(sleeps < 64 * 64 / 4);
}

static void *ask_much(void *argument)
{
    struct rig *rig = argument;
    struct df_trip trip = rig->trip;
    intptr_t wrong = 0;

    for (int i = 0; i < 2000; i++) {
        char name[32];
        struct df_trip_where where;
        struct stat st;

        snprintf(name, sizeof(name), "/%0*d", 1 + i % 20, i);
        where = named(name);
        wrong += df_trip_getattr(&trip, &where, &st) != 0 || st.st_size != where.len;
    }
    return (void *)wrong;
}

static void threads_never_get_each_others_answers(void **state)
{
    struct rig *rig = *state;
    pthread_t threads[4];
    void *wrong;

    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, ask_much, rig);
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], &wrong);
        assert_null(wrong);
    }
    assert_int_equal(busy_slots(rig), 0);
}

static bool anybody_sleeps(struct rig *rig)
{
    for (unsigned i = 0; i < DF_SLOT_COUNT; i++)
        if (atomic_load(&df_segment_slots(rig->own.segment)[i].waiting) != 0)
            return true;
    return false;
}

/* The slot has the moment of the answer, not of the question any more. */
static void who_sleeps_is_told_when_the_answer_came(void **state)
{
    struct rig *rig = *state;
    struct df_slot *slots = df_segment_slots(rig->own.segment);
    pthread_t thread;
    uint64_t opened;
    bool later = false;

    pthread_create(&thread, NULL, ask_and_wait, rig);
    while (!anybody_sleeps(rig))
        sched_yield();
    opened = df_sys_ticks();
    open_gate(rig);
    pthread_join(thread, NULL);
    for (unsigned i = 0; i < DF_SLOT_COUNT; i++)
        later |= slots[i].at != 0 && df_spin_ticks(slots[i].at, df_sys_ticks()) + 128 >= opened;
    assert_true(later);
}

/* ---- spinning -------------------------------------------------------------------------------- */

/* What a spin is worth after `times` waits of that many ticks. */
static uint32_t worth_after(uint32_t worth, int times, uint64_t ticks, bool slept, bool torn,
                            uint32_t longest)
{
    _Atomic uint32_t now = worth;

    for (int i = 0; i < times; i++) {
        struct df_spin spin = {.begin = df_sys_ticks() - ticks, .torn = torn};

        df_spin_learn(&now, &spin, df_sys_ticks(), slept, longest);
    }
    return now;
}

/* Two sides that have both come to sleep meet again. */
static void short_waits_make_spins_long_though_they_were_slept_through(void **state)
{
    (void)state;
    assert_int_equal(worth_after(DF_SPIN_MIN, 40, 0, true, false, DF_SPIN_MAX), DF_SPIN_MAX);
    assert_int_equal(worth_after(DF_SPIN_MIN, 8, 0, false, false, DF_SPIN_MAX), DF_SPIN_MAX);
}

static void long_waits_and_lost_processors_make_spins_short(void **state)
{
    uint64_t long_ago = (uint64_t)DF_SPIN_MAX << 7;

    (void)state;
    assert_int_equal(worth_after(DF_SPIN_MAX, 8, long_ago, true, false, DF_SPIN_MAX), DF_SPIN_MIN);
    assert_int_equal(worth_after(DF_SPIN_MAX, 8, 0, false, true, DF_SPIN_MAX), DF_SPIN_MIN);
}

/* A server waits for a question for longer than a client does for an answer. */
static void a_question_is_awaited_for_longer(void **state)
{
    uint64_t work = (uint64_t)DF_SPIN_MAX << 7;

    (void)state;
    assert_int_equal(worth_after(DF_SPIN_MIN, 40, work, true, false, DF_SPIN_MAX_QUESTION),
                     DF_SPIN_MAX_QUESTION);
    assert_int_equal(
        worth_after(DF_SPIN_MAX_QUESTION, 10, work * 4, true, false, DF_SPIN_MAX_QUESTION),
        DF_SPIN_MIN);
}

/* Not by when who slept was running again. */
static void a_wait_is_judged_by_what_the_other_side_did(void **state)
{
    uint64_t begin = UINT64_C(1) << 50, late = (uint64_t)DF_SPIN_MAX << 8;
    struct df_spin spin = {.begin = begin};
    _Atomic uint32_t worth = DF_SPIN_START;

    (void)state;
    df_spin_learn(&worth, &spin, df_spin_ticks(df_spin_moment(begin + 6400), begin + late), true,
                  DF_SPIN_MAX);
    assert_in_range(worth, DF_SPIN_START + 1, DF_SPIN_MAX);
    worth = DF_SPIN_START;
    df_spin_learn(&worth, &spin, df_spin_ticks(df_spin_moment(begin + late), begin + late), true,
                  DF_SPIN_MAX);
    assert_int_equal(worth, DF_SPIN_START / 2);
}

static void a_moment_is_understood_when_it_has_wrapped_around(void **state)
{
    uint64_t wrap = UINT64_C(1) << 32, ago;

    (void)state;
    for (uint64_t now = 3 * wrap - 512; now < 3 * wrap + 512; now += 128) {
        ago = now - df_spin_ticks(df_spin_moment(now - 100000) | DF_SPIN_HERE, now);
        assert_in_range(ago, 100000 - 128, 100000 + 128);
        assert_int_equal(df_spin_ticks(df_spin_moment(now + 1000), now), now); /* another clock's */
    }
}

static void a_spin_is_long_behind_that_of_an_answer(void **state)
{
    struct df_spin spin = {.begin = 0, .last = (uint64_t)DF_SPIN_MAX << 6};

    (void)state;
    assert_false(df_spin_is_long(&spin));
    spin.last++;
    assert_true(df_spin_is_long(&spin));
}

/* ---- faults ------------------------------------------------------------------------------------
 */

static void ignore(int signal)
{
    (void)signal;
}

static void a_call_gives_up_when_its_patience_ends(void **state)
{
    struct rig *rig = *state;

    rig->link.patience = 100000000;
    assert_int_equal((intptr_t)ask_and_wait(rig), -ETIMEDOUT);
    assert_int_equal(busy_slots(rig), 1);
    open_gate(rig); /* the worker gives the slot back */
    while (busy_slots(rig) > 0)
        sched_yield();
}

/* From now on, if `ns` is not 0, each sleep of the process's first thread is ended before its time.
 */
static void send_signals_every(long ns)
{
    struct sigaction action = {.sa_handler = ns ? ignore : SIG_IGN};
    struct itimerval often = {{0, ns / 1000}, {0, ns / 1000}};

    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
}

static void signals_are_no_reason_for_more_patience(void **state)
{
    struct rig *rig = *state;

    send_signals_every(10000000);
    a_call_gives_up_when_its_patience_ends(state);
    fill_slots(rig, df_slot_word(2, DF_SLOT_RUNNING));
    assert_int_equal(df_trip_nothing(&rig->trip), -ETIMEDOUT);
    send_signals_every(0);
    fill_slots(rig, DF_SLOT_FREE);
}

struct lock_wait {
    struct rig *rig;
    int result;
    _Atomic bool done;
};

static void *wait_for_lock(void *argument)
{
    struct lock_wait *wait = argument;
    struct df_trip trip = wait->rig->trip;

    wait->result = df_trip_flock(&trip, 1, 0, 0);
    atomic_store(&wait->done, true);
    return NULL;
}

static bool is_signalled(const struct df_pool *pool)
{
    bool any = false;

    for (unsigned i = 0; i < DF_SLOT_COUNT; i++)
        any |= atomic_load(&pool->signalled[i]);
    return any;
}

/* What the worker gets before it sleeps wakes nobody. */
static void a_signal_ends_a_sleep_that_begins_later(void **state)
{
    struct rig *rig = *state;
    struct sigaction action = {.sa_handler = ignore};
    struct lock_wait wait = {.rig = rig};
    pthread_t thread;

    sigaction(SIGUSR1, &action, NULL);
    pthread_create(&thread, NULL, wait_for_lock, &wait);
    await_entered(rig, 1);
    while (!is_signalled(&rig->pool) && !wait.done) { /* until one comes while it sleeps */
        pthread_kill(thread, SIGUSR1);
        sched_yield();
    }
    pthread_join(thread, NULL);
    assert_int_equal(wait.result, -EINTR);
}

static void *ask_and_hear(void *argument)
{
    return ask(argument, "/hear");
}

static void signal_all(struct rig *rig)
{
    for (uint32_t i = 0; i < DF_SLOT_COUNT; i++)
        if (atomic_load(&df_segment_slots(rig->own.segment)[i].word) != DF_SLOT_FREE)
            df_pool_signal(&rig->pool, i);
}

/* Who is told may be code of a plugin, which waits for what another op has. */
static void who_is_told_of_a_signal_keeps_nobody_out(void **state)
{
    struct rig *rig = *state;
    pthread_t thread;

    pthread_create(&thread, NULL, ask_and_hear, rig);
    await_entered(rig, 1);
    signal_all(rig);
    pthread_join(thread, NULL);
    assert_true(rig->told_in_time);
}

/* It came too late to be told, and is not the next one's. */
static void a_signal_behind_the_answer_is_nobodys(void **state)
{
    struct rig *rig = *state;

    atomic_store(&rig->own.segment->signals[0], ~UINT64_C(1)); /* not of the slot that is used */
    atomic_store(&rig->own.segment->signals[1], UINT64_MAX);
    assert_int_equal(df_trip_nothing(&rig->trip), 0);
    while (rig->own.segment->signals[0] | rig->own.segment->signals[1])
        assert_int_equal(df_trip_nothing(&rig->trip), 0);
    assert_false(is_signalled(&rig->pool));
}

static void serve_by_dying(void *arg, struct df_slot *slot, struct df_area *area)
{
    (void)arg, (void)slot, (void)area;
    raise(SIGKILL);
}

/* A server in a process of its own, which dies of its first op. Returns its pid; *memory: its
 * segment. */
static pid_t fork_mortal_server(int *memory)
{
    struct df_own_segment own;
    struct df_pool pool;
    char path[64];
    int ready[2], fd;
    pid_t server;

    assert_int_equal(pipe(ready), 0);
    server = fork();
    if (server == 0) {
        if (df_segment_create(&own, 0, 0) < 0 ||
            df_pool_start(&pool, own.segment, serve_by_dying, NULL, NULL) < 0 ||
            write(ready[1], &own.memory, sizeof(int)) != sizeof(int))
            _exit(1);
        for (;;)
            pause();
    }
    assert_int_equal(read(ready[0], &fd, sizeof(fd)), sizeof(fd));
    snprintf(path, sizeof(path), "/proc/%d/fd/%d", server, fd);
    *memory = open(path, O_RDWR | O_CLOEXEC);
    assert_true(*memory >= 0);
    close(ready[0]);
    close(ready[1]);
    return server;
}

static void a_killed_server_is_noticed(void **state)
{
#ifdef __SANITIZE_THREAD__
    print_message("skipped: ThreadSanitizer allows no threads after fork\n");
    skip();
#endif
    struct rig *rig = *state;
    struct df_trip trip = rig->trip;
    struct df_link link;
    int memory;
    pid_t server = fork_mortal_server(&memory);
    uint64_t size = rig->own.segment->size;
    void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
    struct df_ofd *position = df_segment_ofds(at);

    assert_int_equal(df_link_init(&link, at, size), 0);
    assert_true(df_link_alive(&link));
    link.client = 1;
    trip.link = &link;
    send_signals_every(10000000);
    assert_int_equal(df_trip_nothing(&trip), -ENOTCONN); /* it dies meanwhile */
    assert_false(df_link_alive(&link));
    atomic_store(&position->position_lock, 2);
    assert_int_equal(df_ofd_lock(&link, position, false), -ENOTCONN); /* nobody frees it */
    send_signals_every(0);
    assert_int_equal(df_trip_nothing(&trip), -ENOTCONN); /* at once */
    waitpid(server, NULL, 0);
    munmap(at, size);
    close(memory);
}

/* ---- positions ---------------------------------------------------------------------------------
 */

static void *add_to_position(void *argument)
{
    struct rig *rig = argument;
    struct df_ofd *ofd = df_segment_ofds(rig->own.segment);

    for (int i = 0; i < 5000; i++) {
        if (df_ofd_lock(&rig->link, ofd, false) < 0)
            return (void *)1;
        ofd->position++;
        df_ofd_unlock(&rig->link, ofd);
    }
    return NULL;
}

static void a_position_has_one_holder(void **state)
{
    struct rig *rig = *state;
    pthread_t threads[4];

    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, add_to_position, rig);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(df_segment_ofds(rig->own.segment)->position, 20000);
}

static void a_dead_holders_position_is_freed(void **state)
{
    struct rig *rig = *state;
    struct df_ofd *ofd = df_segment_ofds(rig->own.segment);
    struct df_link dead = rig->link;

    dead.client = 9;
    assert_int_equal(df_ofd_lock(&dead, ofd, false), 0);
    df_ofd_break(ofd, 8); /* another's death changes nothing */
    assert_int_equal(atomic_load(&ofd->position_lock), 9);
    df_ofd_break(ofd, 9);
    assert_int_equal(df_ofd_lock(&rig->link, ofd, false), 0);
    df_ofd_unlock(&rig->link, ofd);
}

/* A child that the server has no place for has its parent's files, but no id. */
static void nobody_frees_the_position_of_another(void **state)
{
    struct rig *rig = *state;
    struct df_ofd *ofd = df_segment_ofds(rig->own.segment);
    struct df_link nobody = rig->link;

    nobody.client = 0;
    assert_int_equal(df_ofd_lock(&nobody, ofd, false), -ENOTCONN);
    assert_int_equal(df_ofd_lock(&rig->link, ofd, false), 0);
    df_ofd_unlock(&nobody, ofd);
    assert_int_equal(atomic_load(&ofd->position_lock), rig->link.client);
    df_ofd_unlock(&rig->link, ofd);
    assert_int_equal(atomic_load(&ofd->position_lock), 0);
    df_ofd_unlock(&nobody, ofd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        TEST(a_message_brings_names_and_identity),
        TEST(a_way_out_comes_back_with_its_path),
        TEST(a_fork_says_whether_there_is_a_child),
        TEST(what_the_server_refuses_is_handed_through),
        TEST(large_reads_take_several_trips),
        TEST(a_read_is_on_its_way_meanwhile),
        TEST(pieces_take_the_same_slots_again),
        TEST(what_is_no_single_message_is_not_asked_for_early),
        TEST(a_write_tells_where_it_went),
        TEST(a_write_brings_all_its_bytes_from_near_and_far),
        TEST(a_batch_is_one_trip),
        TEST(blocked_ops_block_nobody_else),
        TEST(a_call_waits_for_a_slot),
        TEST(who_is_killed_while_it_waits_for_a_slot_is_forgotten),
        TEST(a_slot_that_is_freed_wakes_one_of_many),
        TEST(threads_never_get_each_others_answers),
        TEST(who_sleeps_is_told_when_the_answer_came),
        TEST(short_waits_make_spins_long_though_they_were_slept_through),
        TEST(long_waits_and_lost_processors_make_spins_short),
        TEST(a_question_is_awaited_for_longer),
        TEST(a_wait_is_judged_by_what_the_other_side_did),
        TEST(a_moment_is_understood_when_it_has_wrapped_around),
        TEST(a_spin_is_long_behind_that_of_an_answer),
        TEST(a_call_gives_up_when_its_patience_ends),
        TEST(signals_are_no_reason_for_more_patience),
        TEST(a_signal_ends_a_sleep_that_begins_later),
        TEST(who_is_told_of_a_signal_keeps_nobody_out),
        TEST(a_signal_behind_the_answer_is_nobodys),
        TEST(a_killed_server_is_noticed),
        TEST(a_position_has_one_holder),
        TEST(a_dead_holders_position_is_freed),
        TEST(nobody_frees_the_position_of_another),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
