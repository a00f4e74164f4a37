/*
 * shadow_chunks.c - the data file of a large file of a mount, brought and given up by chunks.
 *
 * Who is killed between two steps leaves a chunk that is not there with bytes in the data file,
 * never one that is there without: so they are taken away before it is filled, and where memory is
 * short.
 */
#include "shadows/shadow_chunks.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "intercept/brief.h"
#include "shadows/shadow_fill.h"

/* Bytes of the list; 0: it is not there. */
#define THERE    1
#define FOR_GOOD 2 /* and somebody may touch it who does not say so */

long dfi_chunks_begin(struct dfi_chunks *c, struct dfi_files *files, int mount, uint64_t ino)
{
    long ret;

    *c = (struct dfi_chunks){files, mount, ino, -1, -1};
    ret = dfi_shadow_beside(files, mount, ino, DFI_SHADOW_CHUNKS, O_RDWR);
    if (ret < 0)
        return ret;
    c->list = ret;
    ret = dfi_shadow_lock(c->list, LOCK_EX);
    if (ret == 0)
        ret = c->data = dfi_shadow_beside(files, mount, ino, DFI_SHADOW_DATA, O_RDWR);
    if (ret < 0)
        dfi_chunks_end(c);
    return ret < 0 ? ret : 0;
}

/* A child of vfork may have copies of the descriptors: the lock does not end with ours. */
void dfi_chunks_end(struct dfi_chunks *c)
{
    dfi_shadow_lock(c->list >= 0 ? c->list : c->data, LOCK_UN);
    dfi_brief_close(c->data);
    dfi_brief_close(c->list);
    c->data = c->list = -1;
}

static unsigned char state_of(const struct dfi_chunks *c, uint64_t chunk)
{
    unsigned char state = 0;

    return dfi_kernel(__NR_pread64, c->list, &state, 1, chunk) < 0 ? 0 : state;
}

static long set_state(const struct dfi_chunks *c, uint64_t chunk, unsigned char state)
{
    long ret = dfi_kernel(__NR_pwrite64, c->list, &state, 1, chunk);

    return ret < 0 ? ret : 0;
}

static bool is_there(const struct dfi_chunks *c, uint64_t chunk)
{
    return state_of(c, chunk) != 0;
}

size_t dfi_chunks_run(const struct dfi_chunks *c, off_t offset, size_t size, bool *there)
{
    uint64_t chunk = (uint64_t)offset / DF_HELD_CHUNK, next;
    size_t run;

    *there = is_there(c, chunk);
    do {
        next = ++chunk * DF_HELD_CHUNK;
        run = next - (uint64_t)offset;
    } while (run < size && is_there(c, chunk) == *there);
    return run < size ? run : size;
}

/* ---- bringing -------------------------------------------------------------------------------- */

static void empty(const struct dfi_chunks *c, uint64_t chunk, uint64_t count)
{
    if (count > 0)
        dfi_kernel(__NR_fallocate, c->data, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                   chunk * DF_HELD_CHUNK, count * DF_HELD_CHUNK);
}

/* All of its pages are there from here on: those of zeros, too, which were not written, and which
 * memory that shows them would make when it is touched. Behind the end of the file it may not,
 * where a limit is: SIGXFSZ. Where the call is refused, by a filter of the program's, only what was
 * written is there. */
static long reserve(const struct dfi_chunks *c, uint64_t chunk)
{
    off_t at = (off_t)(chunk * DF_HELD_CHUNK), end = at + (off_t)DF_HELD_CHUNK;
    struct stat st;
    long ret = dfi_kernel(__NR_fstat, c->data, &st);

    if (ret < 0)
        return ret;
    if (end > st.st_size && end > c->files->caller.size_limit)
        end = st.st_size;
    if (end <= at)
        return 0;
    do
        ret = dfi_kernel(__NR_fallocate, c->data, FALLOC_FL_KEEP_SIZE, at, end - at);
    while (ret == -EINTR);
    return ret == -ENOSPC ? ret : 0;
}

