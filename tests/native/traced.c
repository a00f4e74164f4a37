/*
 * traced.c - the file system that writes down what it is asked. See traced.h.
 */
#ifndef KERNEL_ROUTE
#include "traced_reply.h"
#endif
#include "traced.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#define DAY 86400.0

#include "traced_hold.h"
#include "traced_tree.h"

/* ---- for tests ---- */

struct traced *traced_new(void)
{
    struct traced *t = calloc(1, sizeof(*t));

    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->asked, NULL);
    t->entry_timeout = t->attr_timeout = DAY;
    t->negative_timeout = -1;
    t->next = FUSE_ROOT_ID;
    make(t, 0, "", S_IFDIR | 0755);
    return t;
}

void traced_free(struct traced *t)
{
    for (int i = 0; i < t->worker_count; i++)
        pthread_join(t->workers[i], NULL);
    pthread_mutex_destroy(&t->lock);
    pthread_cond_destroy(&t->asked);
    free(t);
}

uint64_t traced_make(struct traced *t, uint64_t parent, const char *name, mode_t mode)
{
    uint64_t number;

    pthread_mutex_lock(&t->lock);
    number = make(t, parent, name, mode);
    pthread_mutex_unlock(&t->lock);
    return number;
}

void traced_drop(struct traced *t, uint64_t parent, const char *name)
{
    pthread_mutex_lock(&t->lock);
    drop(t, find(t, parent, name));
    pthread_mutex_unlock(&t->lock);
}

void traced_move(struct traced *t, uint64_t parent, const char *name, uint64_t to)
{
    pthread_mutex_lock(&t->lock);
    find(t, parent, name)->parent = to;
    pthread_mutex_unlock(&t->lock);
}

static void await_log(struct traced *t, const char *expected)
{
    size_t size = strlen(expected);
    struct timespec limit;

    clock_gettime(CLOCK_REALTIME, &limit);
    limit.tv_sec += 2;
    while (t->log_size < size && memcmp(t->log, expected, t->log_size) == 0)
        if (pthread_cond_timedwait(&t->asked, &t->lock, &limit) != 0)
            return;
}

const char *traced_log(struct traced *t, const char *expected)
{
    static char text[TRACED_LOG];

    pthread_mutex_lock(&t->lock);
    await_log(t, expected);
    memcpy(text, t->log, t->log_size);
    text[t->log_size] = '\0';
    t->log_size = 0;
    pthread_mutex_unlock(&t->lock);
    return text;
}

uint64_t traced_lookups_of(struct traced *t, uint64_t number)
{
    uint64_t lookups;

    pthread_mutex_lock(&t->lock);
    lookups = t->nodes[number].lookups;
    pthread_mutex_unlock(&t->lock);
    return lookups;
}

uint64_t traced_lookups(struct traced *t)
{
    uint64_t sum = 0;

    for (uint64_t i = 2; i < TRACED_NODES; i++)
        sum += traced_lookups_of(t, i);
    return sum;
}

int traced_opens(struct traced *t)
{
    int sum = 0;

    pthread_mutex_lock(&t->lock);
    for (int i = 1; i < TRACED_NODES; i++)
        sum += t->nodes[i].opens;
    pthread_mutex_unlock(&t->lock);
    return sum;
}

/* ---- writing down, failing, answering late ---- */

static struct traced *of(fuse_req_t req)
{
    return fuse_req_userdata(req);
}

static void go_inside(struct traced *t, const char *name)
{
    if (!t->inside_of || strcmp(t->inside_of, name) != 0)
        return;
    t->inside_of = NULL;
    t->inside();
}

/* Locks. Returns the error that the request is to fail with, or 0. */
__attribute__((format(printf, 3, 4))) static int begin(fuse_req_t req, const char *name,
                                                       const char *format, ...)
{
    struct traced *t = of(req);
    size_t left;
    va_list args;
    int error = 0;

    go_inside(t, name);
    pthread_mutex_lock(&t->lock);
    t->requests++;
    left = sizeof(t->log) - t->log_size;
    if (!t->quiet && left > 600) {
        char *at = t->log + t->log_size;
        int size = snprintf(at, left, "%s%s ", t->log_size ? ", " : "", name);

        va_start(args, format);
        size += vsnprintf(at + size, left - (size_t)size, format, args);
        va_end(args);
        at += t->log_size ? 2 : 0;
        t->log_size += (size_t)size;
        pthread_cond_broadcast(&t->asked);
        wait_if_held(t, at);
    }
    if (t->fail_after > 0 && --t->fail_after == 0)
        error = t->fail_error;
    if (t->fail_name && strcmp(t->fail_name, name) == 0)
        error = t->fail_error;
    return error;
}

