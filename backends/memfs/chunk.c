/*
 * chunk.c - one stretch of a file's data: its memory, and which pages of it mean something.
 *
 * A page (PAGE bytes) is in one of three states: a hole; charged (fallocate has paid for it, it
 * still reads as zeroes); filled, and then charged too. Only filled pages have contents in `mem`:
 * the rest of it is undefined, so memory needs no zeroing before it is overwritten. A chunk may
 * have less memory than one page; what lies behind its memory reads as zeroes.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "store.h"

enum {
    LEAST = 64,         /* bytes of the smallest chunk */
    FITTING = 1 << 20,  /* most bytes from malloc */
    WORTHWHILE = 65536, /* bytes of malloc'ed memory that are worth a system call to give back */
};

/* ---- maps of pages ---------------------------------------------------------------------- */

static inline uint64_t *filled_map(struct chunk *chunk)
{
    return chunk->maps;
}

static inline uint64_t *charged_map(struct chunk *chunk)
{
    return chunk->maps + chunk->words;
}

static inline bool is_filled(const struct chunk *chunk, uint32_t page)
{
    return page < chunk->words * 64u && (chunk->maps[page / 64] >> page % 64 & 1);
}

/* The bits of word `word` that belong to pages from `first` up to, not including, `end`. */
static inline uint64_t word_mask(uint32_t word, uint32_t first, uint32_t end)
{
    uint64_t mask = ~UINT64_C(0);
    if (first > word * 64)
        mask <<= first - word * 64;
    if (end < word * 64 + 64)
        mask &= (UINT64_C(1) << (end - word * 64)) - 1;
    return mask;
}

static inline uint32_t last_word(const struct chunk *chunk, uint32_t end)
{
    uint32_t words = (end + 63) / 64;
    return words < chunk->words ? words : chunk->words;
}

static uint32_t count_bits(const struct chunk *chunk, const uint64_t *map, uint32_t first,
                           uint32_t end)
{
    uint32_t count = 0;
    for (uint32_t word = first / 64; word < last_word(chunk, end); word++)
        count += (uint32_t)__builtin_popcountll(map[word] & word_mask(word, first, end));
    return count;
}

static void set_bits(const struct chunk *chunk, uint64_t *map, uint32_t first, uint32_t end)
{
    for (uint32_t word = first / 64; word < last_word(chunk, end); word++)
        map[word] |= word_mask(word, first, end);
}

static void clear_bits(const struct chunk *chunk, uint64_t *map, uint32_t first, uint32_t end)
{
    for (uint32_t word = first / 64; word < last_word(chunk, end); word++)
        map[word] &= ~word_mask(word, first, end);
}

/* The first page from `first` to `end` that is not (filled). */
static uint32_t run_end(const struct chunk *chunk, uint32_t first, uint32_t end, bool filled)
{
    for (uint32_t word = first / 64; word < last_word(chunk, end); word++) {
        uint64_t other = (filled ? ~chunk->maps[word] : chunk->maps[word]);
        other &= word_mask(word, first, end);
        if (other)
            return word * 64 + (uint32_t)__builtin_ctzll(other);
    }
    uint32_t known = chunk->words * 64u;
    return filled && known < end ? known : end;
}

/* ---- memory ----------------------------------------------------------------------------- */

static uint32_t fitting_cap(uint32_t end)
{
    return end <= LEAST ? LEAST : UINT32_C(1) << (32 - __builtin_clz(end - 1));
}

static void free_mem(struct store *store, struct chunk *chunk)
{
    if (chunk->kind == CHUNK_FITTING)
        free(chunk->mem);
    else if (chunk->kind == CHUNK_LENT)
        lend_give(chunk->mem);
    else
        pool_give(&store->pools[chunk->kind - CHUNK_WHOLE], chunk->mem);
}

