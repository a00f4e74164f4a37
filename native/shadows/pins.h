/*
 * pins.h - memory that a system call under way may look at: it is not given up (map_reclaim.c).
 *
 * On the stack of the call (intercept.h: struct dfi_pins); the list is under the lock of the
 * mappings.
 */
#ifndef DF_SHADOWS_PINS_H
#define DF_SHADOWS_PINS_H

#include "intercept/intercept.h"

/* More ranges than there is room for become one that covers them. */
static inline void dfi_pins_add(struct dfi_pins *pins, uintptr_t start, uintptr_t end)
{
    struct dfi_pin *last = &pins->list[pins->count == 0 ? 0 : pins->count - 1];
    bool joins = pins->count > 0 && start <= last->end && end >= last->start;

    if (!joins && pins->count < DFI_PINS_MAX) {
        pins->list[pins->count++] = (struct dfi_pin){start, end};
        return;
    }
    last->start = start < last->start ? start : last->start;
    last->end = end > last->end ? end : last->end;
}

/* Whether a call of the list has something of it. */
static inline bool dfi_pins_overlap(const struct dfi_pins *pins, uintptr_t start, uintptr_t end)
{
    for (; pins; pins = pins->next)
        for (unsigned i = 0; i < pins->count; i++)
            if (pins->list[i].start < end && pins->list[i].end > start)
                return true;
    return false;
}

#endif
