/*
 * frames.h - pages of files and pieces of listings that clients read in the segment, without a
 * trip, a lock or a store. Freestanding.
 *
 *   struct df_frames    header
 *   tags                [sets][DF_FRAME_WAYS]: hash of what lies in each frame, to look at first
 *   frames              [sets][DF_FRAME_WAYS]: struct df_frame
 *   contents            [content_count]: a df_content for each file or directory that is
 *                       known; made bit by bit (room.h)
 *   bytes               [1 + DF_FRAMES_BRIEF + frames][DF_FRAME_SIZE]: the first is none; a
 *                       ring for what is kept for a moment only; then in the order in which
 *                       frames are first used, so that memory grows piece by piece
 *   lent                [lent_count][DF_FRAME_SIZE]: memory that file systems keep contents in
 * (segment/lent.h); its pages have numbers as those of bytes, from lent_first on
 *
 * A frame holds one page of a regular file, found by (content's id, page number), or some whole
 * records of a listing, found by (content's id, position they begin at). Ids are never used twice.
 *
 * It is believed while all of these hold:
 *   - its sequence number is even and the same before and after the copy;
 *   - the content still has the id: what ends belief in a whole file gives its content another one;
 *   - a page that is not full, the end of its file: nothing was written since (df_content.written);
 *   - a listing: the era of its mount's listings is the one it was made in (cache.h). A changed
 * name gives the content of its directory another id, if the host tells which that is; else it
 *     begins another era;
 *   - the content's time is not over: what the plugin allowed (df_call.valid_ns) since the server
 *     has last seen that its size and modification time are as they were. Where it allows none, the
 *     server looks for each read, and the client copies from here (df_message.out.read.kept).
 * A write takes the frames of the pages it touches away before it begins (segment/frames.h).
 *
 * Which content a file has stands in its df_ofd, which is looked at again after the copy: the entry
 * may have become another file's. Whoever may open the file may read the bytes: permission was
 * checked at open, as for the kernel's page cache.
 *
 * Only the server writes, but for df_content.copied and by, by which nothing is believed; a client
 * that is killed while it reads has changed nothing.
 */
#ifndef DF_CHANNEL_FRAMES_H
#define DF_CHANNEL_FRAMES_H

#include "channel/layout.h"

#define DF_FRAME_SIZE    4096
#define DF_FRAMES_LARGE  (64 << 10) /* bytes: a read of more is kept the second time */
#define DF_FRAME_WAYS    8
#define DF_FRAMES_BRIEF  256
#define DF_FRAMES_LENT   (UINT64_C(256) << 20) /* bytes; a multiple of DF_HUGE_SIZE */
#define DF_CONTENT_LEAST 16384 /* files and directories; as many as frames, if those are more */

struct df_content {
    _Atomic uint64_t id;      /* 0: free */
    _Atomic uint64_t written; /* counts writes that have begun */
    _Atomic uint64_t until;   /* ticks (df_sys_ticks()); UINT64_MAX: for ever. Read before id */
    _Atomic uint64_t copied;  /* by clients: which bytes one of them has copied to its memory, */
    _Atomic uint64_t by;      /* and the handle of the open file that it did so by */
};

struct df_frame {
    _Alignas(64) _Atomic uint32_t seq; /* odd: being written */
    _Atomic uint32_t used;             /* bytes; less than DF_FRAME_SIZE in a file: its end */
    _Atomic uint64_t id;               /* of the content */
    _Atomic uint64_t at;               /* page number; in a listing the position */
    _Atomic uint64_t next;             /* of a listing: position behind the last record */
    _Atomic uint64_t stamp;            /* df_content.written, of a listing the era */
    _Atomic uint32_t bytes;            /* number of its bytes, or of lent ones; 0: it has none */
    _Atomic uint32_t content;          /* its number: for the server, who looks for dead frames */
    _Atomic uint32_t own;              /* number of bytes that stay its own; likewise */
};

struct df_frames {
    uint64_t sets;                                      /* a power of two */
    uint64_t tags_at, frames_at, contents_at, bytes_at; /* from the start of this */
    uint64_t lent_first, lent_count;                    /* numbers of bytes */
    uint32_t content_count;                             /* number 0 is none */
    _Atomic uint32_t contents_made;                     /* for the next server */
    uint64_t size;                                      /* of all */
};

static inline struct df_frames *df_frames_of(const struct df_segment *segment)
{
    return (struct df_frames *)((char *)segment + segment->frames_at);
}

/* Where a frame is, or would be. */
struct df_frame_place {
    uint64_t tag;   /* never 0 */
    uint64_t first; /* number of the first frame of its set */
};

struct df_frame_place df_frame_place(const struct df_frames *frames, uint64_t id, uint64_t at);

static inline _Atomic uint64_t *df_frame_tags(const struct df_frames *frames, uint64_t first)
{
    return (_Atomic uint64_t *)((char *)frames + frames->tags_at) + first;
}

static inline struct df_content *df_content_number(const struct df_frames *frames, uint32_t number)
{
    return (struct df_content *)((char *)frames + frames->contents_at) + number;
}

static inline struct df_frame *df_frame_number(const struct df_frames *frames, uint64_t number)
{
    return (struct df_frame *)((char *)frames + frames->frames_at) + number;
}

/* Of its own or lent. */
static inline char *df_frame_bytes(const struct df_frames *frames, uint64_t number)
{
    return (char *)frames + frames->bytes_at + number * DF_FRAME_SIZE;
}

/* A frame that was found; what was copied of it counts only if df_frame_same() says so after. */
struct df_frame_view {
    const struct df_frame *frame;
    const struct df_content *content;
    const char *bytes;
    uint64_t id, next;
    uint32_t seq, used;
};

/* Fills in all offsets and the size, for at least `bytes` of frames. */
void df_frames_plan(struct df_frames *frames, uint64_t bytes);

/* The page of a regular file, or the piece of a listing in the `era` of the mount's listings.
 * confirmed: id of the content that the server has just confirmed (message.h), which then needs no
 * time; 0: none. False: not here. */
bool df_frame_page(const struct df_frames *frames, uint32_t content, uint64_t confirmed,
                   uint64_t page, struct df_frame_view *view);
bool df_frame_listing(const struct df_frames *frames, uint32_t content, uint64_t position,
                      uint64_t era, struct df_frame_view *view);

/* The id by which the object is known that the open file is of; 0: it is not known, or not open.
 * ofd: the handle's, as it was a moment ago: by now it may be another file's, or free. */
uint64_t df_content_id(const struct df_segment *segment, uint64_t handle);
static inline uint64_t df_content_id_of(const struct df_segment *segment, const struct df_ofd *ofd,
                                        uint64_t handle)
{
    uint32_t content = atomic_load_explicit(&ofd->content, memory_order_acquire);
    const struct df_frames *frames = df_frames_of(segment);
    uint64_t id;

    if (segment->frames_size == 0 || content == 0 || content >= frames->content_count)
        return 0;
    id = atomic_load_explicit(&df_content_number(frames, content)->id, memory_order_acquire);
    return atomic_load_explicit(&ofd->handle, memory_order_relaxed) == handle ? id : 0;
}

/* After the copy: it is still the same frame of the same content. */
bool df_frame_same(const struct df_frame_view *view);

#endif
