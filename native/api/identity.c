/*
 * identity.c - in whose name calls are made: df_umask, df_identity_refresh, df_identity_set.
 */
#include "directfuse.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "api/result.h"
#include "core/caller.h"
#include "core/gate.h"

/* A thread's own identity. Retired, not freed: it may be changed from inside an op, and the calls
 * around that one still point to it. */
struct own {
    struct df_retired retired;
    struct df_caller caller; /* groups point behind */
    gid_t groups[];
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key; /* the thread's struct own */
static int key_error;

static void free_retired(struct df_retired *retired)
{
    free(retired);
}

static void retire(struct own *own)
{
    if (own)
        df_gate_retire(&own->retired, free_retired);
}

static void end_thread(void *own)
{
    df_caller_set(NULL);
    retire(own);
}

static void make_key(void)
{
    key_error = pthread_key_create(&key, end_thread);
}

mode_t df_umask(mode_t mask)
{
    return df_caller_umask(mask);
}

int df_identity_refresh(void)
{
    return df_result(df_caller_refresh());
}

/* What the caller does not say (pid, owner of locks, size limit) stays the process's. */
static struct own *make_own(const struct df_identity *identity)
{
    size_t size = identity->group_count * sizeof(gid_t);
    struct own *own = malloc(sizeof(*own) + size);

    if (!own)
        return NULL;
    df_caller_copy_process(&own->caller);
    own->caller.uid = own->caller.real_uid = identity->uid;
    own->caller.gid = own->caller.real_gid = identity->gid;
    own->caller.umask = identity->umask & 0777;
    own->caller.capable = identity->privileged != 0;
    own->caller.group_count = (uint32_t)identity->group_count;
    own->caller.groups = own->groups;
    if (size > 0)
        memcpy(own->groups, identity->groups, size);
    return own;
}

static int set(const struct df_identity *identity)
{
    struct own *own = NULL, *old;
    int ret;

    pthread_once(&once, make_key);
    if (key_error != 0 || (ret = df_caller_ensure()) < 0)
        return -ENOMEM;
    if (identity && !(own = make_own(identity)))
        return -ENOMEM;
    old = pthread_getspecific(key);
    if (pthread_setspecific(key, own) != 0 || df_caller_set(own ? &own->caller : NULL) < 0) {
        pthread_setspecific(key, old);
        free(own);
        return -ENOMEM;
    }
    retire(old);
    return 0;
}

int df_identity_set(const struct df_identity *identity)
{
    return df_result(set(identity));
}
