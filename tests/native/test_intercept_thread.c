/*
 * test_intercept_thread.c - the list of threads is whole at any moment for who goes through it
 * without its lock, as gs.c does.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "intercept/offsets.h"

#define ROUNDS 500000

/* The core's headers are for code without a libc: what of them is needed here. */
struct dfi_thread;
struct dfi_process;
struct dfi_files;
struct dfi_lock;
extern struct dfi_thread *dfi_threads;
struct dfi_thread *dfi_thread_new(struct dfi_process *process);
void dfi_thread_free(struct dfi_thread *thread);

/* ---- what thread.c needs of its room --------------------------------------------------------- */

bool dfi_filtered;
void dfi_lock(struct dfi_lock *lock);
void dfi_unlock(struct dfi_lock *lock);
void dfi_lock_begin(void);
void *dfi_alloc(size_t size);
void dfi_free(void *memory);
void dfi_counts_give(struct dfi_thread *self);
struct dfi_files *dfi_files_copy(struct dfi_files *files);
void dfi_files_free(struct dfi_files *files);
_Noreturn void dfi_thread_exit(long status, int *state);
long dfi_unfiltered(long nr, unsigned long a, unsigned long b, unsigned long c, unsigned long d,
                    unsigned long e);

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

void dfi_lock(struct dfi_lock *lock)
{
    (void)lock;
    pthread_mutex_lock(&mutex);
}

void dfi_unlock(struct dfi_lock *lock)
{
    (void)lock;
    pthread_mutex_unlock(&mutex);
}

void dfi_lock_begin(void)
{
}

void *dfi_alloc(size_t size)
{
    return calloc(1, size);
}

void dfi_free(void *memory)
{
    free(memory);
}

void dfi_counts_give(struct dfi_thread *self)
{
    (void)self;
}

struct dfi_files *dfi_files_copy(struct dfi_files *files)
{
    return files;
}

void dfi_files_free(struct dfi_files *files)
{
    (void)files;
}

_Noreturn void dfi_thread_exit(long status, int *state)
{
    (void)state;
    exit((int)status);
}

long dfi_unfiltered(long nr, unsigned long a, unsigned long b, unsigned long c, unsigned long d,
                    unsigned long e)
{
    (void)nr, (void)a, (void)b, (void)c, (void)d, (void)e;
    return 0;
}

/* ---- the test -------------------------------------------------------------------------------- */

static _Atomic bool over;

/* In the memory of the one before. */
static void *make_threads(void *argument)
{
    (void)argument;
    for (int i = 0; i < ROUNDS; i++)
        dfi_thread_free(dfi_thread_new(NULL));
    atomic_store(&over, true);
    return NULL;
}

static struct dfi_thread *behind(struct dfi_thread *thread)
{
    return __atomic_load_n((struct dfi_thread **)((char *)thread + T_NEXT), __ATOMIC_ACQUIRE);
}

static bool finds(const struct dfi_thread *wanted)
{
    struct dfi_thread *at = __atomic_load_n(&dfi_threads, __ATOMIC_ACQUIRE);

    while (at != NULL && at != wanted)
        at = behind(at);
    return at != NULL;
}

static void the_first_is_found_while_others_are_made(void **state)
{
    (void)state;
    struct dfi_thread *first = dfi_thread_new(NULL);
    pthread_t maker;

    assert_int_equal(pthread_create(&maker, NULL, make_threads, NULL), 0);
    while (!atomic_load(&over))
        assert_true(finds(first));
    pthread_join(maker, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_is_found_while_others_are_made),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
