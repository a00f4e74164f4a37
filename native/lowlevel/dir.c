/*
 * dir.c - readdir: READDIR or READDIRPLUS, and the plugin's records turned into those of
 * getdents64(2).
 *
 * The records come into the caller's own buffer and are turned in place, for ours are never longer
 * than the plugin's: (19 + name + NUL) against (24 + name), both rounded up to eight. Only a buffer
 * smaller than what every plugin must be able to fill with a record gets an intermediate one.
 */
#include <linux/fuse.h>
#include <string.h>

#include "host/sane.h"
#include "lowlevel/request.h"

#define SCRATCH_SIZE 4096 /* bytes; what the kernel asks for at least */

/* A READDIR under way. */
struct listing {
    struct df_lowlevel *lane;
    struct df_call *call;
    struct df_file *file;
    struct df_node *dir; /* locked, shared or exclusively, and held by the file */
    off_t offset;
    bool plus;
    bool full;      /* the caller's buffer; what remains is only learned */
    uint64_t asked; /* before the request: nodes/attr.h */
    uint32_t told;  /* the same: df_node_told() */
    struct df_dirbuf *out;
    struct df_node_drops drops;
};

/* ---- the request --------------------------------------------------------------------------- */

/* fuse_use_readdirplus() of the kernel: at the start, and as long as entries get looked up. */
static bool wants_plus(const struct listing *listing)
{
    bool wanted;

    if (!listing->lane->plus || !listing->lane->plus_auto)
        return listing->lane->plus;
    wanted = df_node_has(listing->dir, DF_NODE_WANT_PLUS);
    df_node_clear(listing->dir, DF_NODE_WANT_PLUS);
    return wanted || listing->offset == 0;
}

static ssize_t send_readdir(struct listing *listing, char *data, size_t size)
{
    struct df_lowlevel *lane = listing->lane;
    struct iovec iov = {data, size};
    union df_file_info info;
    struct fuse_file_info *fi = df_lowlevel_handle(&info, listing->file);
    struct fuse_req req;

    if (!(listing->plus ? lane->ops.readdirplus : lane->ops.readdir))
        return -ENOSYS;
    df_request_begin(&req, lane, listing->call, DF_TAKES_DATA);
    req.iov = &iov;
    req.iovcnt = 1;
    req.room = size;
    return listing->plus
               ? DF_REQUEST(&req, readdirplus, listing->dir->id, size, listing->offset, fi)
               : DF_REQUEST(&req, readdir, listing->dir->id, size, listing->offset, fi);
}

/* ---- learning from READDIRPLUS ------------------------------------------------------------- */

static double seconds(uint64_t whole, uint32_t nanoseconds)
{
    return (double)whole + (double)nanoseconds / 1e9;
}

static void to_stat(struct stat *st, const struct fuse_attr *attr)
{
    *st = (struct stat){
        .st_ino = attr->ino,
        .st_mode = attr->mode,
        .st_nlink = attr->nlink,
        .st_uid = attr->uid,
        .st_gid = attr->gid,
        .st_rdev = attr->rdev,
        .st_size = (off_t)attr->size,
        .st_blksize = attr->blksize,
        .st_blocks = (blkcnt_t)attr->blocks,
        .st_atim = {(time_t)attr->atime, attr->atimensec},
        .st_mtim = {(time_t)attr->mtime, attr->mtimensec},
        .st_ctim = {(time_t)attr->ctime, attr->ctimensec},
    };
    df_show(st);
}

static bool is_dot(const char *name, size_t len)
{
    return name[0] == '.' && (len == 1 || (len == 2 && name[1] == '.'));
}

/* An entry with id 0 tells no more than its name. What was listed holds under the lock alone, so it
 * is not let go to drop what has come together: the rest is not learned. */
