/*
 * ignores.c - programs that ignore every signal: threads make calls, whose sites are never
 * rewritten, while another executes what cannot be, and at last what can.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* mov $39, %eax; syscall; ret: getpid(2), in memory that belongs to no file. */
static const unsigned char code[] = {0xb8, 39, 0, 0, 0, 0x0f, 0x05, 0xc3};

static void *call(void *memory)
{
    int (*function)(void);
    memcpy(&function, &memory, sizeof function);
    for (;;)
        function();
    return NULL;
}

static void child(char *self)
{
    static char word[200000]; /* more than the kernel takes: E2BIG, behind all that is checked */
    char *long_words[] = {self, word, NULL}, *words[] = {self, word + sizeof word - 2, NULL};
    void *memory =
        mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    pthread_t thread;
    memcpy(memory, code, sizeof code);
    memset(word, 'w', sizeof word - 1);
    for (int signal_ = 1; signal_ < NSIG; signal_++)
        signal(signal_, SIG_IGN);
    for (int i = 0; i < 3; i++)
        pthread_create(&thread, NULL, call, memory);
    for (int i = 0; i < 200; i++) {
        if (execv(self, long_words) == 0 || errno != E2BIG)
            _exit(1);
    }
    execv(self, words);
    _exit(2);
}

static int executed(void)
{
    static const int signals[] = {SIGUSR1, SIGSYS, SIGSEGV, SIGBUS};
    struct sigaction found;
    for (int i = 0; i < 4; i++) {
        sigaction(signals[i], NULL, &found);
        printf("%d ", found.sa_handler == SIG_IGN);
        raise(signals[i]);
    }
    printf("ignored\n");
    return 0;
}

int main(int argc, char **argv)
{
    if (argc > 1)
        return executed();
    for (int i = 0; i < 5; i++) {
        int status = -1;
        if (fork() == 0)
            child(argv[0]);
        wait(&status);
        printf("status %x\n", (unsigned)status);
        fflush(stdout);
    }
    return 0;
}
