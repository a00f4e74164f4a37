/*
 * sealed.c - seals its own code, mseal(2), and makes calls from there and from a library: "sealed",
 * or nothing, where the kernel cannot.
 */
#include <stdint.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MSEAL 462
#define PAGE  4096

static long sealed_call(void)
{
    long result = SYS_getppid;

    __asm__ volatile("syscall" : "+a"(result) : : "rcx", "r11", "memory");
    return result;
}

int main(void)
{
    uintptr_t page = (uintptr_t)sealed_call & -(uintptr_t)PAGE;
    long same = 0;

    if (syscall(MSEAL, page, PAGE, 0) == 0)
        puts("sealed");
    for (int i = 0; i < 10; i++)
        same += sealed_call() == getppid();
    for (int i = 0; i < 5000; i++)
        same += getuid() == geteuid();
    printf("%ld\n", same);
    return 0;
}
