/*
 * unruly.c - a FUSE program that does to its process what a guest must not do to its host. Each
 * file is a misdeed: reading it commits it; "--before MISDEED" commits it before the loop.
 */
#define FUSE_USE_VERSION 31
#define _GNU_SOURCE
#include <assert.h>
#include <dlfcn.h>
#include <err.h>
#include <errno.h>
#include <error.h>
#include <fcntl.h>
#include <fuse.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <syslog.h>
#include <unistd.h>

static const char *library;
static char answer[256] = "harmless";
static volatile sig_atomic_t signalled;

static void handler(int number)
{
    signalled = number;
}

static void exec_child(void)
{
    pid_t pid = fork();
    if (pid == 0) {
        fprintf(stderr, "words before exec\n");
        execl("/bin/sh", "sh", "-c", "echo words of a child; exit 3", NULL);
        _exit(127);
    }
    int status = 0;
    pid_t ended = wait(&status);
    snprintf(answer, sizeof(answer), "%d", ended == pid ? WEXITSTATUS(status) : -1);
}

/* The child ends itself by a signal, unless it was born with all of them blocked. */
static void spawn_child(void)
{
    static char *words[] = {"sh", "-c", "echo words of a child; kill -TERM $$; exit 3", NULL};
    pid_t pid = 0;
    int status = 0, error = posix_spawn(&pid, "/bin/sh", NULL, NULL, words, environ);
    pid_t ended = wait(&status);
    snprintf(answer, sizeof(answer), "%d %d %d", error, ended == pid, WTERMSIG(status));
}

/* With actions of its own, and so nothing in front of them. */
static void spawn_elsewhere(void)
{
    static char *words[] = {"sh", "-c", "umask; pwd", NULL};
    posix_spawn_file_actions_t actions;
    char said[64] = "";
    int ends[2];
    pid_t pid;

    umask(0);
    if (chdir("/etc") != 0 || pipe(ends) != 0 || posix_spawn_file_actions_init(&actions) != 0 ||
        posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO) != 0 ||
        posix_spawn(&pid, "/bin/sh", &actions, NULL, words, environ) != 0)
        abort();
    posix_spawn_file_actions_destroy(&actions);
    if (waitpid(pid, NULL, 0) != pid || read(ends[0], said, sizeof(said) - 1) < 0)
        abort();
    snprintf(answer, sizeof(answer), "%s", said);
}

static void open_shells(void)
{
    char line[200] = "";
    FILE *from = popen("pwd; kill -TERM $$", "r"), *to = popen("read word; exit $word", "w");
    if (chdir("/etc") != 0 || !from || !to || !fgets(line, sizeof(line), from))
        return;
    fputs("5\n", to);
    int sent = pclose(to), got = pclose(from);
    snprintf(answer, sizeof(answer), "%d %d %.*s", WEXITSTATUS(sent), WTERMSIG(got),
             (int)strcspn(line, "\n"), line);
}

static void print_by_number(void)
{
    static int (*volatile put)(int) = putchar_unlocked; /* no macro, nothing inline */
    const struct iovec words = {"words by writev\n", 16};
    dprintf(STDOUT_FILENO, "words %s\n", "by dprintf");
    if (writev(STDERR_FILENO, &words, 1) != 16)
        abort();
    for (const char *letter = "words by letters\n"; *letter; letter++)
        put(*letter);
}

static void print_to_nobody(int (*make)(int pair[2]))
{
    const struct iovec words = {"words", 5};
    int pair[2];
    if (make(pair) != 0)
        abort();
    close(pair[0]);
    int printed = dprintf(pair[1], "words %s", "for nobody"), error = errno;
    ssize_t written = write(pair[1], "words", 5), gathered = writev(pair[1], &words, 1);
    snprintf(answer, sizeof(answer), "%d %d %zd %zd %d", printed, error, written, gathered, errno);
    close(pair[1]);
}

static int make_sockets(int pair[2])
{
    return socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
}

char *__getcwd_chk(char *buffer, size_t size, size_t capacity);

static void name_directory(void)
{
    char room[256];
    char *name = chdir("/etc") == 0 ? get_current_dir_name() : NULL;
    if (!name)
        abort();
    snprintf(answer, sizeof(answer), "%s %s", name, __getcwd_chk(room, sizeof(room), sizeof(room)));
    free(name);
}

static void remove_directory(void)
{
    char made[] = "/tmp/unruly-XXXXXX", room[256];
    if (!mkdtemp(made) || chdir(made) != 0 || rmdir(made) != 0)
        abort();
    snprintf(answer, sizeof(answer), "%d", getcwd(room, sizeof(room)) ? 0 : errno);
}

