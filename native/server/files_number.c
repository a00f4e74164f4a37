/*
 * files_number.c - the numbers of files that are open, by whatever descriptions: placeholders in
 * the programs are named by them.
 *
 * All under the table's lock, which who asks from outside of it does not have.
 */
#include "server/files_private.h"

static uint32_t *chain_of(struct df_files *files, int mount, uint64_t ino)
{
    uint64_t hash = (ino + (uint64_t)mount) * UINT64_C(0x9e3779b97f4a7c15);

    return &files->chains[hash >> 32 & (DF_INODE_CHAINS - 1)];
}

/* 0: it is not open. */
static uint32_t find(struct df_files *files, int mount, uint64_t ino)
{
    uint32_t number = *chain_of(files, mount, ino);

    while (number != 0 &&
           (files->inodes[number].mount != mount || files->inodes[number].ino != ino))
        number = files->inodes[number].next;
    return number;
}

bool df_files_is_open(struct df_files *files, int mount, uint64_t ino)
{
    bool open;

    pthread_mutex_lock(&files->lock);
    open = find(files, mount, ino) != 0;
    pthread_mutex_unlock(&files->lock);
    return open;
}

/* There are never more numbers in use than descriptions. */
uint32_t df_files_number_take(struct df_files *files, int mount, uint64_t ino)
{
    uint32_t *chain = chain_of(files, mount, ino), number = find(files, mount, ino);
    struct df_open_inode *inode;

    if (number != 0) {
        files->inodes[number].count++;
        return number;
    }
    number = files->first_number;
    inode = &files->inodes[number];
    files->first_number = inode->next ? inode->next : number + 1;
    *inode = (struct df_open_inode){mount, 1, ino, *chain};
    return *chain = number;
}

void df_files_number_give_back(struct df_files *files, uint32_t number)
{
    struct df_open_inode *inode = &files->inodes[number];
    uint32_t *link = chain_of(files, inode->mount, inode->ino);

    if (number == 0 || --inode->count > 0)
        return;
    while (*link != number)
        link = &files->inodes[*link].next;
    *link = inode->next;
    inode->next = files->first_number;
    files->first_number = number;
}

void df_files_number_keep(struct df_files *files, uint32_t index)
{
    const struct df_ofd *ofd = df_files_ofd(files, index);
    uint32_t number = ofd->number, *chain = chain_of(files, ofd->mount, ofd->ino);

    if (number == 0 || number >= DF_OFD_COUNT)
        return;
    files->open[index].number = number;
    if (files->inodes[number].count++ > 0)
        return;
    files->inodes[number] = (struct df_open_inode){ofd->mount, 1, ofd->ino, *chain};
    *chain = number;
    if (number >= files->first_number)
        files->first_number = number + 1;
}

void df_files_number_find_free(struct df_files *files)
{
    for (uint32_t number = files->first_number; number > 1;)
        if (files->inodes[--number].count == 0) {
            files->inodes[number].next = files->first_number;
            files->first_number = number;
        }
}
