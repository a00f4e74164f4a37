/*
 * map_reclaim.c - giving up memory of mapped files where it is short, so that a file may be larger
 * than the tmpfs of the run.
 *
 * A process gives up what it holds itself, the oldest first: it makes the memory PROT_NONE, writes
 * back what shared mappings have stored, and lets go. Whoever touches the memory later brings it
 * again. A chunk that others hold stays. What nobody holds (of processes that have ended, or have
 * unmapped it) is given up when the process has nothing else. Who finds no room even then asks the
 * others, which give up half at their next fault or system call: what they hold while they do
 * neither cannot be taken from them.
 *
 * All of it under the lock of the mappings.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

#include "intercept/brief.h"
#include "intercept/text.h"
#include "shadows/map.h"
#include "shadows/memory.h"
#include "shadows/pins.h"
#include "shadows/shadow_chunks.h"
#include "shadows/shadow_kept.h"

/* ---- what shows a chunk ---------------------------------------------------------------------- */

void dfi_maps_part(const struct dfi_mapping *m, uint64_t chunk, uintptr_t *start, uintptr_t *end)
{
    off_t from = (off_t)(chunk * DF_HELD_CHUNK), to = from + (off_t)DF_HELD_CHUNK;

    *start = m->start;
    *end = m->end;
    if (from > m->offset)
        *start += (uintptr_t)(from - m->offset);
    if ((uint64_t)(to - m->offset) < m->end - m->start)
        *end = m->start + (uintptr_t)(to - m->offset);
}

bool dfi_maps_shows(const struct dfi_files *files, const struct dfi_mapping *m, uint64_t ino,
                    uint64_t key)
{
    const struct df_ofd *ofd = dfi_ofd(files, m->handle);
    uint64_t chunk = df_held_chunk(key), first = (uint64_t)m->offset / DF_HELD_CHUNK;
    uint64_t last = ((uint64_t)m->offset + (m->end - m->start) - 1) / DF_HELD_CHUNK;

    return m->late && ofd && ofd->ino == ino && df_held_key(ofd->mount, chunk) == key &&
           chunk >= first && chunk <= last;
}

/* The next mapping, from the i-th on, that shows the chunk; NULL: none. */
static struct dfi_mapping *next_shown(const struct dfi_files *files, const struct df_held *held,
                                      size_t *i)
{
    while (*i < files->maps->count) {
        struct dfi_mapping *m = &files->maps->list[(*i)++];

        if (dfi_maps_shows(files, m, held->ino, held->key))
            return m;
    }
    return NULL;
}

/* ---- one that is held ------------------------------------------------------------------------ */

static bool has_to_stay(const struct dfi_files *files, const struct df_held *held)
{
    struct dfi_mapping *m;
    uintptr_t start, end;

    for (size_t i = 0; (m = next_shown(files, held, &i));) {
        dfi_maps_part(m, df_held_chunk(held->key), &start, &end);
        if (m->locked || dfi_pins_overlap(files->maps->pins, start, end))
            return true;
    }
    return false;
}

/* No thread of ours touches it any more. False: one may, where the kernel would need more mappings
 * than a process may have. */
static bool cover(struct dfi_files *files, const struct df_held *held)
{
    struct dfi_mapping *m;
    uintptr_t start, end;

    files->maps->brought_end = 0;
    for (size_t i = 0; (m = next_shown(files, held, &i));) {
        dfi_maps_part(m, df_held_chunk(held->key), &start, &end);
        if (dfi_kernel(__NR_mprotect, start, end - start, PROT_NONE) < 0)
            return false;
    }
    return true;
}

static long write_back(struct dfi_files *files, const struct df_held *held, long data)
{
    struct dfi_mapping *m;
    long ret = 0;

    for (size_t i = 0; ret == 0 && (m = next_shown(files, held, &i));) {
        if (dfi_maps_may_have_stored(files, m))
            return dfi_maps_write_chunk(files, m, data, df_held_chunk(held->key));
    }
    return ret;
}

/* What cannot be written back stays held: msync(2) and munmap(2) try again, and tell. */
static bool give_up(struct dfi_files *files, struct df_held *held)
{
    uint64_t chunk = df_held_chunk(held->key);
    size_t first = 0;
    const struct dfi_mapping *m = next_shown(files, held, &first);
    struct dfi_chunks chunks;
    bool done;

    if (!m || !cover(files, held))
        return false;
    if (dfi_chunks_begin(&chunks, files, dfi_ofd(files, m->handle)->mount, held->ino) < 0)
        return false;
    done = write_back(files, held, chunks.data) == 0;
    if (done) {
        dfi_held_remove(files, held);
        dfi_chunks_drop(&chunks, chunk);
    }
    dfi_chunks_end(&chunks);
    return done;
}

static bool give_up_oldest(struct dfi_files *files)
{
    for (uint32_t i = 0, count = dfi_held_count(files); i < count; i++) {
        struct df_held *held = dfi_held_at(files, i);

        if (held && !has_to_stay(files, held) && give_up(files, held))
            return true;
    }
    return false;
}

