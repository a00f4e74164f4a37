/*
 * files_number.c - the numbers of files that are open, by whatever descriptions: placeholders in
 * the programs are named by them. A number is the inode's place in a table, small ones first, and
 * above it how many files of that place were locked.
 *
 * All under the table's lock, which who asks from outside of it does not have.
 */
#include "ledger/files_private.h"

static uint32_t *chain_of(struct df_files *files, int mount, uint64_t ino)
{
    uint64_t hash = (ino + (uint64_t)mount) * UINT64_C(0x9e3779b97f4a7c15);

    return &files->chains[hash >> 32 & (DF_INODE_CHAINS - 1)];
}

/* Its place among the inodes of that chain; 0: it is not open. */
static uint32_t find(const struct df_files *files, uint32_t chain, int mount, uint64_t ino)
{
    uint32_t place = chain;

    while (place != 0 && (files->inodes[place].mount != mount || files->inodes[place].ino != ino))
        place = files->inodes[place].next;
    return place;
}

bool df_files_is_open(struct df_files *files, int mount, uint64_t ino)
{
    bool open;

    pthread_mutex_lock(&files->lock);
    open = find(files, *chain_of(files, mount, ino), mount, ino) != 0;
    pthread_mutex_unlock(&files->lock);
    return open;
}

static uint32_t number_of(const struct df_files *files, uint32_t place)
{
    return files->ledger->locked[place] * (uint32_t)DF_OFD_COUNT + place;
}

/* ---- descriptions of an inode ---------------------------------------------------------------- */

static void link_file(struct df_files *files, struct df_open_inode *inode, uint32_t index)
{
    struct df_open_file *entry = &files->open[index];

    entry->older = inode->last;
    entry->newer = 0;
    if (entry->older != 0)
        files->open[entry->older].newer = index;
    inode->last = index;
    inode->count++;
}

static void unlink_file(struct df_files *files, struct df_open_inode *inode, uint32_t index)
{
    struct df_open_file *entry = &files->open[index];

    if (entry->newer != 0)
        files->open[entry->newer].older = entry->older;
    else
        inode->last = entry->older;
    if (entry->older != 0)
        files->open[entry->older].newer = entry->newer;
    inode->count--;
}

/* ---- numbers --------------------------------------------------------------------------------- */

static void begin_inode(struct df_files *files, uint32_t *chain, uint32_t place, int mount,
                        uint64_t ino)
{
    files->inodes[place] = (struct df_open_inode){.mount = mount, .ino = ino, .next = *chain};
    *chain = place;
}

/* There are never more numbers in use than descriptions. */
uint32_t df_files_number_take(struct df_files *files, uint32_t index, int mount, uint64_t ino)
{
    uint32_t *chain = chain_of(files, mount, ino), place = find(files, *chain, mount, ino);

    if (place == 0) {
        place = files->first_number;
        files->first_number = files->inodes[place].next ? files->inodes[place].next : place + 1;
        begin_inode(files, chain, place, mount, ino);
    }
    link_file(files, &files->inodes[place], index);
    return files->open[index].number = number_of(files, place);
}

/* The kernel may have its placeholder locked for longer: by the descriptor of a process that was
 * killed, which it closes in its own time, or by one that nobody knows of. */
uint32_t df_files_number_give_back(struct df_files *files, uint32_t index, bool locked)
{
    uint32_t number = files->open[index].number, place = number % DF_OFD_COUNT;
    struct df_open_inode *inode = &files->inodes[place];
    uint32_t *link = chain_of(files, inode->mount, inode->ino);

    if (number == 0)
        return 0;
    inode->locked |= locked;
    unlink_file(files, inode, index);
    if (inode->count > 0)
        return 0;
    while (*link != place)
        link = &files->inodes[*link].next;
    *link = inode->next;
    inode->next = files->first_number;
    files->first_number = place;
    files->ledger->locked[place] += inode->locked;
    return inode->locked ? number : 0;
}

void df_files_number_keep(struct df_files *files, uint32_t index)
{
    const struct df_ofd *ofd = df_files_ofd(files, index);
    uint32_t number = ofd->number, place = number % DF_OFD_COUNT;
    bool is_first = files->inodes[place].count == 0;

    if (place == 0 || number != number_of(files, place))
        return;
    files->open[index].number = number;
    if (is_first)
        begin_inode(files, chain_of(files, ofd->mount, ofd->ino), place, ofd->mount, ofd->ino);
    files->inodes[place].locked = true;
    link_file(files, &files->inodes[place], index);
    if (place >= files->first_number)
        files->first_number = place + 1;
}

void df_files_number_find_free(struct df_files *files)
{
    for (uint32_t place = files->first_number; place > 1;)
        if (files->inodes[--place].count == 0) {
            files->inodes[place].next = files->first_number;
            files->first_number = place;
        }
}