/* The chunk with maps of `words`; the old one is gone. NULL: no memory. */
static struct chunk *grow_maps(struct chunk *chunk, uint8_t words)
{
    struct chunk *grown = calloc(1, sizeof(*grown) + 2 * words * sizeof(uint64_t));
    if (!grown || !chunk) {
        if (grown)
            grown->words = words;
        return grown;
    }
    *grown = *chunk;
    grown->words = words;
    memcpy(filled_map(grown), filled_map(chunk), chunk->words * sizeof(uint64_t));
    memcpy(charged_map(grown), charged_map(chunk), chunk->words * sizeof(uint64_t));
    free(chunk);
    return grown;
}

/* Copies what is data, so that holes do not become resident; `cap` bytes at most. */
static void copy_data(unsigned char *to, const struct chunk *chunk, uint32_t cap)
{
    uint32_t end = cap < chunk->cap ? cap : chunk->cap;
    bool data;

    for (uint32_t off = 0, run; off < end; off += run) {
        run = chunk_run(chunk, off, end - off, &data);
        if (data)
            memcpy(to + off, chunk->mem + off, run);
    }
}

/* A page that was cut short by the end of memory gets its zeroes. */
static void complete_page(unsigned char *mem, uint32_t cap, const struct chunk *chunk)
{
    if (chunk->cap < PAGE && is_filled(chunk, 0))
        memset(mem + chunk->cap, 0, (cap < PAGE ? cap : PAGE) - chunk->cap);
}

/* The data go to other memory, of which they take `cap` bytes at most. */
static void move(struct store *store, struct chunk *chunk, unsigned char *mem, uint32_t cap,
                 enum chunk_kind kind)
{
    if (chunk->mem) {
        copy_data(mem, chunk, cap);
        complete_page(mem, cap, chunk);
        free_mem(store, chunk);
    }
    chunk->mem = mem;
    chunk->cap = cap;
    chunk->kind = (uint8_t)kind;
}

/* False: no memory. */
static bool grow_fitting(struct store *store, struct chunk *chunk, uint32_t cap)
{
    bool here = chunk->kind == CHUNK_FITTING;
    unsigned char *mem = here ? realloc(chunk->mem, cap) : malloc(cap);

    if (!mem)
        return false;
    if (!here) {
        move(store, chunk, mem, cap, CHUNK_FITTING);
        return true;
    }
    complete_page(mem, cap, chunk);
    chunk->mem = mem;
    chunk->cap = cap;
    return true;
}

static bool grow_whole(struct store *store, struct chunk *chunk, enum chunk_kind kind)
{
    unsigned char *mem = pool_take(&store->pools[kind - CHUNK_WHOLE]);

    if (mem)
        move(store, chunk, mem, CHUNK, kind);
    return mem != NULL;
}

/* False: there is none to be had, or it would be less than a page. */
static bool resize_lent(struct store *store, struct chunk *chunk, uint32_t cap)
{
    unsigned char *mem = cap < PAGE ? NULL : lend_take(cap);

    if (mem)
        move(store, chunk, mem, cap, CHUNK_LENT);
    return mem != NULL;
}

struct chunk *chunk_grow(struct store *store, struct chunk *chunk, uint32_t end,
                         enum chunk_kind kind)
{
    bool is_new = !chunk;
    if (kind == CHUNK_FITTING && end > FITTING)
        kind = CHUNK_WHOLE;
    uint32_t cap = kind == CHUNK_FITTING ? fitting_cap(end) : CHUNK;
    uint8_t words = cap <= 64 * PAGE ? 1 : CHUNK_PAGES / 64;

    struct chunk *grown = chunk && chunk->words >= words ? chunk : grow_maps(chunk, words);
    if (!grown)
        return NULL;
    if (resize_lent(store, grown, cap) ||
        (kind == CHUNK_FITTING ? grow_fitting(store, grown, cap) : grow_whole(store, grown, kind)))
        return grown;
    if (is_new) {
        free(grown);
        return NULL;
    }
    return grown;
}

void chunk_trim(struct store *store, struct chunk *chunk, uint32_t end)
{
    uint32_t cap = fitting_cap(end);
    if (chunk->kind == CHUNK_LENT && cap < PAGE)
        cap = PAGE;
    if (cap > chunk->cap / 2)
        return;
    if (chunk->kind == CHUNK_LENT)
        resize_lent(store, chunk, cap);
    if (chunk->kind != CHUNK_FITTING)
        return;
    unsigned char *mem = realloc(chunk->mem, cap);
    if (mem)
        chunk->mem = mem;
    chunk->cap = cap;
}

