/*
 * hooks_child.c - a guest's children, and its attempts to become another program.
 *
 * A child is a process of its own: it gets the directory and umask that the guest believes to have,
 * and every hook in it is the real function, so that fork and exec (sshfs and its ssh) work as
 * written. What it prints goes to the guest's log.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/masked_thread.h"
#include "loader/guest.h"
#include "loader/hooks.h"
#include "loader/plugin.h"

/* ---- fork ----------------------------------------------------------------------------------- */

/* vfork(2) cannot be called through a function of ours: the child would return into a frame that
 * the parent uses again; fork(2) is what it promises. */
static pid_t hook_fork(void)
{
    struct df_guest *guest = df_guest_current();
    int output = guest ? df_guest_child_output(guest) : -1;
    pid_t pid = fork();
    if (!guest || pid < 0)
        return pid;
    if (pid > 0) {
        df_belongings_add_child(&guest->belongings, pid);
        return pid;
    }
    df_guest_enter(NULL);
    sigset_t none;
    sigemptyset(&none); /* a guest's threads have all blocked, for they are the host's business */
    sigprocmask(SIG_SETMASK, &none, NULL);
    df_guest_become_process(guest, output);
    return 0;
}

/* ---- wait ----------------------------------------------------------------------------------- */

/* Its own children; those of the host are not for it to reap. */
static pid_t hook_waitpid(pid_t pid, int *status, int options)
{
    struct df_guest *guest = df_guest_current();
    if (!guest || pid > 0)
        return waitpid(pid, status, options);
    pid_t ended = df_belongings_wait(&guest->belongings, status, options);
    if (ended >= 0)
        return ended;
    errno = -ended;
    return -1;
}

static pid_t hook_wait(int *status)
{
    return hook_waitpid(-1, status, 0);
}

static pid_t hook_wait4(pid_t pid, int *status, int options, struct rusage *usage)
{
    if (!df_guest_current() || pid > 0)
        return wait4(pid, status, options, usage);
    if (usage)
        memset(usage, 0, sizeof(*usage));
    return hook_waitpid(pid, status, options);
}

static pid_t hook_wait3(int *status, int options, struct rusage *usage)
{
    return hook_wait4(-1, status, options, usage);
}

static void tell_end(siginfo_t *info, pid_t pid, int status)
{
    memset(info, 0, sizeof(*info));
    if (pid == 0)
        return;
    info->si_signo = SIGCHLD;
    info->si_pid = pid;
    info->si_uid = getuid();
    info->si_code = WIFEXITED(status) ? CLD_EXITED : WCOREDUMP(status) ? CLD_DUMPED : CLD_KILLED;
    info->si_status = WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status);
}

static int hook_waitid(idtype_t type, id_t id, siginfo_t *info, int options)
{
    if (!df_guest_current() || (type != P_ALL && type != P_PGID))
        return waitid(type, id, info, options);
    int status = 0;
    pid_t pid = hook_waitpid(-1, &status, options & WNOHANG);
    if (pid >= 0 && info)
        tell_end(info, pid, status);
    return pid < 0 ? -1 : 0;
}

/* ---- posix_spawn ---------------------------------------------------------------------------- */

typedef int spawn_function(pid_t *, const char *, const posix_spawn_file_actions_t *,
                           const posix_spawnattr_t *, char *const[], char *const[]);

/* The same attributes with a mask, which is none unless the program has given one: its threads have
 * all blocked. (The type is a plain structure, without pointers.) */
static void choose_mask(posix_spawnattr_t *chosen, const posix_spawnattr_t *given)
{
    sigset_t none;
    short flags;
    if (given)
        *chosen = *given;
    else
        posix_spawnattr_init(chosen);
    posix_spawnattr_getflags(chosen, &flags);
    if (flags & POSIX_SPAWN_SETSIGMASK)
        return;
    sigemptyset(&none);
    posix_spawnattr_setsigmask(chosen, &none);
    posix_spawnattr_setflags(chosen, (short)(flags | POSIX_SPAWN_SETSIGMASK));
}

/* What a child begins with: the program's directory, where in_its_place() cannot see to it, and its
 * output. */
static int add_actions(posix_spawn_file_actions_t *actions, struct df_guest *guest)
{
    int output = df_guest_child_output(guest);
    int error = 0;
    if (guest->cwd_fd >= 0)
        error = posix_spawn_file_actions_addfchdir_np(actions, guest->cwd_fd);
    for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO && !error && output >= 0; fd++)
        error = posix_spawn_file_actions_adddup2(actions, output, fd);
    return error;
}

struct spawn {
    struct df_guest *guest;
    spawn_function *function;
    pid_t *pid;
    const char *path;
    const posix_spawn_file_actions_t *actions;
    const posix_spawnattr_t *attributes;
    char *const *argv, *const *environment;
    int error;
};

/* On a thread that has a directory and a umask of its own: a child begins with its thread's, and of
 * the umask nothing else tells posix_spawn(3). Where unshare(2) is refused, the thread's are the
 * process's, and stay. */
