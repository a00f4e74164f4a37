/*
 * stats.c - what can be asked and set of mounts: their list, counters of calls and trips, the limit
 * of a call, who hears of their end.
 */
#include "directfuse.h"

#include <stdio.h>

#include "api/mounted.h"
#include "api/result.h"
#include "core/gate.h"
#include "core/mount.h"

struct listing {
    struct df_mount_info *list;
    size_t count;
    int found;
};

static void copy_text(char *to, size_t size, const char *from)
{
    snprintf(to, size, "%s", from ? from : "");
}

static bool list_mount(const struct df_mount *mount, void *arg)
{
    struct listing *l = arg;
    struct df_mount_info *info = &l->list[l->found];

    if ((size_t)l->found++ >= l->count)
        return true;
    info->id = mount->id;
    info->read_only = (mount->flags & DF_ATTACH_READONLY) != 0;
    info->dev = mount->dev;
    copy_text(info->fsname, sizeof(info->fsname), mount->fsname);
    copy_text(info->subtype, sizeof(info->subtype), mount->subtype);
    copy_text(info->mountpoint, sizeof(info->mountpoint), mount->point[0] ? mount->point : "/");
    return true;
}

int df_mounts(struct df_mount_info *infos, size_t count)
{
    struct listing l = {infos, infos ? count : 0, 0};

    df_mount_each(list_mount, &l);
    return l.found;
}

int df_stats(int mount, struct df_op_stats *stats, size_t count)
{
    struct df_op_total totals[DF_OP_COUNT];
    struct df_mounted *mounted;
    bool counted = false;

    df_mounted_lock();
    mounted = df_mounted_find(mount);
    if (mounted && mounted->counters) {
        df_count_sum(mounted->counters, totals);
        counted = true;
    }
    df_mounted_unlock();
    if (!counted)
        return df_result(-EINVAL);
    for (unsigned i = 0; stats && i < count && i < DF_OP_COUNT; i++)
        stats[i] = (struct df_op_stats){df_count_op_name(i), totals[i].calls, totals[i].errors,
                                        totals[i].bytes, totals[i].nanoseconds};
    return DF_OP_COUNT;
}

/* Between df_mounted_lock() and _unlock(). The server of a mount that lives in one; NULL: it does
 * not, or not any more. */
static struct df_joined *find_joined(int id)
{
    const struct df_mounted *mounted = df_mounted_find(id);

    return mounted && !mounted->unmounting ? mounted->joined : NULL;
}

int df_trip_stats(int mount, struct df_trip_stats *stats)
{
    struct df_joined_stats sums;
    struct df_joined *joined;

    df_mounted_lock();
    joined = find_joined(mount);
    if (joined)
        df_joined_stats(joined, &sums);
    df_mounted_unlock();
    if (!joined)
        return df_result(-EINVAL);
    *stats = (struct df_trip_stats){sums.trips, sums.spun, sums.slept, sums.hits};
    return 0;
}

int df_set_call_timeout(int mount, unsigned milliseconds)
{
    struct df_joined *joined;

    df_mounted_lock();
    joined = find_joined(mount);
    if (joined)
        df_joined_set_patience(joined, milliseconds ? (int64_t)milliseconds * 1000000 : -1);
    df_mounted_unlock();
    return df_result(joined ? 0 : -EINVAL);
}

void df_set_listener(void (*listener)(int mount, const char *words))
{
    df_joined_listen(listener);
    df_plugin_listen(listener);
}

struct call_sums {
    uint64_t passed[DF_NR_COUNT];
    uint64_t refused[DF_NR_COUNT];
};

static void add_thread(struct df_thread *thread, void *arg)
{
    struct call_sums *sums = arg;

    for (unsigned i = 0; i < DF_NR_COUNT; i++) {
        sums->passed[i] += atomic_load_explicit(&thread->passed[i], memory_order_relaxed);
        sums->refused[i] += atomic_load_explicit(&thread->refused[i], memory_order_relaxed);
    }
}

int df_call_stats(struct df_call_stats *stats, size_t count)
{
    static const char *const names[] = {
#define DF_CALL(type, name, parameters, arguments, level, note) #name,
#include "core/calls.def"
#undef DF_CALL
    };
    struct call_sums sums = {0};

    df_gate_each_thread(add_thread, &sums);
    for (unsigned i = 0; stats && i < count && i < DF_NR_COUNT; i++)
        stats[i] = (struct df_call_stats){names[i], sums.passed[i], sums.refused[i]};
    return DF_NR_COUNT;
}
