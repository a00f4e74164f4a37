/*
 * mapped.c - files that programs of a run have mapped: their bytes lie in data files of the run's
 * directory (shadows/shadow_map.c), named by mount and inode number.
 *
 * A program writes back what it stored in memory, unless it is killed, or has used up its memory or
 * its descriptors: then that is done here, before its files are closed, by messages as its own
 * would have been. Holes of a data file are bytes that nobody has brought, or zeros that nobody has
 * changed. Of a large file it is the chunks that the program held (channel/held.h): it has written
 * back what it gave up, and what it holds nobody gives up until it is freed here.
 *
 * A data file goes with the last open file description of its file, or is kept for the next. Who
 * maps a file, and who removes a data file, has the lock of the run (flock(2) of `lock`); here it
 * is only tried for, since who has it may wait for us. What could not be removed is tried again.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "channel/held.h"
#include "core/pages.h"
#include "server/server_private.h"
#include "server/shadow_kept.h"

#define PAGE     4096
#define PIECE    ((size_t)256 << 10) /* compared at a time */
#define TRIES    16                  /* of bytes that others are writing meanwhile */
#define PATIENCE 100                 /* milliseconds, with who has a file's lock */

enum { STATES = 1024 }; /* of chunks, looked at together */

/* ---- names -------------------------------------------------------------------------------------
 */

static bool name_of(const struct df_server *server, char letter, int mount, uint64_t ino,
                    char name[PATH_MAX])
{
    int size = snprintf(name, PATH_MAX, "%s/%c/%" PRIu32 ".%" PRIu64, server->options->shadow,
                        letter, (uint32_t)mount, ino);

    return size > 0 && size < PATH_MAX;
}