void chunk_free(struct store *store, struct chunk *chunk)
{
    free_mem(store, chunk);
    free(chunk);
}

/* Gives the memory of whole pages back to the system where that is possible and worthwhile. */
static void release(const struct chunk *chunk, uint32_t off, uint32_t end)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    if (end > chunk->cap)
        end = chunk->cap;
    if (off >= end || chunk->kind == CHUNK_LENT ||
        (chunk->kind == CHUNK_FITTING && end - off < WORTHWHILE))
        return;
    uintptr_t from = ((uintptr_t)chunk->mem + off + page - 1) & -page;
    uintptr_t to = ((uintptr_t)chunk->mem + end) & -page;
    if (from < to)
        madvise((void *)from, to - from, MADV_DONTNEED);
}

/* ---- contents --------------------------------------------------------------------------- */

uint32_t chunk_run(const struct chunk *chunk, uint32_t off, uint32_t len, bool *data)
{
    uint32_t end = off + len;

    *data = off < chunk->cap && is_filled(chunk, off / PAGE);
    if (off >= chunk->cap)
        return len;
    uint32_t run = run_end(chunk, off / PAGE, (end + PAGE - 1) / PAGE, *data) * PAGE;
    if (*data && run > chunk->cap)
        run = chunk->cap;
    return (run < end ? run : end) - off;
}

uint32_t chunk_uncharged(const struct chunk *chunk, uint32_t off, uint32_t len)
{
    uint32_t first = off / PAGE, end = (off + len + PAGE - 1) / PAGE;
    return end - first - count_bits(chunk, chunk->maps + chunk->words, first, end);
}

void chunk_charge(struct chunk *chunk, uint32_t off, uint32_t len)
{
    chunk->charged += (uint16_t)chunk_uncharged(chunk, off, len);
    set_bits(chunk, charged_map(chunk), off / PAGE, (off + len + PAGE - 1) / PAGE);
}

void chunk_filled(struct chunk *chunk, uint32_t off, uint32_t len)
{
    uint32_t first = off / PAGE, end = (off + len + PAGE - 1) / PAGE;
    uint32_t mem_end = end * PAGE < chunk->cap ? end * PAGE : chunk->cap;

    if (!is_filled(chunk, first))
        memset(chunk->mem + first * PAGE, 0, off - first * PAGE);
    if (!is_filled(chunk, end - 1))
        memset(chunk->mem + off + len, 0, mem_end - off - len);
    set_bits(chunk, filled_map(chunk), first, end);
}

/* Zeroes a part of one page. */
static void zero(struct chunk *chunk, uint32_t off, uint32_t end)
{
    if (end > chunk->cap)
        end = chunk->cap;
    if (off < end && is_filled(chunk, off / PAGE))
        memset(chunk->mem + off, 0, end - off);
}

uint32_t chunk_punch(struct chunk *chunk, uint32_t off, uint32_t len)
{
    uint32_t end = off + len;
    uint32_t first = (off + PAGE - 1) / PAGE, last = end / PAGE;

    if (first > last) { /* inside one page */
        zero(chunk, off, end);
        return 0;
    }
    zero(chunk, off, first * PAGE);
    zero(chunk, last * PAGE, end);

    bool filled = count_bits(chunk, filled_map(chunk), first, last) > 0;
    uint32_t freed = count_bits(chunk, charged_map(chunk), first, last);
    clear_bits(chunk, filled_map(chunk), first, last);
    clear_bits(chunk, charged_map(chunk), first, last);
    chunk->charged -= (uint16_t)freed;
    if (filled && chunk->charged) /* else the caller frees all of it */
        release(chunk, first * PAGE, last * PAGE);
    return freed;
}

bool chunk_is_full(const struct chunk *chunk)
{
    return chunk->charged == CHUNK_PAGES &&
           count_bits(chunk, chunk->maps, 0, CHUNK_PAGES) == CHUNK_PAGES;
}
