/*
 * test_link.c - a client whose server does what is rare, which is done here.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/time.h>

#include <cmocka.h>

#include "channel/link.h"
#include "segment/segment.h"

static struct df_own_segment own;
static struct df_link client;

static void ignore(int signal)
{
    (void)signal;
}

static int set_up(void **state)
{
    struct sigaction action = {.sa_handler = ignore};

    (void)state;
    sigaction(SIGUSR1, &action, NULL);
    sigaction(SIGALRM, &action, NULL);
    assert_int_equal(df_segment_create(&own, 0, 0), 0);
    memset(&client, 0, sizeof(client));
    assert_int_equal(df_link_init(&client, own.segment, own.segment->size), 0);
    client.client = 1;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    df_segment_free(&own);
    return 0;
}

static void *ask(void *unused)
{
    int error = 0;
    struct df_slot *slot = df_link_claim(&client, -1, &error);

    error = df_link_await(&client, slot, -1, df_link_ask(&client, slot));
    df_link_free(&client, slot);
    return error < 0 ? &client : unused;
}

/* Nobody has seen it before the answer; who sees it later would take it for the next question's. */
static void a_signal_goes_with_its_question(void **state)
{
    pthread_t thread;
    void *failed;

    (void)state;
    pthread_create(&thread, NULL, ask, NULL);
    while (atomic_load(&own.segment->signals[0]) == 0) {
        pthread_kill(thread, SIGUSR1);
        sched_yield();
    }
    atomic_store(&df_segment_slots(own.segment)[0].word, df_slot_word(1, DF_SLOT_DONE));
    pthread_join(thread, &failed);
    assert_null(failed);
    assert_int_equal(atomic_load(&own.segment->signals[0]), 0);
}

struct restarts {
    struct df_slot *slot;
    _Atomic bool over;
};

static void change(struct df_slot *slot, enum df_slot_state from, enum df_slot_state to)
{
    uint32_t word = df_slot_word(1, from);

    atomic_compare_exchange_strong(&slot->word, &word, df_slot_word(1, to));
}

/* As servers do that are started again and die, again and again. */
static void *restart_always(void *argument)
{
    struct restarts *restarts = argument;
    sigset_t alarm;

    sigemptyset(&alarm);
    sigaddset(&alarm, SIGALRM);
    pthread_sigmask(SIG_BLOCK, &alarm, NULL);
    while (!atomic_load(&restarts->over)) {
        change(restarts->slot, DF_SLOT_SUBMITTED, DF_SLOT_RUNNING);
        change(restarts->slot, DF_SLOT_RUNNING, DF_SLOT_SUBMITTED);
    }
    return NULL;
}

static void give_up(struct df_slot *slot)
{
    struct restarts restarts = {.slot = slot};
    struct df_asked asked = df_link_ask(&client, slot);
    pthread_t thread;

    pthread_create(&thread, NULL, restart_always, &restarts);
    assert_int_equal(df_link_await(&client, slot, 1, asked), -ETIMEDOUT);
    atomic_store(&restarts.over, true);
    pthread_join(thread, NULL);
}

static void end_sleeps_every(suseconds_t us)
{
    setitimer(ITIMER_REAL, &(struct itimerval){{0, us}, {0, us}}, NULL);
}

/* Else its answer would be for nobody, and its slot never free again. */
static void a_question_is_given_up_whatever_a_restart_makes_of_it(void **state)
{
    int error;

    (void)state;
    end_sleeps_every(1000);
    for (int i = 0; i < 500; i++) {
        struct df_slot *slot = df_link_claim(&client, -1, &error);
        uint32_t word;

        give_up(slot);
        word = atomic_load(&slot->word);
        assert_true(word == DF_SLOT_FREE || word == df_slot_word(1, DF_SLOT_ABANDONED));
        atomic_store(&slot->word, DF_SLOT_FREE);
    }
    end_sleeps_every(0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_signal_goes_with_its_question, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_question_is_given_up_whatever_a_restart_makes_of_it,
                                        set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
