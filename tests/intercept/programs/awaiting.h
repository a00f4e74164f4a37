/*
 * awaiting.h - what file systems tell each other's operations, and wait for.
 */
#ifndef AWAITING_H
#define AWAITING_H

#include <pthread.h>
#include <stdbool.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* protects all that is set */
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

static void set(bool *what, bool value)
{
    pthread_mutex_lock(&lock);
    *what = value;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

static void await(const bool *what)
{
    pthread_mutex_lock(&lock);
    while (!*what)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

#endif
