/*
 * held.c - the chunks of mapped files that this process holds.
 */
#include "shadows/held.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

#include "intercept/brief.h"
#include "shadows/shadow.h"

/* ---- the file -------------------------------------------------------------------------------- */

static long open_list(const struct dfi_files *files)
{
    char path[DFI_SHADOW_NAME_MAX];
    long fd;

    strcpy(mempcpy(path, files->shadow, files->shadow_len), "/held");
    fd = dfi_brief_open(path, O_RDWR | O_CREAT | O_NOFOLLOW);
    if (fd >= 0)
        dfi_kernel(__NR_fchmod, fd, 0666); /* programs under other ids of the job */
    return fd;
}

/* The file has room for so many at least. Others may do the same, and nobody makes it smaller. */
static bool grow(const struct dfi_files *files, long fd, uint32_t count)
{
    off_t size = (off_t)DF_HELD_SIZE(count);

    return size <= files->caller.size_limit && dfi_kernel(__NR_pwrite64, fd, "", 1, size - 1) == 1;
}

_Static_assert(sizeof(struct df_holders) <= DFI_RUN_SPARE, "intercept/intercept.h");

/* A program with an RLIMIT_AS has no other place for it. */
static struct df_holders *map_list(const struct dfi_files *files, long fd)
{
    long at;

    if (!grow(files, fd, 0))
        return NULL;
    at = dfi_kernel(__NR_mmap, dfi_run_spare(), sizeof(struct df_holders), PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_FIXED, fd, 0);
    return at < 0 && at > -4096 ? NULL : (struct df_holders *)at;
}

static void raise_top(struct df_holders *all, uint32_t top)
{
    uint32_t seen = atomic_load(&all->top);

    while (seen < top && !atomic_compare_exchange_weak(&all->top, &seen, top))
        ;
}

static struct df_holder *take_free(const struct dfi_files *files, long fd)
{
    struct df_holders *all = files->hold.all;

    for (uint32_t i = 0; i < DF_HOLDERS && grow(files, fd, i + 1); i++) {
        uint32_t none = 0;

        raise_top(all, i + 1);
        if (atomic_compare_exchange_strong(&all->list[i].client, &none, files->link.client)) {
            atomic_store(&files->shared->held, 1);
            return &all->list[i];
        }
    }
    return NULL;
}

/* A holder of our own. NULL: there is none, or we are nobody to the server, which frees them. */
static struct df_holder *take(struct dfi_files *files)
{
    struct df_holder *own = NULL;
    long fd = open_list(files);

    if (fd < 0)
        return NULL;
    if (!files->hold.all)
        files->hold.all = map_list(files, fd);
    if (files->hold.all && files->link.client != 0)
        own = take_free(files, fd);
    dfi_brief_close(fd);
    return own;
}

static struct df_holders *map_again(const struct dfi_files *files)
{
    long fd = open_list(files);
    struct df_holders *all = fd < 0 ? NULL : map_list(files, fd);

    dfi_brief_close(fd);
    return all;
}

void dfi_held_forget(struct dfi_files *files)
{
    struct df_holder *own;

    if (!files->shared || atomic_load(&files->shared->held) == 0)
        return;
    files->hold.all = map_again(files);
    own = files->hold.all ? df_held_of(files->hold.all, files->link.client) : NULL;
    if (own)
        df_held_free(own);
}

void dfi_held_born(struct dfi_files *files)
{
    struct dfi_hold born = files->hold;

    born.own = NULL;
    born.count = born.size = born.next = born.wanted = 0;
    born.untold = false;
    files->hold = born;
}

/* ---- entries --------------------------------------------------------------------------------- */

#define FEW 64u /* places that are used in turn as long as there are no more entries */

/* A place that is free, behind the one that was taken last. */
static struct df_held *next_place(struct dfi_hold *hold)
{
    uint32_t used = atomic_load(&hold->own->used);
    struct df_held *held = hold->own->held;

    if (hold->count == hold->size) { /* no gap */
        hold->next = hold->size;
        hold->size += FEW;
    }
    while (atomic_load(&held[hold->next % hold->size].key) != 0)
        hold->next++;
    hold->next %= hold->size;
    if (hold->next >= used)
        atomic_store(&hold->own->used, hold->next + 1);
    return &held[hold->next++];
}

bool dfi_held_add(struct dfi_files *files, uint64_t ino, uint64_t key)
{
    struct dfi_hold *hold = &files->hold;
    struct df_held *place;

    if (!hold->own)
        hold->own = take(files);
    if (hold->own && df_held_has(hold->own, ino, key))
        return true;
    if (!hold->own || hold->count == DF_HELD_MAX) {
        hold->untold = true;
        return false;
    }
    place = next_place(hold);
    hold->count++;
    atomic_store(&place->ino, ino);
    atomic_store(&place->key, key);
    return true;
}

void dfi_held_remove(struct dfi_files *files, struct df_held *held)
{
    atomic_store(&held->key, 0);
    files->hold.count--;
}

bool dfi_held_by_others(const struct dfi_files *files, uint64_t ino, uint64_t key)
{
    const struct df_holders *all = files->hold.all;
    uint32_t top = all ? atomic_load(&all->top) : 0;

    if (!all) /* who knows */
        return true;
    for (uint32_t i = 0; i < top && i < DF_HOLDERS; i++)
        if (&all->list[i] != files->hold.own && atomic_load(&all->list[i].client) != 0 &&
            df_held_has(&all->list[i], ino, key))
            return true;
    return false;
}

uint32_t dfi_held_count(const struct dfi_files *files)
{
    return files->hold.own ? atomic_load(&files->hold.own->used) : 0;
}

struct df_held *dfi_held_at(const struct dfi_files *files, uint32_t i)
{
    uint32_t used = dfi_held_count(files), start = files->hold.next;
    struct df_held *held = &files->hold.own->held[(start % used + i) % used];

    return atomic_load(&held->key) != 0 ? held : NULL;
}

bool dfi_held_full(const struct dfi_files *files)
{
    const struct dfi_hold *hold = &files->hold;

    return hold->count >= DF_HELD_MAX || (hold->limit > 0 && hold->count >= hold->limit);
}
