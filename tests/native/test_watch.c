/*
 * test_watch.c - stand-ins: what is done to them is told by the kernel as if it were the object.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <cmocka.h>

#include "watch/private.h"

#define MOUNT 3

struct rig {
    char shadow[64];
    struct df_watcher watcher;
    int inotify;
};

static int set_up(void **state)
{
    struct rig *rig = calloc(1, sizeof(*rig));

    strcpy(rig->shadow, "/dev/shm/directfuse-test-XXXXXX");
    if (!mkdtemp(rig->shadow))
        return -1;
    df_watch_init(&rig->watcher, rig->shadow);
    rig->inotify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    *state = rig;
    return 0;
}

static int tear_down(void **state)
{
    struct rig *rig = *state;
    char command[128];

    df_watch_free(&rig->watcher);
    close(rig->inotify);
    snprintf(command, sizeof(command), "rm -r %s", rig->shadow);
    if (system(command) != 0)
        return -1;
    free(rig);
    return 0;
}

static struct df_watch *watch(struct rig *rig, uint64_t ino, bool directory)
{
    char path[PATH_MAX];
    int error;
    struct df_watch *made;

    pthread_mutex_lock(&rig->watcher.lock);
    made = df_watch_make(&rig->watcher, MOUNT, ino, directory, &error);
    pthread_mutex_unlock(&rig->watcher.lock);
    assert_non_null(made);
    assert_int_equal(error, 0);
    snprintf(path, sizeof(path), "%s/w/%llu", rig->shadow, (unsigned long long)made->serial);
    assert_true(inotify_add_watch(rig->inotify, path, IN_ALL_EVENTS) > 0);
    return made;
}

static char *name_in(const struct df_watch *watch, const char *name)
{
    static char path[DF_STAND_PATH];

    df_stand_path(path, watch->serial, name);
    return path;
}

/* The next event. */
static void assert_told(struct rig *rig, uint32_t mask, const char *name)
{
    union {
        struct inotify_event event;
        char bytes[sizeof(struct inotify_event) + NAME_MAX + 1];
    } got;
    static char left[65536];
    static ssize_t size;
    static char *at;

    if (size == 0) {
        size = read(rig->inotify, left, sizeof(left));
        at = left;
    }
    if (mask == 0) {
        assert_true(size < 0);
        size = 0;
        return;
    }
    assert_true(size > 0);
    memcpy(&got, at, sizeof(got.event));
    memcpy(&got, at, sizeof(got.event) + got.event.len);
    assert_int_equal(got.event.mask, mask);
    assert_string_equal(got.event.len ? got.event.name : "", name);
    at += sizeof(got.event) + got.event.len;
    size -= (ssize_t)(sizeof(got.event) + got.event.len);
}

static void assert_silent(struct rig *rig)
{
    assert_told(rig, 0, NULL);
}

static void names_are_told(void **state)
{
    struct rig *rig = *state;
    const struct df_watch *in = watch(rig, 7, true);
    int at = rig->watcher.at;

    df_stand_made(at, name_in(in, "f"), false);
    df_stand_made(at, name_in(in, "d"), true);
    assert_told(rig, IN_CREATE, "f");
    assert_told(rig, IN_CREATE | IN_ISDIR, "d");
    df_stand_touch_name(at, name_in(in, "f"), false, DF_WATCH_ACCESS);
    df_stand_touch_name(at, name_in(in, "f"), false, DF_WATCH_MODIFY);
    df_stand_touch_name(at, name_in(in, "d"), true, DF_WATCH_ATTRIB);
    assert_told(rig, IN_ACCESS, "f");
    assert_told(rig, IN_MODIFY, "f");
    assert_told(rig, IN_ATTRIB | IN_ISDIR, "d");
    df_stand_moved(at, name_in(in, "f"), false, DF_STAND_NOWHERE, false);
    df_stand_removed(at, name_in(in, "d"), true);
    assert_told(rig, IN_MOVED_FROM, "f");
    assert_told(rig, IN_DELETE | IN_ISDIR, "d");
    assert_silent(rig);
}

