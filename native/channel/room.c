/*
 * room.c - makes pages of the segment by a call that can fail. Freestanding.
 */
#include "channel/room.h"

#include <errno.h>

#include "channel/map.h"
#include "channel/sys.h"

#define PAGE ((uintptr_t)4096)

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25 /* Linux 6.1 */
#endif

static long advise(uintptr_t from, size_t size, int advice)
{
    long ret;

    do {
        ret = df_sys3(SYS_madvise, (long)from, (long)size, advice);
    } while (ret == -EINTR);
    return ret;
}

/* Kernels that do not know the call, and filters that refuse it, leave it to the touch. */
bool df_room_make(struct df_segment *segment, void *at, size_t size)
{
    uintptr_t from = (uintptr_t)at & ~(PAGE - 1);
    uintptr_t end = ((uintptr_t)at + size + PAGE - 1) & ~(PAGE - 1);
    long ret = advise(from, end - from, MADV_POPULATE_WRITE);

    if (ret != -EFAULT && ret != -ENOMEM)
        return true;
    atomic_store(&segment->full, 1);
    return false;
}

/* Linux makes a huge page of what has a page at least. What is there already it copies. */
bool df_room_make_huge(void *at, size_t size)
{
    uintptr_t from = (uintptr_t)at;

    for (size_t done = 0; done < size; done += DF_HUGE_SIZE)
        if (advise(from + done, PAGE, MADV_POPULATE_WRITE) < 0)
            return false;
    return advise(from, size, MADV_COLLAPSE) == 0;
}

static struct df_area *area_of(struct df_segment *segment, const struct df_slot *slot)
{
    return &df_segment_areas(segment)[slot - df_segment_slots(segment)];
}

bool df_room_begin(struct df_segment *segment, struct df_slot *slot)
{
    struct df_area *area = area_of(segment, slot);

    if (__builtin_expect(atomic_load_explicit(&slot->made, memory_order_relaxed) > 0, 1))
        return true;
    if (!df_room_make(segment, area, DF_ROOM_HEAD) ||
        !df_room_make(segment, area->payload, DF_ROOM_FIRST))
        return false;
    atomic_store_explicit(&slot->made, DF_ROOM_FIRST, memory_order_relaxed);
    return true;
}

size_t df_room_for(struct df_segment *segment, struct df_slot *slot, size_t size)
{
    uint32_t made = atomic_load_explicit(&slot->made, memory_order_relaxed);

    if (size > DF_PAYLOAD_SIZE)
        size = DF_PAYLOAD_SIZE;
    if (__builtin_expect(size <= made, 1))
        return size;
    if (!df_room_make(segment, area_of(segment, slot)->payload + made, DF_PAYLOAD_SIZE - made))
        return made;
    atomic_store_explicit(&slot->made, DF_PAYLOAD_SIZE, memory_order_relaxed);
    return size;
}
