/*
 * helper.c - serves any FUSE server, in any language, without the kernel's FUSE: the program runs
 * in a process of its own and speaks the FUSE protocol to us, who play the kernel's side and are a
 * file system on libfuse's low-level API ourselves.
 *
 *   helper rclone mount2 remote: /data        command line: the server's own
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "channel.h"
#include "requests.h"
#include "server.h"

static const char usage[] =
    "usage: helper PROGRAM [ARGUMENT...]\n"
    "\n"
    "Runs a FUSE server in a process of its own, which speaks the FUSE protocol over a socket in\n"
    "place of /dev/fuse. For programs that cannot be loaded as plugins: in Go or Rust, linked\n"
    "statically, with thread-local storage. The arguments are the program's own.\n";

/* ---- what the server asked for, as options of a session -----------------------------------------
 */

/* Commas and backslashes of a value would end it. */
static void write_value(FILE *text, const char *name, const char *value)
{
    fprintf(text, ",%s=", name);
    for (; *value; value++)
        fprintf(text, *value == ',' || *value == '\\' ? "\\%c" : "%c", *value);
}

static bool has_option(const char *options, const char *name)
{
    size_t length = strlen(name);

    for (const char *at = options; at; at = (at = strchr(at, ',')) ? at + 1 : NULL) {
        if (strncmp(at, name, length) == 0 && (at[length] == ',' || at[length] == '\0'))
            return true;
    }
    return false;
}

/* max_read of the server, if it asked for less than fits into a message. */
static uint32_t wanted_read(const char *options, uint32_t most)
{
    const char *at = strstr(options, "max_read=");
    unsigned long wanted = at ? strtoul(at + strlen("max_read="), NULL, 10) : 0;

    return wanted > 0 && wanted < most ? (uint32_t)wanted : most;
}

static char *session_options(const struct control_message *mount, const char *program,
                             uint32_t max_read)
{
    static const char *const flags[] = {"allow_other", "default_permissions", "ro"};
    const char *subtype = strncmp(mount->type, "fuse.", 5) == 0 ? mount->type + 5 : program;
    char *options = NULL;
    size_t size;
    FILE *text = open_memstream(&options, &size);

    if (!text)
        return NULL;
    fprintf(text, "max_read=%u", max_read);
    write_value(text, "fsname", mount->source[0] ? mount->source : program);
    write_value(text, "subtype", subtype);
    for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
        if (has_option(mount->options, flags[i]))
            fprintf(text, ",%s", flags[i]);
    }
    return fclose(text) == 0 ? options : NULL;
}

static struct fuse_session *make_session(struct channel *channel, const struct server *server,
                                         const char *program)
{
    struct fuse_args args = FUSE_ARGS_INIT(0, NULL);
    struct fuse_session *session = NULL;

    channel->max_read = wanted_read(server->mount.options, channel->max_read);
    char *options = session_options(&server->mount, program, channel->max_read);
    if (options && fuse_opt_add_arg(&args, "helper") == 0 && fuse_opt_add_arg(&args, "-o") == 0 &&
        fuse_opt_add_arg(&args, options) == 0)
        session = fuse_session_new(&args, &request_ops.ops, later_ops_size(), channel);
    fuse_opt_free_args(&args);
    free(options);
    return session;
}

/* ---- serving ------------------------------------------------------------------------------------
 */

static int loop(struct fuse_session *session)
{
    struct fuse_loop_config *config = fuse_loop_cfg_create();

    if (!config)
        return -1;
    int result = fuse_session_loop_mt(session, config);
    fuse_loop_cfg_destroy(config);
    return result;
}

static void say_way(const struct server *server, const char *program)
{
    fuse_log(FUSE_LOG_INFO, "helper: %s runs in a process of its own, reached through %s\n",
             program,
             server->mount.way == CONTROL_PRELOAD ? "a preloaded /dev/fuse"
                                                  : "a stand-in for fusermount");
}

/* Whether its command line keeps it in the foreground, where somebody hears it. */
static bool is_heard(int argc, char *const argv[])
{
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "-f") == 0 || strcmp(argv[i], "-d") == 0)
            return true;
    return false;
}

/* From the first word of the protocol to the last. 0, or -1; one that is misled is only met. */
static int serve(struct channel *channel, struct server *server, const char *program, bool heard)
{
    pid_t answers;
    int result = -1;

    if (server_await_mount(server) < 0)
        return -1;
    if (server->misled) {
        server_watch(server, NULL, 0); /* it may unmount before it ends */
        return 0;
    }
    if (channel_greet(channel, &answers) < 0)
        return -1;
    struct fuse_session *session = make_session(channel, server, program);
    if (!session)
        return -1;
    say_way(server, program);
    if (channel_start(channel, session) == 0 &&
        fuse_session_mount(session, server_mountpoint(server)) == 0) {
        server_watch(server, session, answers);
        fuse_daemonize(heard);
        result = loop(session);
        fuse_session_unmount(session);
    }
    fuse_session_destroy(session); /* DESTROY goes out */
    return result < 0 ? -1 : 0;
}

/* The program of argv, from its start to its end, mounted at `known` if that is known. A status. */
static int live(struct server *server, int argc, char *const argv[], const char *known)
{
    int theirs = -1;
    struct channel *channel = channel_new(&theirs);
    const char *slash = strrchr(argv[0], '/');

    if (!channel) {
        fuse_log(FUSE_LOG_ERR, "helper: cannot make a channel: %s\n", strerror(errno));
        return 1;
    }
    int result = server_start(server, argc, argv, known, channel, theirs);
    if (result == 0)
        result = serve(channel, server, slash ? slash + 1 : argv[0], is_heard(argc, argv));
    channel_free(channel); /* the server reads the end of its file system */
    int status = server_end(server);
    return result < 0 ? (status ? status : 1) : status;
}

int main(int argc, char *argv[])
{
    struct server server = {0};
    char target[PATH_MAX];

    if (argc < 2 || argv[1][0] == '-') {
        fuse_log(argc < 2 ? FUSE_LOG_ERR : FUSE_LOG_INFO, "%s", usage);
        return argc < 2 ? 2 : 0;
    }
    int status = live(&server, argc - 1, argv + 1, NULL);
    if (!server.misled)
        return status;
    snprintf(target, sizeof(target), "%s", server.mount.target);
    fuse_log(FUSE_LOG_INFO,
             "helper: the program mounts at %s: it is started again, without our "
             "directory in place of another\n",
             target);
    return live(&server, argc - 1, argv + 1, target);
}
