/*
 * module_iconv.c - the module that converts file names between character sets: -o
 * modules=iconv,from_code=CHARSET,to_code=CHARSET.
 */
#include <errno.h>
#include <iconv.h>
#include <langinfo.h>
#include <locale.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "libfuse/module.h"

struct iconv {
    struct df_layer layer;
    char *from_code;      /* of the names in the layer below; NULL: UTF-8 */
    char *to_code;        /* of the names shown; NULL: the locale's */
    pthread_mutex_t lock; /* protects the two descriptors, which keep a shift state */
    iconv_t down;
    iconv_t up;
};

enum { GROWTH = 4 }; /* bytes that one byte of a name becomes at most, in one step */

/* One attempt with a buffer of `room` bytes. 0, -E2BIG or -EILSEQ. */
static int convert_into(iconv_t how, const char *name, char *to, size_t room)
{
    char *from = (char *)name;
    size_t left = strlen(name);
    iconv(how, NULL, NULL, NULL, NULL); /* back to the initial shift state */
    if (iconv(how, &from, &left, &to, &room) == (size_t)-1)
        return errno == E2BIG ? -E2BIG : -EILSEQ;
    if (iconv(how, NULL, NULL, &to, &room) == (size_t)-1)
        return -E2BIG;
    *to = '\0';
    return 0;
}

static int convert(struct iconv *self, iconv_t how, const char *name, char **converted)
{
    int error = -E2BIG;
    for (size_t room = GROWTH * strlen(name) + GROWTH; error == -E2BIG; room *= 2) {
        char *to = malloc(room + 1);
        if (!to)
            return -ENOMEM;
        pthread_mutex_lock(&self->lock);
        error = convert_into(how, name, to, room);
        pthread_mutex_unlock(&self->lock);
        if (error)
            free(to);
        else
            *converted = to;
    }
    return error;
}

static int convert_down(struct df_layer *layer, const char *name, char **below)
{
    struct iconv *self = (struct iconv *)layer;
    return convert(self, self->down, name, below);
}

static int convert_up(struct df_layer *layer, const char *name, char **above)
{
    struct iconv *self = (struct iconv *)layer;
    return convert(self, self->up, name, above);
}

static int convert_target(struct df_layer *layer, const char *path, char *target, size_t size)
{
    char *above;
    (void)path;
    int error = convert_up(layer, target, &above);
    if (error)
        return error;
    strncpy(target, above, size - 1);
    target[size - 1] = '\0';
    free(above);
    return 0;
}

static void iconv_free(struct df_layer *layer)
{
    struct iconv *self = (struct iconv *)layer;
    if (self->down != (iconv_t)-1)
        iconv_close(self->down);
    if (self->up != (iconv_t)-1)
        iconv_close(self->up);
    pthread_mutex_destroy(&self->lock);
    free(self->from_code);
    free(self->to_code);
    free(self);
}

enum { KEY_HELP };

static const struct fuse_opt iconv_opts[] = {
    FUSE_OPT_KEY("-h", KEY_HELP),
    FUSE_OPT_KEY("--help", KEY_HELP),
    {"from_code=%s", offsetof(struct iconv, from_code), 0},
    {"to_code=%s", offsetof(struct iconv, to_code), 0},
    FUSE_OPT_END,
};

/*
 * The character set of the user's locale. Asked of a locale object of our own: setlocale() would
 * change the whole process, even for a moment.
 */
static char *locale_charset(void)
{
    locale_t locale = newlocale(LC_CTYPE_MASK, "", (locale_t)0);
    char *name = strdup(locale ? nl_langinfo_l(CODESET, locale) : "UTF-8");
    if (locale)
        freelocale(locale);
    return name;
}

static int iconv_proc(void *data, const char *arg, int key, struct fuse_args *outargs)
{
    (void)data;
    (void)arg;
    (void)outargs;
    if (key != KEY_HELP)
        return 1;
    char *charset = locale_charset();
    df_abi_print("    -o from_code=CHARSET   character set of the file system's names (UTF-8)\n"
                 "    -o to_code=CHARSET     character set to show them in (%s)\n",
                 charset ? charset : "the locale's");
    free(charset);
    return -1;
}

static int open_converters(struct iconv *self)
{
    const char *from = self->from_code ? self->from_code : "UTF-8";
    if (!self->to_code || !self->to_code[0]) {
        free(self->to_code);
        self->to_code = locale_charset();
        if (!self->to_code)
            return df_abi_no_memory();
    }
    self->down = iconv_open(from, self->to_code);
    self->up = iconv_open(self->to_code, from);
    if (self->down != (iconv_t)-1 && self->up != (iconv_t)-1)
        return 0;
    fuse_log(FUSE_LOG_ERR, "fuse-iconv: names cannot be converted between %s and %s\n", from,
             self->to_code);
    return -1;
}

struct fuse_fs *df_module_iconv(struct fuse_args *args, struct fuse_fs *below)
{
    struct fuse_fs *fs = NULL;
    struct iconv *self = calloc(1, sizeof(*self));
    if (!self) {
        df_abi_no_memory();
        return NULL;
    }
    self->down = self->up = (iconv_t)-1;
    pthread_mutex_init(&self->lock, NULL);
    self->layer = (struct df_layer){
        .path = convert_down,
        .entry = convert_up,
        .new_link = convert_down,
        .read_link = convert_target,
        .free = iconv_free,
    };
    if (fuse_opt_parse(args, self, iconv_opts, iconv_proc) == 0 && open_converters(self) == 0)
        fs = df_layer_push(&self->layer, below);
    if (!fs)
        iconv_free(&self->layer);
    return fs;
}
