/*
 * backed.c - df-backed.so: kernel FUSE passthrough (FUSE_PASSTHROUGH, Linux 6.9) for a FUSE program
 * whose libfuse does not speak it yet, so that it can be compared on any distribution.
 *
 * Preloaded into a program whose file handles are descriptors of real files. It does what
 * libfuse 3.17 does for one that sets fi->backing_id: asks for passthrough in the reply to INIT,
 * registers the real file with the kernel when a file is opened, and names it in the reply. From
 * then on reads and writes of that file never reach the program.
 *
 * DF_BACKED names a file into which the number of files opened so is written at the end.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

/* From Linux 6.9's linux/fuse.h; older headers have no names for them. */
struct backing_map {
    int32_t fd;
    uint32_t flags;
    uint64_t padding;
};
enum {
    INIT_EXT = 1 << 30,           /* FUSE_INIT_EXT: flags2 counts */
    INIT2_PASSTHROUGH = 1 << 5,   /* FUSE_PASSTHROUGH >> 32 */
    INIT_MAX_STACK_DEPTH_AT = 36, /* in struct fuse_init_out */
    INIT_FLAGS2_AT = 32,
    INIT_OUT_SIZE = 64,
    OPEN_PASSTHROUGH = 1 << 7, /* FOPEN_PASSTHROUGH */
};
#define BACKING_OPEN  _IOW(229, 1, struct backing_map)
#define BACKING_CLOSE _IOW(229, 2, uint32_t)

/* Requests whose replies are changed, by their number; a slot is free when it is 0. They are few:
 * as many as are being answered at the same time. */
enum { SLOTS = 256 };
static struct {
    uint64_t unique;
    uint32_t opcode;
} waiting[SLOTS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* protects all that is static here */
static unsigned long opened;

static void remember(const struct fuse_in_header *in)
{
    if (in->opcode != FUSE_INIT && in->opcode != FUSE_OPEN && in->opcode != FUSE_CREATE)
        return;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < SLOTS; i++) {
        if (waiting[i].unique == 0) {
            waiting[i].unique = in->unique;
            waiting[i].opcode = in->opcode;
            break;
        }
    }
    pthread_mutex_unlock(&lock);
}

/* The opcode that this is the reply to, or 0. */
static uint32_t recall(uint64_t unique)
{
    uint32_t opcode = 0;

    pthread_mutex_lock(&lock);
    for (int i = 0; i < SLOTS && unique != 0; i++) {
        if (waiting[i].unique == unique) {
            opcode = waiting[i].opcode;
            waiting[i].unique = 0;
            break;
        }
    }
    pthread_mutex_unlock(&lock);
    return opcode;
}

static void put32(char *at, uint32_t value)
{
    memcpy(at, &value, sizeof(value));
}

static uint32_t get32(const char *at)
{
    uint32_t value;

    memcpy(&value, at, sizeof(value));
    return value;
}

static void ask_for_passthrough(char *init, size_t size)
{
    const size_t flags_at = offsetof(struct fuse_init_out, flags);

    if (size < INIT_OUT_SIZE)
        return;
    put32(init + flags_at, get32(init + flags_at) | INIT_EXT);
    put32(init + INIT_FLAGS2_AT, get32(init + INIT_FLAGS2_AT) | INIT2_PASSTHROUGH);
    put32(init + INIT_MAX_STACK_DEPTH_AT, 1);
}

/* ---- real files that the kernel knows ---- */

/* The kernel wants one number for all open files of an inode. Under `lock`; count 0: free. */
static struct {
    dev_t device;
    ino_t inode;
    uint32_t id, count;
} backings[SLOTS];

/* The slot of the file behind a descriptor, a free one, or -1. */
static int slot_of(const struct stat *st)
{
    int vacant = -1;

    for (int i = 0; i < SLOTS; i++) {
        if (backings[i].count == 0)
            vacant = i;
        else if (backings[i].device == st->st_dev && backings[i].inode == st->st_ino)
            return i;
    }
    return vacant;
}

/* Under `lock`. The kernel's number for the file, or 0. */
static uint32_t register_file(int device, int fd)
{
    struct backing_map map = {.fd = fd};
    struct stat st;
    int slot = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) ? slot_of(&st) : -1;

    if (slot < 0)
        return 0;
    if (backings[slot].count == 0) {
        int id = ioctl(device, BACKING_OPEN, &map);
        if (id <= 0)
            return 0;
        backings[slot].id = (uint32_t)id;
        backings[slot].device = st.st_dev;
        backings[slot].inode = st.st_ino;
    }
    backings[slot].count++;
    return backings[slot].id;
}

static void forget_file(int device, int fd)
{
    struct stat st;

    pthread_mutex_lock(&lock);
    int slot = fstat(fd, &st) == 0 ? slot_of(&st) : -1;
    if (slot >= 0 && backings[slot].count > 0 && --backings[slot].count == 0)
        ioctl(device, BACKING_CLOSE, &backings[slot].id);
    pthread_mutex_unlock(&lock);
}

/* Names the real file in the reply, if the kernel takes it. */
static void back(int device, struct fuse_open_out *out)
{
    pthread_mutex_lock(&lock);
    uint32_t id = register_file(device, (int)out->fh);
    opened += id != 0;
    pthread_mutex_unlock(&lock);
    if (id == 0)
        return;
    out->open_flags = OPEN_PASSTHROUGH; /* it goes with no other that speaks of caches */
    put32((char *)out + offsetof(struct fuse_open_out, open_flags) + sizeof(uint32_t), id);
}

/* ---- what the program reads and writes ---- */

static int fuse_device = -1; /* the descriptor that replies are written to */

static void see_request(const struct fuse_in_header *in)
{
    const struct fuse_release_in *release = (const void *)(in + 1);

    if (in->opcode == FUSE_RELEASE && in->len >= sizeof(*in) + sizeof(*release))
        forget_file(fuse_device, (int)release->fh);
    else
        remember(in);
}

ssize_t read(int fd, void *buf, size_t size)
{
    static ssize_t (*next)(int, void *, size_t);

    if (!next)
        next = (ssize_t (*)(int, void *, size_t))dlsym(RTLD_NEXT, "read");
    ssize_t got = next(fd, buf, size);
    /* A request names its own size, which nothing else that a FUSE program reads does. */
    const struct fuse_in_header *in = buf;
    if (got >= (ssize_t)sizeof(*in) && in->len == (uint32_t)got)
        see_request(in);
    return got;
}

ssize_t writev(int fd, const struct iovec *iov, int count)
{
    static ssize_t (*next)(int, const struct iovec *, int);
    const struct fuse_out_header *out = count == 2 ? iov[0].iov_base : NULL;

    if (!next)
        next = (ssize_t (*)(int, const struct iovec *, int))dlsym(RTLD_NEXT, "writev");
    if (out && iov[0].iov_len == sizeof(*out) && out->error == 0) {
        char *reply = iov[1].iov_base;
        switch (recall(out->unique)) {
        case FUSE_INIT:
            fuse_device = fd;
            ask_for_passthrough(reply, iov[1].iov_len);
            break;
        case FUSE_OPEN:
            back(fd, (struct fuse_open_out *)reply);
            break;
        case FUSE_CREATE:
            back(fd, (struct fuse_open_out *)(reply + sizeof(struct fuse_entry_out)));
            break;
        }
    }
    return next(fd, iov, count);
}

__attribute__((destructor)) static void report(void)
{
    const char *path = getenv("DF_BACKED");
    FILE *file = path ? fopen(path, "we") : NULL;

    if (file) {
        fprintf(file, "%lu\n", opened);
        fclose(file);
    }
}