enum kind { ERR, ENTRY, CREATE, ATTR, OPEN, DATA, NUMBER, LINK, STATFS };

struct answer {
    fuse_req_t req;
    enum kind kind;
    int error;
    struct fuse_entry_param entry;
    struct fuse_file_info fi;
    double timeout;
    size_t size;
    char data[8192];
};

static void give(struct answer *a)
{
    struct statvfs st = {.f_bsize = 4096,
                         .f_frsize = 4096,
                         .f_blocks = 1000,
                         .f_bfree = 500,
                         .f_bavail = 400,
                         .f_namemax = 255};

    if (a->error || a->kind == ERR)
        fuse_reply_err(a->req, a->error);
    else if (a->kind == ENTRY)
        fuse_reply_entry(a->req, &a->entry);
    else if (a->kind == CREATE)
        fuse_reply_create(a->req, &a->entry, &a->fi);
    else if (a->kind == ATTR)
        fuse_reply_attr(a->req, &a->entry.attr, a->timeout);
    else if (a->kind == OPEN)
        fuse_reply_open(a->req, &a->fi);
    else if (a->kind == DATA)
        fuse_reply_buf(a->req, a->data, a->size);
    else if (a->kind == LINK)
        fuse_reply_readlink(a->req, a->data);
    else if (a->kind == STATFS)
        fuse_reply_statfs(a->req, &st);
    else
        fuse_reply_write(a->req, a->size);
}

static void *give_late(void *arg)
{
    struct answer *a = arg;
    struct timespec pause = {.tv_nsec = 200000}; /* often after the operation has returned */

    nanosleep(&pause, NULL);
    give(a);
    free(a);
    return NULL;
}

/* Unlocks and answers. */
static void end(struct traced *t, struct answer *a)
{
    struct answer *copy;
    pthread_t old = 0;
    bool late = t->late;
    int slot = 0;

    if (late) {
        slot = t->worker_count < 64 ? t->worker_count++ : rand() % 64;
        old = t->workers[slot];
        copy = malloc(sizeof(*copy));
        memcpy(copy, a, sizeof(*copy));
        if (pthread_create(&t->workers[slot], NULL, give_late, copy) != 0)
            abort();
    }
    pthread_mutex_unlock(&t->lock);
    if (old)
        pthread_join(old, NULL);
    if (!late)
        give(a);
}

static void begin_answer(struct answer *a, fuse_req_t req, enum kind kind, int error)
{
    a->req = req;
    a->kind = kind;
    a->error = error;
    a->size = 0;
    memset(&a->entry, 0, sizeof(a->entry));
    memset(&a->fi, 0, sizeof(a->fi));
}

/* Under the lock: the answer is this node, with one lookup more. */
static void answer_entry(struct traced *t, struct answer *a, uint64_t number)
{
    struct traced_node *node = &t->nodes[number];

    node->lookups++;
    a->entry.ino = number;
    a->entry.generation = node->generation;
    a->entry.attr = node->st;
    a->entry.attr_timeout = t->attr_timeout;
    a->entry.entry_timeout = t->entry_timeout;
}

/* ---- operations ---- */

static void op_init(void *userdata, struct fuse_conn_info *conn)
{
    struct traced *t = userdata;

    t->capable = conn->capable;
    conn->want = (conn->want & ~t->want_off) | t->want_on;
    t->wanted = conn->want;
}

static void op_destroy(void *userdata)
{
    ((struct traced *)userdata)->destroyed++;
}

