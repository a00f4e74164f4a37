/*
 * fork.h - fork(2) while other threads call.
 */
#ifndef DF_CORE_FORK_H
#define DF_CORE_FORK_H

/* Registers the handlers; once, from the gate's initialisation. 0 or an error number. */
int df_fork_register(void);

/* Who has to tell others of a fork. `before`: no call is under way in another thread (those that do
 * not end in time excepted), and no lock of the core is held; then one of the other two, before
 * calls go on. */
struct df_fork_listener {
    void (*before)(void);
    void (*in_parent)(void);
    void (*in_child)(void);
    struct df_fork_listener *next; /* fork.c's */
};

/* It stays. */
void df_fork_listen(struct df_fork_listener *who);

#endif
