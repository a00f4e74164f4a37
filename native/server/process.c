/*
 * process.c - serving what this process has mounted, and telling at the end what was done.
 */
#include "server/process.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "channel/message.h"
#include "core/call.h"
#include "directfuse.h"
#include "ledger/files.h"
#include "process/memory_limit.h"
#include "process/shadow.h"
#include "process/size.h"
#include "server/server.h"

void df_server_process_begin(bool others)
{
    if (others)
        atomic_store(&df_heard, DF_HEARD_FOREGROUND);
    atomic_store(&df_call_keeps_writes, true);
}

#define CACHE_MAX   ((uint64_t)64 << 30)
#define CACHE_USUAL ((uint64_t)64 << 20) /* pages that nobody has read cost nothing */

/* Set before serving, by the one thread there is of this. */
static uint64_t cache_size = CACHE_USUAL;
static int report_to = -1;
static struct df_mount_info *served; /* one that ends by itself is in no list at the end */
static int served_count;

int df_server_process_configure(char *message, size_t size)
{
    int error;

    cache_size = df_memory_share(CACHE_USUAL);
    error = df_size_of("DIRECTFUSE_CACHE", &cache_size, message, size);

    if (cache_size > CACHE_MAX)
        cache_size = CACHE_MAX;
    return error;
}

/* The mounts there are, which the caller frees; NULL: no memory. */
static struct df_mount_info *list_mounts(int *count)
{
    *count = df_mounts(NULL, 0);
    struct df_mount_info *list = calloc((size_t)*count + 1, sizeof(*list));

    if (list)
        *count = df_mounts(list, (size_t)*count);
    return list;
}

static const struct df_mount_info *find(const struct df_mount_info *list, int count, int mount)
{
    for (int i = 0; list && i < count; i++)
        if (list[i].id == mount)
            return &list[i];
    return NULL;
}

static bool is_there(int mount)
{
    int count;
    struct df_mount_info *list = list_mounts(&count);
    bool found = find(list, count, mount);

    free(list);
    return found;
}

/* A line stays one: what would end it, and what escapes that, as in /proc/mounts. `to` has room for
 * four bytes of each. */
static void escape(char *to, const char *text)
{
    for (; *text; text++)
        if (*text == '\n' || *text == '\\')
            to = stpcpy(to, *text == '\n' ? "\\012" : "\\134");
        else
            *to++ = *text;
    *to = '\0';
}

/* In one write: a crash may be told meanwhile. */
static void write_point(int fd, int mount)
{
    const struct df_mount_info *found = find(served, served_count, mount);
    char point[4 * sizeof(found->mountpoint)];

    if (!found)
        return;
    escape(point, found->mountpoint);
    dprintf(fd, "mount %s\n%s", point, is_there(mount) ? "" : "ended\n");
}

static void write_report(int fd, int mount)
{
    int count = df_stats(mount, NULL, 0);
    struct df_op_stats *ops = count > 0 ? calloc((size_t)count, sizeof(*ops)) : NULL;

    write_point(fd, mount);
    if (ops && df_stats(mount, ops, (size_t)count) < 0)
        count = 0;
    for (int i = 0; ops && i < count; i++)
        if (ops[i].calls > 0)
            dprintf(fd, "%s %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", ops[i].name, ops[i].calls,
                    ops[i].errors, ops[i].bytes);
    free(ops);
}

static int unmount(int mount)
{
    if (report_to >= 0)
        write_report(report_to, mount);
    return df_unmount(mount, 0) < 0 ? -errno : 0;
}

#define PATIENCE_MAX 1000000.0 /* seconds */

/* How long a call may take: DIRECTFUSE_CALL_TIMEOUT, seconds; 0 without it, or what is no number.
 */
static int64_t patience(void)
{
    const char *text = getenv("DIRECTFUSE_CALL_TIMEOUT");
    double seconds = text ? strtod(text, NULL) : 0;

    return seconds > 0 && seconds <= PATIENCE_MAX ? (int64_t)(seconds * 1e9) : 0;
}

static uint64_t calls(int mount)
{
    struct df_op_stats ops[DF_MESSAGE_OPS];
    int count = df_stats(mount, ops, DF_MESSAGE_OPS);
    uint64_t sum = 0;

    for (int i = 0; i < count; i++)
        sum += ops[i].calls;
    return sum;
}

/* Each client takes a descriptor, and each file that it opens may take one of its file system's. So
 * the soft limit, often 1024, would be that of all programs together. Not before it has mounted:
 * what it starts then has the limit of who started this. */
static void raise_descriptors(void)
{
    const rlim_t wanted = DF_CLIENT_MAX + DF_OFD_COUNT;
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= wanted)
        return;
    limit.rlim_cur = limit.rlim_max < wanted ? limit.rlim_max : wanted;
    setrlimit(RLIMIT_NOFILE, &limit);
}

int df_server_process(int control, int listener, bool stay, int report, const struct df_kept *kept)
{
    const struct df_serve_options options = {.control = control,
                                             .listener = listener,
                                             .stay = stay,
                                             .report = report,
                                             .cache_size = cache_size,
                                             .shadow = getenv("DIRECTFUSE_SHADOW"),
                                             .unmount = unmount,
                                             .calls = calls,
                                             .patience = patience(),
                                             .kept = kept};

    int error;

    report_to = report;
    if (report >= 0 && !(served = list_mounts(&served_count)))
        return -ENOMEM;
    if (stay && control < 0) /* `directfuse serve`: nobody else could ask for the words */
        atomic_store(&df_heard, DF_HEARD_ALL);
    if (!stay)
        df_shadow_hold();
    raise_descriptors();
    error = df_serve(&options);
    df_shadow_leave();
    return error;
}