static void *in_its_place(void *data)
{
    struct spawn *spawn = data;
    bool own = unshare(CLONE_FS) == 0;
    if (own)
        umask(spawn->guest->umask);
    if (own && spawn->guest->cwd_fd >= 0 && fchdir(spawn->guest->cwd_fd) != 0)
        spawn->error = errno;
    else
        spawn->error = spawn->function(spawn->pid, spawn->path, spawn->actions, spawn->attributes,
                                       spawn->argv, spawn->environment);
    return NULL;
}

static int run_spawn(struct spawn *spawn)
{
    pthread_t thread;
    int error = df_masked_thread_create(&thread, NULL, in_its_place, spawn);
    if (error)
        return error;
    pthread_join(thread, NULL);
    return spawn->error;
}

/* `environ` is the process's, which has none of the program's changes. NULL: it is another one. */
static char **list_its_own(struct df_guest *guest, char *const environment[])
{
    char ***copied = guest->globals.environment;
    bool own = environment == environ || (copied && environment == *copied);
    return own ? df_hooks_list_environment(guest) : NULL;
}

/* Nothing can be put in front of actions that the program has given. */
static int spawn_for(struct df_guest *guest, spawn_function *spawn, pid_t *pid, const char *path,
                     const posix_spawn_file_actions_t *actions, const posix_spawnattr_t *attributes,
                     char *const argv[], char *const environment[])
{
    posix_spawn_file_actions_t ours;
    posix_spawnattr_t chosen;
    int error = posix_spawn_file_actions_init(&ours);
    if (error)
        return error;
    char **listed = list_its_own(guest, environment);
    choose_mask(&chosen, attributes);
    if (!actions)
        error = add_actions(&ours, guest);
    if (!error)
        error = run_spawn(&(struct spawn){guest, spawn, pid, path, actions ? actions : &ours,
                                          &chosen, argv, listed ? listed : environment, 0});
    if (!error)
        df_belongings_add_child(&guest->belongings, *pid);
    posix_spawn_file_actions_destroy(&ours);
    free(listed);
    return error;
}

static int spawn(spawn_function *spawn, pid_t *pid, const char *path,
                 const posix_spawn_file_actions_t *actions, const posix_spawnattr_t *attributes,
                 char *const argv[], char *const environment[])
{
    struct df_guest *guest = df_guest_current();
    pid_t unwanted;
    if (!guest)
        return spawn(pid, path, actions, attributes, argv, environment);
    return spawn_for(guest, spawn, pid ? pid : &unwanted, path, actions, attributes, argv,
                     environment);
}

static int hook_posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
                            const posix_spawnattr_t *attributes, char *const argv[],
                            char *const environment[])
{
    return spawn(posix_spawn, pid, path, actions, attributes, argv, environment);
}

static int hook_posix_spawnp(pid_t *pid, const char *file,
                             const posix_spawn_file_actions_t *actions,
                             const posix_spawnattr_t *attributes, char *const argv[],
                             char *const environment[])
{
    return spawn(posix_spawnp, pid, file, actions, attributes, argv, environment);
}

/* ---- shells --------------------------------------------------------------------------------- */

static _Noreturn void become_shell(const char *command)
{
    execl("/bin/sh", "sh", "-c", command, NULL);
    _exit(127);
}

static int await(pid_t pid)
{
    int status;
    pid_t ended;
    do
        ended = waitpid(pid, &status, 0);
    while (ended < 0 && errno == EINTR);
    return ended < 0 ? -1 : status;
}

/* system(3) ignores SIGINT and SIGQUIT in the whole process meanwhile; a guest's does not. */
static int hook_system(const char *command)
{
    if (!df_guest_current() || !command)
        return system(command);
    pid_t pid = hook_fork();
    if (pid == 0)
        become_shell(command);
    return pid < 0 ? -1 : await(pid);
}

/* Streams of popen(3), and who is at their other ends. */
struct opened {
    struct opened *next;
    FILE *stream;
    pid_t pid;
};
static pthread_mutex_t opened_lock = PTHREAD_MUTEX_INITIALIZER; /* protects the list */
static struct opened *all_opened;

static void note_opened(struct opened *item)
{
    pthread_mutex_lock(&opened_lock);
    item->next = all_opened;
    all_opened = item;
    pthread_mutex_unlock(&opened_lock);
}

static struct opened *take_opened(const FILE *stream)
{
    pthread_mutex_lock(&opened_lock);
    struct opened **at = &all_opened;
    while (*at && (*at)->stream != stream)
        at = &(*at)->next;
    struct opened *item = *at;
    if (item)
        *at = item->next;
    pthread_mutex_unlock(&opened_lock);
    return item;
}

/* The shell at the end `theirs` of a pipe, which is its standard input or output. */
static pid_t start_shell(const char *command, int theirs, int as)
{
    pid_t pid = hook_fork();
    if (pid == 0) {
        dup2(theirs, as);
        become_shell(command);
    }
    return pid;
}