/* A name as the kernel shows one that is removed. */
static void enter_odd_directory(void)
{
    char made[] = "/tmp/unruly-XXXXXX", name[64], room[256];
    if (!mkdtemp(made))
        abort();
    snprintf(name, sizeof(name), "%s/odd (deleted)", made);
    if (mkdir(name, 0700) != 0 || chdir(name) != 0)
        abort();
    const char *found = getcwd(room, sizeof(room));
    snprintf(answer, sizeof(answer), "%d", found ? strcmp(found, name) : errno);
    if (rmdir(name) != 0 || rmdir(made) != 0)
        abort();
}

static void load(void)
{
    void *handle = library ? dlopen(library, RTLD_NOW) : NULL;
    void *found = handle ? dlsym(handle, "where_fuse_is") : NULL;
    Dl_info info;
    if (found && dladdr(((void *(*)(void))found)(), &info))
        snprintf(answer, sizeof(answer), "%s", info.dli_fname);
    else
        snprintf(answer, sizeof(answer), "%s", dlerror());
}

static void *sleep_for_ever(void *unused)
{
    for (;;)
        pause();
    return unused;
}

static void end_with_words(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    verrx(7, format, arguments);
}

/* What no privilege is asked for where it is harmless: the saved ids, and the root that it has. */
static void change_the_process(void)
{
    int user = setresuid(-1, -1, 65534), group = setresgid(-1, -1, 65534), root = chroot("/");
    int output = dup3(open("/dev/null", O_WRONLY), STDOUT_FILENO, 0);
    snprintf(answer, sizeof(answer), "%d %d %d %d", user, group, root, output);
}

static void change_what_the_host_is(void)
{
    struct rlimit none = {0, 0};
    int limited = prlimit(0, RLIMIT_CORE, &none, NULL), named = prctl(PR_SET_NAME, "unruly");
    int dumped = prctl(PR_SET_DUMPABLE, 0), last = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    int polite = setpriority(PRIO_PROCESS, 0, 19);
    snprintf(answer, sizeof(answer), "%d %d %d %d %d", limited, named, dumped, last, polite);
}

static void have_any_child(void)
{
    siginfo_t info = {0};
    pid_t pid = fork();
    if (pid == 0)
        _exit(3);
    int result = waitid(P_ALL, 0, &info, WEXITED), status = info.si_status;
    int again = waitid(P_ALL, 0, &info, WEXITED | WNOHANG);
    snprintf(answer, sizeof(answer), "%d %d %d %d %d", result, info.si_pid == pid, status, again,
             errno == ECHILD);
}

static void await_file(const char *name)
{
    while (access(name, F_OK) != 0)
        usleep(1000);
}

static void *end_when_told(void *argument)
{
    await_file(getenv("UNRULY_TOLD"));
    kill(getpid(), SIGTERM);
    return argument;
}

/* Tells that one, and waits for its destroy(). */
static void outlive_the_other(void)
{
    close(creat(getenv("UNRULY_TOLD"), 0600));
    await_file(getenv("UNRULY_DESTROYED"));
}

/* As a daemon does before it begins; replaces them first. */
static void close_all(void)
{
    int own = open("/etc/passwd", O_RDONLY), replaced = 0, closed = 0;
    for (int fd = 3; fd < own; fd++)
        replaced += dup2(own, fd) == fd;
    syscall(SYS_close_range, 3, ~0U, 0);
    for (int fd = 3; fd < 1024; fd++)
        closed += (fd % 2 ? close(fd) : syscall(SYS_close, fd)) == 0;
    snprintf(answer, sizeof(answer), "%d %d %d", replaced == own - 3, closed > replaced,
             fcntl(own, F_GETFD));
}