static void what_the_stand_in_had_not_heard_of_is_told_late(void **state)
{
    struct rig *rig = *state;
    const struct df_watch *in = watch(rig, 7, true);
    int at = rig->watcher.at;

    df_stand_removed(at, name_in(in, "a"), false);
    assert_told(rig, IN_CREATE, "a");
    assert_told(rig, IN_DELETE, "a");
    df_stand_made(at, name_in(in, "b"), false);
    df_stand_made(at, name_in(in, "b"), true);
    assert_told(rig, IN_CREATE, "b");
    assert_told(rig, IN_DELETE, "b");
    assert_told(rig, IN_CREATE | IN_ISDIR, "b");
    df_stand_touch_name(at, name_in(in, "c"), false, DF_WATCH_MODIFY);
    assert_told(rig, IN_CREATE, "c");
    assert_told(rig, IN_MODIFY, "c");
    assert_silent(rig);
}

static void open_files_are_told_by_what_they_are_called(void **state)
{
    struct rig *rig = *state;
    const struct df_watch *in = watch(rig, 7, true);
    int at = rig->watcher.at, fd;
    char to[DF_STAND_PATH];

    df_stand_made(at, name_in(in, "a"), false);
    fd = df_stand_open(at, name_in(in, "a"), O_WRONLY, false);
    assert_told(rig, IN_CREATE, "a");
    assert_told(rig, IN_OPEN, "a");
    strcpy(to, name_in(in, "b"));
    df_stand_moved(at, name_in(in, "a"), false, to, false);
    df_stand_touch_fd(fd, DF_WATCH_MODIFY);
    close(fd);
    assert_told(rig, IN_MOVED_FROM, "a");
    assert_told(rig, IN_MOVED_TO, "b");
    assert_told(rig, IN_MODIFY, "b");
    assert_told(rig, IN_CLOSE_WRITE, "b");
    assert_silent(rig);
}

/* How many of the events that have come have one of those in the mask. */
struct counts {
    unsigned moved, deleted, of_names;
};

static struct counts count_events(struct rig *rig)
{
    struct counts counts = {0};
    struct inotify_event event;
    char bytes[4096];
    ssize_t size = read(rig->inotify, bytes, sizeof(bytes));

    for (ssize_t done = 0; done < size; done += (ssize_t)(sizeof(event) + event.len)) {
        memcpy(&event, bytes + done, sizeof(event));
        counts.moved += (event.mask & IN_MOVE_SELF) != 0;
        counts.deleted += (event.mask & IN_DELETE_SELF) != 0;
        counts.of_names += (event.mask & (IN_DELETE | IN_MOVED_FROM)) != 0;
    }
    return counts;
}

static void the_end_of_a_mount_removes_no_names(void **state)
{
    struct rig *rig = *state;
    const struct df_watch *in = watch(rig, 7, true);
    struct counts counts;

    watch(rig, 8, false);
    watch(rig, 9, true);
    df_stand_name(rig->watcher.at, name_in(in, "f"), false);
    assert_told(rig, IN_CREATE, "f");
    df_watch_unmounted(&rig->watcher, MOUNT + 1);
    assert_silent(rig);
    df_watch_unmounted(&rig->watcher, MOUNT);
    for (uint64_t ino = 7; ino < 10; ino++)
        assert_null(df_watch_find(&rig->watcher, MOUNT, ino));
    counts = count_events(rig);
    assert_int_equal(counts.moved, 1);
    assert_int_equal(counts.deleted, 2);
    assert_int_equal(counts.of_names, 0);
}

static void a_server_that_is_started_again_knows_no_old_watch(void **state)
{
    struct rig *rig = *state;
    uint64_t before = watch(rig, 7, false)->serial;

    df_watch_free(&rig->watcher);
    df_watch_init(&rig->watcher, rig->shadow);
    assert_told(rig, IN_MOVE_SELF, "");
    assert_true(watch(rig, 7, false)->serial > before);
    assert_silent(rig);
}

static void without_a_directory_nothing_is_watched(void **state)
{
    struct rig *rig = *state;
    int error;

    rig->watcher.shadow = "/dev/shm/directfuse-test-none";
    assert_null(df_watch_make(&rig->watcher, MOUNT, 7, true, &error));
    assert_int_equal(error, -ENOENT);
    assert_false(df_watch_used(&rig->watcher));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        CASE(names_are_told),
        CASE(what_the_stand_in_had_not_heard_of_is_told_late),
        CASE(open_files_are_told_by_what_they_are_called),
        CASE(the_end_of_a_mount_removes_no_names),
        CASE(a_server_that_is_started_again_knows_no_old_watch),
        CASE(without_a_directory_nothing_is_watched),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
