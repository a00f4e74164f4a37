/*
 * calls_watch.c - inotify_add_watch(2): of what lies in a mount, the kernel watches its stand-in
 * (watch/watch.h). Everything else about inotify(7) is the kernel's alone.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/inotify.h>

#include "client/number.h"
#include "shadows/shadow.h"
#include "syscalls/handlers.h"

#define TRIES 8 /* a stand-in gets another name when its object is moved */

/* The descriptor and the mask are judged before the path: by the kernel, for a path that is not
 * there. */
static long check(const struct dfi_frame *frame)
{
    long ret = dfi_kernel(__NR_inotify_add_watch, frame->args[0], "", frame->args[2]);

    return ret == -ENOENT ? 0 : ret;
}

static int flags_of(unsigned long mask)
{
    return O_PATH | (mask & IN_DONT_FOLLOW ? O_NOFOLLOW : 0) |
           (mask & IN_ONLYDIR ? O_DIRECTORY : 0);
}

static void stand_name(const struct dfi_files *files, uint64_t serial,
                       char name[DFI_SHADOW_NAME_MAX])
{
    char *end = mempcpy(name, files->shadow, files->shadow_len);

    *dfi_number_put(mempcpy(end, "/w/", 3), serial) = '\0';
}

/* Which events the stand-in has to have: who watches for none is told that the object is gone. */
static uint32_t events_of(const struct dfi_frame *frame)
{
    uint32_t events = (uint32_t)frame->args[2];

    return events & IN_ALL_EVENTS ? events : IN_DELETE_SELF;
}

/* The open file. ENOSPC, by which programs know that they have to look for themselves: there is no
 * stand-in to be had, or it cannot be reached, as from another mount namespace. */
static long watch(struct dfi_files *files, uint64_t handle, const struct dfi_frame *frame)
{
    struct df_trip trip = dfi_trip_of(files);
    char name[DFI_SHADOW_NAME_MAX];
    long ret = -ENOENT;

    for (int i = 0; i < TRIES && ret == -ENOENT; i++) {
        int64_t serial = df_trip_watch(&trip, handle, events_of(frame));

        if (serial < 0)
            return dfi_as_told(serial);
        stand_name(files, (uint64_t)serial, name);
        ret = dfi_kernel(__NR_inotify_add_watch, frame->args[0], name, frame->args[2]);
    }
    return ret == -ENOENT || ret == -EACCES || ret == -ENOTDIR ? -ENOSPC : ret;
}

/* What is wrong with the descriptor comes before what is wrong with the path. */
static long watch_leg(struct dfi_way *way, const struct dfi_frame *frame)
{
    long opened = dfi_way_open(way, &way->leg[0], flags_of(frame->args[2])), ret;

    if (opened < -4095) /* not ours, or not here */
        return opened;
    ret = check(frame);
    if (ret == 0 && opened == 0)
        ret = watch(way->record.files, way->record.foreign, frame);
    if (opened == 0)
        dfi_way_shut(way);
    return ret < 0 ? ret : opened < 0 ? opened : ret;
}

DFI_HANDLE_PATH(static long watch_path, watch_leg(&way, frame))

long dfi_do_inotify_add_watch(struct dfi_frame *frame)
{
    long ret = dfi_other_fd(frame->args[0]);

    return ret == DFI_PASS ? watch_path(frame) : ret;
}