static void learn(struct listing *listing, const struct fuse_entry_out *out, const char *text,
                  size_t len)
{
    struct df_nodes *nodes = &listing->lane->nodes;
    struct df_node_search search;
    struct df_node_name name;
    struct df_node_found found;

    if (out->nodeid == 0 || is_dot(text, len))
        return;
    if (listing->drops.node_count + 2 > DF_NODE_DROPS) {
        df_node_forget_one(nodes, out->nodeid);
        return;
    }
    name = df_node_cache_name(nodes, text, len);
    found.id = out->nodeid;
    found.generation = out->generation;
    found.attr_timeout = seconds(out->attr_valid, out->attr_valid_nsec);
    found.entry_timeout = seconds(out->entry_valid, out->entry_valid_nsec);
    to_stat(&found.attr, &out->attr);
    search = (struct df_node_search){
        .nodes = nodes,
        .dir = listing->dir,
        .name = &name,
        .drops = &listing->drops,
        .told = listing->told,
    };
    df_node_lookup_learn(&search, &found, listing->asked);
}

/* ---- records ------------------------------------------------------------------------------- */

/* One record at `at`, which may be where its translation goes. Returns its size, 0 for one that is
 * cut off, or -EIO for one that cannot be. */
static ssize_t take_record(struct listing *listing, const char *at, size_t left)
{
    size_t start = listing->plus ? sizeof(struct fuse_entry_out) : 0;
    struct fuse_entry_out out;
    struct fuse_dirent entry;
    char name[DF_NAME_MAX];
    size_t size;

    memcpy(&entry, at + start, FUSE_NAME_OFFSET);
    if (entry.namelen == 0 || entry.namelen > DF_NAME_MAX)
        return -EIO;
    size = FUSE_DIRENT_ALIGN(start + FUSE_NAME_OFFSET + entry.namelen);
    if (size > left)
        return 0;
    memcpy(name, at + start + FUSE_NAME_OFFSET, entry.namelen);
    if (memchr(name, '/', entry.namelen))
        return -EIO;
    if (listing->plus) {
        memcpy(&out, at, sizeof(out));
        learn(listing, &out, name, entry.namelen);
    }
    if (!listing->full)
        listing->full = !df_dirbuf_add(listing->out, name, entry.namelen, entry.ino,
                                       (off_t)entry.off, (unsigned char)entry.type);
    return (ssize_t)size;
}

/* A buffer that holds no record at all is too small. */
static int take_records(struct listing *listing, const char *data, size_t size)
{
    size_t least = FUSE_NAME_OFFSET + (listing->plus ? sizeof(struct fuse_entry_out) : 0);
    size_t before = listing->out->used;

    for (size_t at = 0; size - at >= least;) {
        ssize_t used = take_record(listing, data + at, size - at);

        if (used < 0)
            return (int)used;
        if (used == 0)
            break;
        at += (size_t)used;
    }
    return listing->full && listing->out->used == before ? -EINVAL : 0;
}

static int list_in_place(struct listing *listing)
{
    char *data = listing->out->data + listing->out->used;
    ssize_t size = send_readdir(listing, data, listing->out->size - listing->out->used);

    return size < 0 ? (int)size : take_records(listing, data, (size_t)size);
}

static int list_aside(struct listing *listing)
{
    char data[SCRATCH_SIZE];
    ssize_t size = send_readdir(listing, data, sizeof(data));

    return size < 0 ? (int)size : take_records(listing, data, (size_t)size);
}

static int list(struct listing *listing)
{
    int result = df_node_dir_error(listing->dir);

    if (result < 0)
        return result;
    listing->plus = wants_plus(listing);
    listing->asked = df_node_attr_asking_many();
    listing->told = df_node_told(&listing->lane->nodes);
    if (listing->out->size - listing->out->used < SCRATCH_SIZE)
        return list_aside(listing);
    return list_in_place(listing);
}

int df_lowlevel_readdir(struct df_fs *fs, struct df_call *call, struct df_file *file, off_t offset,
                        struct df_dirbuf *buf)
{
    struct listing listing = {
        .lane = df_lowlevel_of(fs),
        .call = call,
        .file = file,
        .dir = df_node_of_file(file),
        .offset = offset,
        .out = buf,
    };
    struct df_nodes *nodes = &listing.lane->nodes;
    struct df_node_held held;
    int result;

    if (file->kind != DF_KIND_DIRECTORY)
        return -ENOTDIR;
    result = df_node_held_take(&held, nodes, &listing.dir->lock, nodes->parallel);
    if (result < 0)
        return result;
    result = list(&listing);
    df_node_held_give(&held);
    df_node_cache_drop(nodes, &listing.drops);
    df_node_attr_accessed(nodes, listing.dir);
    df_lowlevel_leave(listing.lane);
    return result;
}
