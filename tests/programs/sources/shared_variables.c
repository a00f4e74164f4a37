/*
 * shared_variables.c - a program and two libraries that share variables both ways. Compiled three
 * times: -DLIBRARY, -DABOVE (a library that needs that one) and as the program.
 */
struct shared {
    int number;
    const char *word;
    int *own;
};
extern struct shared shared;
extern int *const numbers[2];

void set_number(int number);
int number_above(void);

#if defined(LIBRARY)

int *const numbers[2] = {&shared.number, &shared.number};
struct shared shared = {.number = 3, .word = "library", .own = &shared.number};

__attribute__((constructor)) static void construct(void)
{
    shared.number += 4; /* in a process of its own the library sees the program's copy here */
}

void set_number(int number)
{
    *numbers[1] = number;
}

#elif defined(ABOVE)

int number_above(void)
{
    return shared.number;
}

#else
#define FUSE_USE_VERSION 31
#include <errno.h>
#include <fuse.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static int constructed;

__attribute__((constructor)) static void construct(void)
{
    constructed = shared.number; /* after the library's */
}

static void say(char *text, size_t size)
{
    snprintf(text, size, "%d %d %d %s %d %d", constructed, shared.number, *numbers[0], shared.word,
             shared.own == &shared.number, number_above());
}

static int get_attributes(const char *path, struct stat *st, struct fuse_file_info *fi)
{
    (void)fi;
    st->st_mode = path[1] ? S_IFREG | 0644 : S_IFDIR | 0755;
    st->st_nlink = 1;
    st->st_size = path[1] ? 64 : 0;
    return path[1] && strcmp(path, "/number") != 0 ? -ENOENT : 0;
}

static int read_number(const char *path, char *data, size_t size, off_t offset,
                       struct fuse_file_info *fi)
{
    char text[64] = "";
    (void)path;
    (void)fi;
    say(text, sizeof(text));
    size_t length = strlen(text);
    if ((size_t)offset >= length)
        return 0;
    length = length - offset < size ? length - offset : size;
    memcpy(data, text + offset, length);
    return (int)length;
}

static int write_number(const char *path, const char *data, size_t size, off_t offset,
                        struct fuse_file_info *fi)
{
    char text[16] = "";
    (void)path;
    (void)offset;
    (void)fi;
    memcpy(text, data, size < sizeof(text) ? size : sizeof(text) - 1);
    set_number(atoi(text));
    return (int)size;
}

int main(int argc, char *argv[])
{
    static const struct fuse_operations operations = {
        .getattr = get_attributes, .read = read_number, .write = write_number};
    return fuse_main(argc, argv, &operations, NULL);
}
#endif
