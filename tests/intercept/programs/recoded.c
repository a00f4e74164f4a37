/*
 * recoded.c - code from a file whose system calls have been made often enough to be rewritten, and
 * what a program then puts in its place, or makes of it: memory that it writes code to, and calls.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SIZE   8192
#define SECOND 4096 /* the other page */
#define ALL    (PROT_READ | PROT_WRITE | PROT_EXEC)

/* mov $39, %eax; syscall; ret, and with the number of the caller: mov %edi, %eax; syscall; ret */
static const unsigned char asks[] = {0xb8, 39, 0, 0, 0, 0x0f, 0x05, 0xc3};
static const unsigned char calls[] = {0x90, 0x90, 0x90, 0x89, 0xf8, 0x0f, 0x05, 0xc3};

static int file;

static long call(const char *code, long nr)
{
    return ((long (*)(long))(uintptr_t)code)(nr);
}

static void check(const char *code, const char *what)
{
    for (int i = 0; i < 8; i++) {
        if (call(code, SYS_getpid) != getpid())
            printf("%s: another answer\n", what);
    }
}

/* Code as a linker maps it, of which a site has been executed often. */
static char *map_code(void)
{
    char *code = mmap(NULL, SIZE, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0);
    if (code == MAP_FAILED)
        exit(2);
    check(code + 64, "mapped");
    return code;
}

/* Writes, executes, writes: as those do who make code while they run. */
static void write_code(char *at, const unsigned char *code, const char *what)
{
    for (int i = 0; i < 8; i++) {
        memcpy(at, code, sizeof asks);
        if (call(at, SYS_getpid) != getpid())
            printf("%s: another answer\n", what);
    }
}

static void map_over(char *code, int flags, const char *what)
{
    char *found = mmap(code, SIZE, ALL, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
    if (found != code)
        exit(3);
    write_code(code + 128, asks, what);
    write_code(code + 64, calls, what);
    if (call(code + 64, 4096) != -ENOSYS) /* that of a site that is gone would be 39 */
        printf("%s: the number of another call\n", what);
}

int main(void)
{
    char bytes[SIZE], *code, *elsewhere;
    file = memfd_create("code", 0);
    memset(bytes, 0xf4, sizeof bytes);
    memcpy(bytes + 64, asks, sizeof asks);
    if (file < 0 || write(file, bytes, sizeof bytes) != sizeof bytes)
        return 1;

    code = map_code();
    munmap(code, SIZE);
    map_over(code, MAP_FIXED_NOREPLACE, "mapped where it was");
    map_over(map_code(), MAP_FIXED, "mapped over it");

    code = map_code();
    mprotect(code, SIZE, ALL);
    write_code(code + 200, asks, "writable");

    code = map_code();
    syscall(SYS_pkey_mprotect, code, SIZE, ALL, -1);
    write_code(code + 200, asks, "writable, with no key");

    code = map_code();
    mprotect(code + SECOND, SIZE - SECOND, ALL);
    write_code(code + SECOND + 200, asks, "writable in part");
    check(code + 64, "the other part");

    code = map_code();
    elsewhere = mmap(NULL, SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mremap(code, SIZE, SIZE, MREMAP_MAYMOVE | MREMAP_FIXED, elsewhere) != elsewhere)
        return 4;
    map_over(code, MAP_FIXED_NOREPLACE, "moved away");

    code = map_code();
    elsewhere = mmap(NULL, SIZE, ALL, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mremap(elsewhere, SIZE, SIZE, MREMAP_MAYMOVE | MREMAP_FIXED, code) != code)
        return 5;
    write_code(code + 128, asks, "moved over it");
    puts("done");
    return 0;
}
