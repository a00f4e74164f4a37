/*
 * room.h - memory of the segment is there before anybody stores in it. Freestanding.
 *
 * The segment is sparse: a page is made when it is first touched. Where the machine has no shared
 * memory left (vm.overcommit_memory=2, a bounded tmpfs) that touch is a SIGBUS, in a program that
 * has done nothing wrong. So pages are made by a call that can fail:
 *
 *   by the server   all that clients read without a trip (segment/segment.c), frames before they
 *                   are filled, open file descriptions before they are handed out
 *   by the client   the area of a slot: its head and DF_ROOM_FIRST bytes of payload by who claims
 *                   the slot for the first time, the rest by who first sends as much
 *
 * The first DF_ROOM_SLOTS slots have both from the beginning. When there is no more, calls use
 * those, and large ones are made in pieces. What is made stays.
 */
#ifndef DF_CHANNEL_ROOM_H
#define DF_CHANNEL_ROOM_H

#include <stdbool.h>

#include "channel/layout.h"

#define DF_ROOM_SLOTS  8
#define DF_ROOM_FIRST  (64U << 10) /* bytes of payload: more than anything but data has */
#define DF_ROOM_GROUPS 512         /* of a caller: those that the head has room for */

/* What comes before the payload: names, key, groups; bytes. */
#define DF_ROOM_HEAD (offsetof(struct df_area, groups) + DF_ROOM_GROUPS * sizeof(uint32_t))

/* Makes the pages of a range of the segment. False: there is no memory, as the segment says from
 * now on (`full`). */
bool df_room_make(struct df_segment *segment, void *at, size_t size);

/* The same for whole stretches of DF_HUGE_SIZE (map.h), each as one huge page: made in a tenth of
 * the time, and mapped by each process with one fault. False: not, or not all, and why does not
 * matter; Linux has them from 6.1 on, and only where there is such a page. */
bool df_room_make_huge(void *at, size_t size);

/* The slot, which the caller has claimed, has head and payload. */
bool df_room_begin(struct df_segment *segment, struct df_slot *slot);

/* How many of `size` bytes of its payload may be used: fewer if there is no memory for more. */
size_t df_room_for(struct df_segment *segment, struct df_slot *slot, size_t size);

#endif
