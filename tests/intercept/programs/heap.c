/*
 * heap.c - where brk(2) begins in a program with an address of its own: behind the program; with
 * an argument, without anything between.
 */
#define _GNU_SOURCE
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/personality.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGE     4096ul
#define FURTHEST (1ul << 30) /* that the kernel moves it by at random */

extern char _end[];

static uintptr_t set_break(uintptr_t to)
{
    return (uintptr_t)syscall(SYS_brk, to);
}

int main(int argc, char **argv)
{
    if (argc > 1 && (personality(0xffffffff) & ADDR_NO_RANDOMIZE) == 0) {
        personality(ADDR_NO_RANDOMIZE);
        execv("/proc/self/exe", argv);
        return 1;
    }
    uintptr_t behind = ((uintptr_t)_end + PAGE - 1) & -PAGE, start = set_break(0);
    uintptr_t room = argc > 1 ? 0 : FURTHEST;
    bool near = start >= behind && start - behind <= room;
    uintptr_t further = start + 100 * PAGE;
    bool grown = set_break(further) == further;
    set_break(start); /* before stdio allocates */
    puts(near ? "behind the program" : "elsewhere");
    puts(grown ? "grows" : "does not grow");
    return 0;
}
