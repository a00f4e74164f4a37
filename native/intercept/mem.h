/*
 * mem.h - the functions of memory and text that the freestanding core has, as in string.h(0P).
 */
#ifndef DF_INTERCEPT_MEM_H
#define DF_INTERCEPT_MEM_H

#include <stddef.h>
#include <stdint.h>

void *memcpy(void *restrict to, const void *restrict from, size_t size);
void *memmove(void *to, const void *from, size_t size);
void *memset(void *to, int byte, size_t size);
int memcmp(const void *left, const void *right, size_t size);
size_t strlen(const char *text);

#endif