static void op_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    struct traced *t = of(req);
    struct answer a;
    struct traced_entry *entry;

    begin_answer(&a, req, ENTRY, begin(req, "LOOKUP", "%ju/%s", (uintmax_t)parent, name));
    node_of(t, parent);
    entry = find(t, parent, name);
    if (a.error == 0 && entry) {
        answer_entry(t, &a, entry->child);
    } else if (a.error == 0 && t->negative_timeout >= 0) {
        a.entry.entry_timeout = t->negative_timeout;
    } else if (a.error == 0) {
        a.error = ENOENT;
    }
    end(t, &a);
}

static void forget(struct traced *t, uint64_t number, uint64_t count)
{
    struct traced_node *node = node_of(t, number);

    if (number == FUSE_ROOT_ID)
        return;
    if (node->lookups < count) {
        t->errors++;
        snprintf(t->error, sizeof(t->error), "node %ju: forgets %ju of %ju", (uintmax_t)number,
                 (uintmax_t)count, (uintmax_t)node->lookups);
        count = node->lookups;
    }
    if (node->opens > 0 && node->lookups == count) {
        t->errors++;
        snprintf(t->error, sizeof(t->error), "node %ju is forgotten while open", (uintmax_t)number);
    }
    node->lookups -= count;
    bury_if_dead(t, number);
}

static void op_forget(fuse_req_t req, fuse_ino_t ino, uint64_t count)
{
    struct traced *t = of(req);

    pthread_mutex_lock(&t->lock);
    forget(t, ino, count);
    pthread_mutex_unlock(&t->lock);
    fuse_reply_none(req);
}

static void op_forget_multi(fuse_req_t req, size_t count, struct fuse_forget_data *forgets)
{
    struct traced *t = of(req);

    pthread_mutex_lock(&t->lock);
    for (size_t i = 0; i < count; i++)
        forget(t, forgets[i].ino, forgets[i].nlookup);
    pthread_mutex_unlock(&t->lock);
    fuse_reply_none(req);
}

static void op_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    struct traced *t = of(req);
    struct answer a;

    begin_answer(&a, req, ATTR, begin(req, "GETATTR", "%ju%s", (uintmax_t)ino, fi ? " fh" : ""));
    a.entry.attr = node_of(t, ino)->st;
    a.timeout = t->attr_timeout;
    end(t, &a);
}

static void op_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *attr, int to_set,
                       struct fuse_file_info *fi)
{
    struct traced *t = of(req);
    struct answer a;
    struct stat *st;

    begin_answer(
        &a, req, ATTR,
        begin(req, "SETATTR", "%ju%s%s%s%s%s%s%s", (uintmax_t)ino,
              to_set & FUSE_SET_ATTR_MODE ? " mode" : "", to_set & FUSE_SET_ATTR_UID ? " uid" : "",
              to_set & FUSE_SET_ATTR_GID ? " gid" : "", to_set & FUSE_SET_ATTR_SIZE ? " size" : "",
              to_set & FUSE_SET_ATTR_ATIME ? " atime" : "",
              to_set & FUSE_SET_ATTR_MTIME ? " mtime" : "", fi ? " fh" : ""));
    st = &node_of(t, ino)->st;
    if (a.error == 0) {
        if (to_set & FUSE_SET_ATTR_MODE)
            st->st_mode = (st->st_mode & S_IFMT) | (attr->st_mode & 07777);
        if (to_set & FUSE_SET_ATTR_UID)
            st->st_uid = attr->st_uid;
        if (to_set & FUSE_SET_ATTR_GID)
            st->st_gid = attr->st_gid;
        if (to_set & FUSE_SET_ATTR_SIZE)
            st->st_size = attr->st_size;
        if (to_set & FUSE_SET_ATTR_ATIME)
            st->st_atim = attr->st_atim;
        if (to_set & FUSE_SET_ATTR_MTIME)
            st->st_mtim = attr->st_mtim;
    }
    a.entry.attr = *st;
    a.timeout = t->attr_timeout;
    end(t, &a);
}

static void op_readlink(fuse_req_t req, fuse_ino_t ino)
{
    struct traced *t = of(req);
    struct answer a;

    begin_answer(&a, req, LINK, begin(req, "READLINK", "%ju", (uintmax_t)ino));
    snprintf(a.data, sizeof(a.data), "%s", node_of(t, ino)->target);
    end(t, &a);
}

