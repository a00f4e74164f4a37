/*
 * files_next.c - what one program tells the next across execve(2): "client control memory entry
 * ids root sent keep", then "fd handle" for each file that stays open.
 */
#include <fcntl.h>
#include <sys/stat.h>

#include "channel/map.h"
#include "client/ids.h"
#include "intercept/text.h"
#include "shadows/linger.h"
#include "shadows/map.h"
#include "shadows/sent.h"
#include "shadows/shadow.h"
#include "syscalls/files_private.h"
#include "ways/cwd.h"
#include "ways/root.h"

/* What is told of files. */
#define KEEP_NONE 0
#define KEEP_LIST 1
#define KEEP_FIND 2 /* they are too many to be told: only below which number all are */

/* ---- told ------------------------------------------------------------------------------------ */

static bool stays_open(int fd)
{
    long flags = dfi_kernel(__NR_fcntl, fd, F_GETFD);

    return flags >= 0 && !(flags & FD_CLOEXEC);
}

static void add_number(struct dfi_text *text, unsigned long number)
{
    dfi_text_add_number(text, number);
    dfi_text_add(text, " ");
}

static void add_files(struct dfi_text *text, const struct dfi_files *files)
{
    int top = atomic_load(&files->top);

    for (int fd = 0; fd < top && !text->full; fd++)
        if (files->map[fd] && stays_open(fd)) {
            add_number(text, (unsigned)fd);
            add_number(text, files->map[fd]);
        }
}

/* The server has something of this program that it is to forget: files, or what other threads are
 * at, which end. */
static bool leaves_any(const struct dfi_files *files)
{
    return dfi_files_any(files) || files->maps || files->sent ||
           (files->lender && files->lender->sent) ||
           (dfi_process()->threads > 1 && files->link.client != 0);
}

/* Mappings end with the program: what they changed is written back. */
long dfi_files_exec(struct dfi_process *process, char *out, size_t size)
{
    struct dfi_files *files = process->files;
    struct dfi_text text = {.start = out, .size = size}, start;
    bool any = leaves_any(files);

    if (!files->link.segment)
        return 0;
    dfi_maps_sync(files);
    df_link_settle(&files->link);
    add_number(&text, files->link.client);
    add_number(&text, files->link.client != 0 ? (unsigned)files->link.control : 0);
    add_number(&text, (unsigned)files->link.memory);
    add_number(&text, (unsigned)files->entry);
    dfi_ids_tell(files, &text);
    add_number(&text, dfi_root_of(files));
    add_number(&text, files->sent);
    start = text;
    add_number(&text, any ? KEEP_LIST : KEEP_NONE);
    add_files(&text, files);
    if (text.full) {
        text = start;
        add_number(&text, KEEP_FIND);
        add_number(&text, (unsigned)atomic_load(&files->top));
    }
    dfi_files_count_trips(&files->link);
    return text.full ? -E2BIG : (long)text.used;
}

/* ---- heard ----------------------------------------------------------------------------------- */

/* The same client in another program. */
static long join_again(struct dfi_process *process, const char **text)
{
    struct dfi_files *files = process->files;
    struct df_link *link = &files->link;
    uint32_t client = (uint32_t)dfi_text_number(text);
    int control = (int)dfi_text_number(text), memory = (int)dfi_text_number(text);
    struct stat st;
    long at, ret = dfi_kernel(__NR_fstat, memory, &st);

    if (ret < 0)
        return ret;
    /* Its stack is what the core has mapped last: lowest. */
    at = df_segment_map(memory, (uint64_t)st.st_size, (uintptr_t)dfi_self() - (1 << 20));
    if (at < 0 && at > -4096)
        return at;
    if ((ret = df_link_init(link, (void *)at, (uint64_t)st.st_size)) < 0)
        return ret;
    link->client = client;
    link->control = client == 0 ? -1 : control;
    link->memory = memory;
    link->meet = dfi_files_meet;
    files->entry = (int)dfi_text_number(text);
    if (link->control >= 0)
        dfi_hidden_add(process, link->control);
    dfi_hidden_add(process, memory);
    dfi_hidden_add(process, files->entry);
    return 0;
}

/* Every descriptor that may be one is looked at: there were too many to be told. */
static void find_files(struct dfi_files *files, int top)
{
    for (int fd = 0; fd < top; fd++) {
        uint64_t entry = dfi_shadow_entry(files, fd);

        if (entry)
            dfi_fd_enter(files, fd, entry);
    }
}

long dfi_files_begin_again(struct dfi_process *process, const char *text, size_t size)
{
    struct dfi_files *files = process->files;
    const char *end = text + size;
    long ret = join_again(process, &text);
    unsigned long keep;
    uint64_t root;

    if (ret < 0)
        return ret;
    if ((ret = dfi_shadow_begin(files)) < 0)
        return ret;
    if ((ret = dfi_ids_hear(files, &text)) < 0 || (ret = dfi_identity_look(files)) < 0)
        return ret;
    dfi_held_forget(files);
    root = dfi_text_number(&text);
    files->sent = dfi_text_number(&text) != 0;
    keep = dfi_text_number(&text);
    if (keep != KEEP_NONE && !dfi_fd_room(files))
        return -ENOMEM;
    if (root)
        dfi_root_inherit(files, root);
    while (keep == KEEP_LIST && text < end) {
        int fd = (int)dfi_text_number(&text);

        dfi_fd_enter(files, fd, dfi_text_number(&text));
    }
    if (keep == KEEP_FIND)
        find_files(files, (int)dfi_text_number(&text));
    dfi_linger_inherited(files);
    dfi_cwd_changed(files);
    dfi_sent_leave(files);
    if (keep != KEEP_NONE)
        ret = dfi_files_keep(files, true);
    if (ret == -ENOTCONN || ret == -ETIMEDOUT) /* the server is gone, and its files answer EIO; or a
                                                  close hangs, of which nobody hears: it runs */
        ret = 0;
    return ret;
}
