/*
 * listing_fds.c - listings of /proc/self/fd, without the descriptors that are ours.
 *
 * Programs close what they find there, count it, or warn of what they did not open.
 */
#include <dirent.h>

#include "client/number.h"
#include "intercept/brief.h"
#include "shown/listing.h"
#include "ways/proc.h"

/* Of getdents64(2), as long as the longest entry of a descriptor, which has ten digits. */
struct entry {
    uint64_t ino, next;
    unsigned short size;
    unsigned char type;
    char name[13];
};

#define SHORT 24 /* bytes of an entry with up to four digits; of ".", too */

/* The entry at that address, of `left` bytes at most. False: it is none of a descriptor. */
static bool fetch(struct entry *entry, unsigned long program, long left)
{
    size_t size = left < (long)sizeof(*entry) ? SHORT : sizeof(*entry);

    return left >= SHORT && dfi_copy_from(entry, (const void *)program, size) == 0 &&
           entry->size >= SHORT && entry->size <= size;
}

/* By the first entry that is neither "." nor "..": the number of a link or (fdinfo) of a file. Few
 * other directories begin so, and of no others the kernel is asked. */
static bool may_list_fds(unsigned long program, long got)
{
    struct entry entry;

    for (long at = 0; at < 3 * SHORT; at += SHORT) {
        if (!fetch(&entry, program + (unsigned long)at, got - at) || entry.size != SHORT)
            return false;
        if (entry.name[0] != '.')
            return entry.name[0] >= '0' && entry.name[0] <= '9' &&
                   (entry.type == DT_LNK || entry.type == DT_REG);
    }
    return false;
}

static bool is_ours(const char *name)
{
    const char *end = name;
    int fd = (int)dfi_number_get(&end);

    return end > name && *end == '\0' && (dfi_is_hidden(dfi_process(), fd) || dfi_brief_is(fd));
}

/* The entries that stay move up. The bytes of them. */
static long take_out(unsigned long program, long got)
{
    struct entry entry;
    long kept = 0;

    for (long at = 0; at < got; at += entry.size) {
        if (!fetch(&entry, program + (unsigned long)at, got - at))
            return got; /* another thread has written there */
        if (is_ours(entry.name))
            continue;
        if (kept < at &&
            dfi_copy_to((void *)(program + (unsigned long)kept), &entry, entry.size) < 0)
            return got;
        kept += entry.size;
    }
    return kept;
}

long dfi_listing_read(const struct dfi_files *files, int fd, unsigned long program, size_t size)
{
    for (;;) {
        long got = dfi_kernel(__NR_getdents64, fd, program, size);

        if (got <= 0)
            return got;
        got = may_list_fds(program, got) && dfi_proc_lists_fds(fd)
                  ? take_out(program, got)
                  : dfi_listing_without_run(files, fd, program, got);
        if (got > 0) /* 0 would be the end */
            return got;
    }
}
