/*
 * test_unanswered.c - a server dies in the middle of a call: what its ledger then says is what the
 * clients know.
 *
 * Nobody dies here. What a server would have stored by that moment is stored, and the next one
 * takes the ledger and the segment as they are.
 */
#include <errno.h>
#include <signal.h>

#include "files_rig.h"
#include "ledger/unanswered.h"

/* By a crash, or, with DF_END_NONE, by SIGKILL. */
static void die(struct rig *rig, int end)
{
    end_files(rig);
    atomic_store(&rig->own.segment->end, end);
    rig->files = new_files(rig);
    df_unanswered_settle(rig->files);
    df_files_take(rig->files);
    df_unanswered_submit(rig->files);
}

static struct df_slot *slot_of(struct rig *rig, enum df_slot_state state, enum df_message_op op)
{
    struct df_slot *slot = &df_segment_slots(rig->own.segment)[3];

    slot->message = (struct df_message){.op = op, .mount = MOUNT};
    atomic_store(&slot->died, 0);
    atomic_store(&slot->entered, 0);
    atomic_store(&slot->word, df_slot_word(rig->client, state));
    return slot;
}

static enum df_slot_state state_of(const struct df_slot *slot)
{
    return df_slot_state(atomic_load(&slot->word));
}

static uint64_t add(struct rig *rig, struct df_slot *slot)
{
    uint64_t handle = df_files_add(rig->files, rig->client, &rig->file, MOUNT, 0, &slot->entered);

    assert_int_not_equal(handle, 0);
    return handle;
}

/* For a call that was answered long ago. */
static uint64_t add_before(struct rig *rig)
{
    return add(rig, &df_segment_slots(rig->own.segment)[9]);
}

static bool is_open(struct rig *rig, uint64_t handle)
{
    return df_segment_ofd(rig->own.segment, handle) != NULL;
}

static void send(struct rig *rig, uint64_t handle)
{
    atomic_store(&df_segment_ofd(rig->own.segment, handle)->sent, 1);
}

static bool is_pending(struct rig *rig)
{
    return atomic_load(&rig->own.segment->pending[0]) == 1 << 3;
}

static void a_client_is_new_until_it_was_told(void **state)
{
    struct rig *rig = *state;
    uint32_t client = df_files_client_new(rig->files);

    die(rig, DF_END_NONE);
    assert_true(df_files_client_is_new(rig->files, client));
    assert_false(df_files_client_is_new(rig->files, rig->client));
    assert_true(df_files_client_is_born(rig->files, rig->client));
    assert_true(df_files_client_born(rig->files, client));
    die(rig, DF_END_NONE);
    assert_false(df_files_client_is_new(rig->files, client));
    assert_true(df_files_client_is_born(rig->files, client));
}

/* ---- what came in ---------------------------------------------------------------------------- */

static void an_open_without_an_answer_is_asked_for_again(void **state)
{
    struct rig *rig = *state;
    struct df_slot *slot = slot_of(rig, DF_SLOT_RUNNING, DF_MESSAGE_open);
    uint64_t before = add_before(rig), handle = add(rig, slot);

    die(rig, DF_END_NONE);
    assert_false(is_open(rig, handle));
    assert_true(is_open(rig, before));
    assert_int_equal(state_of(slot), DF_SLOT_SUBMITTED);
    assert_true(is_pending(rig));
    atomic_store(&slot->word,
                 df_slot_word(rig->client, DF_SLOT_RUNNING)); /* and again, before it */
    handle = add(rig, slot);
    die(rig, DF_END_NONE);
    die(rig, DF_END_NONE);
    assert_false(is_open(rig, handle));
}

static void an_open_that_two_servers_crashed_at_leaves_no_file(void **state)
{
    struct rig *rig = *state;
    struct df_slot *slot = slot_of(rig, DF_SLOT_RUNNING, DF_MESSAGE_open);
    uint64_t handle = add(rig, slot);

    atomic_store(&slot->died, 1);
    die(rig, SIGSEGV);
    assert_false(is_open(rig, handle));
    assert_int_equal(state_of(slot), DF_SLOT_DONE);
    assert_int_equal(slot->message.result, -EIO);
}

static void an_open_that_nobody_waits_for_leaves_no_file(void **state)
{
    struct rig *rig = *state;
    struct df_slot *slot = slot_of(rig, DF_SLOT_ABANDONED, DF_MESSAGE_open);
    uint64_t handle = add(rig, slot);

    die(rig, DF_END_NONE);
    assert_false(is_open(rig, handle));
    assert_int_equal(state_of(slot), DF_SLOT_FREE);
}

static void an_answer_that_lies_there_holds(void **state)
{
    struct rig *rig = *state;
    struct df_slot *slot = slot_of(rig, DF_SLOT_DONE, DF_MESSAGE_open);
    uint64_t handle = add(rig, slot);

    die(rig, SIGSEGV);
    assert_true(is_open(rig, handle));
    assert_int_equal(state_of(slot), DF_SLOT_DONE);
    assert_int_equal(slot->message.result, 0);
}

