/*
 * leaves.c - the process ends by its first thread, again and again, while others read and write
 * files that are open in the working directory: until their end they are. Prints what they met.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FILES = 64, THREADS = 4, TIMES = 100 };

static int files[FILES];
static atomic_int used;

static void *use(void *file)
{
    char text[4];

    while (pread(*(int *)file, text, 4, 0) == 4 && pwrite(*(int *)file, "text", 4, 0) == 4)
        atomic_fetch_add(&used, 1);
    dprintf(1, "%s\n", strerror(errno));
    return file;
}

static _Noreturn void leave(void)
{
    pthread_t thread;

    for (int i = 0; i < FILES; i++) {
        char name[8];

        snprintf(name, sizeof(name), "%d", i);
        files[i] = open(name, O_RDWR | O_CREAT, 0600);
        if (pwrite(files[i], "text", 4, 0) != 4)
            _exit(2);
    }
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&thread, NULL, use, &files[i]))
            _exit(3);
    while (atomic_load(&used) < 400)
        sched_yield();
    _exit(0);
}

int main(void)
{
    int ended = 0, status;

    for (int i = 0; i < TIMES; i++) {
        if (fork() == 0)
            leave();
        ended += wait(&status) > 0 && status == 0;
    }
    printf("ended %d\n", ended);
    return 0;
}
