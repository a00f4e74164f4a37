/*
 * fork.c - what happens around fork(2), so that the child finds whole data: no call in flight on
 * another thread (those that do not end in time excepted), every lock of the core free.
 *
 * A call that sits in a plugin for longer than PATIENCE_NS does not hold up the fork. In the child
 * that thread does not exist; files it was using stay open there, and what its plugin was changing
 * is as it was. docs/compat.md says so.
 */
#include "core/fork.h"

#include <pthread.h>

#include "core/caller.h"
#include "core/fd.h"
#include "core/file.h"
#include "core/gate.h"
#include "core/lock.h"
#include "core/map.h"
#include "core/mount.h"

#define PATIENCE_NS 200000000

static pthread_mutex_t fork_lock = PTHREAD_MUTEX_INITIALIZER; /* one fork at a time */

/* Each from before there is anything to tell it; under fork_lock. */
static struct df_fork_listener *listeners;

void df_fork_listen(struct df_fork_listener *who)
{
    pthread_mutex_lock(&fork_lock);
    who->next = listeners;
    listeners = who;
    pthread_mutex_unlock(&fork_lock);
}

/* The order is that in gate.h. */
static void before(void)
{
    pthread_mutex_lock(&fork_lock);
    df_gate_close(PATIENCE_NS);
    for (struct df_fork_listener *at = listeners; at; at = at->next)
        at->before();
    df_mount_lock();
    df_lock_lock_all();
    df_map_lock();
    df_fd_lock();
    df_file_lock();
    df_caller_lock();
    df_gate_lock();
}

static void unlock_all(void)
{
    df_gate_unlock();
    df_caller_unlock();
    df_file_unlock();
    df_fd_unlock();
    df_map_unlock();
    df_lock_unlock_all();
    df_mount_unlock();
}

static void in_parent(void)
{
    unlock_all();
    for (struct df_fork_listener *at = listeners; at; at = at->next)
        at->in_parent();
    df_gate_open();
    pthread_mutex_unlock(&fork_lock);
}

static void in_child(void)
{
    unlock_all();
    df_file_after_fork();
    df_gate_forget_others();
    df_caller_after_fork();
    df_mount_after_fork();
    df_map_after_fork();
    for (struct df_fork_listener *at = listeners; at; at = at->next)
        at->in_child();
    df_gate_open();
    pthread_mutex_unlock(&fork_lock);
}

int df_fork_register(void)
{
    return pthread_atfork(before, in_parent, in_child);
}
