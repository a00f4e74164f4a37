/*
 * readers.c - threads that begin together and read(2) byte by byte, each from a pipe of its own.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define THREADS 4
#define BYTES   10000
#define VALUES  255

static pthread_barrier_t start;

static void *sum_up(void *pipe)
{
    unsigned char byte;
    unsigned long sum = 0;

    pthread_barrier_wait(&start);
    while (read(*(int *)pipe, &byte, 1) == 1)
        sum += byte;
    return (void *)sum;
}

static int filled_pipe(void)
{
    unsigned char bytes[BYTES];
    int ends[2];

    for (int i = 0; i < BYTES; i++)
        bytes[i] = (unsigned char)(i % VALUES + 1);
    if (pipe(ends) < 0 || write(ends[1], bytes, BYTES) != BYTES)
        abort();
    close(ends[1]);
    return ends[0];
}

int main(void)
{
    pthread_t threads[THREADS];
    int pipes[THREADS];
    unsigned long sum = 0;

    pthread_barrier_init(&start, NULL, THREADS);
    for (int i = 0; i < THREADS; i++) {
        pipes[i] = filled_pipe();
        pthread_create(&threads[i], NULL, sum_up, &pipes[i]);
    }
    for (int i = 0; i < THREADS; i++) {
        void *found;

        pthread_join(threads[i], &found);
        sum += (unsigned long)found;
    }
    printf("%d threads, %d bytes, sum %lu\n", THREADS, THREADS * BYTES, sum);
    return 0;
}
