/*
 * notify.c - what a server says of its own accord: caches to drop, files that became ready.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "channel.h"

/* ---- poll handles; under the channel's lock -------------------------------------------------- */

struct poll_handles {
    struct poll_handles *next;
    uint64_t number;
    uint64_t node, file; /* of an open file: its node, and fi->fh */
    struct fuse_pollhandle *handle;
};

/* The link that leads to the entry of an open file; to NULL: none. */
static struct poll_handles **find_file(struct channel *channel, uint64_t node, uint64_t file)
{
    struct poll_handles **link = &channel->polls;

    while (*link && ((*link)->node != node || (*link)->file != file))
        link = &(*link)->next;
    return link;
}

uint64_t notify_remember_poll(struct channel *channel, uint64_t node, uint64_t file,
                              struct fuse_pollhandle *handle)
{
    struct fuse_pollhandle *old = handle;
    uint64_t number = 0;

    pthread_mutex_lock(&channel->lock);
    struct poll_handles **link = find_file(channel, node, file);
    if (*link)
        old = (*link)->handle;
    else if ((*link = calloc(1, sizeof(**link))))
        old = NULL;
    if (*link) {
        (*link)->node = node;
        (*link)->file = file;
        (*link)->handle = handle;
        number = (*link)->number = (uint64_t)(uintptr_t)*link;
    }
    pthread_mutex_unlock(&channel->lock);
    if (old)
        fuse_pollhandle_destroy(old);
    return number;
}

void notify_forget_poll(struct channel *channel, uint64_t node, uint64_t file)
{
    pthread_mutex_lock(&channel->lock);
    struct poll_handles **link = find_file(channel, node, file), *entry = *link;
    if (entry)
        *link = entry->next;
    pthread_mutex_unlock(&channel->lock);
    if (entry)
        fuse_pollhandle_destroy(entry->handle);
    free(entry);
}

void notify_free(struct channel *channel)
{
    while (channel->polls)
        notify_forget_poll(channel, channel->polls->node, channel->polls->file);
}

static void poll_wakeup(struct channel *channel, const char *body)
{
    struct fuse_notify_poll_wakeup_out out;

    memcpy(&out, body, sizeof(out));
    pthread_mutex_lock(&channel->lock);
    for (struct poll_handles *entry = channel->polls; entry; entry = entry->next) {
        if (entry->number == out.kh)
            fuse_lowlevel_notify_poll(entry->handle);
    }
    pthread_mutex_unlock(&channel->lock);
}

/* ---- caches ---------------------------------------------------------------------------------- */

static void inval_inode(struct channel *channel, const char *body)
{
    struct fuse_notify_inval_inode_out out;

    memcpy(&out, body, sizeof(out));
    files_changed(channel, out.ino);
    fuse_lowlevel_notify_inval_inode(channel->session, out.ino, out.off, out.len);
}

static void expire_entry(struct fuse_session *session, fuse_ino_t parent, const char *name,
                         size_t length)
{
#if FUSE_VERSION >= FUSE_MAKE_VERSION(3, 17)
    fuse_lowlevel_notify_expire_entry(session, parent, name, length);
#else
    fuse_lowlevel_notify_expire_entry(session, parent, name, length, FUSE_LL_EXPIRE_ONLY);
#endif
}

static void inval_entry(struct channel *channel, const char *body, size_t size)
{
    struct fuse_notify_inval_entry_out out;

    memcpy(&out, body, sizeof(out));
    if (out.namelen >= size - sizeof(out)) /* the name's NUL follows */
        return;
    if (out.flags & FUSE_EXPIRE_ONLY)
        expire_entry(channel->session, out.parent, body + sizeof(out), out.namelen);
    else
        fuse_lowlevel_notify_inval_entry(channel->session, out.parent, body + sizeof(out),
                                         out.namelen);
}

