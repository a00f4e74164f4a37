/*
 * process.c - what libfuse does to the whole process: daemonize, signal handlers. The process is
 * the host's, so each of these says that it was done and leaves everything as it is, but for the
 * working directory, of which the program has one of its own. The host ends a mount; a signal that
 * ends the host ends its mounts with it.
 */
#include "libfuse/abi.h"
#include "libfuse/turn.h"
#include "loader/plugin.h"

/* A daemon has no terminal; who stays in the foreground speaks to somebody. */
int fuse_daemonize(int foreground)
{
    struct df_plugin *plugin = df_plugin_self();

    if (plugin)
        df_plugin_daemonize(plugin, foreground);
    return 0;
}

int fuse_set_signal_handlers(struct fuse_session *se)
{
    (void)se;
    return 0;
}

int fuse_set_fail_signal_handlers(struct fuse_session *se)
{
    (void)se;
    return 0;
}

void fuse_remove_signal_handlers(struct fuse_session *se)
{
    (void)se;
}

struct df_plugin *df3_program(void)
{
    return df_plugin_self();
}

struct df_plugin *df3_program_enter(struct df_plugin *program)
{
    return df_plugin_become(program);
}

void df3_program_exit(struct df_plugin *program)
{
    df_plugin_exit(program);
}
