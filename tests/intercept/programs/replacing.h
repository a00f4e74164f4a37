/*
 * replacing.h - a number that one thread uses while dup2(2) of another gives it now one file, now
 * another.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

enum { AT = 90, TIMES = 50000 };

static atomic_int done, met;

/* 0; `use` goes on until `done`, and says when it has `met` what it is about: beside other load it
 * may run late. */
static int replace(int here, int there, void *(*use)(void *))
{
    pthread_t thread;

    if (here < 0 || there < 0 || dup2(here, AT) < 0 || pthread_create(&thread, NULL, use, NULL))
        return -1;
    for (int i = 0; i < TIMES || !met; i++)
        if (dup2(i % 2 ? here : there, AT) != AT)
            return -1;
    done = 1;
    return pthread_join(thread, NULL);
}
