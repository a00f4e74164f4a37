/*
 * path_hash.h - 128 bits from a path, fast: two chains of 64x64->128 bit multiplications, each with
 * words of its own of the seed.
 *
 * With a random seed that nobody outside the process sees, two different paths fall together with
 * probability near 2^-128; it is not meant to withstand someone who can read the seed.
 */
#ifndef DF_HOST_PATH_HASH_H
#define DF_HOST_PATH_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct df_path_seed {
    uint64_t word[4]; /* any odd or even values, not all equal */
};

struct df_path_hash {
    uint64_t low, high;
};

static inline uint64_t df_path_fold(uint64_t a, uint64_t b)
{
    unsigned __int128 product = (unsigned __int128)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* The bytes p[0..n), 1 <= n <= 16, as two words. Never reads outside of them. */
static inline void df_path_tail(const char *p, size_t n, uint64_t *a, uint64_t *b)
{
    if (n >= 8) {
        memcpy(a, p, 8);
        memcpy(b, p + n - 8, 8);
    } else if (n >= 4) {
        uint32_t first, last;
        memcpy(&first, p, 4);
        memcpy(&last, p + n - 4, 4);
        *a = first;
        *b = last;
    } else {
        *a = (uint64_t)(uint8_t)p[0] << 16 | (uint64_t)(uint8_t)p[n >> 1] << 8 | (uint8_t)p[n - 1];
        *b = 0;
    }
}

/* len >= 1: a path begins with '/'. */
static inline struct df_path_hash df_path_hash(const struct df_path_seed *seed, const char *path,
                                               size_t len)
{
    uint64_t low = seed->word[0] ^ len, high = seed->word[1] + len;
    uint64_t a, b;

    while (len > 16) {
        memcpy(&a, path, 8);
        memcpy(&b, path + 8, 8);
        low = df_path_fold(a ^ seed->word[2], b ^ low);
        high = df_path_fold(b ^ seed->word[3], a ^ high);
        path += 16;
        len -= 16;
    }
    df_path_tail(path, len, &a, &b);
    low = df_path_fold(a ^ seed->word[2], b ^ low);
    high = df_path_fold(b ^ seed->word[3], a ^ high);
    return (struct df_path_hash){
        .low = df_path_fold(low ^ seed->word[1], seed->word[3] | 1),
        .high = df_path_fold(high ^ seed->word[0], seed->word[2] | 1),
    };
}

static inline int df_path_hash_equal(struct df_path_hash a, struct df_path_hash b)
{
    return a.low == b.low && a.high == b.high;
}

#endif