static void a_child_that_nobody_knows_of_has_no_file(void **state)
{
    struct rig *rig = *state;
    uint64_t handle = add_before(rig);
    struct df_slot *slot = slot_of(rig, DF_SLOT_RUNNING, DF_MESSAGE_FORK);
    struct df_last_file last;

    assert_int_not_equal(df_files_client_fork(rig->files, rig->client, &slot->entered, 0), 0);
    atomic_store(&slot->died, 1);
    die(rig, SIGSEGV);
    assert_int_equal(state_of(slot), DF_SLOT_SUBMITTED); /* no plugin's crash is this call's */
    assert_int_equal(df_files_client_count(rig->files), 1);
    assert_true(is_open(rig, handle));
    assert_int_equal(df_files_drop(rig->files, rig->client, handle, &last), 0);
    assert_false(is_open(rig, handle));
}

static void an_adoption_that_nobody_waits_for_is_none(void **state)
{
    struct rig *rig = *state;
    uint64_t handle = add_before(rig);
    struct df_slot *slot = slot_of(rig, DF_SLOT_ABANDONED, DF_MESSAGE_ADOPT);

    slot->message.files[0] = handle;
    die(rig, DF_END_NONE);
    assert_false(is_open(rig, handle));
}

/* ---- what was let go of ---------------------------------------------------------------------- */

static void let_go(struct rig *rig, enum df_slot_state before, enum df_message_op op,
                   enum df_slot_state after)
{
    uint64_t handle = add_before(rig);
    struct df_slot *slot = slot_of(rig, before, op);

    slot->message.files[0] = handle;
    slot->message.args.flush.drop = true;
    slot->message.result = -EINPROGRESS;
    atomic_store(&slot->died, 1);
    die(rig, SIGSEGV);
    assert_false(is_open(rig, handle));
    assert_int_equal(state_of(slot), after);
    assert_true(after == DF_SLOT_FREE || slot->message.result == 0);
}

static void a_close_is_done(void **state)
{
    let_go(*state, DF_SLOT_RUNNING, DF_MESSAGE_DROP, DF_SLOT_DONE);
    let_go(*state, DF_SLOT_ABANDONED, DF_MESSAGE_DROP, DF_SLOT_FREE);
    let_go(*state, DF_SLOT_RUNNING, DF_MESSAGE_flush, DF_SLOT_DONE);
    let_go(*state, DF_SLOT_ABANDONED, DF_MESSAGE_flush, DF_SLOT_FREE);
}

static void a_flush_alone_closes_nothing(void **state)
{
    struct rig *rig = *state;
    uint64_t handle = add_before(rig);
    struct df_slot *slot = slot_of(rig, DF_SLOT_RUNNING, DF_MESSAGE_flush);

    slot->message.files[0] = handle;
    die(rig, SIGSEGV);
    assert_true(is_open(rig, handle));
    assert_int_equal(state_of(slot), DF_SLOT_SUBMITTED);
}

static void a_child_that_was_not_made_is_forgotten(void **state)
{
    struct rig *rig = *state;
    struct df_slot *slot = slot_of(rig, DF_SLOT_RUNNING, DF_MESSAGE_UNFORK);
    struct df_slot *other = &df_segment_slots(rig->own.segment)[9];

    slot->message.args.unfork.client =
        df_files_client_fork(rig->files, rig->client, &other->entered, 0);
    die(rig, DF_END_NONE);
    assert_int_equal(df_files_client_count(rig->files), 1);
    assert_int_equal(state_of(slot), DF_SLOT_DONE);
    assert_int_equal(slot->message.result, 0);
}

static void a_slot_of_a_client_that_was_being_buried_is_free(void **state)
{
    static const enum df_slot_state states[] = {
        DF_SLOT_CLAIMED,   DF_SLOT_SUBMITTED, DF_SLOT_RUNNING, DF_SLOT_DONE,
        DF_SLOT_ABANDONED, DF_SLOT_POSTED,    DF_SLOT_BEHIND,
    };
    struct rig *rig = *state;
    uint64_t *had;

    assert_true(df_files_client_gone(rig->files, rig->client, &had));
    for (unsigned i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
        struct df_slot *slot = slot_of(rig, states[i], DF_MESSAGE_getattr);

        die(rig, DF_END_NONE);
        assert_int_equal(state_of(slot), DF_SLOT_FREE);
    }
}

/* The close in the slot's neighbour, on either side of it; FREE: it is done. */
static void lie_behind(struct rig *rig, bool swap, enum df_slot_state first,
                       enum df_slot_state after)
{
    struct df_slot *slot = slot_of(rig, DF_SLOT_FREE, DF_MESSAGE_DROP);
    struct df_slot *next = df_slot_neighbour(rig->own.segment, slot);
    struct df_slot *close = swap ? next : slot, *question = swap ? slot : next;
    uint32_t word =
        first == DF_SLOT_FREE ? DF_SLOT_FREE : df_slot_word(rig->client, first) | DF_SLOT_FOLLOWED;

