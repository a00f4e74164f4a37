/*
 * closed_meanwhile.c PART MOUNT - a descriptor that another thread closes in the middle of a call
 * on it, with the files of awaited.c. Prints what is read.
 *
 *   read      its number in the process, and whatever else was the file's, is another file's by the
 *             time that the call ends
 *   mapped    the same, of mmap
 *   written   the same, of pwrite, and the other file is mapped
 *   killed    who reads is killed, and its parent goes on with the same open file
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static int slow;

static void say(const char *what, int fd)
{
    char bytes[5] = "";
    ssize_t got = read(fd, bytes, sizeof bytes);
    printf("%s %zd %.*s\n", what, got, (int)(got > 0 ? got : 0), bytes);
    fflush(stdout);
}

static void *read_slowly(void *unused)
{
    say("slow", slow);
    return unused;
}

static void *map_slowly(void *unused)
{
    char *at = mmap(NULL, 26, PROT_READ, MAP_SHARED, slow, 0);
    printf("mapped %.5s\n", at == MAP_FAILED ? "not" : at);
    return unused;
}

static void *write_slowly(void *unused)
{
    printf("written %zd\n", pwrite(slow, "XYZ", 3, 0));
    return unused;
}

/* Until the thread is in its call; then it is closed. */
static pthread_t close_meanwhile(void *(*call)(void *))
{
    pthread_t thread;
    pthread_create(&thread, NULL, call, NULL);
    close(open("begun", O_RDONLY));
    close(slow);
    return thread;
}

static void again(void *(*call)(void *), bool maps)
{
    pthread_t thread = close_meanwhile(call);
    int quick = open("quick", O_RDONLY);
    const char *at = maps ? mmap(NULL, 26, PROT_READ, MAP_SHARED, quick, 0) : "";
    close(open("go", O_RDONLY));
    pthread_join(thread, NULL);
    say("quick", quick);
    if (maps)
        printf("quick %.5s\n", at == MAP_FAILED ? "not" : at);
}

static void killed(void)
{
    int told[2];
    char byte;
    pipe(told);
    pid_t child = fork();
    if (child == 0) {
        close_meanwhile(read_slowly);
        write(told[1], "x", 1);
        pause();
    }
    read(told[0], &byte, 1);
    kill(child, SIGKILL);
    close(open("go", O_RDONLY));
    waitpid(child, NULL, 0);
    printf("back to %ld\n", (long)lseek(slow, 0, SEEK_SET));
    say("slow", slow);
}

int main(int argc, char **argv)
{
    alarm(20); /* who waits for what never comes */
    if (argc != 3 || chdir(argv[2]) != 0)
        return 2;
    const char *part = argv[1];
    slow = open(strcmp(part, "mapped") == 0 ? "mapped" : "slow", O_RDWR);
    if (strcmp(part, "read") == 0)
        again(read_slowly, false);
    else if (strcmp(part, "mapped") == 0)
        again(map_slowly, false);
    else if (strcmp(part, "written") == 0)
        again(write_slowly, true);
    else
        killed();
    return 0;
}
