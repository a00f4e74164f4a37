/*
 * scribbler.c - a program of a run that writes questions into the mount server's memory which no
 * client of ours asks: "name answer" for each, and whether the server still serves the directory.
 *
 *     scribbler DIRECTORY
 */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "channel/layout.h"
#include "core/file.h"

#define SLOT 100 /* one that nobody else comes to */

static struct df_segment *segment;

static int find_segment(void)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[PATH_MAX + 100];
    unsigned long at;

    while (!segment && fgets(line, sizeof(line), maps))
        if (strstr(line, "memfd:directfuse") && sscanf(line, "%lx", &at) == 1)
            segment = (struct df_segment *)at;
    fclose(maps);
    return segment ? 0 : 1;
}

static uint64_t handle_of(uint8_t kind)
{
    const struct df_ofd *ofds = df_segment_ofds(segment);

    for (int i = 1; i < 1000; i++)
        if (atomic_load(&ofds[i].handle) != 0 && ofds[i].kind == kind)
            return atomic_load(&ofds[i].handle);
    return 0;
}

static struct df_message *begin(enum df_message_op op)
{
    struct df_message *m = &df_segment_slots(segment)[SLOT].message;

    memset(m, 0, sizeof(*m));
    m->op = op;
    m->mount = df_segment_mounts(segment)[0].live;
    m->caller.size_limit = INT64_MAX;
    m->caller.rights = 1;
    return m;
}

static void name(struct df_message *m, int i, const char *path)
{
    m->wheres[i].len = (uint32_t)strlen(path);
    strcpy(df_segment_areas(segment)[SLOT].names[i], path);
}

static void ask(const char *what, struct df_message *m)
{
    struct df_slot *slot = &df_segment_slots(segment)[SLOT];

    atomic_store(&slot->word, df_slot_word(DF_SLOT_COUNT, DF_SLOT_SUBMITTED));
    atomic_fetch_or(&segment->pending[SLOT / 64], UINT64_C(1) << SLOT % 64);
    for (int i = 0; i < 10000 && df_slot_state(atomic_load(&slot->word)) != DF_SLOT_DONE; i++) {
        for (int worker = 0; worker < 4; worker++) {
            atomic_fetch_add(&segment->doorbells[worker].rings, 1);
            syscall(SYS_futex, &segment->doorbells[worker].rings, 1, 1, NULL, NULL, 0);
        }
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    printf("%s %ld\n", what, (long)m->result);
    fflush(stdout);
    atomic_store(&slot->word, DF_SLOT_FREE);
}

int main(int argc, char **argv)
{
    char path[PATH_MAX];
    struct df_message *m;
    struct stat st;

    snprintf(path, sizeof(path), "%s/file", argv[argc - 1]);
    if (open(path, O_RDWR | O_CREAT, 0600) < 0 || open(argv[1], O_RDONLY | O_DIRECTORY) < 0 ||
        find_segment() != 0)
        return 1;
    m = begin(DF_MESSAGE_mknod);
    name(m, 0, "/link");
    m->args.mknod.mode = S_IFLNK | 0777;
    ask("mknod", m);
    m = begin(DF_MESSAGE_link);
    name(m, 0, "/file");
    name(m, 1, ".");
    ask("link", m);
    m = begin(DF_MESSAGE_readdir);
    m->files[0] = handle_of(DF_KIND_REGULAR);
    m->args.readdir.size = 4096;
    m->args.readdir.offset = 4097;
    ask("readdir", m);
    m = begin(DF_MESSAGE_read);
    m->files[0] = handle_of(DF_KIND_DIRECTORY);
    m->args.read.size = 4096;
    ask("read", m);
    printf("serves %d\n", stat(path, &st) == 0);
    return 0;
}
