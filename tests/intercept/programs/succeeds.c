/*
 * succeeds.c - becomes itself again and again while its threads read a file that stays open, or ask
 * for what nobody has at hand: each execve(2) ends them in the middle of that. The next program
 * finds the file's position as usable as ever, and its questions answered.
 *
 *     succeeds FILE read|ask TIMES [DESCRIPTOR]
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

#define THREADS 4

static const char *name;
static int file;

static void *read_on(void *unused)
{
    char byte;

    for (;;)
        if (read(file, &byte, 1) == 0)
            lseek(file, 0, SEEK_SET);
    return unused;
}

static void *ask_on(void *unused)
{
    char value[8];

    for (;;)
        getxattr(name, "user.none", value, sizeof(value));
    return unused;
}

static int use(void)
{
    char byte;

    return file < 0 || lseek(file, 0, SEEK_SET) != 0 || read(file, &byte, 1) != 1;
}

int main(int argc, char **argv)
{
    int left = atoi(argv[3]);
    char times[16], number[16];
    pthread_t thread;

    name = argv[1];
    file = argc > 4 ? atoi(argv[4]) : open(name, O_RDONLY);
    if (use())
        return 1;
    if (left == 0)
        return puts("used") < 0;
    for (int i = 0; i < THREADS; i++)
        pthread_create(&thread, NULL, strcmp(argv[2], "read") == 0 ? read_on : ask_on, NULL);
    usleep(2000);
    snprintf(times, sizeof(times), "%d", left - 1);
    snprintf(number, sizeof(number), "%d", file);
    execl("/proc/self/exe", argv[0], name, argv[2], times, number, (char *)NULL);
    return 2;
}
