/*
 * closed_meanwhile.c PART MOUNT - a descriptor that another thread closes in the middle of a read
 * from it, of the file "slow" of awaited.c. Prints what is read.
 *
 *   again    its number in the process, and whatever else was the file's, is another file's by the
 *            time that the read ends
 *   killed   who reads is killed, and its parent goes on with the same open file
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

/* Until the thread reads; then it is closed. */
static pthread_t close_meanwhile(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, read_slowly, NULL);
    close(open("begun", O_RDONLY));
    close(slow);
    return thread;
}

static void again(void)
{
    pthread_t thread = close_meanwhile();
    int quick = open("quick", O_RDONLY);
    close(open("go", O_RDONLY));
    pthread_join(thread, NULL);
    say("quick", quick);
}

static void killed(void)
{
    int told[2];
    char byte;
    pipe(told);
    pid_t child = fork();
    if (child == 0) {
        close_meanwhile();
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
    slow = open("slow", O_RDONLY);
    if (strcmp(argv[1], "again") == 0)
        again();
    else
        killed();
    return 0;
}
