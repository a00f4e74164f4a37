/*
 * calls_xattr.c - extended attributes, by path, by link, by descriptor, and relative to a
 * directory.
 */
#include <fcntl.h>
#include <linux/posix_acl.h>
#include <linux/posix_acl_xattr.h>
#include <string.h>
#include <sys/xattr.h>

#include <linux/xattr.h> /* behind sys/xattr.h, whose names it then leaves alone */

#include "client/ids.h"
#include "core/calls.h"
#include "core/fd.h"
#include "core/route.h"
#include "ways/cwd.h"
#include "ways/way.h"

#define NAME_SIZE      256   /* XATTR_NAME_MAX and NUL */
#define VALUE_SIZE_MAX 65536 /* XATTR_SIZE_MAX */
#define LIST_SIZE_MAX  4096  /* of access control: no mount takes a longer one */
#define AT_FLAGS       (AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH)

enum which { GET, SET, LIST, REMOVE };

/* One call, whatever its form. `name`, `value` are the program's. */
struct request {
    enum which which;
    const char *name;
    void *value;
    size_t size;
    int flags; /* XATTR_* */
    bool nofollow;
    bool empty; /* an empty name is the descriptor: AT_EMPTY_PATH */
    char taken[NAME_SIZE];
};

/* By a byte of each page. */
static bool is_readable(const char *value, size_t size)
{
    for (size_t at = 0; at < size; at += DFI_PAGE - (uintptr_t)(value + at) % DFI_PAGE)
        if (dfi_byte_at(value + at) < 0)
            return false;
    return true;
}

/* The name, copied, and whether the rest will do. False: the kernel refuses the call as well,
 * before it looks for the file. */
static bool take_words(struct request *r)
{
    if (r->which == SET && (r->flags & ~(XATTR_CREATE | XATTR_REPLACE) ||
                            r->size > VALUE_SIZE_MAX || !is_readable(r->value, r->size)))
        return false;
    return r->which == LIST || dfi_copy_path(r->taken, r->name, NAME_SIZE) > 0;
}

/* ---- access control lists (acl(5)), which name users and groups ------------------------------ */

/* Whether those of the program's namespace are others than those of the run. */
static bool names_others(const struct request *r)
{
    return dfi_process()->files->ids && (strcmp(r->taken, XATTR_NAME_POSIX_ACL_ACCESS) == 0 ||
                                         strcmp(r->taken, XATTR_NAME_POSIX_ACL_DEFAULT) == 0);
}

/* Of an id that the namespace does not have a list is made that is none: of -1. */
static void bring_id(struct posix_acl_xattr_entry *entry)
{
    const struct dfi_files *files = dfi_process()->files;

    if ((entry->e_tag == ACL_USER && !dfi_ids_user(files, &entry->e_id)) ||
        (entry->e_tag == ACL_GROUP && !dfi_ids_group(files, &entry->e_id)))
        entry->e_id = (uint32_t)ACL_UNDEFINED_ID;
}

static void show_id(struct posix_acl_xattr_entry *entry)
{
    const struct dfi_files *files = dfi_process()->files;

    if (entry->e_tag == ACL_USER)
        entry->e_id = dfi_ids_user_inside(files, entry->e_id);
    else if (entry->e_tag == ACL_GROUP)
        entry->e_id = dfi_ids_group_inside(files, entry->e_id);
}

/* Each entry of the list, which may be the program's memory. */
static long change_ids(char *list, size_t size, void (*change)(struct posix_acl_xattr_entry *))
{
    struct posix_acl_xattr_entry entry;
    size_t at = sizeof(struct posix_acl_xattr_header);

    for (; at + sizeof(entry) <= size; at += sizeof(entry)) {
        if (dfi_copy_from(&entry, list + at, sizeof(entry)) < 0)
            return -EFAULT;
        change(&entry);
        if (dfi_copy_to(list + at, &entry, sizeof(entry)) < 0)
            return -EFAULT;
    }
    return 0;
}

