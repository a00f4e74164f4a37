/*
 * test_elf.c - loader/elf.c: real programs are recognised and patched; damaged ones never do harm.
 *
 * The images are this test program itself and the system's own binaries; hostile ones are made by
 * cutting and by flipping bytes with a fixed seed, so that a failure repeats.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "loader/elf.h"

static unsigned char *read_file(const char *path, size_t *size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) != 0)
        return NULL;
    unsigned char *data = malloc(st.st_size);
    assert_non_null(data);
    assert_int_equal(read(fd, data, st.st_size), st.st_size);
    close(fd);
    *size = st.st_size;
    return data;
}

/* Any FUSE program of the machine; these are what the other tests install. */
static unsigned char *read_fuse_program(size_t *size)
{
    static const char *const paths[] = {"/usr/bin/squashfuse", "/usr/bin/sshfs", "/usr/bin/bindfs"};
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        unsigned char *data = read_file(paths[i], size);
        if (data)
            return data;
    }
    print_message("no FUSE program is installed (apt-get install squashfuse)\n");
    skip();
    return NULL;
}

static enum df_elf_kind kind_of(const void *data, size_t size)
{
    struct df_elf elf;
    void *copy = malloc(size ? size : 1);
    assert_non_null(copy);
    memcpy(copy, data, size);
    df_elf_inspect(&elf, copy, size);
    free(copy);
    return elf.kind;
}

static void what_is_no_program_is_named(void **state)
{
    (void)state;
    assert_int_equal(kind_of("", 0), DF_ELF_NOT_ELF);
    assert_int_equal(kind_of("hello", 5), DF_ELF_NOT_ELF);
    assert_int_equal(kind_of("#!/bin/sh\n", 10), DF_ELF_SCRIPT);
    assert_int_equal(kind_of(ELFMAG, SELFMAG), DF_ELF_MALFORMED);
    size_t size;
    unsigned char *data = read_file("/proc/self/exe", &size);
    assert_int_equal(kind_of(data, size), DF_ELF_NO_FUSE);
    ((Elf64_Ehdr *)data)->e_type = ET_REL;
    assert_int_equal(kind_of(data, size), DF_ELF_UNLINKED);
    ((Elf64_Ehdr *)data)->e_machine = EM_SPARCV9;
    assert_int_equal(kind_of(data, size), DF_ELF_FOREIGN);
    free(data);
}

static void a_fuse_program_is_patched(void **state)
{
    (void)state;
    size_t size;
    unsigned char *data = read_fuse_program(&size);
    struct df_elf elf;
    df_elf_inspect(&elf, data, size);
    assert_int_equal(elf.kind, DF_ELF_PROGRAM);
    assert_int_not_equal(elf.abi, DF_ELF_ABI_NONE);
    assert_string_equal(elf.strings + elf.needed, df_elf_library(elf.abi));
    assert_int_equal(df_elf_patch(&elf), 0);
    assert_string_equal(elf.strings + elf.needed, df_elf_our_library(elf.abi));
    for (size_t i = 0; i < elf.dynamic_count; i++)
        if (elf.dynamic[i].d_tag == DT_FLAGS_1)
            assert_false(elf.dynamic[i].d_un.d_val & DF_1_PIE);
    free(data);
}

/* Where the last byte of the file lies that is mapped. */
static size_t end_of_segments(const unsigned char *data)
{
    const Elf64_Ehdr *header = (const Elf64_Ehdr *)data;
    const Elf64_Phdr *segments = (const Elf64_Phdr *)(data + header->e_phoff);
    size_t end = 0;
    for (size_t i = 0; i < header->e_phnum; i++)
        if (segments[i].p_type == PT_LOAD && segments[i].p_offset + segments[i].p_filesz > end)
            end = segments[i].p_offset + segments[i].p_filesz;
    return end;
}

static void a_shared_object_is_whole_or_refused(void **state)
{
    (void)state;
    size_t size;
    unsigned char *data = read_file(DF_TEST_STAGE "/lib/backends/memfs.so", &size);
    assert_non_null(data);
    size_t end = end_of_segments(data);
    assert_int_equal(kind_of(data, end), DF_ELF_OBJECT);
    assert_int_equal(kind_of(data, end - 1), DF_ELF_MALFORMED);
    free(data);
}

static void our_names_fit_in_place_of_the_real_ones(void **state)
{
    (void)state;
    for (int abi = DF_ELF_ABI_FUSE2; abi <= DF_ELF_ABI_FUSE34; abi++)
        assert_true(strlen(df_elf_our_library(abi)) <= strlen(df_elf_library(abi)));
}

/* Exact-size heap copies: a read past the end is ASan's to report. */
static void inspect_and_patch(const unsigned char *data, size_t size)
{
    unsigned char *copy = malloc(size ? size : 1);
    assert_non_null(copy);
    memcpy(copy, data, size);
    struct df_elf elf;
    df_elf_inspect(&elf, copy, size);
    int result = df_elf_patch(&elf);
    assert_true(result == 0 || result == -ENOEXEC);
    assert_non_null(df_elf_reason(elf.kind));
    free(copy);
}

static void every_truncation_is_survived(void **state)
{
    (void)state;
    size_t size;
    unsigned char *data = read_fuse_program(&size);
    for (size_t cut = 0; cut < 1024; cut++)
        inspect_and_patch(data, cut);
    for (size_t i = 1; i < 512; i++)
        inspect_and_patch(data, size / 512 * i);
    free(data);
}

/* Bytes of the headers and the dynamic section, where each one steers the parser. */
static void hostile_bytes_are_survived(void **state)
{
    (void)state;
    size_t size;
    unsigned char *data = read_fuse_program(&size);
    struct df_elf elf;
    df_elf_inspect(&elf, data, size);
    size_t dynamic = (size_t)((unsigned char *)elf.dynamic - data);
    size_t dynamic_size = elf.dynamic_count * sizeof(Elf64_Dyn);
    unsigned seed = 20;
    unsigned char *hostile = malloc(size);
    assert_non_null(hostile);
    for (int round = 0; round < 3000; round++) {
        memcpy(hostile, data, size);
        for (int flips = 1 + round % 4; flips > 0; flips--) {
            bool in_headers = rand_r(&seed) % 2;
            size_t at =
                in_headers ? (size_t)rand_r(&seed) % 1024 : dynamic + rand_r(&seed) % dynamic_size;
            static const unsigned char nasty[] = {0x00, 0xff, 0x7f, 0x80, 0x01, 0x05};
            hostile[at] = nasty[rand_r(&seed) % sizeof(nasty)];
        }
        inspect_and_patch(hostile, size);
    }
    free(hostile);
    free(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_no_program_is_named),
        cmocka_unit_test(a_fuse_program_is_patched),
        cmocka_unit_test(a_shared_object_is_whole_or_refused),
        cmocka_unit_test(our_names_fit_in_place_of_the_real_ones),
        cmocka_unit_test(every_truncation_is_survived),
        cmocka_unit_test(hostile_bytes_are_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
