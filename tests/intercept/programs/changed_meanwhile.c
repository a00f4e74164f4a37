/*
 * changed_meanwhile.c CHANGE MOUNT - a child is in the middle of a change of the second page of the
 * file of held_up.c when its parent maps the file, stores in its first page and unmaps it. Says
 * what is in the file then: its size and the first byte of each page, while it is open, and when it
 * was closed.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE 4096

static int file;

static void wait_until_made(void)
{
    struct stat st;

    do
        sched_yield();
    while (fstat(file, &st) == 0 && st.st_mtime == 0);
}

static int change(const char *how)
{
    char page[PAGE];
    off_t at = PAGE, from = 0;

    memset(page, 'n', PAGE);
    if (strcmp(how, "write") == 0)
        return pwrite(file, page, PAGE, at) == PAGE;
    if (strcmp(how, "punch") == 0)
        return fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, at, PAGE) == 0;
    if (strcmp(how, "copy") == 0)
        return copy_file_range(open("source", O_RDONLY), &from, file, &at, PAGE, 0) == PAGE;
    if (strcmp(how, "shrink") == 0)
        return ftruncate(file, PAGE) == 0;
    if (strcmp(how, "grow") == 0)
        return ftruncate(file, 5 * PAGE) == 0;
    if (strcmp(how, "by name") == 0)
        return truncate("file", 5 * PAGE) == 0;
    return open("file", O_WRONLY | O_TRUNC) >= 0; /* empty */
}

/* It is stopped before it can hear that the change is made. */
static void map_meanwhile(pid_t child)
{
    char *at;

    close(open("begun", O_RDONLY));
    kill(child, SIGSTOP);
    waitpid(child, NULL, WUNTRACED);
    at = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    wait_until_made();
    if (at != MAP_FAILED)
        at[0] = 'm';
    munmap(at, 4 * PAGE);
    kill(child, SIGCONT);
}

static void say(void)
{
    struct stat st;
    char byte;

    fstat(file, &st);
    printf("%ld", (long)st.st_size / PAGE);
    for (off_t at = 0; pread(file, &byte, 1, at) == 1; at += PAGE)
        printf(" %c", byte ? byte : '0');
    printf("\n");
}

int main(int argc, char **argv)
{
    int status;
    pid_t child;

    alarm(20); /* who waits for what never comes */
    if (argc != 3 || chdir(argv[2]) != 0)
        return 2;
    child = fork();
    file = open("file", O_RDWR); /* each its own */
    if (child == 0)
        return !change(argv[1]);
    map_meanwhile(child);
    waitpid(child, &status, 0);
    printf("%d\n", status);
    say();
    close(file);
    file = open("file", O_RDONLY);
    say();
    return 0;
}
