/*
 * dir.c - reading directories, in both modes of libfuse's readdir.
 *
 *   whole    the plugin gives all names with offset 0: kept on the open directory until it is read
 *            from the start again. An offset is then a position in what was kept.
 *   offsets  the plugin gives each name the offset to go on from: they go straight to the caller.
 *
 * Which one it is shows with the first name of a listing. Names that come with attributes
 * (FUSE_FILL_DIR_PLUS) fill the entry cache, as READDIRPLUS does.
 */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "highlevel/walk.h"

struct df_dirstream {
    pthread_mutex_t lock; /* one readdir at a time; protects what follows */
    bool whole;           /* `names` has a listing */
    char *names;          /* struct name records, one behind the other */
    size_t used, room;    /* bytes */
};

/* One name of a whole listing. */
struct name {
    ino_t ino;
    uint16_t len; /* of text */
    uint8_t type; /* DT_* */
    char text[];
};

#define NAME_SIZE(len) ((offsetof(struct name, text) + (len) + 7) & ~(size_t)7)

/* What the plugin hands back to the filler. */
struct fill {
    struct df_frame *frame;
    struct df_dirstream *stream;
    struct df_dirbuf *buf;
    bool offsets;        /* mode, by the first name */
    bool given_numbers;  /* config.use_ino: the plugin's inode numbers count */
    bool wants_numbers;  /* hl->plus_for_numbers */
    bool unnumbered;     /* a name came without one that is wanted */
    bool learns;         /* attributes that come with a name are kept */
    int stopped;         /* the plugin was told to: a negative errno, or 1: buf is full */
    bool misnamed;       /* by a name that is none: the kernel's matter, not libfuse's */
    uint32_t listing;    /* df_entry_cache_list_begin() */
    uint64_t dir_expiry; /* until when the directory is verified */
    uint32_t dir_len;    /* of the directory's path in `path`, without a slash */
    ino_t dir_ino;       /* that stat shows */
    ino_t dir_number;    /* from which those of its names are made */
    char path[PATH_MAX]; /* the directory's; a name is put behind it */
};

/* ---- the stream ---- */

static struct df_dirstream *stream_of(struct df_file *file)
{
    _Atomic(void *) *slot = &df_handle_of(file)->attachment;
    void *found = atomic_load(slot);

    if (found)
        return found;
    struct df_dirstream *stream = calloc(1, sizeof(*stream));
    if (!stream)
        return NULL;
    pthread_mutex_init(&stream->lock, NULL);
    if (atomic_compare_exchange_strong(slot, &found, stream))
        return stream;
    free(stream);
    return found;
}

void df_highlevel_end_dirstream(struct df_file *file)
{
    struct df_dirstream *stream = atomic_load(&df_handle_of(file)->attachment);

    if (!stream)
        return;
    pthread_mutex_destroy(&stream->lock);
    free(stream->names);
    free(stream);
}

static __attribute__((noinline)) int keep_name(struct df_dirstream *stream, const char *text,
                                               size_t len, ino_t ino, unsigned char type)
{
    size_t size = NAME_SIZE(len);

    if (stream->used + size > stream->room) {
        size_t room = stream->room ? 2 * stream->room : 2 * PATH_MAX; /* more than any record */
        char *names = realloc(stream->names, room);
        if (!names)
            return -ENOMEM;
        stream->names = names;
        stream->room = room;
    }
    struct name *name = (struct name *)(stream->names + stream->used);
    name->ino = ino;
    name->len = (uint16_t)len;
    name->type = type;
    memcpy(name->text, text, len);
    stream->used += size;
    return 0;
}

/* Names of a whole listing from a position on. A position nobody gave out ends the directory or
 * shows rubbish, but stays inside. */
static int serve_names(const struct df_dirstream *stream, off_t offset, struct df_dirbuf *buf)
{
    size_t at = offset < 0 ? stream->used : (size_t)offset & ~(size_t)7;

    while (at < stream->used && stream->used - at >= sizeof(struct name)) {
        const struct name *name = (const struct name *)(stream->names + at);
        size_t next = at + NAME_SIZE(name->len);
        if (next > stream->used || name->len > DF_NAME_MAX)
            break;
        if (!df_dirbuf_add(buf, name->text, name->len, name->ino, (off_t)next, name->type))
            return buf->used ? 0 : -EINVAL;
        at = next;
    }
    return 0;
}

/* ---- the filler ---- */

static bool is_dots(const char *name, size_t len)
{
    return name[0] == '.' && (len == 1 || (len == 2 && name[1] == '.'));
}

/* The path of a name in the directory, in fill->path; 0 when it does not fit. */
static uint32_t child_path(struct fill *fill, const char *name, size_t len)
{
    if (fill->dir_len + 1 + len >= sizeof(fill->path))
        return 0;
    fill->path[fill->dir_len] = '/';
    memcpy(fill->path + fill->dir_len + 1, name, len);
    return fill->dir_len + 1 + (uint32_t)len;
}

