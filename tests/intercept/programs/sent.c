/*
 * sent.c - SIGSEGV and SIGBUS that nobody's fault is: sent by kill(2), at any moment. They end who
 * does not handle them by their own number, and who does goes on, with the mask it had.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROUNDS 50

static volatile sig_atomic_t handled[NSIG];

static void count(int signal)
{
    handled[signal]++;
}

static pid_t born(void (*life)(void))
{
    pid_t child = fork();
    if (child == 0) {
        life();
        _exit(0);
    }
    return child;
}

static void wait_for_the_end(void)
{
    for (;;)
        pause();
}

/* Counts the children that another signal than the one sent has ended. */
static void end_the_newborn(int signal)
{
    int wrong = 0, status;
    for (int i = 0; i < ROUNDS; i++) {
        pid_t child = born(wait_for_the_end);
        kill(child, signal);
        waitpid(child, &status, 0);
        wrong += !WIFSIGNALED(status) || WTERMSIG(status) != signal;
    }
    printf("%s: %d wrong\n", strsignal(signal), wrong);
}

/* Calls that concern files and children, until each signal has come often. */
static void work(void)
{
    static sigset_t before, after; /* the rest of them is zero */
    sigprocmask(SIG_SETMASK, NULL, &before);
    for (int i = 0; handled[SIGBUS] < ROUNDS || handled[SIGSEGV] < ROUNDS; i++) {
        int fd = open("file", O_RDWR | O_CREAT, 0600);
        if (fd < 0 || pwrite(fd, "text", 4, 0) != 4 || close(fd) != 0)
            abort();
        if (i % 8 == 0) {
            pid_t child = fork();
            if (child == 0)
                _exit(0);
            if (child < 0 || waitpid(child, NULL, 0) != child)
                abort();
        }
    }
    sigprocmask(SIG_SETMASK, NULL, &after);
    _exit(memcmp(&before, &after, sizeof before) == 0 ? 3 : 4);
}

static void disturb_who_handles(void)
{
    static const int signals[] = {SIGBUS, SIGUSR1, SIGSEGV};
    struct sigaction action = {.sa_handler = count, .sa_flags = SA_RESTART};
    int status = 0;
    for (int i = 0; i < 3; i++)
        sigaction(signals[i], &action, NULL);
    pid_t child = born(work);
    for (int i = 0; waitpid(child, &status, WNOHANG) == 0; i++) {
        kill(child, signals[i % 3]);
        usleep(200);
    }
    printf("handled: %d %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -1,
           WIFSIGNALED(status) ? WTERMSIG(status) : 0);
}

int main(void)
{
    setvbuf(stdout, NULL, _IONBF, 0);
    end_the_newborn(SIGBUS);
    end_the_newborn(SIGSEGV);
    disturb_who_handles();
    return 0;
}
