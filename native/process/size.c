/*
 * size.c - sizes that users set by the environment.
 */
#include "process/size.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A number, with K, M or G behind it or not, and then B or iB or nothing. One that is too large is
 * the largest. */
static bool parse(const char *text, uint64_t *bytes)
{
    static const char letters[] = "KMG";
    char *end;
    unsigned long long number = strtoull(text, &end, 10);
    const char *letter = *end ? strchr(letters, *end) : NULL;
    int shift = letter ? 10 * (int)(letter - letters + 1) : 0;

    if (*text < '0' || *text > '9') /* strtoull takes signs and blanks */
        return false;
    if (letter)
        end++;
    *bytes = number > UINT64_MAX >> shift ? UINT64_MAX : (uint64_t)number << shift;
    return strcmp(end, "") == 0 || strcmp(end, "B") == 0 || strcmp(end, "iB") == 0;
}

int df_size_of(const char *variable, uint64_t *bytes, char *message, size_t size)
{
    const char *text = getenv(variable);
    uint64_t parsed;

    if (!text || !*text)
        return 0;
    if (!parse(text, &parsed)) {
        snprintf(message, size,
                 "%s=%s: is no size; a number of bytes is one, with K, M or G behind it or not: "
                 "256M",
                 variable, text);
        return -EINVAL;
    }
    *bytes = parsed;
    return 0;
}
