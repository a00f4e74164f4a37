/*
 * loop.c - the loops. Each attaches the mount and sleeps until it has ended; operations run on the
 * threads of those who call them, so there are no workers. What the loops differ in is whether the
 * file system bears more than one operation at a time.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "highlevel/highlevel.h"
#include "libfuse/abi.h"
#include "lowlevel/lowlevel.h"

enum {
    CONFIG_MARK = 0x64663331, /* tells a configuration of ours from the older public struct */
    DEFAULT_MAX_THREADS = 10,
    MAX_IDLE_THREADS = 100000,
};

/* Limits of a kernel connection, which init() may lower. */
enum {
    MAX_WRITE = 1024 * 1024,    /* bytes; 256 pages, the largest request of the kernel */
    MAX_READAHEAD = 128 * 1024, /* bytes; the kernel's default */
};

struct fuse_loop_config {
    int mark; /* CONFIG_MARK */
    unsigned max_idle_threads;
    unsigned max_threads;
    unsigned clone_fd;
};

/* ---- serving ----------------------------------------------------------------------------- */

int df_abi_initialise(struct fuse_session *se)
{
    struct fuse_conn_info conn = {
        .max_write = MAX_WRITE,
        .max_read = se->mount.max_read,
        .max_readahead = MAX_READAHEAD,
    };
    if (se->initialised)
        return 0;
    se->initialised = true;
    return se->fuse ? df_highlevel_init(se->fs, se->fuse, &conn) : df_lowlevel_init(se->fs, &conn);
}

static int serve(struct fuse_session *se, bool serial)
{
    if (!se->mounted)
        return -EBADF; /* what reading libfuse's missing descriptor gives */
    se->mount.serial = serial;
    int error = df_abi_initialise(se);
    if (!error)
        error = df_plugin_serve(se->plugin, &se->mount, se->fs);
    atomic_store(&se->exited, true);
    return error;
}

int df_abi_loop(struct fuse_session *se, bool serial)
{
    int error = fuse_session_exited(se) ? 0 : serve(se, serial);
    fuse_session_reset(se);
    return error;
}

int fuse_session_loop(struct fuse_session *se)
{
    return df_abi_loop(se, true);
}

/* One thread is one operation at a time, as in libfuse. */
int df_abi_loop_mt(struct fuse_session *se, const struct fuse_loop_config *config)
{
    if (config && config->mark != CONFIG_MARK)
        return -EINVAL;
    return df_abi_loop(se, config && config->max_threads == 1);
}

int fuse_loop(struct fuse *f)
{
    return f ? fuse_session_loop(f->session) : -1;
}

/* ---- configuration ----------------------------------------------------------------------- */

struct fuse_loop_config *fuse_loop_cfg_create(void)
{
    struct fuse_loop_config *config = malloc(sizeof(*config));
    if (config)
        *config = (struct fuse_loop_config){
            .mark = CONFIG_MARK,
            .max_idle_threads = UINT_MAX, /* -1: idle threads stay */
            .max_threads = DEFAULT_MAX_THREADS,
        };
    return config;
}

void fuse_loop_cfg_destroy(struct fuse_loop_config *config)
{
    free(config);
}

void fuse_loop_cfg_set_idle_threads(struct fuse_loop_config *config, unsigned int value)
{
    if (value <= MAX_IDLE_THREADS)
        config->max_idle_threads = value;
    else if (value != UINT_MAX)
        fuse_log(FUSE_LOG_ERR, "fuse: %u idle threads are more than the %d there can be: ignored\n",
                 value, MAX_IDLE_THREADS);
}

void fuse_loop_cfg_set_max_threads(struct fuse_loop_config *config, unsigned int value)
{
    config->max_threads = value;
}

void fuse_loop_cfg_set_clone_fd(struct fuse_loop_config *config, unsigned int value)
{
    config->clone_fd = value;
}

void fuse_loop_cfg_convert(struct fuse_loop_config *config, struct fuse_loop_config_v1 *v1_conf)
{
    fuse_loop_cfg_set_idle_threads(config, v1_conf->max_idle_threads);
    fuse_loop_cfg_set_clone_fd(config, (unsigned)v1_conf->clone_fd);
}
