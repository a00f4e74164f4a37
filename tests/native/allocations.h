/*
 * allocations.h - malloc and its kin as a test wants them: the n-th fails. For one file of a
 * program that is linked with --wrap for malloc, calloc, realloc and aligned_alloc.
 */
#ifndef DF_TEST_ALLOCATIONS_H
#define DF_TEST_ALLOCATIONS_H

#include <stdbool.h>
#include <stdlib.h>

static long allocations; /* made while counting */
static long fail_at;     /* the n-th fails; 0: none */
static bool counting;

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);

static bool fails_now(void)
{
    return counting && ++allocations == fail_at;
}

void *__wrap_malloc(size_t size)
{
    return fails_now() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return fails_now() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *old, size_t size)
{
    return fails_now() ? NULL : __real_realloc(old, size);
}

void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
    return fails_now() ? NULL : __real_aligned_alloc(alignment, size);
}

#endif
