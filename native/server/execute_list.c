/*
 * execute_list.c - listings, as far as there is room for what the client would ask for next; what
 * of them is kept for all (segment/frames.h).
 */
#include "server/server_private.h"

#define out_of    df_execute_out
#define CALL      DF_EXECUTE_CALL

#define LIST_ROOM 4096 /* bytes: as much as every file system must be able to put a record in */

/* Records in the payload, from `from` on, of which the first begins at `position`. */
static void keep_list(struct df_work *w, const struct df_frames_ticket *ticket,
                      struct df_cacher_ticket names, off_t position, size_t from, size_t used)
{
    if (df_cacher_same_names(&w->server->cacher, w->index, names))
        df_framer_keep_list(&w->server->framer, ticket, (uint64_t)position, names.era,
                            w->area->payload + from, used - from);
}

/* What the client would ask for next, as long as there is room: so that it learns of the end
 * without another trip. An error is left for it to find. True: nothing is behind the records. */
static bool list_on(struct df_work *w, const struct df_frames_ticket *ticket,
                    struct df_cacher_ticket names, struct df_dirbuf *buf)
{
    size_t before = 0;

    while (buf->used > before && buf->size - buf->used >= LIST_ROOM) {
        off_t position = buf->next;

        before = buf->used;
        if (CALL(readdir, w->files[0], position, buf) < 0)
            return false;
        if (names.valid)
            keep_list(w, ticket, names, position, before, buf->used);
    }
    return buf->used == before;
}

int64_t df_execute_readdir(struct df_work *w)
{
    struct df_dirbuf buf = {.data = w->area->payload,
                            .size = df_execute_room(w, w->message.args.readdir.size)};
    struct df_cacher_ticket names = {.valid = false};
    uint32_t content =
        w->files[0]->traits & DF_FILE_LISTS ? df_execute_content_of(w, w->message.files[0]) : 0;
    struct df_frames_ticket ticket = df_framer_ask(&w->server->framer, w->index, content);
    off_t size;
    int64_t ret;
    bool ended;

    if (ticket.valid && !df_framer_timeless(&w->server->framer, w->index)) {
        df_framer_lists(&w->server->framer, w->index);
        ticket = df_execute_ask(w, content, &size);
    }
    if (ticket.valid && !df_framer_timeless(&w->server->framer, w->index))
        names = df_cacher_ask_names(&w->server->cacher, w->index);
    ret = CALL(readdir, w->files[0], w->message.args.readdir.offset, &buf);
    if (ret == 0 && names.valid)
        keep_list(w, &ticket, names, w->message.args.readdir.offset, 0, buf.used);
    ended = ret == 0 && list_on(w, &ticket, names, &buf);
    w->listed = buf.used;
    out_of(w)->readdir.used = buf.used;
    out_of(w)->readdir.next = buf.next;
    out_of(w)->readdir.ends = ended && !names.valid; /* else that is kept, until names change */
    return buf.used > 0 ? 0 : ret; /* as getdents64(2): the error comes with the next question */
}
