/*
 * stat_answers.h - files whose attributes are what their names say, "FIELD=NUMBER", whatever
 * stat(2) can show; and symlinks with targets of any length. "@" in front of a name says the same
 * of a file that is not listed.
 */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

static const char *const listed[] = {
    "mode=0x81a4",
    "mode=0xffff81a4",
    "mode=0x81ffff",
    "nlink=0",
    "nlink=0x100000001",
    "nlink=-1",
    "rdev=0x501",
    "rdev=0x123456789abc",
    "size=-1",
    "size=0x7fffffffffffffff",
    "blocks=-1",
    "blksize=0",
    "blksize=1",
    "blksize=5000",
    "blksize=65536",
    "blksize=0x100001000",
    "blksize=-1",
    "asec=-1",
    "ansec=999999999",
    "ansec=1000000000",
    "ansec=-1",
    "ansec=0x100000005",
    "mnsec=1000000000",
    "cnsec=2000000000",
    "link=5",
    "link=4095",
    "link=4096",
    "link=5000",
    NULL,
};

static const char *without_mark(const char *name)
{
    return name + (name[0] == '@');
}

static int is(const char *name, const char *field)
{
    size_t len = strlen(field);

    return strncmp(name, field, len) == 0 && name[len] == '=';
}

/* 0, or an error number. */
static int answer(const char *name, struct stat *st)
{
    const char *text = strchr(name, '=');

    if (!text)
        return ENOENT;
    name = without_mark(name);
    *st = (struct stat){.st_mode = S_IFREG | 0644, .st_nlink = 1, .st_size = 10};
    long long number = (long long)strtoull(text + 1, NULL, 0);
    if (is(name, "mode"))
        st->st_mode = (mode_t)number;
    else if (is(name, "nlink"))
        st->st_nlink = (nlink_t)number;
    else if (is(name, "rdev"))
        st->st_mode = S_IFCHR | 0644, st->st_rdev = (dev_t)number;
    else if (is(name, "size"))
        st->st_size = number;
    else if (is(name, "blocks"))
        st->st_blocks = number;
    else if (is(name, "blksize"))
        st->st_blksize = number;
    else if (is(name, "asec"))
        st->st_atim.tv_sec = number;
    else if (is(name, "ansec"))
        st->st_atim.tv_nsec = number;
    else if (is(name, "mnsec"))
        st->st_mtim.tv_nsec = number;
    else if (is(name, "cnsec"))
        st->st_ctim.tv_nsec = number;
    else if (is(name, "link"))
        st->st_mode = S_IFLNK | 0777;
    else
        return ENOENT;
    return 0;
}

enum { LONGEST = 5000 };

/* Its length. */
static size_t target_of(const char *name, char target[LONGEST + 1])
{
    size_t length = (size_t)atol(strchr(name, '=') + 1);

    memset(target, 'x', length);
    target[length] = '\0';
    return length;
}

static const struct statvfs space = {
    .f_bsize = 1024,
    .f_blocks = 100,
    .f_bfree = 50,
    .f_bavail = 40,
    .f_files = 30,
    .f_ffree = 20,
    .f_favail = 10,
    .f_fsid = 77,
    .f_flag = ST_RDONLY | ST_NOEXEC,
    .f_namemax = 70,
};

static const struct stat root_attributes = {.st_mode = S_IFDIR | 0755, .st_nlink = 2, .st_ino = 1};
