/*
 * segment.c - makes the segment; a thread on whose robust futex list its `life` word stands.
 *
 * Of a server that is killed nothing runs any more that could tell its clients. But the kernel
 * walks the robust list of each thread that ends, however it ends, and marks the words on it: a
 * client needs one load to know, no process id, no descriptor, no system call.
 */
#include "segment/segment.h"

#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "channel/cache.h"
#include "channel/frames.h"
#include "channel/link.h"
#include "channel/map.h"
#include "channel/room.h"
#include "channel/spin.h"
#include "channel/sys.h"

/* ---- life ------------------------------------------------------------------------------------ */

/* The list's one entry lies here; the word it stands for, at a fixed distance, in the segment. */
struct life {
    struct df_own_segment *own;
    struct robust_list_head head;
    struct robust_list entry;
    _Atomic uint32_t begun; /* futex */
};

static void wait_while(_Atomic uint32_t *word, uint32_t value)
{
    while (atomic_load(word) == value)
        syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

static void set(_Atomic uint32_t *word, uint32_t value)
{
    atomic_store(word, value);
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

/* This thread holds no robust mutex of libc's, so libc does not miss its list. */
static void *live(void *argument)
{
    struct life *given = argument;
    struct df_own_segment *own = given->own;
    struct life life = {.own = own};
    _Atomic uint32_t *word = &own->segment->life;

    life.head.list.next = &life.entry;
    life.head.futex_offset = (char *)word - (char *)&life.entry;
    life.entry.next = &life.head.list;
    /* The list first, which marks no word that is not this thread's: nobody dies unseen. */
    syscall(SYS_set_robust_list, &life.head, sizeof(life.head));
    atomic_store(word, (uint32_t)syscall(SYS_gettid) | FUTEX_WAITERS);
    set(&given->begun, 1);
    wait_while(&own->ending, 0);
    syscall(SYS_set_robust_list, NULL, sizeof(life.head)); /* it lies on this stack, which goes */
    return NULL;
}

static int begin_life(struct df_own_segment *own)
{
    struct life life = {.own = own};
    int error;

    atomic_init(&own->ending, 0);
    error = pthread_create(&own->life, NULL, live, &life);
    if (error == 0)
        wait_while(&life.begun, 0);
    return -error;
}

/* ---- memory ---------------------------------------------------------------------------------- */

static uint64_t aligned(uint64_t at)
{
    return (at + 4095) & ~UINT64_C(4095);
}

/* Offsets of the parts, and the size of the whole. */
static struct df_segment plan(uint64_t answers, const struct df_frames *frames)
{
    uint64_t tables = answers ? df_cache_tables_size(df_cache_most_sets(answers)) : 0;
    uint64_t first = df_cache_tables_size(DF_CACHE_SETS);
    struct df_segment s = {.magic = DF_SEGMENT_MAGIC};

    memcpy(s.build, df_build, DF_BUILD_SIZE);
    s.programs_at = aligned(sizeof(s)); /* each start reads the header: one fault brings both */
    s.mounts_at = s.programs_at + DF_PROGRAMS_SIZE;
    s.ofds_at = aligned(s.mounts_at + DF_MOUNT_COUNT * sizeof(struct df_shared_mount));
    s.slots_at = aligned(s.ofds_at + DF_OFD_COUNT * sizeof(struct df_ofd));
    s.areas_at = aligned(s.slots_at + DF_SLOT_COUNT * sizeof(struct df_slot));
    s.cache_at = df_huge_aligned(s.areas_at + DF_SLOT_COUNT * sizeof(struct df_area));
    s.frames_at = s.cache_at;
    if (answers > 0) {
        s.cache_at += df_huge_aligned(tables - first) + first;
        s.cache_size = sizeof(struct df_cache) + answers * sizeof(struct df_cache_entry);
        s.frames_at = df_huge_aligned(s.cache_at + s.cache_size);
    }
    s.frames_size = frames->size;
    s.names_at = aligned(s.frames_at + s.frames_size);
    s.epolls_at = s.names_at + (uint64_t)DF_OFD_COUNT * PATH_MAX;
    s.size = s.epolls_at + aligned(DF_EPOLL_COUNT * sizeof(struct df_shared_epoll));
    return s;
}

static uint32_t count_cpus(void)
{
    cpu_set_t set;

    return sched_getaffinity(0, sizeof(set), &set) == 0 ? (uint32_t)CPU_COUNT(&set) : 1;
}

/* Makes a part of the segment, whatever it costs, before anybody could touch it. 0 or -errno. */
static int make(const struct df_own_segment *own, uint64_t from, uint64_t end)
{
    int result;

    do
        result = fallocate(own->memory, FALLOC_FL_KEEP_SIZE, (off_t)from, (off_t)(end - from));
    while (result != 0 && errno == EINTR);
    return result == 0 || errno == EOPNOTSUPP ? 0 : -errno;
}

/* What must be there. */
static int make_parts(const struct df_own_segment *own, const struct df_segment *s)
{
    int error = make(own, 0, s->ofds_at);

    if (error == 0)
        error = make(own, s->slots_at, s->areas_at);
    for (unsigned i = 0; i < DF_ROOM_SLOTS && error == 0; i++) {
        uint64_t area = s->areas_at + i * sizeof(struct df_area);
        uint64_t payload = area + offsetof(struct df_area, payload);

        error = make(own, area, area + DF_ROOM_HEAD);
        if (error == 0)
            error = make(own, payload, payload + DF_ROOM_FIRST);
    }
    return error;
}

/* What clients look at without being asked: all of it, or there is no cache. The server writes all
 * over its own part, so it maps that here and not by a fault for each page. Answers and bytes are
 * made when they are put in. */
static void make_cache(const struct df_own_segment *own, struct df_segment *s,
                       const struct df_frames *frames)
{
    uint64_t first = s->cache_size ? s->cache_at - df_cache_tables_size(DF_CACHE_SETS) : 0;
    uint64_t end = s->cache_size ? s->cache_at + sizeof(struct df_cache) : 0;

    if (s->cache_size > 0)
        df_room_make_huge((char *)own->segment + first, DF_HUGE_SIZE);
    if (s->frames_size > 0)
        df_room_make_huge((char *)own->segment + s->frames_at,
                          df_huge_aligned(frames->contents_at));
    if (make(own, first, end) == 0 &&
        (s->frames_size == 0 || make(own, s->frames_at, s->frames_at + frames->contents_at) == 0) &&
        df_room_make(own->segment, (char *)own->segment + first, end - first))
        return;
    s->cache_size = s->frames_size = 0;
    atomic_init(&s->full, 1);
}

/* Whoever bounds the files of this process (RLIMIT_FSIZE) means no memory; only the hard limit
 * cannot be passed by. Beyond it ftruncate() would end the process by SIGXFSZ. 0 or -errno. */
static int set_size(int memory, uint64_t size)
{
    struct rlimit limit, wide;
    int error;

    if (getrlimit(RLIMIT_FSIZE, &limit) < 0)
        return -errno;
    if (limit.rlim_max < size)
        return -EFBIG;
    wide = (struct rlimit){limit.rlim_max, limit.rlim_max};
    if (limit.rlim_cur < size && setrlimit(RLIMIT_FSIZE, &wide) < 0)
        return -errno;
    error = ftruncate(memory, (off_t)size) < 0 ? -errno : 0;
    if (limit.rlim_cur < size)
        setrlimit(RLIMIT_FSIZE, &limit);
    return error;
}

static int map(struct df_own_segment *own, const struct df_segment *planned)
{
    int error;
    long at;

    own->memory = memfd_create("directfuse", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (own->memory < 0)
        return -errno;
    error = set_size(own->memory, planned->size);
    if (error < 0)
        return error;
    if (fcntl(own->memory, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
        return -errno;
    at = df_segment_map(own->memory, planned->size, 0);
    if (at < 0 && at > -4096)
        return (int)at;
    own->segment = (struct df_segment *)at;
    own->size = planned->size;
    return 0;
}

/* Those of the server before are gone: nobody spins or sleeps. */
static void forget_workers(struct df_segment *segment)
{
    atomic_store(&segment->spinning, 0);
    for (unsigned i = 0; i < DF_WORKER_WORDS; i++)
        atomic_store(&segment->asleep[i], 0);
}

int df_segment_take(struct df_own_segment *own, int memory)
{
    struct df_segment *segment;
    struct stat st;
    long at;

    own->memory = memory;
    if (fstat(memory, &st) < 0)
        return -errno;
    own->size = (uint64_t)st.st_size;
    at = df_segment_map(memory, own->size, 0);
    if (at < 0 && at > -4096)
        return (int)at;
    own->segment = segment = (struct df_segment *)at;
    if (segment->magic != DF_SEGMENT_MAGIC ||
        memcmp(segment->build, df_build, DF_BUILD_SIZE) != 0 || segment->size != own->size)
        return -EPROTO;
    segment->cpus = count_cpus();
    segment->server_pid = getpid();
    atomic_fetch_add(&segment->starts, 1);
    forget_workers(segment);
    return 0;
}

int df_segment_resume(struct df_own_segment *own)
{
    struct df_segment *segment = own->segment;

    forget_workers(segment);
    atomic_store(&segment->last_end, atomic_exchange(&segment->end, DF_END_NONE));
    return begin_life(own);
}

int df_segment_create(struct df_own_segment *own, uint64_t answers, size_t frames_size)
{
    struct df_frames frames = {.size = 0};
    struct df_segment planned;
    int error;

    if (frames_size > 0)
        df_frames_plan(&frames, frames_size);
    planned = plan(answers, &frames);
    own->segment = NULL;
    error = map(own, &planned);
    if (error == 0)
        error = make_parts(own, &planned);
    if (error == 0) {
        make_cache(own, &planned, &frames);
        *own->segment = planned;
        if (planned.cache_size > 0)
            df_cache_of(own->segment)->last_entry = answers - 1;
        if (planned.frames_size > 0)
            *df_frames_of(own->segment) = frames;
        for (unsigned i = 0; i < DF_ROOM_SLOTS; i++)
            atomic_init(&df_segment_slots(own->segment)[i].made, DF_ROOM_FIRST);
        own->segment->cpus = count_cpus();
        atomic_init(&own->segment->worth, DF_SPIN_START);
        atomic_init(&own->segment->woken_worth, DF_SPIN_START);
        own->segment->server_pid = getpid();
        atomic_store(&own->segment->starts, 1);
        error = begin_life(own);
    }
    if (error < 0)
        df_segment_free(own);
    return error;
}

void df_segment_end(struct df_own_segment *own)
{
    atomic_store(&own->segment->end, DF_END_ASKED);
    set(&own->ending, 1);
    pthread_join(own->life, NULL);
    atomic_fetch_or(&own->segment->life, FUTEX_OWNER_DIED);
}

void df_segment_free(struct df_own_segment *own)
{
    if (own->segment)
        munmap(own->segment, own->size);
    if (own->memory >= 0)
        close(own->memory);
    own->segment = NULL;
    own->memory = -1;
}
