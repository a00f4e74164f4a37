/*
 * preload.c - the second door: libdirectfuse-preload.so, armed from a constructor.
 *
 * For programs that are started by others, who let only the environment be set:
 *
 *     LD_PRELOAD=.../libdirectfuse-preload.so DIRECTFUSE_RUN=FILE program
 *
 * FILE is the memory of a run (run.h), made by `directfuse env`. The dynamic linker has run before
 * us, and so may have other constructors: what they opened is the kernel's, threads they started
 * are not interposed. Whatever the program executes goes through the loader and is wholly inside;
 * there this library is loaded again, sees that, and does nothing.
 *
 * Static programs do not look at LD_PRELOAD, set-user-id programs must not.
 */
#include "intercept/exec.h"
#include "intercept/filter.h"
#include "intercept/mem.h"
#include "intercept/run.h"
#include "intercept/signal.h"
#include "intercept/start.h"
#include "intercept/text.h"
#include "intercept/thread.h"

#include <linux/fcntl.h>
#include <linux/prctl.h>
#include <linux/un.h>

#define AF_UNIX        1
#define SOCK_SEQPACKET 5

#define VARIABLE       "DIRECTFUSE_RUN="

extern char **environ __attribute__((weak));
extern const char *gnu_get_libc_version(void) __attribute__((weak));

/* glibc gives the environment to constructors, and has not set its variable when ours comes first.
 * musl gives them nothing, and has set it. */
static char **environment(char **given)
{
    static char *nothing[] = {NULL};
    if (gnu_get_libc_version != NULL)
        return given;
    return &environ != NULL && environ != NULL ? environ : nothing;
}

static const char *variable(char **envp)
{
    for (; *envp != NULL; envp++) {
        if (dfi_text_begins(*envp, VARIABLE))
            return *envp + strlen(VARIABLE);
    }
    return NULL;
}

/* And how to do without: no program would start, nor would `directfuse env --end`. */
static void say(const char *path, const char *what, long error)
{
    char line[PATH_MAX + 256];
    struct dfi_text text = DFI_TEXT(line);
    dfi_text_add(&text, "directfuse: ");
    dfi_text_add(&text, path);
    dfi_text_add(&text, ": ");
    dfi_text_add(&text, what);
    dfi_text_add(&text, " (errno ");
    dfi_text_add_number(&text, (unsigned long)-error);
    dfi_text_add(&text, "); to end it: unset LD_PRELOAD; eval \"$(directfuse env --end)\"\n");
    dfi_kernel(__NR_write, 2, line, text.used);
}

/* A connection to the run's server, if the configuration names one. */
static long connect_server(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct dfi_text text = {.start = address.sun_path, .size = sizeof address.sun_path};
    dfi_text_add(&text, path);
    dfi_text_add(&text, ".socket");
    if (text.full)
        return -ENAMETOOLONG;
    long number = dfi_run_server_fd();
    if (number < 0) /* a run without mounts */
        return 0;
    long fd = dfi_kernel(__NR_socket, AF_UNIX, SOCK_SEQPACKET, 0);
    if (fd < 0)
        return fd;
    long result = dfi_kernel(__NR_connect, fd, &address, sizeof address);
    if (result < 0) {
        dfi_kernel(__NR_close, fd);
        return result;
    }
    dfi_run_socket = (int)fd; /* the number in the configuration may be taken here */
    return 0;
}

static long begin(const char *path)
{
    long fd = dfi_kernel(__NR_openat, AT_FDCWD, path, O_RDWR, 0);
    if (fd < 0)
        return fd;
    fd = dfi_move_high((int)fd);
    long error = fd < 0 ? fd : dfi_run_open((int)fd);
    if (error < 0)
        return error;
    if (dfi_kernel(__NR_prctl, PR_GET_SECCOMP, 0, 0, 0, 0) != 0)
        dfi_run_filtered();
    error = connect_server(path);
    if (error < 0)
        return error;
    dfi_loader_is_self = false;
    dfi_loader_keep(dfi_run->loader);
    unsigned long mask = dfi_signals_found();
    struct dfi_thread *self = dfi_start((int)fd, NULL, 0, &error);
    if (self == NULL)
        return error;
    error = dfi_signals_adopt(self->process);
    if (error == 0)
        error = dfi_thread_arm();
    if (error == 0)
        dfi_signals_open(mask);
    return error;
}

/* Not started, the program must not run: it would see real files in place of those of mounts. */
__attribute__((constructor)) static void preload(int argc, char **argv, char **envp)
{
    (void)argc;
    (void)argv;
    const char *path = variable(environment(envp));
    if (path == NULL || dfi_kernel(__NR_prctl, DFI_PR_INSIDE, 0, 0, 0, 0) == 1)
        return;
    long error = begin(path);
    if (error < 0 && !dfi_dispatch_supported()) {
        say(path, "this needs Syscall User Dispatch (Linux 5.11), use directfuse run", error);
        dfi_kernel(__NR_exit_group, 125);
    }
    if (error < 0) {
        say(path, dfi_start_refusal(error), error);
        dfi_kernel(__NR_exit_group, 125);
    }
}
