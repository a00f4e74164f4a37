/*
 * memory.c - the memory that the cgroup of the run leaves.
 */
#include "shadows/memory.h"

#include <fcntl.h>
#include <string.h>

#include "intercept/brief.h"
#include "intercept/text.h"

#define MARGIN_PART 16 /* of the limit: what others take meanwhile, and what no file tells of */

/* Its text, up to size - 1 bytes of it. False: it cannot be read. */
static bool read_file(const struct dfi_hold *hold, const char *name, char *text, size_t size)
{
    char path[DFI_CGROUP_MAX + 32];
    long fd, got;

    strcpy(mempcpy(mempcpy(path, hold->cgroup, hold->cgroup_len), "/", 1), name);
    fd = dfi_brief_open(path, O_RDONLY);
    if (fd < 0)
        return false;
    got = dfi_kernel(__NR_read, fd, text, size - 1);
    dfi_brief_close(fd);
    text[got > 0 ? got : 0] = '\0';
    return got > 0;
}

/* The number behind the key, which is a line's first word, with the newline before it. */
static uint64_t number_of(const char *text, const char *key)
{
    const char *at = strstr(text, key);

    if (!at)
        return 0;
    at += strlen(key);
    return dfi_text_number(&at);
}

/* Copies of files on disk, which the kernel gives up when it needs room: not those on tmpfs. In
 * version 1 the sums with those of cgroups below have names of their own. */
static uint64_t pages_of_files(const struct dfi_hold *hold)
{
    char text[4096];

    if (!read_file(hold, "memory.stat", text, sizeof(text)))
        return 0;
    if (strstr(text, "\ntotal_active_file "))
        return number_of(text, "\ntotal_active_file ") + number_of(text, "\ntotal_inactive_file ");
    return number_of(text, "\nactive_file ") + number_of(text, "\ninactive_file ");
}

bool dfi_memory_has_room(const struct dfi_files *files, uint64_t size)
{
    const struct dfi_hold *hold = &files->hold;
    const char *at;
    char text[32];
    uint64_t used;

    if (hold->memory == 0 || (!read_file(hold, "memory.current", text, sizeof(text)) &&
                              !read_file(hold, "memory.usage_in_bytes", text, sizeof(text))))
        return true;
    at = text;
    used = dfi_text_number(&at);
    size += hold->memory / MARGIN_PART;
    return used + size <= hold->memory || used + size <= hold->memory + pages_of_files(hold);
}