static void make_entry(fuse_req_t req, uint64_t parent, const char *name, mode_t mode, int error,
                       const char *target, struct fuse_file_info *fi)
{
    struct traced *t = of(req);
    struct answer a;

    begin_answer(&a, req, fi ? CREATE : ENTRY, error);
    check_there(t, parent, name);
    if (a.error == 0 && find(t, parent, name))
        a.error = EEXIST;
    if (a.error == 0 && is_full(t))
        a.error = ENOSPC;
    if (a.error == 0) {
        uint64_t number = make(t, parent, name, mode);

        if (target)
            snprintf(t->nodes[number].target, sizeof(t->nodes[number].target), "%s", target);
        answer_entry(t, &a, number);
        if (fi) {
            t->nodes[number].opens++;
            a.fi = *fi;
            a.fi.fh = 1000 + number;
        }
    }
    end(t, &a);
}

static void op_mknod(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, dev_t rdev)
{
    (void)rdev;
    make_entry(req, parent, name, mode,
               begin(req, "MKNOD", "%ju/%s %o", (uintmax_t)parent, name, mode), NULL, NULL);
}

static void op_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode)
{
    make_entry(req, parent, name, S_IFDIR | mode,
               begin(req, "MKDIR", "%ju/%s %o", (uintmax_t)parent, name, mode), NULL, NULL);
}

static void op_symlink(fuse_req_t req, const char *target, fuse_ino_t parent, const char *name)
{
    make_entry(req, parent, name, S_IFLNK | 0777,
               begin(req, "SYMLINK", "%ju/%s %s", (uintmax_t)parent, name, target), target, NULL);
}

static void op_create(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode,
                      struct fuse_file_info *fi)
{
    make_entry(req, parent, name, mode,
               begin(req, "CREATE", "%ju/%s %o", (uintmax_t)parent, name, mode), NULL, fi);
}

static void op_link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t parent, const char *name)
{
    struct traced *t = of(req);
    struct answer a;

    begin_answer(&a, req, ENTRY,
                 begin(req, "LINK", "%ju %ju/%s", (uintmax_t)ino, (uintmax_t)parent, name));
    check_there(t, parent, name);
    if (a.error == 0 && is_full(t))
        a.error = ENOSPC;
    if (a.error == 0) {
        node_of(t, ino)->st.st_nlink++;
        add_entry(t, parent, name, ino);
        answer_entry(t, &a, ino);
    }
    end(t, &a);
}

static void remove_entry(fuse_req_t req, fuse_ino_t parent, const char *name, int error, bool dir)
{
    struct traced *t = of(req);
    struct traced_entry *entry = find(t, parent, name);
    struct answer a;

    begin_answer(&a, req, ERR, error);
    if (a.error == 0 && !entry)
        a.error = ENOENT;
    if (a.error == 0 && t->nodes[entry->child].lookups == 0) {
        t->errors++; /* the kernel holds the victim */
        snprintf(t->error, sizeof(t->error), "%s is removed without a lookup", name);
    }
    if (a.error == 0 && dir && has_children(t, entry->child))
        a.error = ENOTEMPTY;
    if (a.error == 0)
        drop(t, entry);
    end(t, &a);
}

static void op_unlink(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    int error = begin(req, "UNLINK", "%ju/%s", (uintmax_t)parent, name);

    remove_entry(req, parent, name, error, false);
}

static void op_rmdir(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    int error = begin(req, "RMDIR", "%ju/%s", (uintmax_t)parent, name);

    remove_entry(req, parent, name, error, true);
}