static long fill_pieces(const struct dfi_chunks *c, uint64_t handle, uint64_t chunk)
{
    struct dfi_filling f;
    long ret = dfi_fill_begin(&f, c->files, handle, c->data);

    if (ret == 0)
        ret = dfi_fill_range(&f, (off_t)(chunk * DF_HELD_CHUNK),
                             (off_t)((chunk + 1) * DF_HELD_CHUNK));
    dfi_fill_end(&f);
    return ret;
}

/* Others may have filled chunks of other files since there was room. */
static long fill(const struct dfi_chunks *c, uint64_t handle, uint64_t chunk)
{
    long ret;

    empty(c, chunk, 1);
    ret = fill_pieces(c, handle, chunk);
    if (ret == 0)
        ret = reserve(c, chunk);
    if (ret == 0 && !dfi_fill_has_room(c->data, 0))
        ret = -ENOSPC;
    if (ret < 0)
        empty(c, chunk, 1);
    return ret;
}

long dfi_chunks_hold(struct dfi_chunks *c, uint64_t handle, uint64_t chunk, uint64_t spare)
{
    unsigned char state = state_of(c, chunk);
    uint64_t room = (state == 0 ? DF_HELD_CHUNK : 0) + spare;
    long ret = 0;

    if (state == FOR_GOOD)
        return 0;
    if (room > 0 && !dfi_fill_has_room(c->data, room))
        return -ENOSPC;
    if (state == 0)
        ret = fill(c, handle, chunk);
    if (ret == 0 && !dfi_held_add(c->files, c->ino, df_held_key(c->mount, chunk)))
        return set_state(c, chunk, FOR_GOOD);
    return ret == 0 && state == 0 ? set_state(c, chunk, THERE) : ret;
}

/* ---- giving up ------------------------------------------------------------------------------- */

void dfi_chunks_drop(struct dfi_chunks *c, uint64_t chunk)
{
    if (state_of(c, chunk) == THERE &&
        !dfi_held_by_others(c->files, c->ino, df_held_key(c->mount, chunk)) &&
        set_state(c, chunk, 0) == 0)
        empty(c, chunk, 1);
}

static bool is_held(const struct dfi_chunks *c, uint64_t chunk)
{
    const struct df_holder *own = c->files->hold.own;
    uint64_t key = df_held_key(c->mount, chunk);

    return (own && df_held_has(own, c->ino, key)) || dfi_held_by_others(c->files, c->ino, key);
}

/* Of a row of chunks from the first on. */
static void sweep_some(const struct dfi_chunks *c, const unsigned char *states, uint64_t first,
                       uint64_t count)
{
    uint64_t from = 0; /* behind the last one that stays */

    for (uint64_t i = 0; i < count; i++) {
        if (states[i] == 0 ||
            (states[i] == THERE && !is_held(c, first + i) && set_state(c, first + i, 0) == 0))
            continue;
        empty(c, first + from, i - from);
        from = i + 1;
    }
    empty(c, first + from, count - from);
}

bool dfi_chunks_sweep(struct dfi_chunks *c)
{
    unsigned char states[1024];
    struct stat before, after;
    uint64_t at = 0, end;
    long next, got;

    if (dfi_kernel(__NR_fstat, c->data, &before) < 0)
        return false;
    while ((next = dfi_kernel(__NR_lseek, c->list, at, SEEK_DATA)) >= 0) {
        empty(c, at, (uint64_t)next - at); /* a hole of the list: they never were there */
        got = dfi_kernel(__NR_pread64, c->list, states, sizeof(states), next);
        if (got <= 0)
            break;
        sweep_some(c, states, (uint64_t)next, (uint64_t)got);
        at = (uint64_t)(next + got);
    }
    end = (uint64_t)before.st_size / DF_HELD_CHUNK + 1;
    if (next == -ENXIO && at < end) /* the file has grown */
        empty(c, at, end - at);
    return dfi_kernel(__NR_fstat, c->data, &after) == 0 && after.st_blocks < before.st_blocks;
}
