/*
 * trip_list.c - readdir: out of the listings kept in the segment, or by a trip. Freestanding.
 */
#include <dirent.h>
#include <errno.h>

#include "channel/cache.h"
#include "channel/frames.h"
#include "channel/letter.h"
#include "channel/sys.h"

/* ---- what is kept ---------------------------------------------------------------------------- */

struct list {
    const struct df_frames *frames;
    const struct df_ofd *ofd;
    uint32_t content;
    uint64_t era;
};

/* False: nothing of the directory may be kept. A server that is gone answers nothing any more. */
static bool find_list(const struct df_trip *trip, uint64_t file, struct list *list)
{
    const struct df_segment *segment = trip->link->segment;
    unsigned index;

    if (segment->frames_size == 0 || segment->cache_size == 0 || !df_link_alive(trip->link) ||
        !(list->ofd = df_segment_ofd(segment, file)) || !(list->ofd->traits & DF_FILE_LISTS))
        return false;
    list->content = atomic_load_explicit(&list->ofd->content, memory_order_acquire);
    index = df_segment_mount_index(segment, list->ofd->mount);
    if (list->content == 0 || index == DF_MOUNT_COUNT)
        return false;
    list->frames = df_frames_of(segment);
    list->era =
        atomic_load_explicit(&df_cache_of(segment)->mounts[index].listings, memory_order_acquire);
    return true;
}

/* How many bytes of whole records fit, and where the next begins. What is read may be torn: nothing
 * outside of the frame is looked at. */
static size_t fit(const struct df_frame_view *view, size_t room, uint64_t *next)
{
    size_t used = 0;

    if (view->used <= room) {
        *next = view->next;
        return view->used;
    }
    while (used + offsetof(struct dirent64, d_name) < view->used) {
        struct dirent64 head;

        df_sys_copy_unsure(&head, view->bytes + used, offsetof(struct dirent64, d_name));
        if (head.d_reclen == 0 || head.d_reclen > room - used || head.d_reclen > view->used - used)
            break;
        used += head.d_reclen;
        *next = (uint64_t)head.d_off;
    }
    return used;
}

/* One frame's records, as far as there is room. 0: they are not here, or none fits. */
static size_t read_piece(const struct list *list, uint64_t file, uint64_t position,
                         struct df_dirbuf *buf, bool *end)
{
    struct df_frame_view view;
    uint64_t next = position;
    size_t size;

    if (!df_frame_listing(list->frames, list->content, position, list->era, &view))
        return 0;
    *end = view.used == 0;
    size = fit(&view, buf->size - buf->used, &next);
    if (df_channel_user_copy_unsure(buf->data + buf->used, view.bytes, size) < 0 ||
        !df_frame_same(&view) ||
        atomic_load_explicit(&list->ofd->handle, memory_order_relaxed) != file) {
        *end = false;
        return 0;
    }
    buf->used += size;
    if (size > 0)
        buf->next = (off_t)next;
    return size;
}

/* True: answered, by records or by the end of the listing. */
static bool read_kept(const struct df_trip *trip, uint64_t file, off_t offset,
                      struct df_dirbuf *buf)
{
    uint64_t position = (uint64_t)offset;
    size_t before = buf->used;
    bool end = false;
    struct list list;

    if (!find_list(trip, file, &list))
        return false;
    while (!end && read_piece(&list, file, position, buf, &end) > 0)
        position = (uint64_t)buf->next;
    return end || buf->used > before;
}

/* ---- the end --------------------------------------------------------------------------------- */

/* Whether the trip that brought what is before this place has found nothing behind it. That is said
 * once: who asks there again, or from the start, is to see what has been added since. */
static bool has_ended(const struct df_trip *trip, uint64_t file, off_t offset)
{
    struct df_ofd *ofd = df_segment_ofd(trip->link->segment, file);
    int64_t here = offset;

    return offset != 0 && ofd && df_link_alive(trip->link) &&
           atomic_load_explicit(&ofd->end, memory_order_relaxed) == here &&
           atomic_compare_exchange_strong(&ofd->end, &here, 0);
}

static void note_end(const struct df_trip *trip, uint64_t file, int64_t end)
{
    struct df_ofd *ofd = df_segment_ofd(trip->link->segment, file);

    if (ofd && atomic_load_explicit(&ofd->end, memory_order_relaxed) != end)
        atomic_store_explicit(&ofd->end, end, memory_order_relaxed);
}

/* ---- the trip -------------------------------------------------------------------------------- */

int df_trip_readdir(struct df_trip *trip, uint64_t file, off_t offset, struct df_dirbuf *buf)
{
    struct df_letter l;
    size_t room = buf->size - buf->used, used;
    int64_t result;
    long copied;
    int error;

    if (has_ended(trip, file, offset) || read_kept(trip, file, offset, buf)) {
        df_link_hit(trip->link);
        return 0;
    }
    error = df_letter_begin_file(&l, trip, DF_MESSAGE_readdir, file);
    if (error < 0)
        return error;
    if (trip->called_len > 0)
        df_letter_put_where(&l, 1,
                            &(struct df_trip_where){.name = trip->called, .len = trip->called_len});
    l.message->args.readdir.offset = offset;
    l.message->args.readdir.size = df_letter_room(&l, room);
    result = df_letter_send(&l, &error);
    if (error < 0)
        return error;
    used = l.message->out.readdir.used;
    if (result < 0 || used == 0 || used > room)
        return (int)df_letter_finish(&l, result);
    copied = df_channel_user_copy(buf->data + buf->used, l.area->payload, used);
    if (copied < 0)
        return (int)df_letter_finish(&l, copied);
    buf->used += used;
    buf->next = l.message->out.readdir.next;
    note_end(trip, file, l.message->out.readdir.ends ? buf->next : 0);
    return (int)df_letter_finish(&l, result);
}
