/*
 * files_rig.h - the table of open files of a server, its ledger and its segment, with one client.
 */
#ifndef DF_TEST_FILES_RIG_H
#define DF_TEST_FILES_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "core/file.h"
#include "ledger/files.h"
#include "segment/segment.h"

#define MOUNT 1

struct rig {
    struct df_own_segment own;
    struct df_ledger *ledger;
    struct df_files *files;
    struct df_file file; /* looked at, no more */
    uint32_t client;
};

static struct df_files *new_files(struct rig *rig)
{
    struct df_files *files = calloc(1, sizeof(*files));

    assert_int_equal(df_files_init(files, rig->own.segment, rig->ledger, false), 0);
    return files;
}

static void end_files(struct rig *rig)
{
    df_files_free(rig->files);
    free(rig->files);
}

static int set_up(void **state)
{
    struct rig *rig = calloc(1, sizeof(*rig));

    assert_int_equal(df_segment_create(&rig->own, 0, 0), 0);
    rig->ledger = mmap(NULL, sizeof(*rig->ledger), PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert_true(rig->ledger != MAP_FAILED);
    rig->files = new_files(rig);
    rig->file.ino = 7;
    rig->client = df_files_client_new(rig->files);
    assert_int_not_equal(rig->client, 0);
    assert_true(df_files_client_is_new(rig->files, rig->client));
    assert_false(df_files_client_is_born(rig->files, rig->client));
    assert_true(df_files_client_born(rig->files, rig->client));
    *state = rig;
    return 0;
}

static int tear_down(void **state)
{
    struct rig *rig = *state;

    end_files(rig);
    munmap(rig->ledger, sizeof(*rig->ledger));
    df_segment_end(&rig->own);
    df_segment_free(&rig->own);
    free(rig);
    return 0;
}

#endif
