/*
 * path_hash.h - 128 bits from a path, fast: two chains of 64x64->128 bit multiplications, each with
 * words of its own of the seed.
 *
 * With a random seed that nobody outside the process sees, two different paths fall together with
 * probability near 2^-128; it is not meant to withstand someone who can read the seed.
 */
#ifndef DF_CORE_PATH_HASH_H
#define DF_CORE_PATH_HASH_H

#include <stddef.h>
#include <stdint.h>

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
        __builtin_memcpy(a, p, 8);
        __builtin_memcpy(b, p + n - 8, 8);
    } else if (n >= 4) {
        uint32_t first, last;
        __builtin_memcpy(&first, p, 4);
        __builtin_memcpy(&last, p + n - 4, 4);
        *a = first;
        *b = last;
    } else {
        *a = (uint64_t)(uint8_t)p[0] << 16 | (uint64_t)(uint8_t)p[n >> 1] << 8 | (uint8_t)p[n - 1];
        *b = 0;
    }
}

/* Two more words of what is hashed. */
static inline struct df_path_hash df_path_mix(const struct df_path_seed *seed,
                                              struct df_path_hash hash, uint64_t a, uint64_t b)
{
    return (struct df_path_hash){
        .low = df_path_fold(a ^ seed->word[2], b ^ hash.low),
        .high = df_path_fold(b ^ seed->word[3], a ^ hash.high),
    };
}

/* Bytes, len >= 1. What came before has to tell the length: the last bytes may come twice. */
static inline struct df_path_hash df_path_mix_bytes(const struct df_path_seed *seed,
                                                    struct df_path_hash hash, const char *bytes,
                                                    size_t len)
{
    uint64_t a, b;

    for (; len > 16; bytes += 16, len -= 16) {
        __builtin_memcpy(&a, bytes, 8);
        __builtin_memcpy(&b, bytes + 8, 8);
        hash = df_path_mix(seed, hash, a, b);
    }
    df_path_tail(bytes, len, &a, &b);
    return df_path_mix(seed, hash, a, b);
}

/* len >= 1: a path begins with '/'. */
static inline struct df_path_hash df_path_hash(const struct df_path_seed *seed, const char *path,
                                               size_t len)
{
    struct df_path_hash hash = {seed->word[0] ^ len, seed->word[1] + len};

    hash = df_path_mix_bytes(seed, hash, path, len);
    return (struct df_path_hash){
        .low = df_path_fold(hash.low ^ seed->word[1], seed->word[3] | 1),
        .high = df_path_fold(hash.high ^ seed->word[0], seed->word[2] | 1),
    };
}

static inline int df_path_hash_equal(struct df_path_hash a, struct df_path_hash b)
{
    return a.low == b.low && a.high == b.high;
}

#endif