void dfi_maps_let_go(struct dfi_files *files)
{
    for (uint32_t i = 0, count = dfi_held_count(files); i < count; i++) {
        struct df_held *held = dfi_held_at(files, i);
        size_t from = 0;

        if (held && !next_shown(files, held, &from))
            dfi_held_remove(files, held);
    }
}

/* ---- those that nobody holds ----------------------------------------------------------------- */

static bool sweep_file(struct dfi_files *files, const char *name)
{
    struct dfi_chunks chunks;
    int mount;
    bool any;

    if (name[0] < '0' || name[0] > '9')
        return false;
    mount = (int)dfi_text_number(&name);
    if (dfi_chunks_begin(&chunks, files, mount, dfi_text_number(&name)) < 0)
        return false;
    any = dfi_chunks_sweep(&chunks);
    dfi_chunks_end(&chunks);
    return any;
}

/* What is kept for nobody; and every large file that some program has mapped has its list of chunks
 * in one directory. */
static bool sweep(struct dfi_files *files)
{
    _Alignas(8) char path[DFI_SHADOW_NAME_MAX], entries[2048];
    bool any = dfi_kept_drop(files);
    long fd, got;

    strcpy(mempcpy(path, files->shadow, files->shadow_len), "/b");
    fd = dfi_brief_open(path, O_RDONLY | O_DIRECTORY);
    if (fd < 0)
        return false;
    while ((got = dfi_kernel(__NR_getdents64, fd, entries, sizeof(entries))) > 0)
        for (long at = 0; at < got; at += ((struct dfi_dirent *)(entries + at))->size)
            any |= sweep_file(files, ((struct dfi_dirent *)(entries + at))->name);
    dfi_brief_close(fd);
    return any;
}

/* ---- room ------------------------------------------------------------------------------------ */

#define FEW 4 /* chunks: one instruction may need as many, and nobody is better off with less */

static long hold(struct dfi_files *files, const struct dfi_mapping *m, uint64_t chunk,
                 uint64_t spare)
{
    const struct df_ofd *ofd = dfi_ofd(files, m->handle);
    struct dfi_chunks chunks;
    long ret;

    if (!ofd)
        return -EBADF;
    ret = dfi_chunks_begin(&chunks, files, ofd->mount, ofd->ino);
    if (ret < 0)
        return ret;
    ret = dfi_chunks_hold(&chunks, m->handle, chunk, spare);
    dfi_chunks_end(&chunks);
    return ret;
}

bool dfi_maps_give_up_one(struct dfi_files *files)
{
    return files->hold.count > FEW && give_up_oldest(files);
}

/* Whatever it takes of our own. */
static long hold_last(struct dfi_files *files, const struct dfi_mapping *m, uint64_t chunk)
{
    long ret;

    while ((ret = hold(files, m, chunk, 0)) == -ENOSPC && (give_up_oldest(files) || sweep(files)))
        ;
    return ret;
}

#define PATIENCE 1000 /* times a millisecond, for others that run, or make system calls */

static long hold_patiently(struct dfi_files *files, const struct dfi_mapping *m, uint64_t chunk)
{
    const long pause[2] = {0, 1000000};
    long ret = -ENOSPC;

    atomic_fetch_add(&files->shared->wanted, 1);
    for (int i = 0; ret == -ENOSPC && i < PATIENCE; i++) {
        dfi_kernel(__NR_nanosleep, pause, 0);
        ret = hold_last(files, m, chunk);
    }
    return ret;
}

/*
 * A process leaves as much room as it has taken, so that those which come later get a share; who
 * has more gives up two for one. What others have brought is taken, too, when it is held.
 *
 * Where the memory limit of the run's cgroup leaves no room, it is taken all the same when all else
 * has been given up: the kernel may find what to give up, and a signal would be worse.
 */
long dfi_maps_hold(struct dfi_files *files, const struct dfi_mapping *m, uint64_t chunk,
                   bool patient)
{
    uint64_t own = (uint64_t)files->hold.count * DF_HELD_CHUNK;
    long ret;

    dfi_maps_oblige(files);
    if (dfi_held_full(files) && files->hold.count >= FEW)
        give_up_oldest(files);
    ret = dfi_memory_has_room(files, own + DF_HELD_CHUNK) ? hold(files, m, chunk, own) : -ENOSPC;
    if (ret != -ENOSPC)
        return ret;
    if (files->hold.count <= FEW)
        sweep(files);
    for (int i = 0; i < 2; i++)
        dfi_maps_give_up_one(files);
    ret = hold_last(files, m, chunk);
    return ret == -ENOSPC && patient ? hold_patiently(files, m, chunk) : ret;
}

/* Others want memory, or the server has seen that the job has little left. */
void dfi_maps_oblige(struct dfi_files *files)
{
    uint32_t wanted = atomic_load_explicit(&files->shared->wanted, memory_order_relaxed) +
                      atomic_load_explicit(&files->link.segment->scarce, memory_order_relaxed);
    uint32_t half = files->hold.count / 2;

    if (wanted == files->hold.wanted)
        return;
    files->hold.wanted = wanted;
    while (files->hold.count > half && dfi_maps_give_up_one(files))
        ;
}
