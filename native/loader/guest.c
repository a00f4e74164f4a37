/*
 * guest.c - a loaded program's own working directory, umask and output; see guest.h.
 */
#include "loader/guest.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/caller.h"
#include "core/gate.h"
#include "loader/hooks.h"
#include "loader/plugin.h"

/* initial-exec: one load instead of a call, eight bytes of the static TLS that glibc keeps for
 * objects loaded at run time. */
static _Thread_local struct df_guest *current __attribute__((tls_model("initial-exec")));

/* stdio hands over whole lines where it can (the stream is line-buffered). */
static ssize_t log_lines(struct df_guest *guest, const char *data, size_t size)
{
    size_t from = 0;
    while (from < size) {
        const char *end = memchr(data + from, '\n', size - from);
        size_t length = end ? (size_t)(end - data) - from : size - from;
        char *line = strndup(data + from, length);
        if (!line)
            return -1;
        if (length > 0)
            df_plugin_log(guest->plugin, line);
        free(line);
        from += length + 1;
    }
    return (ssize_t)size;
}

static ssize_t write_log(void *cookie, const char *data, size_t size)
{
    struct df_guest *guest = cookie;
    if (guest->pid != getpid()) /* a child: its standard error leads to its parent's log */
        return write(STDERR_FILENO, data, size);
    df_guest_drain(guest); /* what a child said before */
    return log_lines(guest, data, size);
}

/* Under the lock. */
static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

int df_guest_init(struct df_guest *guest, struct df_plugin *plugin)
{
    *guest = (struct df_guest){
        .plugin = plugin, .users = 1, .pid = getpid(), .cwd_fd = -1, .child_output = {-1, -1}};
    guest->umask = df_caller_of(df_gate_thread())->umask;
    guest->cwd_fd = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (guest->cwd_fd < 0 && errno != EACCES) /* one that it may not search it can stand in */
        return -errno;
    guest->output = fopencookie(guest, "w", (cookie_io_functions_t){.write = write_log});
    if (!guest->output) {
        close_fd(&guest->cwd_fd);
        return -ENOMEM;
    }
    setvbuf(guest->output, NULL, _IOLBF, BUFSIZ);
    pthread_mutex_init(&guest->lock, NULL);
    df_belongings_init(&guest->belongings);
    return 0;
}

void df_guest_retire(struct df_guest *guest, bool lingers)
{
    if (!guest->output)
        return;
    df_belongings_let_go(&guest->belongings, lingers);
    df_guest_drain(guest);
    pthread_mutex_lock(&guest->lock);
    close_fd(&guest->cwd_fd);
    close_fd(&guest->child_output[0]);
    close_fd(&guest->child_output[1]);
    pthread_mutex_unlock(&guest->lock);
}

bool df_guest_is_code(const struct df_guest *guest, const void *address)
{
    const struct link_map *map = guest->map;
    Dl_info info;

    return map && dladdr(address, &info) != 0 && (uintptr_t)info.dli_fbase == map->l_addr;
}

void df_guest_after_fork(struct df_guest *guest)
{
    guest->severed = atomic_load(&guest->users) > 1;
}

void df_guest_destroy(struct df_guest *guest)
{
    if (!guest->output)
        return;
    fclose(guest->output);
    close_fd(&guest->cwd_fd);
    pthread_mutex_destroy(&guest->lock);
    df_belongings_destroy(&guest->belongings);
    df_host_fds_forget(&guest->host_fds);
    df_hooks_forget_environment(guest);
    df_hooks_forget_scan(guest);
    guest->output = NULL;
}

void df_guest_redirect(struct df_guest *guest)
{
    if (guest->globals.stdout_stream)
        *guest->globals.stdout_stream = guest->output;
    if (guest->globals.stderr_stream)
        *guest->globals.stderr_stream = guest->output;
    for (size_t i = 0; i < 3; i++)
        if (guest->globals.cxx_streams[i])
            df_cxx_redirect(guest->globals.cxx_streams[i], guest->cxx_buffers[i], guest->output);
}

/* ---- its children -------------------------------------------------------------------------- */

/* Nobody reads the pipe all the time, so a child must never wait for a reader: what does not fit
 * into the pipe is lost. */
int df_guest_child_output(struct df_guest *guest)
{
    pthread_mutex_lock(&guest->lock);
    if (guest->child_output[1] < 0 && pipe2(guest->child_output, O_CLOEXEC | O_NONBLOCK) != 0)
        guest->child_output[0] = guest->child_output[1] = -1;
    int output = guest->child_output[1];
    pthread_mutex_unlock(&guest->lock);
    return output;
}

static const struct df_guest *parent; /* of the process that this is, if a guest has forked it */

const struct df_guest *df_guest_parent(void)
{
    return parent;
}

/* What the host had in them is its own to write. */
static void take_streams(const struct df_guest_globals *globals)
{
    __fpurge(stdout);
    if (globals->stdout_stream)
        *globals->stdout_stream = stdout;
    if (globals->stderr_stream)
        *globals->stderr_stream = stderr;
}

void df_guest_become_process(struct df_guest *guest, int output)
{
    parent = guest;
    take_streams(&guest->globals);
    if (guest->cwd_fd >= 0 && fchdir(guest->cwd_fd) != 0 && output >= 0)
        dprintf(output, "the working directory cannot be entered: %s\n", strerror(errno));
    umask(guest->umask);
    df_hooks_apply_environment(guest);
    if (guest->globals.environment)
        *guest->globals.environment = environ;
    if (output >= 0) {
        dup2(output, STDOUT_FILENO);
        dup2(output, STDERR_FILENO);
    }
}

void df_guest_drain(struct df_guest *guest)
{
    char said[4096];
    ssize_t size = 0;
    do {
        pthread_mutex_lock(&guest->lock);
        size = guest->child_output[0] < 0 ? 0 : read(guest->child_output[0], said, sizeof(said));
        pthread_mutex_unlock(&guest->lock);
        if (size > 0)
            log_lines(guest, said, (size_t)size);
    } while (size > 0);
}

struct df_guest *df_guest_enter(struct df_guest *guest)
{
    struct df_guest *before = current;
    current = guest;
    return before;
}

struct df_guest *df_guest_current(void)
{
    return current;
}

const char *df_guest_path(struct df_guest *guest, const char *path, char buffer[DF_GUEST_PATH_ROOM])
{
    if (!guest || !path || path[0] == '/' || path[0] == '\0')
        return path;
    pthread_mutex_lock(&guest->lock);
    int fd = guest->cwd_fd;
    pthread_mutex_unlock(&guest->lock);
    if (fd < 0)
        return path;
    int length = snprintf(buffer, DF_GUEST_PATH_ROOM, "/proc/self/fd/%d/%s", fd, path);
    return length < DF_GUEST_PATH_ROOM ? buffer : path; /* too long: the kernel will say so */
}
