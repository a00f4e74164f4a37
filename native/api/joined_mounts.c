/*
 * joined_mounts.c - what a mount server has mounted, and which of that is meant.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "api/joined_private.h"
#include "core/mountpoint.h"

/* Goes through them: the next one from *at on, and its id; NULL: no more. */
static const struct df_shared_mount *next(const struct df_segment *segment, unsigned *at,
                                          int32_t *id)
{
    const struct df_shared_mount *mounts = df_segment_mounts(segment);

    while (*at < DF_MOUNT_COUNT) {
        const struct df_shared_mount *mount = &mounts[(*at)++];

        if ((*id = atomic_load(&mount->live)) != 0)
            return mount;
    }
    return NULL;
}

static const char *point_of(const struct df_shared_mount *mount)
{
    return mount->point[0] ? mount->point : "/";
}

int df_joined_list(const struct df_segment *segment, char behind, char *points, size_t room)
{
    const struct df_shared_mount *mount;
    int32_t id;
    int count = 0;

    for (unsigned at = 0; (mount = next(segment, &at, &id)); count++) {
        const char *point = point_of(mount);
        size_t length = strlen(point);

        if (length >= room)
            break;
        memcpy(points, point, length);
        points[length] = behind;
        points += length + 1;
        room -= length + 1;
    }
    return count;
}

/* Where it has several, or none there. */
static void say_points(const struct df_segment *segment, const char *format, char *message,
                       size_t size)
{
    char points[1024] = "";
    size_t length;

    df_joined_list(segment, ' ', points, sizeof(points) - 1);
    length = strlen(points);
    if (message && size > 0)
        snprintf(message, size, format, (int)(length ? length - 1 : 0), points);
}

/* As the server calls it: a mountpoint is kept by its physical name (core/mountpoint.h). */
static int called(const char *point, char out[PATH_MAX])
{
    char canonical[PATH_MAX];
    int error = df_mountpoint_canonical(point, canonical);

    return error < 0 ? error : df_mountpoint_physical(canonical, out);
}

static int32_t only_one(const struct df_segment *segment, const struct df_shared_mount **out,
                        char *message, size_t size)
{
    unsigned at = 0;
    int32_t id, another;

    *out = next(segment, &at, &id);
    if (!*out) {
        df_joined_say(message, size, "the mount server has no mount any more");
        return -EIO;
    }
    if (!next(segment, &at, &another))
        return id;
    say_points(segment,
               "the mount server has several file systems; name the mountpoint of one behind its "
               "name: %.*s",
               message, size);
    return -EINVAL;
}

int32_t df_joined_choose(const struct df_segment *segment, const char *point,
                         const struct df_shared_mount **out, char *message, size_t size)
{
    char name[PATH_MAX];
    unsigned at = 0;
    int32_t id;
    int error;

    if (!point)
        return only_one(segment, out, message, size);
    if ((error = called(point, name)) < 0) {
        df_joined_say(message, size, strerror(-error));
        return error;
    }
    while ((*out = next(segment, &at, &id)))
        if (strcmp((*out)->point, name) == 0)
            return id;
    say_points(segment, "the mount server has nothing there; it has: %.*s", message, size);
    return -ENOENT;
}