static void removed(struct channel *channel, const char *body, size_t size)
{
    struct fuse_notify_delete_out out;

    memcpy(&out, body, sizeof(out));
    if (out.namelen < size - sizeof(out))
        fuse_lowlevel_notify_delete(channel->session, out.parent, out.child, body + sizeof(out),
                                    out.namelen);
}

static void store(struct channel *channel, const char *body, size_t size)
{
    struct fuse_notify_store_out out;

    memcpy(&out, body, sizeof(out));
    if (out.size > size - sizeof(out))
        return;
    files_changed(channel, out.nodeid);
    struct fuse_bufvec data = FUSE_BUFVEC_INIT(out.size);
    data.buf[0].mem = (char *)(uintptr_t)body + sizeof(out);
    fuse_lowlevel_notify_store(channel->session, out.nodeid, (off_t)out.offset, &data, 0);
}

/* Every name is looked up again before its next use. A libfuse before 3.18 cannot say so: the
 * server was told then that we speak an older protocol (greet.c). */
static void increment_epoch(struct channel *channel)
{
    if (fuse_lowlevel_notify_increment_epoch)
        fuse_lowlevel_notify_increment_epoch(channel->session);
}

/* The ids may lie unaligned. It is advice: an older libfuse does not take it. */
static void prune(struct channel *channel, const char *body, size_t size)
{
    struct protocol_prune_out out;
    fuse_ino_t id;

    memcpy(&out, body, sizeof(out));
    if (!fuse_lowlevel_notify_prune || out.count != (size - sizeof(out)) / sizeof(id) ||
        (size - sizeof(out)) % sizeof(id) != 0)
        return;
    for (uint32_t i = 0; i < out.count; i++) {
        memcpy(&id, body + sizeof(out) + i * sizeof(id), sizeof(id));
        fuse_lowlevel_notify_prune(channel->session, &id, 1);
    }
}

/* No page is kept here: an answer without data, so that the server does not wait for one. */
static void retrieve(struct channel *channel, const char *body)
{
    struct fuse_notify_retrieve_out out;
    struct {
        struct fuse_in_header header;
        struct fuse_notify_retrieve_in in;
    } answer = {.header = {.len = sizeof(answer), .opcode = FUSE_NOTIFY_REPLY}};

    memcpy(&out, body, sizeof(out));
    answer.header.unique = out.notify_unique;
    answer.header.nodeid = out.nodeid;
    answer.in.offset = out.offset;
    send(channel->fd, &answer, sizeof(answer), MSG_NOSIGNAL);
}

void notify_pass_on(struct channel *channel, int code, const char *body, size_t size)
{
    if (code == FUSE_NOTIFY_POLL && size >= sizeof(struct fuse_notify_poll_wakeup_out))
        poll_wakeup(channel, body);
    else if (code == FUSE_NOTIFY_INVAL_INODE && size >= sizeof(struct fuse_notify_inval_inode_out))
        inval_inode(channel, body);
    else if (code == FUSE_NOTIFY_INVAL_ENTRY && size > sizeof(struct fuse_notify_inval_entry_out))
        inval_entry(channel, body, size);
    else if (code == FUSE_NOTIFY_DELETE && size > sizeof(struct fuse_notify_delete_out))
        removed(channel, body, size);
    else if (code == FUSE_NOTIFY_STORE && size >= sizeof(struct fuse_notify_store_out))
        store(channel, body, size);
    else if (code == FUSE_NOTIFY_RETRIEVE && size >= sizeof(struct fuse_notify_retrieve_out))
        retrieve(channel, body);
    else if (code == PROTOCOL_NOTIFY_RESEND)
        exchange_resend_all(channel);
    else if (code == PROTOCOL_NOTIFY_INC_EPOCH)
        increment_epoch(channel);
    else if (code == PROTOCOL_NOTIFY_PRUNE && size >= sizeof(struct protocol_prune_out))
        prune(channel, body, size);
}