/* That of "..": the directory's path up to its last slash; the root is its own parent. */
static ino_t parent_ino(struct fill *fill)
{
    struct df_highlevel *hl = fill->frame->hl;
    const char *slash = memrchr(fill->path, '/', fill->dir_len);
    bool top = !slash || slash == fill->path;
    const char *path = top ? "/" : fill->path;
    uint32_t len = top ? 1 : (uint32_t)(slash - fill->path);

    return df_highlevel_ino(hl, path, len, df_entry_cache_key(&hl->cache, path, len));
}

/* The number that stat would show. */
static __attribute__((noinline)) ino_t ino_of(struct fill *fill, const char *name, size_t len)
{
    struct df_highlevel *hl = fill->frame->hl;

    if (is_dots(name, len))
        return len == 1 ? fill->dir_ino : parent_ino(fill);
    uint32_t path_len = child_path(fill, name, len);
    if (path_len == 0)
        return DF_UNKNOWN_INO;
    return df_open_paths_ino(&hl->open_paths,
                             df_number_below(&hl->open_paths.numbers, fill->dir_number, name, len),
                             df_entry_cache_key(&hl->cache, fill->path, path_len));
}

/* Attributes that came with a name, as good as a lookup's. */
static __attribute__((noinline)) void learn(struct fill *fill, const char *name, size_t len,
                                            const struct stat *given)
{
    struct df_frame *frame = fill->frame;
    struct df_highlevel *hl = frame->hl;
    uint32_t path_len = is_dots(name, len) ? 0 : child_path(fill, name, len);
    uint64_t expiry = df_frame_until(frame, hl->entry_ns);
    struct stat st = *given;
    struct df_entry entry;

    if (path_len == 0)
        return;
    struct df_path_hash key = df_entry_cache_key(&hl->cache, fill->path, path_len);
    if (df_highlevel_fix_stat(frame, NULL, fill->path, path_len, key, &st))
        return;
    if (S_ISDIR(st.st_mode) && fill->dir_expiry < expiry)
        expiry = fill->dir_expiry;
    df_entry_cache_look(&hl->cache, key, frame->now, &entry);
    if (df_entry_cache_listed(&hl->cache, fill->listing))
        df_entry_cache_store(&hl->cache, key, entry.ticket, &st, expiry,
                             df_frame_until(frame, hl->attr_ns));
}

/* Is this listing in vain? The numbers of "." and ".." are not worth another. */
static bool lacks_number(struct fill *fill, const char *name, size_t len, ino_t ino)
{
    if (ino == DF_UNKNOWN_INO && !is_dots(name, len))
        fill->unnumbered = true;
    return fill->unnumbered;
}

/* fuse_fill_dir_t: 0, or 1 to make the plugin stop. Runs once for each name: what not every file
 * system needs is in functions of its own. */
static int fill_name(void *opaque, const char *name, const struct stat *st, off_t offset,
                     enum fuse_fill_dir_flags flags)
{
    struct fill *fill = opaque;
    const char *end = strchrnul(name, '/');
    size_t len = (size_t)(end - name);
    bool mixed = offset ? fill->stream->used != 0 : fill->offsets;
    ino_t ino = st && st->st_ino ? st->st_ino : DF_UNKNOWN_INO;
    unsigned char type = st ? IFTODT(st->st_mode) : DT_UNKNOWN;
    int stopped;

    if (DF_UNLIKELY(flags & ~(unsigned)FUSE_FILL_DIR_PLUS || mixed))
        fill->stopped = -EIO;
    if (DF_UNLIKELY(fill->stopped))
        return 1;
    if (DF_UNLIKELY(len == 0 || len > DF_NAME_MAX || *end != '\0')) {
        fill->stopped = -EIO;
        fill->misnamed = true;
        return 1;
    }
    if (fill->wants_numbers && lacks_number(fill, name, len, ino))
        return 0;
    if (!fill->given_numbers)
        ino = ino_of(fill, name, len);
    fill->offsets = offset != 0;
    if (DF_LIKELY(offset))
        stopped = !df_dirbuf_add(fill->buf, name, len, ino, offset, type);
    else
        stopped = keep_name(fill->stream, name, len, ino, type);
    if (DF_UNLIKELY(stopped)) {
        fill->stopped = stopped;
        return 1;
    }
    if (fill->learns && st && flags & FUSE_FILL_DIR_PLUS)
        learn(fill, name, len, st);
    return 0;
}

/* ---- readdir ---- */

