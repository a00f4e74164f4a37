/*
 * dirty.c - the chunks of a file that keep what was written.
 */
#include "writeback/dirty.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/pages.h"

#define PAGES (DF_DIRTY_CHUNK / DF_DIRTY_PAGE)

struct df_dirty_chunk {
    uint64_t number; /* in the file */
    char *bytes;     /* DF_DIRTY_CHUNK; what was not touched has no memory */
    struct {
        uint16_t from, to; /* in the page; to 0: nothing */
    } kept[PAGES];
};

/* A part of a range that lies in one page. */
struct part {
    uint64_t chunk;
    unsigned page; /* in the chunk */
    size_t from, to;
};

static struct part part_of(off_t offset, size_t size)
{
    size_t from = (size_t)offset % DF_DIRTY_PAGE;
    size_t room = DF_DIRTY_PAGE - from;

    return (struct part){.chunk = (uint64_t)offset / DF_DIRTY_CHUNK,
                         .page = (unsigned)((size_t)offset % DF_DIRTY_CHUNK / DF_DIRTY_PAGE),
                         .from = from,
                         .to = from + (size < room ? size : room)};
}

/* The place of the chunk in the table, or where it would be. */
static size_t place_of(const struct df_dirty *dirty, uint64_t number)
{
    size_t low = 0, high = dirty->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (dirty->chunks[middle]->number < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct df_dirty_chunk *find(const struct df_dirty *dirty, uint64_t number)
{
    size_t at = place_of(dirty, number);

    return at < dirty->count && dirty->chunks[at]->number == number ? dirty->chunks[at] : NULL;
}

/* ---- chunks ---------------------------------------------------------------------------------- */

/* Bytes of chunks that were handed over, for the next ones: to have their pages from the kernel
 * again costs more than a write does. What they hold is nobody's, and is shown to nobody. */
#define SPARE 16

static struct {
    pthread_mutex_t lock; /* innermost */
    size_t count;
    char *bytes[SPARE];
} spare = {.lock = PTHREAD_MUTEX_INITIALIZER};

static char *take_bytes(void)
{
    char *bytes = NULL;

    pthread_mutex_lock(&spare.lock);
    if (spare.count > 0)
        bytes = spare.bytes[--spare.count];
    pthread_mutex_unlock(&spare.lock);
    return bytes ? bytes : df_pages_new(DF_DIRTY_CHUNK);
}

static void give_bytes(char *bytes)
{
    pthread_mutex_lock(&spare.lock);
    if (spare.count < SPARE) {
        spare.bytes[spare.count++] = bytes;
        bytes = NULL;
    }
    pthread_mutex_unlock(&spare.lock);
    df_pages_free(bytes, DF_DIRTY_CHUNK);
}

static void free_chunk(struct df_dirty_chunk *chunk)
{
    give_bytes(chunk->bytes);
    free(chunk);
}

static struct df_dirty_chunk *make_chunk(uint64_t number)
{
    struct df_dirty_chunk *chunk = calloc(1, sizeof(*chunk));

    if (!chunk)
        return NULL;
    chunk->number = number;
    chunk->bytes = take_bytes();
    if (chunk->bytes)
        return chunk;
    free(chunk);
    return NULL;
}

static bool make_room(struct df_dirty *dirty)
{
    size_t room = dirty->room ? dirty->room * 2 : 4;
    struct df_dirty_chunk **chunks;

    if (dirty->count < dirty->room)
        return true;
    chunks = realloc(dirty->chunks, room * sizeof(struct df_dirty_chunk *));
    if (!chunks)
        return false;
    dirty->chunks = chunks;
    dirty->room = room;
    return true;
}

/* The chunk is there, perhaps empty. */
static bool provide(struct df_dirty *dirty, uint64_t number)
{
    size_t at = place_of(dirty, number);
    struct df_dirty_chunk *chunk;

    if (at < dirty->count && dirty->chunks[at]->number == number)
        return true;
    if (!make_room(dirty) || !(chunk = make_chunk(number)))
        return false;
    memmove(&dirty->chunks[at + 1], &dirty->chunks[at],
            (dirty->count - at) * sizeof(struct df_dirty_chunk *));
    dirty->chunks[at] = chunk;
    dirty->count++;
    return true;
}

/* ---- keeping --------------------------------------------------------------------------------- */

/* Without a gap to what the page keeps. */
static bool part_fits(const struct df_dirty *dirty, struct part part)
{
    const struct df_dirty_chunk *chunk = find(dirty, part.chunk);

    return !chunk || chunk->kept[part.page].to == 0 ||
           (part.from <= chunk->kept[part.page].to && part.to >= chunk->kept[part.page].from);
}

bool df_dirty_fits(const struct df_dirty *dirty, off_t offset, size_t size)
{
    off_t last = offset + (off_t)size - 1;

    if (dirty->pages == 0 || size == 0)
        return true;
    last -= last % (off_t)DF_DIRTY_PAGE;
    return part_fits(dirty, part_of(offset, size)) &&
           (last <= offset || part_fits(dirty, part_of(last, size - (size_t)(last - offset))));
}

size_t df_dirty_new_pages(const struct df_dirty *dirty, off_t offset, size_t size)
{
    size_t pages = 0;

    for (size_t done = 0; done < size;) {
        struct part part = part_of(offset + (off_t)done, size - done);
        const struct df_dirty_chunk *chunk = find(dirty, part.chunk);

        pages += !chunk || chunk->kept[part.page].to == 0;
        done += part.to - part.from;
    }
    return pages;
}

static void store_part(struct df_dirty *dirty, struct part part, const char *bytes)
{
    struct df_dirty_chunk *chunk = find(dirty, part.chunk);
    bool fresh = chunk->kept[part.page].to == 0;

    memcpy(chunk->bytes + part.page * DF_DIRTY_PAGE + part.from, bytes, part.to - part.from);
    dirty->pages += fresh;
    if (fresh || part.from < chunk->kept[part.page].from)
        chunk->kept[part.page].from = (uint16_t)part.from;
    if (fresh || part.to > chunk->kept[part.page].to)
        chunk->kept[part.page].to = (uint16_t)part.to;
}

bool df_dirty_store(struct df_dirty *dirty, off_t offset, const char *bytes, size_t size)
{
    uint64_t last = ((uint64_t)offset + size - 1) / DF_DIRTY_CHUNK;

    if (size == 0)
        return true;
    for (uint64_t number = (uint64_t)offset / DF_DIRTY_CHUNK; number <= last; number++)
        if (!provide(dirty, number))
            return false;
    for (size_t done = 0; done < size;) {
        struct part part = part_of(offset + (off_t)done, size - done);

        store_part(dirty, part, bytes + done);
        done += part.to - part.from;
    }
    return true;
}

/* ---- showing --------------------------------------------------------------------------------- */

bool df_dirty_covers(const struct df_dirty *dirty, off_t offset, size_t size)
{
    for (size_t done = 0; done < size;) {
        struct part part = part_of(offset + (off_t)done, size - done);
        const struct df_dirty_chunk *chunk = find(dirty, part.chunk);

        if (!chunk || chunk->kept[part.page].to < part.to ||
            chunk->kept[part.page].from > part.from)
            return false;
        done += part.to - part.from;
    }
    return true;
}

static void show_part(const struct df_dirty_chunk *chunk, struct part part, char *bytes)
{
    size_t from = part.from, to = part.to;

    if (from < chunk->kept[part.page].from)
        from = chunk->kept[part.page].from;
    if (to > chunk->kept[part.page].to)
        to = chunk->kept[part.page].to;
    if (from < to)
        memcpy(bytes + (from - part.from), chunk->bytes + part.page * DF_DIRTY_PAGE + from,
               to - from);
}

void df_dirty_show(const struct df_dirty *dirty, off_t offset, char *bytes, size_t size)
{
    for (size_t done = 0; done < size;) {
        struct part part = part_of(offset + (off_t)done, size - done);
        const struct df_dirty_chunk *chunk = find(dirty, part.chunk);

        if (chunk)
            show_part(chunk, part, bytes + done);
        done += part.to - part.from;
    }
}

/* ---- handing over ---------------------------------------------------------------------------- */

/* The run of the chunk that begins in `page` or behind it. */
static struct df_dirty_run run_in(const struct df_dirty_chunk *chunk, unsigned page)
{
    struct df_dirty_run run = {.size = 0};
    size_t from;

    while (page < PAGES && chunk->kept[page].to == 0)
        page++;
    if (page == PAGES)
        return run;
    from = page * DF_DIRTY_PAGE + chunk->kept[page].from;
    while (page + 1 < PAGES && chunk->kept[page].to == DF_DIRTY_PAGE &&
           chunk->kept[page + 1].to != 0 && chunk->kept[page + 1].from == 0)
        page++;
    run.bytes = chunk->bytes + from;
    run.size = page * DF_DIRTY_PAGE + chunk->kept[page].to - from;
    run.offset = (off_t)(chunk->number * DF_DIRTY_CHUNK + from);
    return run;
}

struct df_dirty_run df_dirty_next(const struct df_dirty *dirty, off_t offset)
{
    struct df_dirty_run run = {.size = 0};
    struct part part = part_of(offset, 1);
    unsigned page = part.page + (part.from > 0); /* a run that began in it has ended in it */

    for (size_t at = place_of(dirty, part.chunk); at < dirty->count && run.size == 0; at++) {
        run = run_in(dirty->chunks[at], dirty->chunks[at]->number == part.chunk ? page : 0);
    }
    return run;
}

void df_dirty_clear(struct df_dirty *dirty)
{
    for (size_t i = 0; i < dirty->count; i++)
        free_chunk(dirty->chunks[i]);
    free(dirty->chunks);
    *dirty = (struct df_dirty){.chunks = NULL};
}