    close->message.op = DF_MESSAGE_DROP;
    question->message.op = DF_MESSAGE_getattr;
    atomic_store(&close->word, word);
    atomic_store(&question->word, df_slot_word(rig->client, DF_SLOT_BEHIND));
    atomic_store(&rig->own.segment->pending[0], 0);
    die(rig, DF_END_NONE);
    assert_int_equal(state_of(question), after);
    assert_int_equal(atomic_load(&close->word), first == DF_SLOT_POSTED ? word : DF_SLOT_FREE);
    assert_int_equal(
        atomic_load(&rig->own.segment->pending[0]),
        1 << ((first == DF_SLOT_POSTED ? close : question) - df_segment_slots(rig->own.segment)));
}

static void a_question_behind_a_close_is_begun_once_that_is_done(void **state)
{
    struct rig *rig = *state;

    for (int swap = 0; swap < 2; swap++) {
        lie_behind(rig, swap, DF_SLOT_POSTED, DF_SLOT_BEHIND);
        lie_behind(rig, swap, DF_SLOT_ABANDONED, DF_SLOT_SUBMITTED);
        lie_behind(rig, swap, DF_SLOT_FREE, DF_SLOT_SUBMITTED);
    }
}

/* So its end needs no thread: most programs close what they opened. */
static void who_has_closed_its_files_leaves_none(void **state)
{
    struct rig *rig = *state;
    uint64_t first = add_before(rig), second = add_before(rig), *had;
    struct df_last_file last;

    assert_int_equal(df_files_drop(rig->files, rig->client, first, &last), 0);
    assert_int_equal(df_files_drop(rig->files, rig->client, second, &last), 0);
    assert_true(df_files_client_gone(rig->files, rig->client, &had));
    assert_null(had);
    rig->client = df_files_client_new(rig->files); /* in the same place */
    first = add_before(rig);
    assert_true(df_files_client_gone(rig->files, rig->client, &had));
    assert_int_equal(had[df_handle_index(first) / 64], UINT64_C(1) << df_handle_index(first) % 64);
}

/* As where the system does not know MADV_REMOVE, which it refuses for private memory. */
static void a_place_is_empty_also_where_memory_is_not_given_back(void **state)
{
    struct rig *rig = *state;
    uint64_t (*sets)[DF_SET_WORDS] = rig->ledger->sets, handle, *had;

    assert_ptr_equal(mmap(sets, sizeof(rig->ledger->sets), PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0),
                     sets);
    handle = add_before(rig);
    assert_true(df_files_client_gone(rig->files, rig->client, &had));
    assert_int_not_equal(had[df_handle_index(handle) / 64], 0);
    df_files_free_set(rig->files, had);
    assert_int_equal(had[df_handle_index(handle) / 64], 0);
}

/* A server need not stay for it. */
static void who_only_keeps_files_is_not_counted(void **state)
{
    struct rig *rig = *state;
    _Atomic uint64_t announced;
    uint64_t handle = add_before(rig), *had;
    uint32_t keeper;

    send(rig, handle);
    keeper = df_files_client_leave(rig->files, rig->client, &announced);
    assert_int_not_equal(keeper, 0);
    assert_int_equal(df_files_client_count(rig->files), 1);
    assert_true(df_files_client_gone(rig->files, rig->client, &had));
    assert_int_equal(df_files_client_count(rig->files), 0);
    assert_true(is_open(rig, handle));
    assert_true(df_files_client_gone(rig->files, keeper, &had));
    assert_int_equal(df_files_client_count(rig->files), 0);
    assert_non_null(had);
}

/* Others are locked no longer than whoever has locked them is there. */
static void only_files_that_were_sent_are_kept(void **state)
{
    struct rig *rig = *state;
    _Atomic uint64_t announced;
    uint64_t sent = add_before(rig), other = add_before(rig), *had;
    uint32_t keeper;

    assert_int_equal(df_files_client_leave(rig->files, rig->client, &announced), 0);
    send(rig, sent);
    keeper = df_files_client_leave(rig->files, rig->client, &announced);
    assert_int_not_equal(keeper, 0);
    assert_true(df_files_client_gone(rig->files, keeper, &had));
    assert_int_equal(had[df_handle_index(sent) / 64], UINT64_C(1) << df_handle_index(sent) % 64);
    assert_int_not_equal(sent, other);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_client_is_new_until_it_was_told),
        TEST(an_open_without_an_answer_is_asked_for_again),
        TEST(an_open_that_two_servers_crashed_at_leaves_no_file),
        TEST(an_open_that_nobody_waits_for_leaves_no_file),
        TEST(an_answer_that_lies_there_holds),
        TEST(a_child_that_nobody_knows_of_has_no_file),
        TEST(an_adoption_that_nobody_waits_for_is_none),
        TEST(a_close_is_done),
        TEST(a_flush_alone_closes_nothing),
        TEST(a_child_that_was_not_made_is_forgotten),
        TEST(a_slot_of_a_client_that_was_being_buried_is_free),
        TEST(a_question_behind_a_close_is_begun_once_that_is_done),
        TEST(who_has_closed_its_files_leaves_none),
        TEST(a_place_is_empty_also_where_memory_is_not_given_back),
        TEST(who_only_keeps_files_is_not_counted),
        TEST(only_files_that_were_sent_are_kept),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
