/*
 * calls_landlock.c - landlock(7): a program that restricts itself goes on using its mounts.
 *
 * Of files in mounts the kernel knows nothing: rules for them are taken, and hold for nothing. But
 * what stands for open files lies below the run's directory, where the program's own rules do not
 * lead; so a ruleset gets one for that directory before it is enforced.
 */
#include <fcntl.h>

#include "client/files.h"
#include "intercept/brief.h"

#define PATH_BENEATH 1 /* linux/landlock.h, which headers of Linux before 5.13 do not have */
#define RIGHTS_MAX   64
#ifndef __NR_landlock_add_rule
#define __NR_landlock_add_rule 445
#endif

struct beneath {
    uint64_t allowed;
    int32_t parent;
} __attribute__((packed));

static long add(unsigned long ruleset, const struct beneath *rule, unsigned long flags)
{
    return dfi_kernel(__NR_landlock_add_rule, ruleset, PATH_BENEATH, rule, flags);
}

/* Rights that the ruleset does not handle are EINVAL, and nobody tells which those are. */
static void allow_run(unsigned long ruleset, int directory)
{
    struct beneath rule = {.parent = directory};

    for (unsigned i = 0; i < RIGHTS_MAX; i++) {
        rule.allowed = UINT64_C(1) << i;
        add(ruleset, &rule, 0);
    }
}

/* What is wrong with it is the kernel's to say. */
long dfi_do_landlock_restrict_self(struct dfi_frame *frame)
{
    const struct dfi_files *files = dfi_process()->files;
    long directory;

    if (dfi_other_fd(frame->args[0]) != DFI_PASS)
        return -EBADF;
    if (!files->link.segment)
        return DFI_PASS;
    directory = dfi_brief_open(files->shadow, O_PATH | O_DIRECTORY);
    if (directory >= 0) /* else nothing of mounts can be opened in any case: docs/run.md */
        allow_run(frame->args[0], (int)directory);
    dfi_brief_close(directory);
    return DFI_PASS;
}

static bool is_directory(const struct dfi_files *files, int fd)
{
    const struct df_ofd *ofd = dfi_ofd(files, dfi_file_of(files, fd));

    return ofd && ofd->kind == DF_KIND_DIRECTORY;
}

/* Of a directory in a mount. The kernel is asked for one that stands for it, and is allowed anyway:
 * what stands for an open directory is a file, for which some rights are refused. */
static long add_of_mount(const struct dfi_frame *frame, const struct dfi_files *files,
                         struct beneath *rule)
{
    long directory = dfi_brief_open(files->shadow, O_PATH | O_DIRECTORY), ret;

    if (directory < 0)
        return directory;
    rule->parent = (int32_t)directory;
    ret = add(frame->args[0], rule, frame->args[3]);
    dfi_brief_close(directory);
    return ret;
}

long dfi_do_landlock_add_rule(struct dfi_frame *frame)
{
    const struct dfi_files *files = dfi_process()->files;
    struct beneath rule;

    if (dfi_other_fd(frame->args[0]) != DFI_PASS)
        return -EBADF;
    if ((int)frame->args[1] != PATH_BENEATH ||
        dfi_copy_from(&rule, (const void *)frame->args[2], sizeof(rule)) < 0)
        return DFI_PASS;
    if (dfi_other_fd((unsigned)rule.parent) != DFI_PASS)
        return -EBADF;
    return is_directory(files, rule.parent) ? add_of_mount(frame, files, &rule) : DFI_PASS;
}
