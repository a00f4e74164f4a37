/*
 * report.c - what a mount has done, as text.
 */
#include "server/report.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "directfuse.h"

static void write_point(int fd, int mount)
{
    int count = df_mounts(NULL, 0);
    struct df_mount_info *list = count > 0 ? calloc((size_t)count, sizeof(*list)) : NULL;

    if (list)
        count = df_mounts(list, (size_t)count);
    for (int i = 0; list && i < count; i++)
        if (list[i].id == mount)
            dprintf(fd, "mount %s\n", list[i].mountpoint);
    free(list);
}

void df_report_write(int fd, int mount)
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
