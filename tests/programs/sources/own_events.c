/*
 * own_events.c - a low-level file system whose program waits for requests and for events of its own
 * in one loop, on one thread and without locks, as those with a control socket or a GUI do.
 *
 *   late    answered by a timer of the loop
 *   never   not answered
 *   thread  "loop" if nothing but an operation ran since the loop gave it its turn, else "torn"
 *   bye     a look at it ends the loop, by a timer too, and so the mount
 *
 * Each look at a name has to be asked for anew. With -DMODERN=0 for libfuse 2.
 */
#undef FUSE_USE_VERSION
#if MODERN
#define FUSE_USE_VERSION 312
#else
#define FUSE_USE_VERSION 26
#endif
#include <errno.h>
#include <fuse_lowlevel.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <unistd.h>

enum { LATE = 2, THREAD, BYE, NEVER, COUNT };

static const char *const names[COUNT] = {
    [LATE] = "late", [THREAD] = "thread", [BYE] = "bye", [NEVER] = "never"};
static int timer;
static fuse_req_t asked; /* who waits for the timer */
static int ends;
static volatile long in_loop; /* handlers of events that run just now */

static void arm(void)
{
    const struct itimerspec soon = {.it_value.tv_nsec = 1000000};
    timerfd_settime(timer, 0, &soon, NULL);
}

static void describe(fuse_ino_t ino, struct stat *st)
{
    *st = (struct stat){.st_ino = ino,
                        .st_mode = ino == 1 ? S_IFDIR | 0755 : S_IFREG | 0444,
                        .st_nlink = 1,
                        .st_size = ino == 1 ? 0 : 4};
}

static void look(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    struct fuse_entry_param entry = {.ino = 0};
    for (int i = LATE; i < COUNT; i++)
        if (parent == 1 && strcmp(name, names[i]) == 0)
            entry.ino = i;
    describe(entry.ino, &entry.attr);
    if (entry.ino == BYE) {
        ends = 1;
        arm();
    }
    if (entry.ino)
        fuse_reply_entry(req, &entry);
    else
        fuse_reply_err(req, ENOENT);
}

static void get_attributes(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    struct stat st;
    (void)fi;
    describe(ino, &st);
    fuse_reply_attr(req, &st, 0);
}

static void open_file(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    (void)ino;
    fi->direct_io = 1;
    fuse_reply_open(req, fi);
}

static void read_file(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
                      struct fuse_file_info *fi)
{
    (void)fi;
    if (offset > 0 || size < 4) {
        fuse_reply_buf(req, NULL, 0);
    } else if (ino == NEVER) {
        return;
    } else if (ino == LATE && !asked) {
        asked = req;
        arm();
    } else if (ino == LATE) {
        fuse_reply_err(req, EBUSY);
    } else {
        fuse_reply_buf(req, in_loop ? "torn" : "loop", 4);
    }
}

static const struct fuse_lowlevel_ops operations = {
    .lookup = look, .getattr = get_attributes, .open = open_file, .read = read_file};

/* Leaves the others a chance to come in between, who must not. */
static void handle_timer(void)
{
    unsigned long long times;
    in_loop++;
    if (read(timer, &times, sizeof(times)) < 0)
        abort();
    if (asked)
        fuse_reply_buf(asked, "late", 4);
    asked = NULL;
    usleep(1000);
    in_loop--;
}

#if MODERN
static int descriptor(struct fuse_session *se)
{
    return fuse_session_fd(se);
}

static int handle_request(struct fuse_session *se)
{
    static struct fuse_buf buf;
    int count = fuse_session_receive_buf(se, &buf);
    if (count > 0)
        fuse_session_process_buf(se, &buf);
    return count;
}
#else
static struct fuse_chan *chan;

static int descriptor(struct fuse_session *se)
{
    (void)se;
    return fuse_chan_fd(chan);
}

static int handle_request(struct fuse_session *se)
{
    static char data[0x21000];
    struct fuse_chan *from = chan;
    int count = fuse_chan_recv(&from, data, sizeof(data));
    if (count > 0)
        fuse_session_process(se, data, (size_t)count, from);
    return count;
}
#endif

static void loop(struct fuse_session *se)
{
    struct pollfd fds[] = {{.fd = descriptor(se), .events = POLLIN},
                           {.fd = timer, .events = POLLIN}};
    while (!fuse_session_exited(se) && !(ends && !asked && fds[1].revents)) {
        if (poll(fds, 2, -1) < 0)
            abort();
        if (fds[1].revents)
            handle_timer();
        if (fds[0].revents) {
            int count = handle_request(se);
            if (count <= 0 && count != -EINTR && count != -EAGAIN)
                break;
        }
    }
}

int main(int argc, char *argv[])
{
    struct fuse_args args = FUSE_ARGS_INIT(argc, argv);
    struct fuse_session *se;
    timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
#if MODERN
    struct fuse_cmdline_opts opts;
    if (timer < 0 || fuse_parse_cmdline(&args, &opts) != 0)
        return 1;
    se = fuse_session_new(&args, &operations, sizeof(operations), NULL);
    if (!se || fuse_session_mount(se, opts.mountpoint) != 0)
        return 1;
    loop(se);
    fuse_session_unmount(se);
    fuse_session_destroy(se);
    free(opts.mountpoint);
#else
    char *mountpoint;
    if (timer < 0 || fuse_parse_cmdline(&args, &mountpoint, NULL, NULL) != 0)
        return 1;
    chan = fuse_mount(mountpoint, &args);
    se = chan ? fuse_lowlevel_new(&args, &operations, sizeof(operations), NULL) : NULL;
    if (!se)
        return 1;
    fuse_session_add_chan(se, chan);
    loop(se);
    fuse_session_remove_chan(chan);
    fuse_session_destroy(se);
    fuse_unmount(mountpoint, chan);
    free(mountpoint);
#endif
    fuse_opt_free_args(&args);
    return 0;
}
