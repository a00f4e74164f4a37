/*
 * numbers.c - the table of exchanged inode numbers: from the number that is made of a name to the
 * one it has now. See numbers.h.
 */
#include "paths/numbers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/path_hash.h"

/* A seed of their own, fixed. */
static const struct df_path_seed seed = {
    {0x9e3779b97f4a7c15, 0xd1b54a32d192ed03, 0x8cb92ba72f3d8dd7, 0xabc98388fb8fac03}};

struct df_number_slot {
    _Atomic uint64_t made; /* 0: free, with all behind it up to the next free one */
    _Atomic uint64_t number;
};

void df_numbers_destroy(struct df_numbers *numbers)
{
    free(atomic_load(&numbers->slots));
}

/* ---- looking ---- */

/* Both halves of the hash: one alone is the same for some names that differ. 0 means "none" to
 * readdir(3), 1 is the root. */
static ino_t make(ino_t directory, const char *name, size_t len)
{
    struct df_path_hash hash = df_path_hash(&seed, name, len);
    uint64_t number = df_path_fold(hash.low ^ directory, hash.high | 1);

    return number < 2 ? number + 2 : number;
}

/* The slot of a number that was made, or the free one where it would be. */
static struct df_number_slot *slot_of(struct df_number_slot *slots, uint64_t made, bool *found)
{
    for (uint64_t i = made;; i++) {
        struct df_number_slot *slot = &slots[i % DF_NUMBERS_SLOTS];
        uint64_t there = atomic_load_explicit(&slot->made, memory_order_acquire);
        *found = there == made;
        if (*found || there == 0)
            return slot;
    }
}

/* A slot that is another's when its number has been read was forgotten meanwhile. */
static ino_t number_of(const struct df_numbers *numbers, uint64_t made)
{
    struct df_number_slot *slots = atomic_load_explicit(&numbers->slots, memory_order_acquire);
    bool found;

    if (!slots)
        return made;
    struct df_number_slot *slot = slot_of(slots, made, &found);
    if (!found)
        return made;
    uint64_t number = atomic_load_explicit(&slot->number, memory_order_acquire);
    return atomic_load_explicit(&slot->made, memory_order_relaxed) == made ? number : made;
}

ino_t df_number_below(const struct df_numbers *numbers, ino_t directory, const char *name,
                      size_t len)
{
    return number_of(numbers, make(directory, name, len));
}

/* The number of the directory that a path is in; the last component is left over. */
static ino_t number_of_parent(const struct df_numbers *numbers, const char *path, uint32_t len,
                              const char **name, size_t *name_len)
{
    const char *end = path + len, *at = path + 1, *slash;
    ino_t number = DF_NUMBER_ROOT;

    while ((slash = memchr(at, '/', (size_t)(end - at)))) {
        number = df_number_below(numbers, number, at, (size_t)(slash - at));
        at = slash + 1;
    }
    *name = at;
    *name_len = (size_t)(end - at);
    return number;
}

ino_t df_number_of(const struct df_numbers *numbers, const char *path, uint32_t len)
{
    const char *name;
    size_t name_len;

    ino_t parent = number_of_parent(numbers, path, len, &name, &name_len);
    return name_len ? df_number_below(numbers, parent, name, name_len) : parent;
}

/* ---- exchanging ---- */

int df_numbers_reserve(struct df_numbers *numbers)
{
    if (!atomic_load_explicit(&numbers->slots, memory_order_relaxed)) {
        struct df_number_slot *slots = calloc(DF_NUMBERS_SLOTS, sizeof(struct df_number_slot));
        if (!slots)
            return -ENOMEM;
        atomic_store_explicit(&numbers->slots, slots, memory_order_release);
    }
    return numbers->used + 2 > DF_NUMBERS_MAX ? -ENOSPC : 0;
}

static uint64_t make_of(const struct df_numbers *numbers, const char *path, uint32_t len)
{
    const char *name;
    size_t name_len;

    ino_t parent = number_of_parent(numbers, path, len, &name, &name_len);
    return make(parent, name, name_len);
}

static void set(struct df_numbers *numbers, uint64_t made, uint64_t number)
{
    bool found;
    struct df_number_slot *slot = slot_of(atomic_load(&numbers->slots), made, &found);

    atomic_store_explicit(&slot->number, number, memory_order_release);
    if (found)
        return;
    atomic_store_explicit(&slot->made, made, memory_order_release);
    numbers->used++;
}

void df_numbers_exchange(struct df_numbers *numbers, const char *a, uint32_t a_len, const char *b,
                         uint32_t b_len)
{
    uint64_t made_a = make_of(numbers, a, a_len), made_b = make_of(numbers, b, b_len);
    uint64_t number_a = number_of(numbers, made_a), number_b = number_of(numbers, made_b);

    set(numbers, made_a, number_b);
    set(numbers, made_b, number_a);
}

void df_numbers_forget(struct df_numbers *numbers)
{
    struct df_number_slot *slots = atomic_load(&numbers->slots);

    for (uint32_t i = 0; slots && i < DF_NUMBERS_SLOTS; i++)
        atomic_store_explicit(&slots[i].made, 0, memory_order_release);
    numbers->used = 0;
}