/* A list that is to be set, as the run is to have it. */
static void bring_list(struct request *r, char list[LIST_SIZE_MAX])
{
    if (r->which != SET || r->size > LIST_SIZE_MAX || !names_others(r) ||
        dfi_copy_from(list, r->value, r->size) < 0)
        return;
    change_ids(list, r->size, bring_id);
    r->value = list;
}

/* What a mount has said, as the program is to see it. */
static long show_list(const struct request *r, long ret)
{
    if (r->which != GET || ret <= 0 || r->size == 0 || !names_others(r))
        return ret;
    return change_ids(r->value, (size_t)ret, show_id) < 0 ? -EFAULT : ret;
}

/* ---- one call -------------------------------------------------------------------------------- */

static long by_fd(const struct request *r, int fd)
{
    const char *name = r->taken;

    switch (r->which) {
    case GET:
        return df_call_fgetxattr(fd, name, r->value, r->size);
    case SET:
        return df_call_fsetxattr(fd, name, r->value, r->size, r->flags);
    case LIST:
        return df_call_flistxattr(fd, r->value, r->size);
    default:
        return df_call_fremovexattr(fd, name);
    }
}

static long by_path(const struct request *r, const char *path)
{
    const char *name = r->taken;

    switch (r->which) {
    case GET:
        return (r->nofollow ? df_call_lgetxattr : df_call_getxattr)(path, name, r->value, r->size);
    case SET:
        return (r->nofollow ? df_call_lsetxattr : df_call_setxattr)(path, name, r->value, r->size,
                                                                    r->flags);
    case LIST:
        return (r->nofollow ? df_call_llistxattr : df_call_listxattr)(path, r->value, r->size);
    default:
        return (r->nofollow ? df_call_lremovexattr : df_call_removexattr)(path, name);
    }
}

/* native/core knows these calls by path alone, or by descriptor. */
static long by_open(struct dfi_way *way, const struct request *r)
{
    long ret = dfi_way_open(way, &way->leg[0], O_PATH | (r->nofollow ? O_NOFOLLOW : 0));

    if (ret < 0)
        return ret;
    ret = by_fd(r, DF_FD_BASE + DFI_FD_FOREIGN);
    dfi_way_shut(way);
    return ret;
}

/* No path: the descriptor itself. The working directory is none to Linux where names are listed and
 * removed; it is open to lead on, and is opened once more to be asked. */
static long by_directory(struct dfi_way *way, const struct request *r)
{
    struct dfi_leg *leg = &way->leg[0];

    if (!r->empty)
        return by_path(r, leg->path);
    if (leg->dirfd < DF_FD_BASE)
        return DF_NOT_OURS;
    if (leg->dirfd != DF_FD_BASE + DFI_FD_HERE)
        return by_fd(r, leg->dirfd);
    if (r->which == LIST || r->which == REMOVE)
        return -EBADF;
    leg->empty = true;
    return by_open(way, r);
}

static long by_leg(struct dfi_way *way, const struct request *r)
{
    const struct dfi_leg *leg = &way->leg[0];

    if (!leg->empty && (!leg->path || leg->path[0] == '\0'))
        return by_directory(way, r);
    if (leg->dirfd == AT_FDCWD || (!leg->empty && leg->path[0] == '/'))
        return by_path(r, leg->path);
    return by_open(way, r);
}

static long run(struct dfi_frame *frame, struct request *r)
{
    char list[LIST_SIZE_MAX];
    struct dfi_way way;
    long ret;

    if (!take_words(r))
        return DFI_PASS;
    ret = dfi_way_begin(&way, frame);
    bring_list(r, list);
    while (dfi_way_next(&way, &ret))
        ret = by_leg(&way, r);
    return dfi_way_end(&way, way.ours ? show_list(r, ret) : ret);
}

/* From Linux 6.13 on the kernel takes AT_FDCWD, too, and would come to a shadow. */
static long other(unsigned long fd)
{
    const bool is_shadow = (int)fd == AT_FDCWD && dfi_cwd_is_ours(dfi_process()->files);

    return is_shadow ? -EBADF : dfi_other_fd(fd);
}