static void carry_out(const char *deed)
{
    pthread_t thread;
    if (strcmp(deed, "exit") == 0)
        exit(7);
    if (strcmp(deed, "_exit") == 0)
        _exit(7);
    if (strcmp(deed, "quick_exit") == 0)
        quick_exit(7);
    if (strcmp(deed, "exit_group") == 0)
        syscall(SYS_exit_group, 7);
    if (strcmp(deed, "abort") == 0)
        abort();
    if (strcmp(deed, "assert") == 0)
        assert(!"a wish");
    if (strcmp(deed, "verrx") == 0)
        end_with_words("%s", "words");
    if (strcmp(deed, "error_at_line") == 0)
        error_at_line(7, 0, __FILE__, __LINE__, "words");
    if (strcmp(deed, "raise") == 0)
        raise(SIGKILL);
    if (strcmp(deed, "kill") == 0)
        kill(getpid(), SIGABRT);
    if (strcmp(deed, "terminate") == 0)
        kill(getpid(), SIGTERM);
    if (strcmp(deed, "exec") == 0 && execl("/bin/true", "true", NULL) < 0)
        snprintf(answer, sizeof(answer), "%d", errno);
    if (strcmp(deed, "handler") == 0) {
        signal(SIGUSR1, handler);
        kill(getpid(), SIGUSR1);
        snprintf(answer, sizeof(answer), "%d", signalled == SIGUSR1);
    }
    if (strcmp(deed, "child") == 0)
        exec_child();
    if (strcmp(deed, "system") == 0)
        snprintf(answer, sizeof(answer), "%d", WEXITSTATUS(system("exit 4")));
    if (strcmp(deed, "spawn") == 0)
        spawn_child();
    if (strcmp(deed, "spawn elsewhere") == 0)
        spawn_elsewhere();
    if (strcmp(deed, "shells") == 0)
        open_shells();
    if (strcmp(deed, "print") == 0)
        print_by_number();
    if (strcmp(deed, "chdir") == 0 && chdir("/etc") != 0)
        abort();
    if (strcmp(deed, "print to no socket") == 0)
        print_to_nobody(make_sockets);
    if (strcmp(deed, "print to no pipe") == 0)
        print_to_nobody(pipe);
    if (strcmp(deed, "named directory") == 0)
        name_directory();
    if (strcmp(deed, "removed directory") == 0)
        remove_directory();
    if (strcmp(deed, "odd directory") == 0)
        enter_odd_directory();
    if (strcmp(deed, "library") == 0)
        load();
    if (strcmp(deed, "environment") == 0) {
        static char text[] = "UNRULY_WORD=mine"; /* putenv(3) keeps the pointer */
        putenv(text);
        setenv("PATH", "/nowhere", 1);
        snprintf(answer, sizeof(answer), "%s %s", getenv("UNRULY_WORD"), getenv("PATH"));
    }
    if (strcmp(deed, "process") == 0)
        change_the_process();
    if (strcmp(deed, "what the host is") == 0)
        change_what_the_host_is();
    if (strcmp(deed, "any child") == 0)
        have_any_child();
    if (strcmp(deed, "unmount") == 0)
        fuse_exit(fuse_get_context()->fuse);
    if (strcmp(deed, "syslog") == 0)
        syslog(LOG_ERR, "words for the system's log");
    if (strcmp(deed, "thread") == 0)
        pthread_create(&thread, NULL, sleep_for_ever, NULL);
    if (strcmp(deed, "end when told") == 0)
        pthread_create(&thread, NULL, end_when_told, NULL);
    if (strcmp(deed, "outlive") == 0)
        outlive_the_other();
    if (strcmp(deed, "hang") == 0)
        sleep_for_ever(NULL);
    if (strcmp(deed, "leave open") == 0 &&
        (open("/etc/passwd", O_RDONLY) < 0 || open("/etc", 0) < 0))
        abort();
    if (strcmp(deed, "close") == 0)
        close(open("/etc/passwd", O_RDONLY));
    if (strcmp(deed, "close all") == 0)
        close_all();
    if (strcmp(deed, "daemon") == 0 && fork() > 0)
        exit(0);
}

#include "asked.h"

/* Shows that it was called. */
static void destroy(void *data)
{
    const char *name = getenv("UNRULY_DESTROYED");
    (void)data;
    if (name)
        close(creat(name, 0600));
}

static const struct fuse_operations operations = {
    .destroy = destroy,
    .getattr = get_attr,
    .open = open_it,
    .read = read_it,
};

static void *serve(void *argv)
{
    fuse_main(2, argv, &operations, NULL);
    return NULL;
}

static int serve_on_a_thread(char *argv[])
{
    pthread_t thread;
    return pthread_create(&thread, NULL, serve, argv) || pthread_join(thread, NULL);
}

int main(int argc, char *argv[])
{
    library = getenv("UNRULY_LIBRARY");
    if (argc > 2 && strcmp(argv[1], "--before") == 0) {
        carry_out(argv[2]);
        argv[2] = argv[0];
        argc -= 2;
        argv += 2;
    }
    if (argc > 2 && strcmp(argv[1], "--thread") == 0)
        return serve_on_a_thread(argv + 1);
    return fuse_main(argc, argv, &operations, NULL);
}
