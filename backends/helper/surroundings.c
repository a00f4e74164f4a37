/*
 * surroundings.c - environment, doors and mountpoint of a FUSE server; see surroundings.h.
 */
#include "surroundings.h"

#include "control.h"
#include "directory.h"

#ifndef FUSE_USE_VERSION
#define FUSE_USE_VERSION 312
#endif
#include <dirent.h>
#include <dlfcn.h>
#include <fuse_lowlevel.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

extern char **environ;

/* ---- where our own files are -------------------------------------------------------------------
 */

bool surroundings_tools(char *path, size_t size)
{
    char self[PATH_MAX];
    Dl_info info;

    if (dladdr((void *)(uintptr_t)fuse_session_mount, &info) && info.dli_fname[0] == '/') {
        snprintf(path, size, "%.*s/../libexec/helper",
                 (int)(strrchr(info.dli_fname, '/') - info.dli_fname), info.dli_fname);
        if (access(path, F_OK) == 0)
            return true;
    }
    ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
    if (length <= 0)
        return false;
    self[length] = '\0';
    *strrchr(self, '/') = '\0';
    snprintf(path, size, "%s/../libexec/helper", self);
    return access(path, F_OK) == 0;
}

/* ---- the environment of the server --------------------------------------------------------------
 */

/* NAME=FIRST, followed by what NAME was: one more entry of a list. */
static char *listed(const char *name, const char *first, const char *separator)
{
    const char *old = getenv(name);
    char *text;

    return asprintf(&text, "%s=%s%s%s", name, first, old && *old ? separator : "", old ? old : "") <
                   0
               ? NULL
               : text;
}

static bool is_named(const char *entry, const char *name)
{
    size_t length = strlen(name);

    return strncmp(entry, name, length) == 0 && entry[length] == '=';
}

void surroundings_end(struct surroundings *environment)
{
    for (int i = 0; i < SURROUNDINGS_MADE; i++)
        free(environment->made[i]);
    free(environment->entries);
}

/* The doors by a name that may stand in a list: the dynamic linker divides LD_PRELOAD at blanks and
 * colons, and knows no escape. Where no link can be made it says itself what it does not find. */
static void listable(char *path, size_t size, const char *directory, const char *tools)
{
    snprintf(path, size, "%s/" DIRECTORY_TOOLS, directory);
    if (!strpbrk(tools, " :") || symlink(tools, path) < 0)
        snprintf(path, size, "%s", tools);
}

static const char *const names[SURROUNDINGS_MADE] = {"LD_PRELOAD", "PATH", "ASAN_OPTIONS",
                                                     CONTROL_VARIABLE};

/* Whether there was memory for all of them. */
static bool make_entries(struct surroundings *out, const char *directory, const char *tools)
{
    char preload[2 * PATH_MAX + 32], doors[2 * PATH_MAX];

    listable(doors, sizeof(doors), directory, tools);
    snprintf(preload, sizeof(preload), "%s/libdf-helper.so", doors);
    out->made[0] = listed(names[0], preload, ":");
    out->made[1] = listed(names[1], doors, ":");
    out->made[2] = listed(names[2], "verify_asan_link_order=0", ":"); /* it comes behind ours */
    if (asprintf(&out->made[3], "%s=%s/" DIRECTORY_CONTROL, names[3], directory) < 0)
        out->made[3] = NULL;
    return out->made[0] && out->made[1] && out->made[2] && out->made[3];
}

static bool is_made(const char *entry)
{
    for (int i = 0; i < SURROUNDINGS_MADE; i++)
        if (is_named(entry, names[i]))
            return true;
    return false;
}

bool surroundings_begin(struct surroundings *out, const char *directory, const char *tools)
{
    size_t count = 0, used = SURROUNDINGS_MADE;

    *out = (struct surroundings){0};
    while (environ[count])
        count++;
    out->entries = calloc(count + SURROUNDINGS_MADE + 1, sizeof(char *));
    if (!make_entries(out, directory, tools) || !out->entries) {
        surroundings_end(out);
        return false;
    }
    memcpy(out->entries, out->made, sizeof(out->made));
    for (size_t i = 0; i < count; i++)
        if (!is_made(environ[i]))
            out->entries[used++] = environ[i];
    return true;
}

/* ---- the mountpoint -----------------------------------------------------------------------------
 */

static bool is_empty_directory(const char *path)
{
    DIR *dir = opendir(path);
    int count = 0;

    while (dir && readdir(dir))
        count++;
    if (dir)
        closedir(dir);
    return dir && count <= 2; /* "." and ".." */
}

/* sh -c 'exec server /mnt', bash -lc '...': what has blanks may be a path elsewhere. */
static bool is_for_a_shell(char *const argv[], int i)
{
    const char *option = argv[i - 1];

    return strchr(argv[i], ' ') && option[0] == '-' && option[strlen(option) - 1] == 'c';
}

static bool is_path(char *const argv[], int i)
{
    return argv[i][0] != '-' && strcmp(argv[i - 1], "-o") != 0 && strchr(argv[i], '/') &&
           !strchr(argv[i], ':') && !is_for_a_shell(argv, i);
}

/* "--log-file /new/one": perhaps an option's value, perhaps not. */
static bool follows_option(char *const argv[], int i)
{
    return strncmp(argv[i - 1], "--", 2) == 0 && !strchr(argv[i - 1], '=');
}

/* The last path that names nothing; else the last that names an empty directory; 0: there is none.
 */
static int last_candidate(int argc, char *const argv[], bool with_values)
{
    int missing = 0, empty = 0;

    for (int i = 1; i < argc; i++) {
        if (!is_path(argv, i) || (!with_values && follows_option(argv, i)))
            continue;
        if (access(argv[i], F_OK) < 0)
            missing = i;
        else if (is_empty_directory(argv[i]))
            empty = i;
    }
    return missing ? missing : empty;
}

int surroundings_mountpoint(int argc, char *const argv[])
{
    int place = last_candidate(argc, argv, false);

    return place ? place : last_candidate(argc, argv, true);
}

static char *absolute(const char *path)
{
    char *text = NULL, *cwd = NULL;

    if (path[0] == '/')
        return strdup(path);
    cwd = getcwd(NULL, 0);
    if (cwd && asprintf(&text, "%s/%s", cwd, path) < 0)
        text = NULL;
    free(cwd);
    return text;
}

/* As it was written, or as the program has resolved it. */
static bool leads_to(const char *word, const char *path)
{
    char *whole = absolute(word), *resolved = realpath(word, NULL);
    bool same = (whole && strcmp(whole, path) == 0) || (resolved && strcmp(resolved, path) == 0);

    free(whole);
    free(resolved);
    return same;
}

int surroundings_word_for(int argc, char *const argv[], const char *path)
{
    for (int i = argc - 1; i > 0; i--) {
        if (is_path(argv, i) && leads_to(argv[i], path))
            return i;
    }
    return 0;
}

/* Some programs show their mountpoint's mode as that of their root. Whatever it is, the program has
 * to get in. */
static mode_t mode_of(const char *mountpoint)
{
    struct stat st;

    return 0700 | (stat(mountpoint, &st) == 0 && S_ISDIR(st.st_mode) ? st.st_mode & 07777 : 0);
}

char *surroundings_show(const char *directory, char *word, char *shown, size_t size, char **named)
{
    snprintf(shown, size, "%s/" DIRECTORY_MNT, directory);
    if (mkdir(shown, 0700) < 0 || chmod(shown, mode_of(word)) < 0) /* whatever the umask */
        return word; /* it will say itself that it has no mountpoint */
    *named = absolute(word);
    return shown;
}