static long run_fd(struct dfi_frame *frame, struct request *r)
{
    char list[LIST_SIZE_MAX];
    struct dfi_record record;
    long ret;

    if (!dfi_fd_is_of_mount(frame->args[0]) || !take_words(r))
        return other(frame->args[0]);
    dfi_record_begin(&record);
    bring_list(r, list);
    ret = show_list(r, by_fd(r, DF_FD_BASE + (int)frame->args[0]));
    dfi_record_end(&record);
    return ret;
}

/* ---- the old twelve -------------------------------------------------------------------------- */

static struct request get_of(const struct dfi_frame *f, bool nofollow)
{
    return (struct request){.which = GET,
                            .name = (const char *)f->args[1],
                            .value = (void *)f->args[2],
                            .size = f->args[3],
                            .nofollow = nofollow};
}

static struct request set_of(const struct dfi_frame *f, bool nofollow)
{
    return (struct request){.which = SET,
                            .name = (const char *)f->args[1],
                            .value = (void *)f->args[2],
                            .size = f->args[3],
                            .flags = (int)f->args[4],
                            .nofollow = nofollow};
}

static struct request list_of(const struct dfi_frame *f, bool nofollow)
{
    return (struct request){
        .which = LIST, .value = (void *)f->args[1], .size = f->args[2], .nofollow = nofollow};
}

static struct request remove_of(const struct dfi_frame *f, bool nofollow)
{
    return (struct request){
        .which = REMOVE, .name = (const char *)f->args[1], .nofollow = nofollow};
}

#define DFI_XATTR(name, make, nofollow, how)                                                       \
    long dfi_do_##name(struct dfi_frame *frame)                                                    \
    {                                                                                              \
        struct request r = make(frame, nofollow);                                                  \
                                                                                                   \
        return how(frame, &r);                                                                     \
    }

DFI_XATTR(getxattr, get_of, false, run)
DFI_XATTR(lgetxattr, get_of, true, run)
DFI_XATTR(fgetxattr, get_of, false, run_fd)
DFI_XATTR(setxattr, set_of, false, run)
DFI_XATTR(lsetxattr, set_of, true, run)
DFI_XATTR(fsetxattr, set_of, false, run_fd)
DFI_XATTR(listxattr, list_of, false, run)
DFI_XATTR(llistxattr, list_of, true, run)
DFI_XATTR(flistxattr, list_of, false, run_fd)
DFI_XATTR(removexattr, remove_of, false, run)
DFI_XATTR(lremovexattr, remove_of, true, run)
DFI_XATTR(fremovexattr, remove_of, false, run_fd)

/* ---- those with a directory and flags: Linux 6.13 ---------------------------------------------
 */

/* struct xattr_args of linux/xattr.h. */
struct xattr_value {
    uint64_t value;
    uint32_t size;
    uint32_t flags;
};

static long run_at(struct dfi_frame *frame, struct request *r)
{
    unsigned flags = (unsigned)frame->args[2];

    if (flags & ~(unsigned)AT_FLAGS)
        return -EINVAL;
    r->nofollow = flags & AT_SYMLINK_NOFOLLOW;
    r->empty = flags & AT_EMPTY_PATH;
    return run(frame, r);
}

static long run_value(struct dfi_frame *frame, enum which which)
{
    struct xattr_value given;
    struct request r = {.which = which, .name = (const char *)frame->args[3]};
    long ret = dfi_copy_struct(&given, sizeof(given), (void *)frame->args[4], frame->args[5]);

    if (ret < 0)
        return ret;
    if (which == GET && given.flags != 0)
        return -EINVAL;
    r.value = (void *)given.value;
    r.size = given.size;
    r.flags = (int)given.flags;
    return run_at(frame, &r);
}

long dfi_do_setxattrat(struct dfi_frame *frame)
{
    return run_value(frame, SET);
}

long dfi_do_getxattrat(struct dfi_frame *frame)
{
    return run_value(frame, GET);
}

long dfi_do_listxattrat(struct dfi_frame *frame)
{
    struct request r = {.which = LIST, .value = (void *)frame->args[3], .size = frame->args[4]};

    return run_at(frame, &r);
}

long dfi_do_removexattrat(struct dfi_frame *frame)
{
    struct request r = {.which = REMOVE, .name = (const char *)frame->args[3]};

    return run_at(frame, &r);
}
