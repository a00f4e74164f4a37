/*
 * mounts.c - the kernel's lists of mounts, with those of the run: df(1), findmnt(1) and others look
 * there for what a path lies on.
 */
#include "shown/mounts.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>

#include "client/table.h"
#include "intercept/brief.h"
#include "intercept/text.h"
#include "shown/replace.h"
#include "ways/proc.h"

enum list { NO_LIST, MOUNTINFO, MOUNTS };

static enum list list_of(const char *path)
{
    const char *rest;

    if (strcmp(path, "/proc/mounts") == 0 || strcmp(path, "/etc/mtab") == 0)
        return MOUNTS;
    if (!(rest = dfi_proc_behind_process(path)))
        return NO_LIST;
    return strcmp(rest, "/mountinfo") == 0 ? MOUNTINFO
           : strcmp(rest, "/mounts") == 0  ? MOUNTS
                                           : NO_LIST;
}

/* ---- the kernel's lines ---------------------------------------------------------------------- */

static long copy(int from, int to)
{
    char bytes[4096];
    long got, size = 0;

    while ((got = dfi_kernel(__NR_read, from, bytes, sizeof(bytes))) > 0) {
        if (dfi_kernel(__NR_write, to, bytes, got) != got)
            return -ENOSPC;
        size += got;
    }
    return got < 0 ? got : size;
}

/* Bytes before the end of the word. */
static size_t word_len(const char *text)
{
    size_t len = 0;

    while (text[len] != ' ' && text[len] != '\n')
        len++;
    return len;
}

static const char *next_line(const char *text)
{
    while (*text++ != '\n')
        ;
    return text;
}

/* The word behind `count` others. */
static const char *word(const char *line, int count)
{
    while (count-- > 0) {
        line += word_len(line);
        line += *line == ' ';
    }
    return line;
}

/* Whether the text, which ends at a space, is that directory or one above it. */
static bool lies_above(const char *text, const char *point)
{
    size_t len = word_len(text);

    if (len == 1)
        return true;
    return strncmp(text, point, len) == 0 && (point[len] == '/' || point[len] == '\0');
}

/* The id of the mount that a mountpoint lies on: of those above it the last that has the longest
 * name. */
static unsigned long parent_of(const char *lines, const char *end, const char *point)
{
    unsigned long parent = 0;
    size_t longest = 0;

    while (lines < end) {
        const char *at = lines, *above = word(lines, 4);
        size_t len = word_len(above);

        if (len >= longest && lies_above(above, point)) {
            longest = len;
            parent = dfi_text_number(&at);
        }
        lines = next_line(lines);
    }
    return parent;
}

/* ---- ours ------------------------------------------------------------------------------------ */

/* As the kernel escapes what would end a word: proc(5), "mangle". */
static void add_name(struct dfi_text *text, const char *name, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)name[i];
        char octal[] = {'\\', (char)('0' + (c >> 6)), (char)('0' + (c >> 3 & 7)),
                        (char)('0' + (c & 7))};

        if (c == ' ' || c == '\t' || c == '\n' || c == '\\' || c == '#')
            dfi_text_add_size(text, octal, sizeof(octal));
        else
            dfi_text_add_size(text, name + i, 1);
    }
}

static void add_type(struct dfi_text *text, const struct df_shared_mount *mount)
{
    size_t len = strnlen(mount->subtype, sizeof(mount->subtype));

    dfi_text_add(text, len > 0 ? "fuse." : "fuse");
    add_name(text, mount->subtype, len);
}

static void add_source(struct dfi_text *text, const struct df_shared_mount *mount)
{
    size_t len = strnlen(mount->fsname, sizeof(mount->fsname));

    if (len > 0)
        add_name(text, mount->fsname, len);
    else
        dfi_text_add(text, "directfuse");
}

static void add_options(struct dfi_text *text, const struct df_shared_mount *mount)
{
    dfi_text_add(text, mount->flags & DF_SHARED_READONLY ? "ro" : "rw");
    dfi_text_add(text, ",nosuid,nodev,relatime");
}

static void add_device(struct dfi_text *text, uint64_t dev)
{
    dfi_text_add_number(text, major(dev));
    dfi_text_add(text, ":");
    dfi_text_add_number(text, minor(dev));
}

static void add_mountinfo(struct dfi_text *text, const struct df_shared_mount *mount,
                          unsigned long parent)
{
    dfi_text_add_number(text, dfi_mounts_id(mount->live));
    dfi_text_add(text, " ");
    dfi_text_add_number(text, parent);
    dfi_text_add(text, " ");
    add_device(text, mount->dev);
    dfi_text_add(text, " / ");
    add_name(text, mount->point, mount->point_len);
    dfi_text_add(text, " ");
    add_options(text, mount);
    dfi_text_add(text, " - ");
    add_type(text, mount);
    dfi_text_add(text, " ");
    add_source(text, mount);
    dfi_text_add(text, mount->flags & DF_SHARED_READONLY ? " ro\n" : " rw\n");
}

static void add_mounts(struct dfi_text *text, const struct df_shared_mount *mount)
{
    add_source(text, mount);
    dfi_text_add(text, " ");
    add_name(text, mount->point, mount->point_len);
    dfi_text_add(text, " ");
    add_type(text, mount);
    dfi_text_add(text, " ");
    add_options(text, mount);
    dfi_text_add(text, " 0 0\n");
}

/* ---- both ------------------------------------------------------------------------------------ */

static long add_ours(const struct dfi_files *files, int to, enum list list, const char *lines,
                     size_t size)
{
    const struct df_shared_mount *mounts = df_segment_mounts(files->link.segment);
    char line[4 * PATH_MAX + 2048];

    for (int i = 0; i < dfi_table_places(); i++) {
        struct dfi_text text = DFI_TEXT(line);
        long got;

        if (!dfi_table_point(i))
            continue;
        if (list == MOUNTINFO)
            add_mountinfo(&text, &mounts[i], parent_of(lines, lines + size, mounts[i].point));
        else
            add_mounts(&text, &mounts[i]);
        got = dfi_kernel(__NR_write, to, line, text.used);
        if (got != (long)text.used)
            return got < 0 ? got : -ENOSPC;
    }
    return 0;
}

static long fill(const struct dfi_files *files, int from, int to, enum list list)
{
    long at, ret, size = copy(from, to);

    if (size < 0)
        return size;
    at = dfi_kernel(__NR_mmap, 0, size + 1, PROT_READ, MAP_SHARED, to, 0);
    if (at < 0 && at > -4096)
        return at;
    ret = add_ours(files, to, list, (const char *)at, (size_t)size);
    dfi_kernel(__NR_munmap, at, size + 1);
    return ret;
}

long dfi_mounts_listed(const struct dfi_files *files, const char *path, int fd)
{
    enum list list = files->link.segment ? list_of(path) : NO_LIST;
    long memory, ret;

    if (list == NO_LIST)
        return fd;
    memory = dfi_brief(__NR_memfd_create, "mounts", MFD_CLOEXEC);
    ret = memory < 0 ? memory : fill(files, fd, (int)memory, list);
    return dfi_proc_replace(fd, memory, ret);
}
