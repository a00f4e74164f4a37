/*
 * numbers.h - inode numbers where a plugin gives none (without use_ino).
 *
 * libfuse shows the id of a name's node, which rename_node() keeps. There are no nodes here: a
 * number is made from the number of the directory and the name, the same in every mount. A rename
 * exchanges the numbers of its two names, so the file and all below it keep theirs, and no two
 * names ever show the same one.
 *
 * What was exchanged is kept in a table of fixed size. When that is full all of it is forgotten,
 * as libfuse forgets the nodes that the kernel has no use for.
 *
 * Looked at without a lock. Written by one thread at a time (open_paths.h: rename_lock).
 */
#ifndef DF_PATHS_NUMBERS_H
#define DF_PATHS_NUMBERS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define DF_NUMBERS_SLOTS (1u << 14) /* of 16 bytes; memory is taken with the first exchange */
#define DF_NUMBERS_MAX   (DF_NUMBERS_SLOTS / 4 * 3)
#define DF_NUMBER_ROOT   1 /* FUSE_ROOT_ID */

/* All zeros: nothing was exchanged. */
struct df_numbers {
    _Atomic(struct df_number_slot *) slots; /* NULL at first */
    uint32_t used;
};

void df_numbers_destroy(struct df_numbers *numbers);

/* The number of a name in the directory that has the number `directory`. len >= 1 */
ino_t df_number_below(const struct df_numbers *numbers, ino_t directory, const char *name,
                      size_t len);

/* The number of a path that begins with '/'. */
ino_t df_number_of(const struct df_numbers *numbers, const char *path, uint32_t len);

/* Makes sure of room for one exchange: 0; -ENOMEM; or -ENOSPC: df_numbers_forget() makes some. */
int df_numbers_reserve(struct df_numbers *numbers);

/* After that: the paths exchange their numbers. Neither is the root or below the other. */
void df_numbers_exchange(struct df_numbers *numbers, const char *a, uint32_t a_len, const char *b,
                         uint32_t b_len);

/* Every path has the number that is made from it. */
void df_numbers_forget(struct df_numbers *numbers);

#endif