static void op_rename(fuse_req_t req, fuse_ino_t parent, const char *name, fuse_ino_t newparent,
                      const char *newname, unsigned flags)
{
    struct traced *t = of(req);
    struct answer a;
    struct traced_entry *from, *to;

    begin_answer(&a, req, ERR,
                 begin(req, "RENAME", "%ju/%s %ju/%s%s", (uintmax_t)parent, name,
                       (uintmax_t)newparent, newname,
                       flags & RENAME_EXCHANGE    ? " exchange"
                       : flags & RENAME_NOREPLACE ? " noreplace"
                                                  : ""));
    check_there(t, newparent, newname);
    from = find(t, parent, name);
    to = find(t, newparent, newname);
    if ((from && is_below(t, newparent, from->child)) || (to && is_below(t, parent, to->child))) {
        t->errors++; /* the kernel prevents it */
        snprintf(t->error, sizeof(t->error), "%s moves into itself, or out of itself", name);
        a.error = EINVAL;
    }
    if (a.error == 0 && !from)
        a.error = ENOENT;
    if (a.error == 0 && to && !(flags & RENAME_EXCHANGE) &&
        S_ISDIR(t->nodes[to->child].st.st_mode) && has_children(t, to->child))
        a.error = ENOTEMPTY;
    if (a.error == 0 && (flags & RENAME_EXCHANGE)) {
        uint64_t child = from->child;

        from->child = to->child;
        to->child = child;
    } else if (a.error == 0) {
        uint64_t child = from->child;

        if (to)
            drop(t, to);
        from->parent = 0;
        add_entry(t, newparent, newname, child);
    }
    end(t, &a);
}

static void answer_open(struct traced *t, struct answer *a, uint64_t ino, struct fuse_file_info *fi)
{
    a->fi = *fi;
    if (a->error == 0) {
        node_of(t, ino)->opens++;
        a->fi.fh = 1000 + ino;
        a->fi.direct_io = t->open_flags & 1;
        a->fi.nonseekable = t->open_flags >> 1 & 1;
    }
}

static void op_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    struct answer a;

    begin_answer(&a, req, OPEN,
                 begin(req, "OPEN", "%ju%s%s%s", (uintmax_t)ino,
                       fi->flags & O_TRUNC ? " trunc" : "", fi->flags & O_APPEND ? " append" : "",
                       fi->flags & (O_CREAT | O_EXCL) ? " creat" : ""));
    answer_open(of(req), &a, ino, fi);
    if (a.error == 0 && (fi->flags & O_TRUNC))
        node_of(of(req), ino)->st.st_size = 0;
    end(of(req), &a);
}

static void op_opendir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    struct answer a;

    begin_answer(&a, req, OPEN, begin(req, "OPENDIR", "%ju", (uintmax_t)ino));
    answer_open(of(req), &a, ino, fi);
    end(of(req), &a);
}

static void check_handle(struct traced *t, uint64_t ino, const struct fuse_file_info *fi)
{
    if (fi->fh != 1000 + ino && t->fail_error != ENOSYS) { /* OPEN may be what is not known */
        t->errors++;
        snprintf(t->error, sizeof(t->error), "node %ju: handle %ju", (uintmax_t)ino,
                 (uintmax_t)fi->fh);
    }
}

static void op_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
                    struct fuse_file_info *fi)
{
    struct traced *t = of(req);
    struct answer a;
    struct traced_node *node;
    off_t left;

    begin_answer(&a, req, DATA,
                 begin(req, "READ", "%ju %jd+%zu", (uintmax_t)ino, (intmax_t)off, size));
    check_handle(t, ino, fi);
    node = node_of(t, ino);
    left = node->st.st_size > off ? node->st.st_size - off : 0;
    a.size = size < (size_t)left ? size : (size_t)left;
    if (a.error == 0 && a.size > 0)
        memcpy(a.data, node->data + off, a.size);
    end(t, &a);
}

static void op_write(fuse_req_t req, fuse_ino_t ino, const char *buf, size_t size, off_t off,
                     struct fuse_file_info *fi)
{
    struct traced *t = of(req);
    struct answer a;
    struct traced_node *node;

    begin_answer(&a, req, NUMBER,
                 begin(req, "WRITE", "%ju %jd+%zu", (uintmax_t)ino, (intmax_t)off, size));
    check_handle(t, ino, fi);
    node = node_of(t, ino);
    if (a.error == 0 && (size_t)off + size > sizeof(node->data))
        a.error = ENOSPC;
    if (a.error == 0) {
        memcpy(node->data + off, buf, size);
        if (node->st.st_size < off + (off_t)size)
            node->st.st_size = off + (off_t)size;
    }
    a.size = size;
    end(t, &a);
}