static FILE *open_shell(struct opened *item, const char *command, bool reads)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return NULL;
    int mine = ends[reads ? 0 : 1], theirs = ends[reads ? 1 : 0];
    item->stream = fdopen(mine, reads ? "r" : "w");
    item->pid =
        item->stream ? start_shell(command, theirs, reads ? STDOUT_FILENO : STDIN_FILENO) : -1;
    close(theirs);
    if (item->pid > 0)
        return item->stream;
    if (item->stream)
        fclose(item->stream);
    else
        close(mine);
    return NULL;
}

static FILE *hook_popen(const char *command, const char *mode)
{
    if (!df_guest_current())
        return popen(command, mode);
    struct opened *item = malloc(sizeof(*item));
    FILE *stream = item ? open_shell(item, command, mode[0] == 'r') : NULL;
    if (!stream) {
        free(item);
        return NULL;
    }
    free(take_opened(stream)); /* one that fclose(3) has closed */
    note_opened(item);
    return stream;
}

static int hook_pclose(FILE *stream)
{
    struct opened *item = take_opened(stream);
    if (!item)
        return pclose(stream);
    pid_t pid = item->pid;
    free(item);
    fclose(stream);
    return await(pid);
}

/* ---- exec ----------------------------------------------------------------------------------- */

/* Outside of a child it would replace the host. */
static bool refuses(const char *what)
{
    struct df_guest *guest = df_guest_current();
    if (!guest)
        return false;
    char line[512];
    snprintf(line, sizeof(line),
             "the program wanted to become %s (exec), which would replace this process: mount it "
             "with placement \"helper\", in a process of its own",
             what ? what : "another one");
    df_plugin_log(guest->plugin, line);
    errno = EPERM;
    return true;
}

static int hook_execve(const char *path, char *const argv[], char *const environment[])
{
    return refuses(path) ? -1 : execve(path, argv, environment);
}

static int hook_execv(const char *path, char *const argv[])
{
    return refuses(path) ? -1 : execv(path, argv);
}

static int hook_execvp(const char *file, char *const argv[])
{
    return refuses(file) ? -1 : execvp(file, argv);
}

static int hook_execvpe(const char *file, char *const argv[], char *const environment[])
{
    return refuses(file) ? -1 : execvpe(file, argv, environment);
}

static int hook_fexecve(int fd, char *const argv[], char *const environment[])
{
    return refuses("an open file") ? -1 : fexecve(fd, argv, environment);
}

static int hook_execveat(int dirfd, const char *path, char *const argv[], char *const environment[],
                         int flags)
{
    return refuses(path) ? -1 : execveat(dirfd, path, argv, environment, flags);
}

enum { LIST_MAX = 1024 }; /* elements of an execl list */

/* The list up to its NULL; -1 with E2BIG where it has no end in sight. */
static int collect(const char *first, va_list arguments, char *argv[LIST_MAX])
{
    argv[0] = (char *)first;
    for (int i = 0; argv[i]; i++) {
        if (i + 1 == LIST_MAX) {
            errno = E2BIG;
            return -1;
        }
        argv[i + 1] = va_arg(arguments, char *);
    }
    return 0;
}

#define LIST(call)                                                                                 \
    do {                                                                                           \
        char *argv[LIST_MAX];                                                                      \
        va_list arguments;                                                                         \
        va_start(arguments, first);                                                                \
        int result = refuses(path) ? -1 : collect(first, arguments, argv);                         \
        if (result == 0)                                                                           \
            result = call;                                                                         \
        va_end(arguments);                                                                         \
        return result;                                                                             \
    } while (0)

static int hook_execl(const char *path, const char *first, ...)
{
    LIST(execv(path, argv));
}

static int hook_execlp(const char *path, const char *first, ...)
{
    LIST(execvp(path, argv));
}

static int hook_execle(const char *path, const char *first, ...)
{
    LIST(execve(path, argv, va_arg(arguments, char **)));
}

const struct df_hook df_hooks_child[] = {
    {"fork", hook_fork},
    {"vfork", hook_fork},
    {"waitpid", hook_waitpid},
    {"wait", hook_wait},
    {"wait3", hook_wait3},
    {"wait4", hook_wait4},
    {"waitid", hook_waitid},
    {"posix_spawn", hook_posix_spawn},
    {"posix_spawnp", hook_posix_spawnp},
    {"system", hook_system},
    {"popen", hook_popen},
    {"pclose", hook_pclose},
    {"execve", hook_execve},
    {"execv", hook_execv},
    {"execvp", hook_execvp},
    {"execvpe", hook_execvpe},
    {"fexecve", hook_fexecve},
    {"execveat", hook_execveat},
    {"execl", hook_execl},
    {"execlp", hook_execlp},
    {"execle", hook_execle},
    {NULL, NULL},
};