static int open_beside(const struct df_server *server, char letter, const struct df_ofd *ofd)
{
    char name[PATH_MAX];

    return name_of(server, letter, ofd->mount, ofd->ino, name)
               ? open(name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
               : -1;
}

/* Of those that it says to have. */
static bool has_all(int fd, const struct df_holders *all)
{
    uint32_t top = atomic_load(&all->top);
    struct stat st;

    return top <= DF_HOLDERS && fstat(fd, &st) == 0 && st.st_size >= (off_t)DF_HELD_SIZE(top);
}

static bool held_name(const struct df_server *server, char name[PATH_MAX])
{
    return server->options->shadow &&
           snprintf(name, PATH_MAX, "%s/held", server->options->shadow) < PATH_MAX;
}

static void unmap_holders(struct df_holders *all)
{
    if (all)
        munmap(all, sizeof(*all));
}

/* NULL: it is no list of holders. */
static struct df_holders *map_list(int fd)
{
    struct df_holders *all;
    struct stat st;

    if (fstat(fd, &st) < 0 || st.st_size < (off_t)DF_HELD_SIZE(0))
        return NULL;
    all = mmap(NULL, sizeof(*all), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (all == MAP_FAILED)
        return NULL;
    if (has_all(fd, all))
        return all;
    unmap_holders(all);
    return NULL;
}

/* NULL: nobody holds anything. */
static struct df_holders *map_holders(const struct df_server *server)
{
    struct df_holders *all;
    char name[PATH_MAX];
    int fd = held_name(server, name) ? open(name, O_RDWR | O_CLOEXEC | O_NOFOLLOW) : -1;

    if (fd < 0)
        return NULL;
    all = map_list(fd);
    close(fd);
    return all;
}

bool df_mapped_has_holders(const struct df_server *server)
{
    char name[PATH_MAX];

    return held_name(server, name) && access(name, F_OK) == 0;
}

/* ---- writing back ------------------------------------------------------------------------------
 */

/* A message of our own. */
struct letter {
    struct df_server *server;
    struct df_slot slot;
    struct df_area *area;
    uint64_t handle;
    int lock;      /* descriptor of the file's lock; -1: of none */
    char *now;     /* [PIECE]: what is in memory */
    char *had;     /* [PIECE]: what the mount has */
    int64_t error; /* the first; the rest is tried all the same */
};

static int64_t send(struct letter *l, enum df_message_op op, size_t size, off_t offset)
{
    struct df_message *m = &l->slot.message;

    memset(m, 0, sizeof(*m));
    m->op = op;
    m->files[0] = l->handle;
    m->caller.size_limit = INT64_MAX;
    m->args.read.size = size; /* and of write: the same member */
    m->args.read.offset = offset;
    if (op == DF_MESSAGE_read)
        m->args.read.sent = true; /* to the payload, wherever else they can be found */
    df_execute(l->server, &l->slot, l->area);
    if (m->result < 0 && l->error == 0)
        l->error = m->result;
    return m->result;
}

/* Bytes of the data file, which are `now`. Who writes them by write(2) meanwhile, if we could
 * not have the lock, changes the data file first, then the mount: where ours have come there behind
 * his, the data file shows it, and they are written once more. (Not for ever: somebody may store in
 * memory all the time.) */
static void write_run(struct letter *l, int data, char *now, size_t size, off_t offset)
{
    for (int i = 0; i < TRIES; i++) {
        memcpy(l->area->payload, now, size);
        send(l, DF_MESSAGE_write, size, offset);
        if (pread(data, now, size, offset) != (ssize_t)size ||
            memcmp(now, l->area->payload, size) == 0)
            return;
    }
}

/* The runs of pages that differ. */
static void write_changed(struct letter *l, int data, size_t size, off_t offset)
{
    for (size_t from = 0, end; from < size; from = end) {
        size_t run = 0;

        for (end = from; end < size; run = end - from) {
            size_t step = size - end < PAGE ? size - end : PAGE;

            if (memcmp(l->now + end, l->had + end, step) == 0)
                break;
            end += step;
        }
        if (run > 0) {
            write_run(l, data, l->now + from, run, offset + (off_t)from);
        } else {
            end = from + PAGE;
        }
    }
}

/* A file does not grow by being mapped. How many bytes were compared; 0: that was all. */
static size_t compare_piece(struct letter *l, int data, size_t size, off_t offset)
{
    ssize_t got = pread(data, l->now, size, offset);
    int64_t had = got > 0 ? send(l, DF_MESSAGE_read, (size_t)got, offset) : 0;
    uint64_t at = l->slot.message.out.read.at;

    if (had <= 0 || had > got || at > DF_PAYLOAD_SIZE - (size_t)had)
        return 0;
    memcpy(l->had, l->area->payload + at, (size_t)had);
    write_changed(l, data, (size_t)had, offset);
    return (size_t)had;
}

/* That of the programs that change the file (shadows/shadow.h). Who has it may wait for us, or be
 * stopped: not for ever, and not again. */
static bool lock_file(struct letter *l)
{
    for (int i = 0; l->lock >= 0 && i < PATIENCE; i++) {
        if (flock(l->lock, LOCK_EX | LOCK_NB) == 0)
            return true;
        usleep(1000);
    }
    l->lock = -1;
    return false;
}

/* The file would have its old size again if another set it meanwhile. */
static size_t write_piece(struct letter *l, int data, size_t size, off_t offset)
{
    bool locked = lock_file(l);
    size_t done = compare_piece(l, data, size, offset);

    if (locked)
        flock(l->lock, LOCK_UN);
    return done;
}

static void write_data(struct letter *l, int data)
{
    off_t at = lseek(data, 0, SEEK_DATA);

    while (at >= 0) {
        off_t hole = lseek(data, at, SEEK_HOLE);
        size_t done = 1;

        while (at < hole && done > 0) {
            done = write_piece(l, data, hole - at < (off_t)PIECE ? (size_t)(hole - at) : PIECE, at);
            at += (off_t)done;
        }
        if (done == 0)
            return;
        at = lseek(data, at, SEEK_DATA);
    }
}

static void write_range(struct letter *l, int data, off_t at, off_t end)
{
    size_t done = 1;

    for (; at < end && done > 0; at += (off_t)done)
        done = write_piece(l, data, end - at < (off_t)PIECE ? (size_t)(end - at) : PIECE, at);
}

/* States of chunks, from *first on or where the next ones are: the list has holes where it tells of
 * chunks that never were there, and may be as long as some file was. How many. */
static ssize_t next_states(int list, unsigned char states[STATES], off_t *first)
{
    *first = lseek(list, *first, SEEK_DATA);
    return *first < 0 ? 0 : pread(list, states, STATES, *first);
}

/* Those that are there for good somebody may touch who does not say so: shadows/shadow_chunks.c.
 */
static void write_chunks(struct letter *l, int data, int list, const struct df_ofd *ofd,
                         const struct df_holder *holder)
{
    unsigned char states[STATES];
    off_t first = 0;
    ssize_t got;

    for (; (got = next_states(list, states, &first)) > 0; first += got)
        for (ssize_t i = 0; i < got; i++) {
            uint64_t chunk = (uint64_t)(first + i);
            bool held = holder && df_held_has(holder, ofd->ino, df_held_key(ofd->mount, chunk));

            if (states[i] > 1 || (states[i] > 0 && held))
                write_range(l, data, (off_t)(chunk * DF_HELD_CHUNK),
                            (off_t)((chunk + 1) * DF_HELD_CHUNK));
        }
}

static void write_held(struct letter *l, int data, uint32_t client, const struct df_ofd *ofd)
{
    struct df_holders *all = map_holders(l->server);
    int list = open_beside(l->server, 'b', ofd);

    l->lock = list;
    if (list >= 0)
        write_chunks(l, data, list, ofd, all ? df_held_of(all, client) : NULL);
    if (list >= 0)
        close(list);
    unmap_holders(all);
}

/* 0, or the first error. */
static int64_t write_back(struct df_server *server, uint32_t client, const struct df_ofd *ofd)
{
    struct letter l = {.server = server, .handle = atomic_load(&ofd->handle)};
    int data = open_beside(server, 'd', ofd);

    if (data < 0)
        return -errno;
    l.lock = data;
    atomic_store(&l.slot.word, df_slot_word(client, DF_SLOT_RUNNING));
    atomic_store(&l.slot.made, DF_PAYLOAD_SIZE);
    l.area = df_pages_new(sizeof(*l.area));
    l.now = malloc(2 * PIECE);
    l.had = l.now ? l.now + PIECE : NULL;
    if (l.area && l.now && __atomic_load_n(&ofd->marks, __ATOMIC_ACQUIRE) & DF_OFD_CHUNKED)
        write_held(&l, data, client, ofd);
    else if (l.area && l.now)
        write_data(&l, data);
    else
        l.error = -ENOMEM;
    df_pages_free(l.area, sizeof(*l.area));
    free(l.now);
    close(data);
    return l.error;
}

/* ---- for whom ---- */

/* Stores are only made by those who may write the file, to memory that is or was writable. Of any
 * other what differs is what somebody else has changed in the file. */
static bool may_have_stored(const struct df_ofd *ofd)
{
    const uint64_t marks = DF_OFD_MAPPED | DF_OFD_STORED;

    return (__atomic_load_n(&ofd->marks, __ATOMIC_ACQUIRE) & marks) == marks &&
           (atomic_load(&ofd->flags) & O_ACCMODE) == O_RDWR;
}

static bool is_mapped_to_write(const struct df_ofd *ofd)
{
    return __atomic_load_n(&ofd->marks, __ATOMIC_ACQUIRE) & DF_OFD_MAPPED &&
           (atomic_load(&ofd->flags) & O_ACCMODE) != O_RDONLY;
}

void df_mapped_gone(struct df_server *server, uint32_t client, const uint64_t *had)
{
    for (uint32_t i = 0; server->options->shadow && i < DF_OFD_COUNT / 64; i++)
        for (uint64_t bits = had[i]; bits != 0; bits &= bits - 1) {
            const struct df_ofd *ofd =
                &df_segment_ofds(server->own.segment)[i * 64 + (uint32_t)__builtin_ctzll(bits)];

            if (!is_mapped_to_write(ofd))
                continue;
            df_shadow_kept_forget(server, ofd);
            if (may_have_stored(ofd))
                write_back(server, client, ofd);
        }
}

int64_t df_mapped_write_back(struct df_server *server, uint32_t client, uint64_t handle)
{
    const struct df_ofd *ofd = df_segment_ofd(server->own.segment, handle);

    if (!server->options->shadow || !ofd)
        return -EBADF;
    return may_have_stored(ofd) ? write_back(server, client, ofd) : 0;
}

void df_mapped_forget(struct df_server *server, uint32_t client)
{
    struct df_holders *all = server->options->shadow ? map_holders(server) : NULL;
    struct df_holder *holder = all ? df_held_of(all, client) : NULL;

    if (holder)
        df_held_free(holder);
    unmap_holders(all);
}

/* ---- room --------------------------------------------------------------------------------------
 */

/* The lock of the run, which close(2) gives back; -1: others have it. */
static int try_lock(const struct df_server *server)
{
    char path[PATH_MAX];
    int lock;

    if (snprintf(path, sizeof(path), "%s/lock", server->options->shadow) >= PATH_MAX)
        return -1;
    lock = open(path, O_RDONLY | O_CLOEXEC);
    if (lock >= 0 && flock(lock, LOCK_EX | LOCK_NB) == 0)
        return lock;
    if (lock >= 0)
        close(lock);
    return -1;
}

/* Under the lock of the run. False: the file is open. Else who opens it from now on sees no
 * description that is marked, and looks for no data file. */
static bool remove_data(struct df_server *server, int mount, uint64_t ino)
{
    char data[PATH_MAX], chunks[PATH_MAX];
    struct stat st;
    uint64_t bytes;

    if (df_files_is_open(&server->files, mount, ino))
        return false;
    if (!name_of(server, 'd', mount, ino, data) || !name_of(server, 'b', mount, ino, chunks))
        return true;
    bytes = stat(data, &st) == 0 ? (uint64_t)st.st_blocks * 512 : 0;
    unlink(data);
    unlink(chunks);
    df_shadow_kept_closed(server, bytes);
    return true;
}

/* ---- what could not be removed ---- */

struct df_unremoved {
    struct df_unremoved *next;
    int mount;
    uint64_t ino;
};

static void push(struct df_server *server, struct df_unremoved *one)
{
    one->next = atomic_load(&server->unremoved);
    while (!atomic_compare_exchange_weak(&server->unremoved, &one->next, one))
        ;
}

static void remove_later(struct df_server *server, int mount, uint64_t ino)
{
    struct df_unremoved *one = malloc(sizeof(*one));

    if (!one) /* it goes with the run */
        return;
    *one = (struct df_unremoved){.mount = mount, .ino = ino};
    push(server, one);
}

/* What is open again may have another data file by now: until it is closed. */
static void remove_left(struct df_server *server)
{
    struct df_unremoved *next, *one = atomic_exchange(&server->unremoved, NULL);

    for (; one; one = next) {
        next = one->next;
        if (remove_data(server, one->mount, one->ino))
            free(one);
        else
            push(server, one);
    }
}

void df_mapped_settle(struct df_server *server)
{
    int lock = atomic_load(&server->unremoved) ? try_lock(server) : -1;

    if (lock < 0)
        return;
    remove_left(server);
    close(lock);
}

void df_mapped_closed(struct df_server *server, int mount, uint64_t ino)
{
    int lock;

    if (!server->options->shadow)
        return;
    lock = try_lock(server);
    if (lock < 0) {
        remove_later(server, mount, ino);
        return;
    }
    remove_data(server, mount, ino);
    close(lock);
}
