/*
 * mem.c - the four functions of memory that a compiler may call even where there is no libc.
 */
#include "intercept/mem.h"

#include <stdbool.h>

#define WORDS_MAX 256 /* bytes: below that a string instruction's beginning costs more */

typedef uint64_t word __attribute__((may_alias, aligned(1)));
typedef uint32_t half __attribute__((may_alias, aligned(1)));

void *memcpy(void *restrict to, const void *restrict from, size_t size)
{
    void *start = to;
    if (size <= WORDS_MAX) {
        const unsigned char *source = from;
        unsigned char *target = to;
        for (; size >= sizeof(word); size -= sizeof(word)) {
            *(word *)target = *(const word *)source;
            __asm__ volatile("" : : : "memory"); /* in this order: memmove() relies on it */
            target += sizeof(word);
            source += sizeof(word);
        }
        for (; size > 0; size--)
            *target++ = *source++;
        return start;
    }
    __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(size) : : "memory");
    return start;
}

void *memmove(void *to, const void *from, size_t size)
{
    if ((uintptr_t)to - (uintptr_t)from >= size)
        return memcpy(to, from, size);
    unsigned char *end = (unsigned char *)to + size;
    const unsigned char *source = (const unsigned char *)from + size;
    while (size-- > 0)
        *--end = *--source;
    return to;
}

void *memset(void *to, int byte, size_t size)
{
    void *start = to;
    __asm__ volatile("rep stosb" : "+D"(to), "+c"(size) : "a"(byte) : "memory");
    return start;
}

static inline bool same_word(const unsigned char *a, const unsigned char *b, size_t at)
{
    return *(const word *)(a + at) == *(const word *)(b + at);
}

static inline bool same_half(const unsigned char *a, const unsigned char *b, size_t at)
{
    return *(const half *)(a + at) == *(const half *)(b + at);
}

/* By words, of which the last may begin in what was compared before it. */
int memcmp(const void *left, const void *right, size_t size)
{
    const unsigned char *a = left, *b = right;
    size_t i = 0;
    while (size - i > sizeof(word) && same_word(a, b, i))
        i += sizeof(word);
    if (size - i <= sizeof(word) && size >= sizeof(word) && same_word(a, b, size - sizeof(word)))
        return 0;
    if (size < sizeof(word) && size >= sizeof(half) && same_half(a, b, 0) &&
        same_half(a, b, size - sizeof(half)))
        return 0;
    for (; i < size; i++) {
        if (a[i] != b[i])
            return a[i] < b[i] ? -1 : 1;
    }
    return 0;
}

size_t strlen(const char *text)
{
    size_t size = 0;
    while (text[size] != '\0')
        size++;
    return size;
}
