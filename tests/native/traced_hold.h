/*
 * traced_hold.h - requests that wait until the test lets them go. Part of traced.c.
 */
#ifndef TRACED_HOLD_H
#define TRACED_HOLD_H

/* Under the lock. NULL: a free one. */
static struct traced_hold *hold_of(struct traced *t, const char *request)
{
    for (int i = 0; i < 4; i++) {
        const char *held = t->holds[i].request;

        if (request && held ? strcmp(held, request) == 0 : request == held)
            return &t->holds[i];
    }
    return NULL;
}

/* Under the lock, which is released meanwhile. */
static void wait_if_held(struct traced *t, const char *request)
{
    struct traced_hold *hold = hold_of(t, request);

    if (!hold || hold->held)
        return;
    hold->held = true;
    pthread_cond_broadcast(&t->asked);
    while (hold->held)
        pthread_cond_wait(&t->asked, &t->lock);
}

void traced_hold(struct traced *t, const char *request)
{
    pthread_mutex_lock(&t->lock);
    hold_of(t, NULL)->request = request;
    pthread_mutex_unlock(&t->lock);
}

void traced_await_held(struct traced *t, const char *request)
{
    pthread_mutex_lock(&t->lock);
    while (!hold_of(t, request)->held)
        pthread_cond_wait(&t->asked, &t->lock);
    pthread_mutex_unlock(&t->lock);
}

void traced_let_go(struct traced *t, const char *request)
{
    struct traced_hold *hold;

    pthread_mutex_lock(&t->lock);
    hold = hold_of(t, request);
    hold->request = ""; /* not free: who waits may not have seen it yet */
    hold->held = false;
    pthread_cond_broadcast(&t->asked);
    pthread_mutex_unlock(&t->lock);
}

#endif
