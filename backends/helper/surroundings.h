/*
 * surroundings.h - what a FUSE server finds around it when it is started: its environment, our two
 * doors, and a mountpoint that exists.
 */
#ifndef HELPER_SURROUNDINGS_H
#define HELPER_SURROUNDINGS_H

#include <stdbool.h>
#include <stddef.h>

/* Where our doors are: <tree>/libexec/helper, beside the library that we run with, or beside the
 * program that we are. False: nowhere. */
bool surroundings_tools(char *path, size_t size);

/* The environment. */
enum { SURROUNDINGS_MADE = 4 };

struct surroundings {
    char **entries;
    char *made[SURROUNDINGS_MADE]; /* those of the entries that are ours to free */
};

/* That of this process with the doors of `tools`, and with the control socket of `directory`.
 * False: no memory, and there is nothing to end. */
bool surroundings_begin(struct surroundings *out, const char *directory, const char *tools);
void surroundings_end(struct surroundings *environment);

/*
 * The word of a command line that names the mountpoint. It may be missing on disk, unlike most else
 * that a server is likely to be told, but for files that it is to make (a log, a cache), which are
 * values of options. "host:/path" and "--option=/path" are no paths, nor are the words of a shell.
 * 0: there is none.
 */
int surroundings_mountpoint(int argc, char *const argv[]);

/* The word that names `path`, which the program has mounted. 0: there is none. */
int surroundings_word_for(int argc, char *const argv[], const char *path);

/* A server looks at its mountpoint before it asks for it, and ours need not exist: makes one in
 * `directory`. Returns the word to use, for which `shown` is room; *named: what the user calls it,
 * an absolute path to be freed. Without a directory the word as it was: the server says itself then
 * that it has no mountpoint. */
char *surroundings_show(const char *directory, char *word, char *shown, size_t size, char **named);

#endif
