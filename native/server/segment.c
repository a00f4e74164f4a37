/*
 * segment.c - makes the segment; a thread on whose robust futex list its `life` word stands.
 *
 * Of a server that is killed nothing runs any more that could tell its clients. But the kernel
 * walks the robust list of each thread that ends, however it ends, and marks the words on it: a
 * client needs one load to know, no process id, no descriptor, no system call.
 */
#include "server/segment.h"

#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "channel/link.h"

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
    atomic_store(word, (uint32_t)syscall(SYS_gettid) | FUTEX_WAITERS);
    syscall(SYS_set_robust_list, &life.head, sizeof(life.head));
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
static struct df_segment plan(size_t cache_size)
{
    struct df_segment s = {.magic = DF_SEGMENT_MAGIC, .version = DF_SEGMENT_VERSION};

    s.mounts_at = aligned(sizeof(s));
    s.ofds_at = aligned(s.mounts_at + DF_MOUNT_COUNT * sizeof(struct df_shared_mount));
    s.slots_at = aligned(s.ofds_at + DF_OFD_COUNT * sizeof(struct df_ofd));
    s.areas_at = aligned(s.slots_at + DF_SLOT_COUNT * sizeof(struct df_slot));
    s.cache_at = s.areas_at + DF_SLOT_COUNT * sizeof(struct df_area);
    s.cache_size = aligned(cache_size);
    s.size = s.cache_at + s.cache_size;
    return s;
}

static uint32_t count_cpus(void)
{
    cpu_set_t set;

    return sched_getaffinity(0, sizeof(set), &set) == 0 ? (uint32_t)CPU_COUNT(&set) : 1;
}

static int map(struct df_own_segment *own, const struct df_segment *planned)
{
    void *at;

    own->memory = memfd_create("directfuse", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (own->memory < 0)
        return -errno;
    if (ftruncate(own->memory, (off_t)planned->size) < 0 ||
        fcntl(own->memory, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
        return -errno;
    at = mmap(NULL, planned->size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, own->memory,
              0);
    if (at == MAP_FAILED)
        return -errno;
    own->segment = at;
    return 0;
}

int df_segment_create(struct df_own_segment *own, size_t cache_size)
{
    struct df_segment planned = plan(cache_size);
    int error;

    own->segment = NULL;
    error = map(own, &planned);
    if (error == 0) {
        *own->segment = planned;
        own->segment->cpus = count_cpus();
        own->segment->server_pid = getpid();
        error = begin_life(own);
    }
    if (error < 0)
        df_segment_free(own);
    return error;
}

void df_segment_end(struct df_own_segment *own)
{
    set(&own->ending, 1);
    pthread_join(own->life, NULL);
    atomic_fetch_or(&own->segment->life, FUTEX_OWNER_DIED);
}

void df_segment_free(struct df_own_segment *own)
{
    if (own->segment)
        munmap(own->segment, own->segment->size);
    if (own->memory >= 0)
        close(own->memory);
    own->segment = NULL;
    own->memory = -1;
}
