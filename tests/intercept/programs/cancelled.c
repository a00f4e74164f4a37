/* Threads that are cancelled at any moment of a call end, also where the call waits for ever. */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define ROUNDS 2000

static int full[2], empty[2];
static volatile int begun;

/* Short reads, and now and then one that does not return. */
static void *reads(void *argument)
{
    int left = *(int *)argument;
    char byte;

    begun = 1;
    for (;;) {
        int end = left-- > 0 ? full[0] : empty[0];
        if (read(end, &byte, 1) == 1)
            (void)!write(full[1], &byte, 1);
    }
    return NULL;
}

int main(void)
{
    int cancelled = 0;

    if (pipe(full) != 0 || pipe(empty) != 0)
        return 2;
    for (int i = 0; i < 100; i++)
        (void)!write(full[1], "x", 1);
    srand(1);
    for (int i = 0; i < ROUNDS; i++) {
        int calls = rand() % 8, wait = rand() % 4000;
        pthread_t thread;
        void *result;

        begun = 0;
        if (pthread_create(&thread, NULL, reads, &calls) != 0)
            return 2;
        while (!begun)
            sched_yield();
        for (volatile int spin = 0; spin < wait; spin++)
            ;
        pthread_cancel(thread);
        pthread_join(thread, &result);
        cancelled += result == PTHREAD_CANCELED;
    }
    printf("%d of %d\n", cancelled, ROUNDS);
    return 0;
}