/* Prepares the directory's side of a listing; its node is held. -ENOENT: it was removed. */
static int begin(struct fill *fill, struct df_frame *frame, struct df_open_path *node)
{
    struct df_entry_cache *cache = &frame->hl->cache;
    struct df_entry entry;

    if (atomic_load(&node->removed))
        return -ENOENT;
    df_frame_clock(frame);
    fill->frame = frame;
    fill->given_numbers = frame->hl->config.use_ino;
    fill->wants_numbers = frame->hl->plus_for_numbers;
    fill->learns = frame->hl->caches;
    fill->dir_ino = node->ino;
    if (!fill->given_numbers)
        fill->dir_number = df_number_of(&frame->hl->open_paths.numbers, node->path, node->len);
    fill->dir_len = node->len > 1 ? node->len : 0;
    memcpy(fill->path, node->path, fill->dir_len);
    df_entry_cache_look(cache, df_open_path_key(node), frame->now, &entry);
    fill->dir_expiry = node->len == 1                   ? DF_ENTRY_FOREVER
                       : entry.kind == DF_ENTRY_PRESENT ? entry.expiry
                                                        : 0;
    return 0;
}

/* Asks the plugin for names from an offset on. */
static int list(struct df_frame *frame, struct df_file *file, struct fill *fill, off_t offset)
{
    struct df_highlevel *hl = frame->hl;
    struct df_open_path *node = df_handle_of(file)->node;
    struct df_name_turn turn;
    union df_file_info fi;

    df_handle_info(frame, file, &fi);
    df_frame_hold(frame, node);
    int result = begin(fill, frame, node);
    if (result == 0) {
        df_frame_turn_to_look(frame, &turn, df_open_path_key(node));
        fill->listing = df_entry_cache_list_begin(&hl->cache);
        result = df_answer_error(hl->ops.readdir(hl->config.nullpath_ok ? NULL : node->path, fill,
                                                 fill_name, offset, &fi.info,
                                                 hl->plus ? FUSE_READDIR_PLUS : 0));
        df_entry_cache_list_end(&hl->cache);
        df_frame_turn_over(frame, &turn);
        df_highlevel_accessed(hl, df_open_path_key(node));
    }
    df_frame_unhold(frame, node);
    return result || fill->stopped >= 0 ? result : fill->stopped;
}

/* As far as the plugin has told nothing yet. */
static void start(struct fill *fill)
{
    fill->stream->used = 0;
    fill->offsets = false;
    fill->stopped = 0;
    fill->misnamed = false;
    fill->unnumbered = false;
}

/* Without FUSE_READDIR_PLUS a plugin may spare itself the numbers that stat shows (bindfs 1.18).
 * The kernel always asks with it for the first names, so it is asked so from now on. */
static int list_with_numbers(struct df_frame *frame, struct df_file *file, struct fill *fill,
                             off_t offset)
{
    const struct df_dirbuf before = *fill->buf;
    int result = list(frame, file, fill, offset);

    if (!fill->unnumbered)
        return result;
    frame->hl->plus = true;
    frame->hl->plus_for_numbers = false;
    *fill->buf = before;
    start(fill);
    return list(frame, file, fill, offset);
}

/* Under the stream's lock. */
static int read_stream(struct df_frame *frame, struct df_file *file, struct df_dirstream *stream,
                       off_t offset, struct df_dirbuf *buf)
{
    struct fill fill;

    if (stream->whole && offset != 0)
        return serve_names(stream, offset, buf);
    stream->whole = false; /* from the start: names made and removed since then are seen */
    fill.stream = stream;
    fill.buf = buf;
    start(&fill);
    const struct df_dirbuf before = *buf;
    int result = list_with_numbers(frame, file, &fill, offset);
    /* Libfuse answers with an error alone; the kernel finds it behind the names that came before.
     */
    if (result && !fill.misnamed)
        *buf = before;
    if (result)
        return result;
    if (fill.offsets)
        return fill.stopped && buf->used == 0 ? -EINVAL : 0;
    stream->whole = stream->used != 0;
    return serve_names(stream, offset, buf);
}

/* 0; or -EDEADLK, where an op further out may be the one that reads it. */
static int lock_stream(const struct df_frame *frame, struct df_dirstream *stream)
{
    if (pthread_mutex_trylock(&stream->lock) == 0)
        return 0;
    if (frame->inside)
        return -EDEADLK;
    pthread_mutex_lock(&stream->lock);
    return 0;
}

int df_highlevel_readdir(struct df_fs *fs, struct df_call *call, struct df_file *file, off_t offset,
                         struct df_dirbuf *buf)
{
    struct df_highlevel *hl = df_highlevel_of(fs);
    struct df_frame frame;

    if (file->kind != DF_KIND_DIRECTORY)
        return -ENOTDIR;
    if (!hl->ops.readdir)
        return -ENOSYS;
    struct df_dirstream *stream = stream_of(file);
    if (!stream)
        return -ENOMEM;
    df_frame_enter(&frame, hl, call);
    int result = lock_stream(&frame, stream);
    if (result == 0) {
        result = read_stream(&frame, file, stream, offset, buf);
        pthread_mutex_unlock(&stream->lock);
    }
    df_frame_leave(&frame);
    return result;
}
