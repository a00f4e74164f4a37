/*
 * string.c - the functions of string.h(0P) that the calls of the core use, beside those of mem.c.
 *
 * Where C23 has a function that gives back a pointer into what it was given, its name may be a
 * macro (glibc 2.43). The brackets around such a name keep the macro away.
 */
#include <string.h>

#include "intercept/mem.h"

size_t strnlen(const char *text, size_t size)
{
    size_t len = 0;

    while (len < size && text[len] != '\0')
        len++;
    return len;
}

char *strcpy(char *restrict to, const char *restrict from)
{
    memcpy(to, from, strlen(from) + 1);
    return to;
}

void *mempcpy(void *restrict to, const void *restrict from, size_t size)
{
    return (char *)memcpy(to, from, size) + size;
}

char *(strrchr)(const char *text, int byte)
{
    const char *last = NULL;

    do {
        if (*text == (char)byte)
            last = text;
    } while (*text++ != '\0');
    return (char *)last;
}

int strncmp(const char *left, const char *right, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if (left[i] != right[i])
            return (unsigned char)left[i] < (unsigned char)right[i] ? -1 : 1;
        if (left[i] == '\0')
            break;
    }
    return 0;
}

int strcmp(const char *left, const char *right)
{
    return strncmp(left, right, (size_t)-1);
}

size_t strspn(const char *text, const char *accepted)
{
    size_t len = 0;

    for (; text[len] != '\0'; len++) {
        const char *one = accepted;

        while (*one != '\0' && *one != text[len])
            one++;
        if (*one == '\0')
            break;
    }
    return len;
}

char *(strstr)(const char *text, const char *wanted)
{
    size_t len = strlen(wanted);

    for (; *text != '\0'; text++)
        if (strncmp(text, wanted, len) == 0)
            return (char *)text;
    return len == 0 ? (char *)text : NULL;
}
