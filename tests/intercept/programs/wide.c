/*
 * wide.c - the number of a system call with more bits than an int has, often enough that the site
 * is rewritten: creates its argument so, and says how.
 */
#include <fcntl.h>
#include <stdio.h>
#include <sys/syscall.h>

static long call(unsigned long nr, const char *path, long flags, long mode)
{
    long result = (long)nr;

    __asm__ volatile("syscall"
                     : "+a"(result)
                     : "D"(path), "S"(flags), "d"(mode)
                     : "rcx", "r11", "memory");
    return result;
}

int main(int argc, char *argv[])
{
    const unsigned long above[] = {1, 0x7fffffff, 0xffffffff};

    for (int i = 0; argc > 1 && i < 12; i++)
        printf("%d\n", call(above[i % 3] << 32 | SYS_open, argv[1], O_CREAT | O_RDWR, 0600) >= 0);
    return 0;
}