static void answer_done(fuse_req_t req, int error)
{
    struct answer a;

    begin_answer(&a, req, ERR, error);
    end(of(req), &a);
}

static void op_flush(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    int error = begin(req, "FLUSH", "%ju", (uintmax_t)ino);

    check_handle(of(req), ino, fi);
    answer_done(req, error);
}

static void closed(fuse_req_t req, const char *name, fuse_ino_t ino, struct fuse_file_info *fi)
{
    int error = begin(req, name, "%ju", (uintmax_t)ino);

    check_handle(of(req), ino, fi);
    node_of(of(req), ino)->opens--;
    answer_done(req, error);
}

static void op_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    closed(req, "RELEASE", ino, fi);
}

static void op_releasedir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    closed(req, "RELEASEDIR", ino, fi);
}

static void op_fsync(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi)
{
    (void)fi;
    answer_done(req, begin(req, "FSYNC", "%ju%s", (uintmax_t)ino, datasync ? " data" : ""));
}

static void op_fsyncdir(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi)
{
    (void)fi;
    answer_done(req, begin(req, "FSYNCDIR", "%ju%s", (uintmax_t)ino, datasync ? " data" : ""));
}

/* Offsets are 1 + the index of an entry. */
static void list(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, int error, bool plus)
{
    struct traced *t = of(req);
    struct answer a;

    begin_answer(&a, req, DATA, error);
    if (size > sizeof(a.data))
        size = sizeof(a.data);
    for (int i = (int)off; a.error == 0 && i < TRACED_ENTRIES; i++) {
        struct traced_entry *entry = &t->entries[i];
        struct fuse_entry_param param = {0};
        size_t used;

        if (entry->parent != ino)
            continue;
        param.attr = t->nodes[entry->child].st;
        param.ino = entry->child;
        param.generation = t->nodes[entry->child].generation;
        param.attr_timeout = t->attr_timeout;
        param.entry_timeout = t->entry_timeout;
        used = plus ? fuse_add_direntry_plus(req, a.data + a.size, size - a.size, entry->name,
                                             &param, i + 1)
                    : fuse_add_direntry(req, a.data + a.size, size - a.size, entry->name,
                                        &param.attr, i + 1);
        if (used > size - a.size)
            break;
        a.size += used;
        t->nodes[entry->child].lookups += plus;
    }
    end(t, &a);
}

static void op_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
                       struct fuse_file_info *fi)
{
    (void)fi;
    list(req, ino, size, off, begin(req, "READDIR", "%ju %jd", (uintmax_t)ino, (intmax_t)off),
         false);
}

static void op_readdirplus(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
                           struct fuse_file_info *fi)
{
    (void)fi;
    list(req, ino, size, off, begin(req, "READDIRPLUS", "%ju %jd", (uintmax_t)ino, (intmax_t)off),
         true);
}

static void op_statfs(fuse_req_t req, fuse_ino_t ino)
{
    struct answer a;

    begin_answer(&a, req, STATFS, begin(req, "STATFS", "%ju", (uintmax_t)ino));
    end(of(req), &a);
}

static void op_access(fuse_req_t req, fuse_ino_t ino, int mask)
{
    answer_done(req, begin(req, "ACCESS", "%ju %d", (uintmax_t)ino, mask));
}

const struct fuse_lowlevel_ops traced_ops = {
    .init = op_init,
    .destroy = op_destroy,
    .lookup = op_lookup,
    .forget = op_forget,
    .forget_multi = op_forget_multi,
    .getattr = op_getattr,
    .setattr = op_setattr,
    .readlink = op_readlink,
    .mknod = op_mknod,
    .mkdir = op_mkdir,
    .symlink = op_symlink,
    .link = op_link,
    .unlink = op_unlink,
    .rmdir = op_rmdir,
    .rename = op_rename,
    .open = op_open,
    .create = op_create,
    .opendir = op_opendir,
    .read = op_read,
    .write = op_write,
    .flush = op_flush,
    .release = op_release,
    .releasedir = op_releasedir,
    .fsync = op_fsync,
    .fsyncdir = op_fsyncdir,
    .readdir = op_readdir,
    .readdirplus = op_readdirplus,
    .statfs = op_statfs,
    .access = op_access,
};
