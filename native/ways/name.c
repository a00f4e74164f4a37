/*
 * name.c - the names of open files. What a file was opened by is kept for all processes; whether it
 * still leads there is asked, and if it does not, the file system what the file is called instead.
 */
#include "ways/name.h"

#include <fcntl.h>
#include <string.h>

#include "channel/sys.h"
#include "client/record.h"
#include "core/mount.h"
#include "core/use.h"
#include "core/walk.h"
#include "ways/steps.h"

static const char deleted[] = " (deleted)";

/* Where there is no memory, to touch it would be SIGBUS. */
char *dfi_name_room(struct dfi_files *files, uint64_t handle)
{
    char *name = df_segment_name(files->link.segment, handle);

    return df_channel_user_copy(name, "", 1) < 0 ? NULL : name;
}

/* Of memory that all processes of the run write to. */
static char *kept_of(int fd)
{
    const struct dfi_record *record = dfi_record_now();
    uint64_t handle = dfi_record_handle(record, fd);

    return handle ? df_segment_name(record->files->link.segment, handle) : NULL;
}

static void copy(char to[PATH_MAX], const char *from)
{
    size_t len = strnlen(from, PATH_MAX - 1);

    memcpy(to, from, len);
    to[len] = '\0';
}

static bool leads_to(const char *name, int fd)
{
    struct stat st, own;

    return name[0] == '/' && df_call_fstat(fd, &own) == 0 &&
           df_call_fstatat(AT_FDCWD, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
           st.st_ino == own.st_ino && st.st_dev == own.st_dev;
}

/* How much of a name is the mountpoint of the open file; 0: it leads there by another way. */
static size_t point_of(int fd, const char *name)
{
    struct df_use use;
    ssize_t ret = df_use_begin_any(&use, fd);

    if (ret < 0)
        return 0;
    if (strncmp(name, use.call.mount->point, use.call.mount->point_len) == 0)
        ret = (ssize_t)use.call.mount->point_len;
    return (size_t)df_use_end(&use, ret);
}

static bool is_directory(const char *name)
{
    struct stat st;

    return df_call_fstatat(AT_FDCWD, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

/* Whether nothing on the way to the last part of a name is a symlink: Linux shows none. */
static bool is_straight(int fd, char name[PATH_MAX])
{
    size_t point = point_of(fd, name);
    bool straight = point > 0;

    for (size_t at = point + 1; straight && name[at - 1] != '\0'; at++) {
        if (name[at] != '/')
            continue;
        name[at] = '\0';
        straight = is_directory(name);
        name[at] = '/';
    }
    return straight;
}

/* Its name as the file system knows it, behind the mountpoint. */
static ssize_t ask(int fd, char out[PATH_MAX])
{
    char text[PATH_MAX];
    struct df_use use;
    ssize_t ret = df_use_begin_any(&use, fd);
    const struct df_mount *mount;

    if (ret < 0)
        return ret;
    mount = use.call.mount;
    ret = use.fs->ops->path(use.fs, &use.call, use.file, text, sizeof(text) - 1);
    if (ret > 0) {
        text[ret] = '\0';
        ret = df_walk_join(out, mount->point, mount->point_len, text + (ret == 1 ? 1 : 0));
    }
    return df_use_end(&use, ret);
}

long dfi_name_find(int fd, char out[PATH_MAX])
{
    char *kept = kept_of(fd);
    bool leads;
    ssize_t ret;

    if (!kept)
        return -ENOENT;
    copy(out, kept);
    leads = leads_to(out, fd);
    if (leads && is_straight(fd, out))
        return (long)strlen(out);
    if ((ret = ask(fd, out)) < 0 && leads) {
        copy(out, kept); /* through a symlink, but there */
        return (long)strlen(out);
    }
    if (ret < 0)
        return ret == -ENAMETOOLONG ? ret : -ENOENT;
    copy(kept, out);
    return (long)strlen(out);
}

bool dfi_files_straighten(char name[PATH_MAX])
{
    struct dfi_steps s;

    dfi_steps_init(&s, dfi_record_now(), false, 0);
    if (dfi_steps_walk(&s, AT_FDCWD, name) < 0 || s.dirfd != AT_FDCWD ||
        s.mount == DFI_STEPS_OUTSIDE)
        return false;
    memcpy(name, s.done, s.len + 1);
    return true;
}

long dfi_name_show(int fd, char out[PATH_MAX])
{
    size_t len;
    long ret;

    out[0] = '\0';
    ret = dfi_name_find(fd, out);
    len = strlen(out);
    if (ret != -ENOENT || len == 0)
        return ret;
    if (len >= sizeof(deleted) &&
        strcmp(out + len - (sizeof(deleted) - 1), deleted) == 0) /* O_TMPFILE: it never had one */
        return (long)len;
    dfi_files_straighten(out); /* of what was removed nobody knows more than where links lead now */
    len = strlen(out);
    if (len + sizeof(deleted) > PATH_MAX)
        len = PATH_MAX - sizeof(deleted);
    memcpy(out + len, deleted, sizeof(deleted));
    return (long)(len + sizeof(deleted) - 1);
}
