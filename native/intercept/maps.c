/*
 * maps.c - which addresses are code from a file, neither writable nor shared: what may be
 * rewritten; and what is mapped at all.
 *
 * The loader says what it has mapped, and mmap what it has copied from files of mounts, which is no
 * file's to the kernel. What else comes is asked of /proc/self/maps: by its ioctl, which looks at
 * one mapping, and before Linux 6.11 by reading all of them. Code that a program made itself stays
 * as it made it. What the program maps or protects anew is forgotten. Under
 * dfi_rewrite_lock.
 */
#include "intercept/maps.h"

#include "intercept/brief.h"
#include "intercept/learn.h"

#include <linux/fcntl.h>
#include <linux/ioctl.h>

#define RANGES 512 /* of libraries that are copies: a program of Python has some hundred */

struct range {
    uintptr_t start, end;
    int file; /* learn.h */
    unsigned long offset;
};

static struct range ranges[RANGES]; /* the latest, in turn */
static unsigned ranges_next DFI_HOT;
static uintptr_t unknown DFI_HOT; /* the last address that was looked for in vain */

/* Those that were never written to lie on pages that nobody has touched. */
static unsigned count_ranges(void)
{
    return ranges_next < RANGES ? ranges_next : RANGES;
}

bool dfi_maps_knows(uintptr_t start, uintptr_t end)
{
    for (unsigned i = 0; i < count_ranges(); i++) {
        if (ranges[i].start < end && ranges[i].end > start)
            return true;
    }
    return false;
}

void dfi_maps_forget(uintptr_t start, uintptr_t end)
{
    unknown = 0;
    for (unsigned i = 0; i < count_ranges(); i++) {
        if (ranges[i].start < end && ranges[i].end > start)
            ranges[i] = (struct range){0};
    }
}

void dfi_maps_known(uintptr_t start, uintptr_t end, int file, unsigned long offset)
{
    dfi_maps_forget(start, end); /* what lay there before is gone */
    ranges[ranges_next++ % RANGES] = (struct range){start, end, file, offset};
}

/* Reading a line of maps character by character: "start-end rwxp offset device inode name". */
struct line {
    struct range range;
    uintptr_t number;
    unsigned field;
    char flags[4];
    unsigned flag;
    bool has_name;
};

typedef void visit_fn(const struct line *line, void *data);

static void keep(const struct line *line, void *none)
{
    (void)none;
    bool code = line->flags[0] == 'r' && line->flags[1] == '-' && line->flags[2] == 'x' &&
                line->flags[3] == 'p';
    if (code && line->has_name)
        dfi_maps_known(line->range.start, line->range.end, DFI_LEARN_NONE, 0);
}

static void take(struct line *line, char c)
{
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

/* 0, or a negative errno. */
static long read_all(long fd, visit_fn *visit, void *data)
{
    char text[1024];
    struct line line = {0};
    long got;
    while ((got = dfi_kernel(__NR_read, fd, text, sizeof text)) > 0) {
        for (long i = 0; i < got; i++) {
            if (text[i] == '\n') {
                visit(&line, data);
                line = (struct line){0};
            } else {
                take(&line, text[i]);
            }
        }
    }
    return got;
}

struct each {
    void (*visit)(uintptr_t start, uintptr_t end, void *data);
    void *data;
};

static void tell(const struct line *line, void *data)
{
    const struct each *each = data;
    each->visit(line->range.start, line->range.end, each->data);
}

long dfi_maps_each(void (*visit)(uintptr_t start, uintptr_t end, void *data), void *data)
{
    struct each each = {visit, data};
    long fd = dfi_brief(__NR_openat, AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC, 0);
    if (fd < 0)
        return fd;
    long ret = read_all(fd, tell, &each);
    dfi_brief_close(fd);
    return ret;
}

/* linux/fs.h since 6.11: PROCMAP_QUERY of a descriptor of maps. */
struct query {
    uint64_t size, flags, address;                    /* in; this to device[] out */
    uint64_t start, end, rights, page, offset, inode; /* 0: no file */
    uint32_t device[2];
    uint32_t name_size, build_id_size; /* 0: not asked for */
    uint64_t name, build_id;
};

#define QUERY        _IOWR('f', 17, struct query)
#define RIGHTS_READ  1
#define RIGHTS_EXEC  4
#define RIGHTS_KNOWN 15 /* with RIGHTS_WRITE 2, RIGHTS_SHARED 8 */

/* False: this kernel cannot be asked so. */
static bool ask(long fd, uintptr_t at)
{
    struct query query = {.size = sizeof query, .address = at};
    long result = dfi_kernel(__NR_ioctl, fd, QUERY, &query);
    if (result == 0 && (query.rights & RIGHTS_KNOWN) == (RIGHTS_READ | RIGHTS_EXEC) &&
        query.inode != 0)
        dfi_maps_known(query.start, query.end, DFI_LEARN_NONE, 0);
    return result != -ENOTTY;
}

/* dfi_limit_lock comes before dfi_rewrite_lock: where no descriptor is left, nothing is known. */
static void look(uintptr_t at)
{
    long fd = dfi_brief_if_left(__NR_openat, AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC, 0);
    if (fd < 0)
        return;
    if (!ask(fd, at))
        read_all(fd, keep, NULL);
    dfi_brief_close(fd);
}

static const struct range *find(uintptr_t at)
{
    for (unsigned i = 0; i < count_ranges(); i++) {
        if (at >= ranges[i].start && at < ranges[i].end)
            return &ranges[i];
    }
    return NULL;
}

size_t dfi_maps_code_before(uintptr_t at, size_t max)
{
    const struct range *range = find(at);
    if (range == NULL && (at & -DFI_PAGE) != unknown) {
        look(at);
        range = find(at);
    }
    if (range == NULL) {
        unknown = at & -DFI_PAGE;
        return 0;
    }
    return at - range->start < max ? at - range->start : max;
}

int dfi_maps_file(uintptr_t at, unsigned long *offset)
{
    const struct range *range = find(at);
    if (range == NULL)
        return DFI_LEARN_NONE;
    *offset = range->offset + (at - range->start);
    return range->file;
}

size_t dfi_maps_code_behind(uintptr_t at, size_t max)
{
    const struct range *range = find(at);
    if (range == NULL)
        return 0;
    return range->end - at < max ? range->end - at : max;
}
