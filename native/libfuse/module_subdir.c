/*
 * module_subdir.c - the module that puts a directory in front of every path: -o
 * modules=subdir,subdir=DIR[,rellinks].
 */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfuse/module.h"

struct subdir {
    struct df_layer layer;
    char *base;   /* ends with '/', or is empty: then paths are made relative */
    int rellinks; /* absolute links below base are shown relative */
};

static int prepend_base(struct df_layer *layer, const char *path, char **below)
{
    const struct subdir *subdir = (struct subdir *)layer;
    if (path[0] == '/')
        path++;
    const char *whole = subdir->base[0] || path[0] ? path : ".";
    if (asprintf(below, "%s%s", subdir->base, whole) >= 0)
        return 0;
    *below = NULL;
    return -ENOMEM;
}

/* ---- absolute links below the base, as seen from their own directory ---------------------- */

/* Skips slashes, then measures the component that follows. */
static const char *component(const char *path, size_t *len)
{
    path += strspn(path, "/");
    *len = strcspn(path, "/");
    return path;
}

/* Moves both behind the components they begin with in common. */
static void skip_common(const char **a, const char **b)
{
    for (;;) {
        size_t a_len, b_len;
        const char *a_next = component(*a, &a_len);
        const char *b_next = component(*b, &b_len);
        *a = a_next;
        *b = b_next;
        if (a_len == 0 || a_len != b_len || memcmp(a_next, b_next, a_len) != 0)
            return;
        *a += a_len;
        *b += b_len;
    }
}

static size_t count_components(const char *path)
{
    size_t count = 0, len;
    for (path = component(path, &len); len > 0; path = component(path + len, &len))
        count++;
    return count;
}

static int make_relative(struct df_layer *layer, const char *path, char *target, size_t size)
{
    const struct subdir *subdir = (struct subdir *)layer;
    size_t base_len = strlen(subdir->base);
    const char *rest = target;

    if (!subdir->rellinks || target[0] != '/' || subdir->base[0] != '/')
        return 0;
    skip_common(&rest, &path);
    if (rest < target + base_len)
        return 0; /* leads out of the base: stays */
    size_t ups = count_components(path);
    if (ups == 0)
        return 0; /* the link points to itself or below itself */
    ups--;        /* its own name */
    size_t len = strlen(rest);
    if (3 * ups + len + 2 > size)
        return 0;
    memmove(target + 3 * ups, rest, len + 1);
    for (size_t i = 0; i < ups; i++)
        memcpy(target + 3 * i, "../", 3);
    if (len == 0 && ups == 0)
        strcpy(target, ".");
    return 0;
}

/* ---- making one -------------------------------------------------------------------------- */

static void subdir_free(struct df_layer *layer)
{
    struct subdir *subdir = (struct subdir *)layer;
    free(subdir->base);
    free(subdir);
}

enum { KEY_HELP };

static const struct fuse_opt subdir_opts[] = {
    FUSE_OPT_KEY("-h", KEY_HELP),
    FUSE_OPT_KEY("--help", KEY_HELP),
    {"subdir=%s", offsetof(struct subdir, base), 0},
    {"rellinks", offsetof(struct subdir, rellinks), 1},
    {"norellinks", offsetof(struct subdir, rellinks), 0},
    FUSE_OPT_END,
};

static int subdir_proc(void *data, const char *arg, int key, struct fuse_args *outargs)
{
    (void)data;
    (void)arg;
    (void)outargs;
    if (key != KEY_HELP)
        return 1;
    df_abi_print("    -o subdir=DIR          put DIR in front of all paths (must be given)\n"
                 "    -o [no]rellinks        show absolute links below DIR as relative ones\n");
    return -1;
}

static int end_with_slash(char **base)
{
    size_t len = strlen(*base);
    if (len == 0 || (*base)[len - 1] == '/')
        return 0;
    char *longer = realloc(*base, len + 2);
    if (!longer)
        return df_abi_no_memory();
    strcpy(longer + len, "/");
    *base = longer;
    return 0;
}

struct fuse_fs *df_module_subdir(struct fuse_args *args, struct fuse_fs *below)
{
    struct fuse_fs *fs = NULL;
    struct subdir *subdir = calloc(1, sizeof(*subdir));
    if (!subdir) {
        df_abi_no_memory();
        return NULL;
    }
    subdir->layer = (struct df_layer){
        .path = prepend_base,
        .read_link = make_relative,
        .free = subdir_free,
    };
    if (fuse_opt_parse(args, subdir, subdir_opts, subdir_proc) == -1)
        goto out;
    if (!subdir->base)
        fuse_log(FUSE_LOG_ERR, "fuse-subdir: the option subdir=DIR is missing\n");
    else if (end_with_slash(&subdir->base) == 0)
        fs = df_layer_push(&subdir->layer, below);
out:
    if (!fs)
        subdir_free(&subdir->layer);
    return fs;
}
