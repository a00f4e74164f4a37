/*
 * learn.c - the table of sites that the programs of a run share (decision 059).
 *
 * It has no lock, for a program may be killed anywhere: entries are appended, and published by one
 * store.
 */
#include "intercept/learn.h"

#include "intercept/run.h"

#include <asm/stat.h>

/* A trap costs 2 us, a page of code that is written to 1.5 us, and most pages have one site: three
 * traps of four programs are worth it. On a page that is written to anyway a site costs less than a
 * tenth of a trap. Two programs are no evidence. */
#define USERS_MIN    3
#define TRAPS_PARTS  4
#define STARTS_PARTS 3
#define SHARED_PARTS 8 /* one trap of eight programs, on such a page */

#define PAGE_SHIFT   12
#define WORD_BITS    64

enum { FREE, WRITTEN, READABLE };

static struct dfi_learn *table(void)
{
    return (struct dfi_learn *)((char *)dfi_run + dfi_run->learn_offset);
}

static bool is_same(const struct dfi_learn_id *left, const struct dfi_learn_id *right)
{
    return left->device == right->device && left->inode == right->inode &&
           left->size == right->size && left->changed == right->changed;
}

/* Takes a free entry; false: another program has been faster. */
static bool write_entry(struct dfi_learn_file *entry, const struct dfi_learn_id *id)
{
    int state = FREE;
    if (!__atomic_compare_exchange_n(&entry->state, &state, WRITTEN, false, __ATOMIC_ACQUIRE,
                                     __ATOMIC_RELAXED))
        return false;
    entry->id = *id;
    __atomic_store_n(&entry->state, READABLE, __ATOMIC_RELEASE);
    return true;
}

int dfi_learn_known(const struct dfi_learn_id *id)
{
    if (dfi_run == NULL)
        return DFI_LEARN_NONE;
    for (int i = 0; i < DFI_LEARN_FILES; i++) {
        struct dfi_learn_file *entry = &table()->files[i];
        int state = __atomic_load_n(&entry->state, __ATOMIC_ACQUIRE);
        if ((state == READABLE && is_same(&entry->id, id)) ||
            (state == FREE && write_entry(entry, id))) {
            __atomic_fetch_add(&entry->starts, 1, __ATOMIC_RELAXED);
            return i;
        }
    }
    return DFI_LEARN_NONE;
}

int dfi_learn_file(int fd)
{
    struct stat st;
    if (dfi_kernel(__NR_fstat, fd, &st) < 0)
        return DFI_LEARN_NONE;
    const struct dfi_learn_id id = {.device = st.st_dev,
                                    .inode = st.st_ino,
                                    .size = (unsigned long)st.st_size,
                                    .changed = st.st_ctime * 1000000000 + st.st_ctime_nsec};
    return dfi_learn_known(&id);
}

/* By its 1 + index; NULL for 0, and for what no program of ours has written. */
static struct dfi_learn_site *site_at(unsigned at)
{
    return at == 0 || at > DFI_LEARN_SITES ? NULL : &table()->sites[at - 1];
}

static void add_site(struct dfi_learn_file *file, unsigned long offset, unsigned nr)
{
    unsigned at = 0;
    if (__atomic_load_n(&table()->sites_used, __ATOMIC_RELAXED) < DFI_LEARN_SITES) /* or it wraps */
        at = 1 + __atomic_fetch_add(&table()->sites_used, 1, __ATOMIC_RELAXED);
    struct dfi_learn_site *site = site_at(at);
    if (site == NULL)
        return;
    *site =
        (struct dfi_learn_site){.offset = offset, .nr = (unsigned short)nr, .users = 1, .traps = 1};
    site->next = __atomic_load_n(&file->first, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(&file->first, &site->next, at, false, __ATOMIC_RELEASE,
                                        __ATOMIC_RELAXED))
        continue;
}

static struct dfi_learn_site *find_site(const struct dfi_learn_file *file, unsigned long offset)
{
    struct dfi_learn_site *site = site_at(__atomic_load_n(&file->first, __ATOMIC_ACQUIRE));
    for (unsigned i = 0; i < DFI_LEARN_SITES && site != NULL; i++, site = site_at(site->next)) {
        if (site->offset == offset)
            return site;
    }
    return NULL;
}

void dfi_learn_trap(int file, unsigned long offset, unsigned nr)
{
    if (file == DFI_LEARN_NONE)
        return;
    struct dfi_learn_file *entry = &table()->files[file];
    struct dfi_learn_site *site = find_site(entry, offset);
    if (site == NULL) {
        add_site(entry, offset, nr);
        return;
    }
    __atomic_fetch_add(&site->users, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&site->traps, 1, __ATOMIC_RELAXED);
}

void dfi_learn_cost(int file, unsigned long offset, unsigned traps)
{
    if (file == DFI_LEARN_NONE)
        return;
    struct dfi_learn_site *site = find_site(&table()->files[file], offset);
    if (site != NULL)
        __atomic_fetch_add(&site->traps, traps, __ATOMIC_RELAXED);
}

/* The word and the bit of the page of a site; what is written to lies just before the site. */
static unsigned long *page_of(struct dfi_learn_file *file, unsigned long offset, unsigned long *bit)
{
    unsigned long page = (offset >> PAGE_SHIFT) % DFI_LEARN_PAGES;
    *bit = 1ul << (page % WORD_BITS);
    return &file->pages[page / WORD_BITS];
}

/* What was worth it once is rewritten from then on: nobody counts it any more. */
static bool is_worth_it(struct dfi_learn_file *file, struct dfi_learn_site *site, unsigned starts)
{
    unsigned state = __atomic_load_n(&site->state, __ATOMIC_RELAXED);
    if (state != DFI_LEARN_COUNTS)
        return state == DFI_LEARN_REWRITES;
    unsigned long bit, *word = page_of(file, site->offset, &bit);
    unsigned long traps = __atomic_load_n(&site->traps, __ATOMIC_RELAXED);
    bool shared = (__atomic_load_n(word, __ATOMIC_RELAXED) & bit) != 0;
    bool enough = shared ? traps * SHARED_PARTS >= starts
                         : traps * TRAPS_PARTS >= (unsigned long)starts * STARTS_PARTS;
    if (!enough || __atomic_load_n(&site->users, __ATOMIC_RELAXED) < USERS_MIN)
        return false;
    __atomic_fetch_or(word, bit, __ATOMIC_RELAXED);
    __atomic_store_n(&site->state, DFI_LEARN_REWRITES, __ATOMIC_RELAXED);
    return true;
}

struct dfi_learn_site *dfi_learn_next(int file, unsigned long offset, unsigned long size,
                                      unsigned *at)
{
    struct dfi_learn_file *entry = &table()->files[file];
    unsigned starts = __atomic_load_n(&entry->starts, __ATOMIC_RELAXED);
    struct dfi_learn_site *site = site_at(*at);
    unsigned next = site == NULL ? __atomic_load_n(&entry->first, __ATOMIC_ACQUIRE) : site->next;
    for (unsigned i = 0; i < DFI_LEARN_SITES && (site = site_at(next)) != NULL; i++) {
        *at = next;
        next = site->next;
        if (site->offset >= offset && site->offset - offset < size &&
            is_worth_it(entry, site, starts))
            return site;
    }
    return NULL;
}
