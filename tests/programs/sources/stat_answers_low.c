/*
 * stat_answers_low.c - the same of the low-level API. Numbers of files are places in `known`.
 */
#include <fuse_lowlevel.h>

#include "stat_answers.h"

#define TIMEOUT 1000.0 /* seconds */

static char known[200][64];
static fuse_ino_t count = 2;

static fuse_ino_t number_of(const char *name)
{
    fuse_ino_t i = 2;

    while (i < count && strcmp(known[i], name) != 0)
        i++;
    if (i == count)
        strncpy(known[count++], name, sizeof(known[0]) - 1);
    return i;
}

static int find(const char *name, struct fuse_entry_param *entry)
{
    *entry = (struct fuse_entry_param){.attr_timeout = TIMEOUT, .entry_timeout = TIMEOUT};
    int error = answer(name, &entry->attr);
    if (error == 0)
        entry->ino = entry->attr.st_ino = number_of(name);
    return error;
}

static void op_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    struct fuse_entry_param entry;
    int error = find(name, &entry);

    (void)parent;
    if (error)
        fuse_reply_err(req, error);
    else
        fuse_reply_entry(req, &entry);
}

static void op_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    struct stat st = root_attributes;

    (void)fi;
    if (ino > 1)
        answer(known[ino], &st);
    st.st_ino = ino;
    fuse_reply_attr(req, &st, TIMEOUT);
}

static void op_readdirplus(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
                           struct fuse_file_info *fi)
{
    char *buf = malloc(size);
    size_t used = 0;

    (void)ino, (void)fi;
    for (; listed[offset]; offset++) {
        struct fuse_entry_param entry;

        find(listed[offset], &entry);
        size_t more = fuse_add_direntry_plus(req, buf + used, size - used, listed[offset], &entry,
                                             offset + 1);
        if (more > size - used)
            break;
        used += more;
    }
    fuse_reply_buf(req, buf, used);
    free(buf);
}

/* What is behind a NUL is not of the target. */
static void op_readlink(fuse_req_t req, fuse_ino_t ino)
{
    char target[LONGEST + 1];
    size_t length = target_of(known[ino], target);

    if (length < 10)
        target[length / 2] = '\0';
    fuse_reply_buf(req, target, length);
}

static void op_statfs(fuse_req_t req, fuse_ino_t ino)
{
    (void)ino;
    fuse_reply_statfs(req, &space);
}

static void op_init(void *userdata, struct fuse_conn_info *conn)
{
    (void)userdata;
    conn->want &= ~FUSE_CAP_READDIRPLUS_AUTO; /* so READDIR is never sent */
}

static const struct fuse_lowlevel_ops operations = {
    .init = op_init,
    .lookup = op_lookup,
    .getattr = op_getattr,
    .readdirplus = op_readdirplus,
    .readlink = op_readlink,
    .statfs = op_statfs,
};

int main(int argc, char **argv)
{
    struct fuse_args args = FUSE_ARGS_INIT(argc, argv);
    struct fuse_cmdline_opts options;

    if (fuse_parse_cmdline(&args, &options))
        return 1;
    struct fuse_session *session = fuse_session_new(&args, &operations, sizeof(operations), NULL);
    if (!session || fuse_set_signal_handlers(session) ||
        fuse_session_mount(session, options.mountpoint))
        return 1;
    fuse_daemonize(options.foreground);
    fuse_session_loop(session);
    fuse_session_unmount(session);
    fuse_remove_signal_handlers(session);
    fuse_session_destroy(session);
    return 0;
}
