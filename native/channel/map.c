/*
 * map.c - maps the segment so that huge pages of it are mapped as such. Freestanding.
 */
#include "channel/map.h"

#include <sys/mman.h>

#include "channel/sys.h"

static long map_near(long at, int memory, uint64_t size)
{
    return df_sys6(SYS_mmap, at, (long)size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
                   memory, 0);
}

/* Where a segment that ends below an address begins at such a multiple. */
static long place_below(uint64_t below, uint64_t size)
{
    return below <= size ? 0 : (long)((below - size) & ~(DF_HUGE_SIZE - 1));
}

/* A place is asked for, not insisted upon: another thread may have it by then. Without one Linux
 * takes the highest room there is, so what lies right below is mostly free. */
static long map_aligned(int memory, uint64_t size, uint64_t below)
{
    long at = map_near(place_below(below, size), memory, size);
    long aligned = at & ~(long)(DF_HUGE_SIZE - 1);

    if (at == aligned || (at < 0 && at > -4096))
        return at;
    df_sys3(SYS_munmap, at, (long)size, 0);
    return map_near(aligned, memory, size);
}

long df_segment_map(int memory, uint64_t size, uint64_t below)
{
    long at = map_aligned(memory, size, below);

    /* A core file would have all of it, and every page that nobody has used be made for that. */
    if (at >= 0 || at <= -4096)
        df_sys3(SYS_madvise, at, (long)size, MADV_DONTDUMP);
    return at;
}
