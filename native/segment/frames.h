/*
 * frames.h - the server's side of the frames in the segment: whose bytes they are, what is put in,
 * what ends belief, what gives way.
 *
 * A content is what is known of the bytes of one object of a mount (df_file.body); open files of
 * the object share it, and it stays after the last of them, until its number is needed for another:
 * an open ends it or not, as in the kernel. On a mount where no open ever said that caches are kept
 * it goes with the last of them: the next open would end it.
 *
 * Why no stale page is put in. What may change a file is announced before it begins and ends after
 * it is done; in between, and if anything began since the bytes were asked for, no page of the file
 * is put in. So there is none to take away when a write ends: those it touches go when it begins,
 * and a call that reads while it is under way asks the plugin. Changes that are not told page by
 * page (truncation, fallocate, O_TRUNC, an open without keep_cache) give the content another id
 * when they end. Changes of files that are not known by number are announced for the whole mount.
 *
 * No frame is ever dirty, so any may give way at any time: writes go through to the plugin, or are
 * kept beneath this (writeback/writeback.h).
 *
 * Most frames have bytes of their own from their first use on. What is kept for the next moment
 * only (df_framer_keep_briefly()) lies in a ring of a megabyte, which the processors have at hand:
 * a frame has some of these bytes until the ring comes round. And some show memory where a file
 * system keeps the bytes itself (lent.h).
 *
 * Locks: `lock` protects the table of contents; a stripe, by number, protects the changes of a
 * content and the putting in of its frames. `lock` before a stripe; `lent.lock` after one.
 * `bytes.lock` is innermost: under it frames are taken their bytes if nobody is writing them just
 * now.
 */
#ifndef DF_SEGMENT_FRAMES_H
#define DF_SEGMENT_FRAMES_H

#include <pthread.h>
#include <stdbool.h>

#include "channel/frames.h"
#include "segment/cache.h"
#include "segment/growth.h"
#include "segment/lent.h"
#include "segment/stretches.h"

#define DF_BODY_STRIPES 64
#define DF_FRAMES_SEEN  65536
#define DF_FRAMES_LATE  (16 << 10) /* bytes: on a timeless mount reads of as many are kept */
/* There one piece of so many is kept while none is found again. */
#define DF_FRAMES_RARELY 16

/* The server's half of a df_content. */
struct df_body {
    uint64_t body;     /* df_file.body, 0: free; this and mount: changed under `lock` and stripe */
    int mount;         /* id */
    unsigned index;    /* of the mount; fixed while it has a body */
    uint32_t opens;    /* open files that have it; this and next: under `lock` */
    uint32_t next;     /* in its chain, or of the free ones; 0: the last */
    bool stays;        /* after its last close, as one of a mount that keeps */
    bool again;        /* it was opened again since the search came by */
    bool any;          /* under its stripe, as all that follows: some page of this id was put in */
    bool known;        /* what is kept is of this size and modification time */
    uint32_t changing; /* changes under way */
    off_t size;
    struct timespec changed;
};

struct df_framer {
    struct df_segment *segment;
    struct df_frames *frames; /* NULL: none */
    struct df_cacher *cacher; /* eras and time */

    pthread_mutex_t lock; /* protects the table of contents */
    uint32_t count;       /* of contents, a power of two; number 0 is none */
    uint32_t *chains;     /* a quarter as many */
    uint32_t free;
    uint32_t top;  /* numbers from here on were never used */
    uint32_t made; /* and from here on have no memory in the segment */
    uint32_t hand; /* where the search for one that can be spared goes on */
    struct df_body *bodies;

    struct df_growth bytes;        /* their numbers are given to frames; number 0 is none */
    struct df_stretches stretches; /* their memory; under bytes.lock */
    struct {                       /* the first of them: a ring, under bytes.lock */
        uint32_t frames[1 + DF_FRAMES_BRIEF]; /* 1 + the number of the one that has each; 0: none */
        uint32_t last;
    } brief;

    struct df_lent lent;

    pthread_mutex_t stripes[DF_BODY_STRIPES]; /* each protects the contents of its numbers */
    _Atomic uint64_t last_id;

    struct {
        _Alignas(64) _Atomic uint32_t changing; /* changes of files that are not known */
        _Atomic bool timeless;                  /* the plugin allows no time at all */
        _Atomic bool keeps;                     /* some open said that caches are kept */
        _Atomic bool lists;                     /* some listing may have been kept */
        _Atomic uint64_t unfound; /* timeless: bytes that were kept since some were found */
    } mounts[DF_MOUNT_COUNT];

    /* Pieces of large files that were asked for once: 16 bits of a hash each. */
    _Atomic uint16_t seen[DF_FRAMES_SEEN];
};

void df_framer_init(struct df_framer *framer, struct df_segment *segment, struct df_cacher *cacher);
void df_framer_free(struct df_framer *framer);

/* ---- contents -------------------------------------------------------------------------------- */

