/*
 * maps.c - which addresses are code from a file, neither writable nor shared: what may be
 * rewritten.
 *
 * Read from /proc/self/maps when an address is asked for that was not known, and remembered. Code
 * that a program made itself stays as it made it. Under dfi_rewrite_lock.
 */
#include "intercept/maps.h"

#include "intercept/intercept.h"

#include <linux/fcntl.h>

#define RANGES 64

struct range {
    uintptr_t start, end;
};

static struct range ranges[RANGES]; /* the latest, in turn */
static unsigned ranges_next;
static uintptr_t unknown; /* the last address that was looked for in vain */

/* Reading a line of maps character by character: "start-end rwxp offset device inode name". */
struct line {
    struct range range;
    uintptr_t number;
    unsigned field;
    char flags[4];
    unsigned flag;
    bool has_name;
};

static void keep(const struct line *line)
{
    bool code = line->flags[0] == 'r' && line->flags[1] == '-' && line->flags[2] == 'x' &&
                line->flags[3] == 'p';
    if (code && line->has_name)
        ranges[ranges_next++ % RANGES] = line->range;
}

static void take(struct line *line, char c)
{
    if (c == '\n') {
        keep(line);
        *line = (struct line){0};
        return;
    }
    if (c == ' ' || (c == '-' && line->field == 0)) {
        if (line->field == 0)
            line->range.start = line->number;
        if (line->field == 1)
            line->range.end = line->number;
        line->number = 0;
        line->field++;
        return;
    }
    if (line->field < 2)
        line->number = line->number * 16 + (uintptr_t)(c <= '9' ? c - '0' : c - 'a' + 10);
    else if (line->field == 2 && line->flag < 4)
        line->flags[line->flag++] = c;
    else if (line->field > 5 && c == '/')
        line->has_name = true;
}

static void read_maps(void)
{
    char text[1024];
    struct line line = {0};
    long got, fd = dfi_kernel(__NR_openat, AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC, 0);
    while (fd >= 0 && (got = dfi_kernel(__NR_read, fd, text, sizeof text)) > 0) {
        for (long i = 0; i < got; i++)
            take(&line, text[i]);
    }
    if (fd >= 0)
        dfi_kernel(__NR_close, fd);
}

static const struct range *find(uintptr_t at)
{
    for (unsigned i = 0; i < RANGES; i++) {
        if (at >= ranges[i].start && at < ranges[i].end)
            return &ranges[i];
    }
    return NULL;
}

size_t dfi_maps_code_before(uintptr_t at, size_t max)
{
    const struct range *range = find(at);
    if (range == NULL && (at & -DFI_PAGE) != unknown) {
        read_maps();
        range = find(at);
    }
    if (range == NULL) {
        unknown = at & -DFI_PAGE;
        return 0;
    }
    return at - range->start < max ? at - range->start : max;
}

size_t dfi_maps_code_behind(uintptr_t at, size_t max)
{
    const struct range *range = find(at);
    if (range == NULL)
        return 0;
    return range->end - at < max ? range->end - at : max;
}
