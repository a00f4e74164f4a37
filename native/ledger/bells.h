/*
 * bells.h - descriptors by which the server wakes clients that wait in the kernel: for files of
 * mounts to become ready, among whatever else they wait for.
 *
 * A client makes the descriptor and a number for it, its *token*, sends both by its control socket
 * (join.h), and names the token when it asks whether files are ready. Whichever comes first makes
 * the bell. There are two kinds:
 *   DF_BELL_OF_CALL    the writing end of a pipe: of a poll(2) or select(2). It ends with the
 *                      client's end, and the client sees ours end.
 *   DF_BELL_OF_EPOLL   an eventfd(2) that nobody else has: an epoll instance watches it. It ends
 *                      when we say so, and goes from that instance then.
 *
 * A ring is one: who has heard it asks for all files anew, with new wakes. So a bell has rounds,
 * and wakes of former ones mean nothing.
 */
#ifndef DF_LEDGER_BELLS_H
#define DF_LEDGER_BELLS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct df_bell;
struct df_wake;

#define DF_BELL_CHAINS 64 /* a power of two */

struct df_bells {
    pthread_cond_t hung;  /* a descriptor has come */
    pthread_mutex_t lock; /* protects all bells. Held for a system call that does not wait */
    struct df_bell *chains[DF_BELL_CHAINS]; /* by token */
};

void df_bells_init(struct df_bells *bells);

/* A wake that rings the bell of that token. `always`: as in core/wake.h. NULL: no memory. */
struct df_wake *df_bell_wake(struct df_bells *bells, uint64_t token, bool always);

/* The descriptor has come; it is ours to close. False: it is closed, for there is such a bell, no
 * memory, or nobody has asked for it, though it was to be `asked` for. */
bool df_bell_hang(struct df_bells *bells, uint64_t token, int fd, bool asked);

/* Waits for it, for a second at most. False: it has not come. */
bool df_bell_await(struct df_bells *bells, uint64_t token);

void df_bell_ring(struct df_bells *bells, uint64_t token);
void df_bells_ring(struct df_bells *bells); /* all */

/* Whether it was rung since it was heard last; it is silent now. */
bool df_bell_hear(struct df_bells *bells, uint64_t token);

/* Nobody listens any more. */
void df_bell_end(struct df_bells *bells, uint64_t token);

#endif