/* A file of that body was opened. Its content's number; 0: there is none to be had. `keep`: what is
 * known of it stays. Each is closed once. */
uint32_t df_framer_open(struct df_framer *framer, unsigned index, int mount, uint64_t body,
                        bool keep);
void df_framer_close(struct df_framer *framer, uint32_t content);

/* The same of a directory whose listings are not kept: it is known for what is asked by it
 * (cache.h), and is the same at the next open. */
uint32_t df_framer_open_unlisted(struct df_framer *framer, unsigned index, int mount,
                                 uint64_t body);

/* Nothing of any file is believed any more. */
void df_framer_forget(struct df_framer *framer);

/* ---- changes --------------------------------------------------------------------------------- */

enum df_frames_change {
    DF_FRAMES_NOTHING,
    DF_FRAMES_RANGE, /* of a file: `size` bytes from `offset` on, and its end */
    DF_FRAMES_FILE,  /* all of a file, which may become known (`body`) only when it has ended */
};

struct df_frames_changing {
    enum df_frames_change kind;
    unsigned index;   /* of the mount */
    int mount;        /* its id */
    uint32_t content; /* of the file; 0: it has none, or is not known */
    uint64_t body;    /* df_file.body; 0 at the end: any file of the mount may be meant, */
    bool known;       /* unless this says that none is of which anything is kept */
    off_t offset;
    size_t size;
};

void df_framer_begin(struct df_framer *framer, struct df_frames_changing *change);
void df_framer_end(struct df_framer *framer, const struct df_frames_changing *change);

/* Before a listing is asked for that may be kept. */
void df_framer_lists(struct df_framer *framer, unsigned index);

/* Names have changed in a directory: what is kept of its listing is over. Before the change of
 * names has ended (cache.h), so that what was listed before is not put in after. */
void df_framer_end_listing(struct df_framer *framer, unsigned index, int mount, uint64_t body);

/* ---- keeping --------------------------------------------------------------------------------- */

/* Before a file is read whose bytes may be kept: the plugin says that it is so now, and may be
 * believed for that time (df_call.valid_ns; 0 is for good: the mount is timeless from now on). A
 * file that others may change (or `check`) and that has another size or modification time is
 * another content; as the kernel's FUSE_AUTO_INVAL_DATA. */
void df_framer_believe(struct df_framer *framer, unsigned index, uint32_t content,
                       const struct stat *st, uint64_t valid_ns, bool check);

/* On a timeless mount nothing is found without a question. Pages are kept there all the same, for
 * who asks the server each time whether they still are what the file has (df_framer_confirms()):
 * that is what the kernel does, and saves a copy. Listings and reads of less than DF_FRAMES_LATE
 * gain too little by it. */
bool df_framer_timeless(const struct df_framer *framer, unsigned index);

/* Then, before it is read. */
struct df_frames_ticket {
    bool valid;
    unsigned index;
    uint32_t content;
    uint64_t id, written;
};
struct df_frames_ticket df_framer_ask(struct df_framer *framer, unsigned index, uint32_t content);

/* Bytes of all that can be kept at a time. */
uint64_t df_framer_room(const struct df_framer *framer);

/* True if a large piece should be kept: it is not the first time that one is asked for from that
 * offset on. (Not one that overlaps: who has read a small file asks behind its end, once.) On a
 * timeless mount, where readers tell what they find: once as much was kept as there is room for and
 * nothing of it was found, one of DF_FRAMES_RARELY pieces is. So who reads more than there is room
 * for, over and over, pays for no more copies than that. */
bool df_framer_again(struct df_framer *framer, const struct df_frames_ticket *ticket, off_t offset,
                     size_t size);

/* After df_framer_believe(): pages of that id are those of now, and no change is under way. */
bool df_framer_confirms(struct df_framer *framer, unsigned index, uint32_t content, uint64_t id);

/* Keeps `size` bytes from page `page` on; `end`: the file ends behind them. Pages that are neither
 * full nor the end are left out. */
void df_framer_keep(struct df_framer *framer, const struct df_frames_ticket *ticket, uint64_t page,
                    const char *bytes, size_t size, bool end);

/* The same from page 0 on, for who reads it at once, in bytes that soon are needed again. */
void df_framer_keep_briefly(struct df_framer *framer, const struct df_frames_ticket *ticket,
                            const char *bytes, size_t size, bool end);

/* The same of bytes that are lent (core/lend.h), which are not copied. `since`: df_lent_now()
 * before they were asked for. True if all of them can be found now. */
bool df_framer_keep_lent(struct df_framer *framer, const struct df_frames_ticket *ticket,
                         uint64_t page, const char *bytes, size_t size, bool end, uint64_t since);

/* Keeps records of a listing, of which the first begins at `position`; none: the listing's end. */
void df_framer_keep_list(struct df_framer *framer, const struct df_frames_ticket *ticket,
                         uint64_t position, uint64_t era, const char *records, size_t size);

#endif
