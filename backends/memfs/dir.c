/*
 * dir.c - the table of entries of one directory.
 *
 * Two arrays, as in Python's dict. `slots` holds the entries in the order of their creation, each
 * with a cookie that is smaller than any before in this directory; readdir walks it backwards, and
 * finds its place again by binary search, whatever was unlinked or created meanwhile. What is made
 * while somebody reads has its place before what was read: who renames or copies each entry that he
 * is told comes to an end. `cells` is a hash table of
 * positions in `slots`. An unlinked entry leaves an empty slot, and the array is packed when too
 * many are empty; cookies move along, so packing is invisible.
 *
 * Everything here is under the directory's lock.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "store.h"

enum { FEW_SLOTS = 4, FEW_CELLS = 8 };

#define FIRST_COOKIE ((uint64_t)1 << 62)

/* ---- names ------------------------------------------------------------------------------ */

static inline uint64_t mix(uint64_t a, uint64_t b)
{
    unsigned __int128 product = (unsigned __int128)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/*
 * Eight bytes at a time, one multiplication each. The seed is secret and random, so that nobody can
 * choose names that collide.
 */
static uint32_t hash_name(uint64_t seed, const char *text, size_t len)
{
    const uint64_t odd = UINT64_C(0x9e3779b97f4a7c15);
    uint64_t hash = seed ^ len, word;

    for (; len >= 8; text += 8, len -= 8) {
        memcpy(&word, text, 8);
        hash = mix(hash ^ word, odd ^ seed);
    }
    word = 0;
    if (len >= 4) {
        uint32_t first, last;
        memcpy(&first, text, 4);
        memcpy(&last, text + len - 4, 4);
        word = (uint64_t)first << 32 | last;
    } else if (len > 0) {
        word = (uint64_t)(uint8_t)text[0] << 16 | (uint64_t)(uint8_t)text[len / 2] << 8 |
               (uint8_t)text[len - 1];
    }
    return (uint32_t)mix(hash ^ word, odd ^ seed);
}

int dir_name(const struct store *store, const char *text, struct name *name)
{
    size_t len = strlen(text);

    if (len > NAME_LIMIT)
        return -ENAMETOOLONG;
    if (len == 0)
        return -ENOENT;
    if (text[0] == '.' && (len == 1 || (len == 2 && text[1] == '.')))
        return -EINVAL; /* whoever walks a path resolves these: they are never sent */
    name->text = text;
    name->len = (uint32_t)len;
    name->hash = hash_name(store->seed, text, len);
    return 0;
}

static struct dentry *new_dentry(const struct name *name, struct inode *inode)
{
    struct dentry *dentry = malloc(offsetof(struct dentry, name) + name->len + 1);
    if (!dentry)
        return NULL;
    dentry->inode = inode;
    dentry->len = (uint8_t)name->len;
    memcpy(dentry->name, name->text, name->len + 1);
    return dentry;
}

/* ---- the hash table --------------------------------------------------------------------- */

/* The cell of the name; if it is not there, the free cell where it belongs. */
static struct cell *find_cell(const struct dir *dir, const struct name *name)
{
    for (uint32_t at = name->hash;; at++) {
        struct cell *cell = &dir->cells[at & dir->mask];
        if (!cell->slot)
            return cell;
        if (cell->hash != name->hash)
            continue;
        const struct dentry *dentry = dir->slots[cell->slot - 1].dentry;
        if (dentry->len == name->len && memcmp(dentry->name, name->text, name->len) == 0)
            return cell;
    }
}

/* Frees a cell and moves up those that had to step aside for it. */
static void erase_cell(struct dir *dir, struct cell *cell)
{
    uint32_t hole = (uint32_t)(cell - dir->cells);

    for (uint32_t at = hole;;) {
        at = (at + 1) & dir->mask;
        struct cell *next = &dir->cells[at];
        if (!next->slot)
            break;
        if (((at - next->hash) & dir->mask) < ((at - hole) & dir->mask))
            continue; /* its home lies behind the hole */
        dir->cells[hole] = *next;
        hole = at;
    }
    dir->cells[hole].slot = 0;
}

static int resize_cells(struct dir *dir, uint32_t count)
{
    struct cell *cells = calloc(count, sizeof(*cells));
    if (!cells)
        return -ENOMEM;
    for (uint32_t i = 0; dir->cells && i <= dir->mask; i++) {
        if (!dir->cells[i].slot)
            continue;
        uint32_t at = dir->cells[i].hash;
        while (cells[at & (count - 1)].slot)
            at++;
        cells[at & (count - 1)] = dir->cells[i];
    }
    free(dir->cells);
    dir->cells = cells;
    dir->mask = count - 1;
    return 0;
}

/* ---- the ordered array ------------------------------------------------------------------ */

/* Moves the entries to an array of `cap` slots, packed. */
static int resize_slots(struct dir *dir, uint32_t cap)
{
    struct slot *slots = malloc(cap * sizeof(*slots));
    if (!slots)
        return -ENOMEM;

    uint32_t used = 0;
    for (uint32_t i = 0; i < dir->used; i++) {
        if (!dir->slots[i].dentry)
            continue;
        slots[used] = dir->slots[i];
        dir->slots[i].cookie = used++; /* the old array now tells where each went */
    }
    for (uint32_t i = 0; used != dir->used && i <= dir->mask; i++) {
        if (dir->cells[i].slot)
            dir->cells[i].slot = (uint32_t)dir->slots[dir->cells[i].slot - 1].cookie + 1;
    }
    free(dir->slots);
    dir->slots = slots;
    dir->used = used;
    dir->cap = cap;
    return 0;
}

/* Room for one more entry in both arrays. */
static int make_room(struct dir *dir)
{
    if (dir->used == dir->cap) {
        bool pack = dir->live < dir->cap - dir->cap / 4;
        uint64_t cap = pack ? dir->cap : (uint64_t)dir->cap + dir->cap / 2 + FEW_SLOTS;
        if (cap > UINT32_MAX / 2)
            return -ENOSPC;
        int error = resize_slots(dir, (uint32_t)cap);
        if (error)
            return error;
    }
    if (!dir->cells)
        return resize_cells(dir, FEW_CELLS);
    if (dir->live >= dir->mask - dir->mask / 4)
        return resize_cells(dir, (dir->mask + 1) * 2);
    return 0;
}

/* Gives memory back after many removals. Without memory to do so all stays as it is. */
static void shrink(struct dir *dir)
{
    if (dir->cap > 4 * FEW_SLOTS && dir->live < dir->cap / 4)
        resize_slots(dir, dir->live * 2 + FEW_SLOTS);
    if (dir->mask >= 8 * FEW_CELLS && dir->live < dir->mask / 8)
        resize_cells(dir, (dir->mask + 1) / 4);
}

/* ---- for tree.c ------------------------------------------------------------------------- */

struct dir *dir_new(struct inode *parent)
{
    struct dir *dir = calloc(1, sizeof(*dir));
    if (!dir)
        return NULL;
    dir->parent = parent;
    dir->next_cookie = FIRST_COOKIE;
    return dir;
}

void dir_free(struct dir *dir)
{
    for (uint32_t i = 0; i < dir->used; i++)
        free(dir->slots[i].dentry);
    free(dir->slots);
    free(dir->cells);
    free(dir);
}

struct dentry *dir_find(const struct dir *dir, const struct name *name)
{
    if (!dir->live)
        return NULL;
    const struct cell *cell = find_cell(dir, name);
    return cell->slot ? dir->slots[cell->slot - 1].dentry : NULL;
}

int dir_insert(struct dir *dir, const struct name *name, struct inode *inode)
{
    int error = make_room(dir);
    if (error)
        return error;
    struct dentry *dentry = new_dentry(name, inode);
    if (!dentry)
        return -ENOMEM;

    struct cell *cell = find_cell(dir, name);
    assert(!cell->slot);
    dir->slots[dir->used] = (struct slot){dentry, dir->next_cookie--};
    *cell = (struct cell){name->hash, ++dir->used};
    dir->live++;
    return 0;
}

void dir_remove(struct dir *dir, const struct name *name)
{
    struct cell *cell = find_cell(dir, name);
    assert(cell->slot);
    struct slot *slot = &dir->slots[cell->slot - 1];

    free(slot->dentry);
    slot->dentry = NULL;
    erase_cell(dir, cell);
    dir->live--;
    while (dir->used && !dir->slots[dir->used - 1].dentry)
        dir->used--;
    shrink(dir);
}

uint32_t dir_seek(const struct dir *dir, uint64_t cookie)
{
    uint32_t low = 0, high = dir->used;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (dir->slots[middle].cookie > cookie)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const struct dentry *dir_step(const struct dir *dir, uint32_t *pos, uint64_t *cookie)
{
    while (*pos > 0) {
        const struct slot *slot = &dir->slots[--*pos];
        if (!slot->dentry)
            continue;
        /* In a large directory each entry is two cache misses away: fetch ahead. */
        if (*pos >= 17)
            __builtin_prefetch(dir->slots[*pos - 17].dentry);
        if (*pos >= 9 && dir->slots[*pos - 9].dentry)
            __builtin_prefetch(dir->slots[*pos - 9].dentry->inode);
        *cookie = slot->cookie;
        return slot->dentry;
    }
    return NULL;
}
