/*
 * registered.c - whether the process may ask for a membarrier(2) of SYNC_CORE, which wants it to be
 * registered: asked by a thread, or (argument "vfork") by a child that shares the memory.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define SYNC_CORE (1 << 5) /* MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE */

static int ask(void)
{
    return syscall(SYS_membarrier, SYNC_CORE, 0, 0) == 0 ? 0 : errno;
}

static void *ask_in_thread(void *answer)
{
    *(int *)answer = ask();
    return NULL;
}

static int ask_in_child(void)
{
    volatile int answer = -1;
    pid_t child = vfork();

    if (child == 0) {
        answer = ask();
        _exit(0);
    }
    waitpid(child, NULL, 0);
    return answer;
}

int main(int argc, char **argv)
{
    int answer = -1;
    pthread_t thread;

    if (argc > 1 && strcmp(argv[1], "vfork") == 0) {
        answer = ask_in_child();
    } else if (pthread_create(&thread, NULL, ask_in_thread, &answer) == 0) {
        pthread_join(thread, NULL);
    }
    printf("%s\n", answer < 0 ? "not asked" : strerror(answer));
    return 0;
}
