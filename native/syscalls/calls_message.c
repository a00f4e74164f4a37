/*
 * calls_message.c - messages over sockets: descriptors sent along, and the addresses in them.
 *
 * A descriptor of ours that is sent is its placeholder; who receives one finds by it the open file
 * (dfi_placeholder_adopt()), and counts it as arrived (df_ofd.sent). Until then it stays this
 * process's, and for a while beyond its end (files.c). Of a message that nobody receives nobody
 * says so.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "client/files.h"
#include "client/table.h"
#include "core/route.h"
#include "core/table.h"
#include "shadows/placeholder.h"
#include "shadows/sent.h"
#include "syscalls/calls_socket.h"

#define CONTROL_MAX                                                                                \
    4096 /* bytes of control messages that are looked at: 253 descriptors and more */
#define MESSAGES_MAX 1024 /* of one call: UIO_MAXIOV */
#define FDS_MAX      253  /* of one message: SCM_MAX_FD */

/* ---- control messages ------------------------------------------------------------------------ */

/* The header at *at, and where the next one is; NULL: there is none. A program may have written
 * any size there. */
static const struct cmsghdr *take_header(const char *control, size_t size, size_t *at)
{
    const struct cmsghdr *c = (const struct cmsghdr *)(control + *at);

    if (*at >= size || size - *at < sizeof(*c) || c->cmsg_len < sizeof(*c) ||
        c->cmsg_len > size - *at)
        return NULL;
    *at += CMSG_ALIGN(c->cmsg_len);
    return c;
}

/* The descriptors that come or go with the message. */
static void visit_fds(const struct msghdr *message, void (*visit)(int fd, void *argument),
                      void *argument)
{
    size_t size = message->msg_controllen < CONTROL_MAX ? message->msg_controllen : CONTROL_MAX;
    char control[CONTROL_MAX] __attribute__((aligned(8)));
    const struct cmsghdr *c;
    size_t at = 0;

    if (!message->msg_control || size == 0 ||
        dfi_copy_from(control, message->msg_control, size) < 0)
        return;
    while ((c = take_header(control, size, &at)))
        if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
            for (size_t i = 0; i < (c->cmsg_len - CMSG_LEN(0)) / sizeof(int); i++)
                visit(((const int *)CMSG_DATA(c))[i], argument);
}

/* ---- receiving ------------------------------------------------------------------------------- */

/* peeks: the message stays there, for who receives it. */
static void adopt(int fd, void *peeks)
{
    struct dfi_files *files = dfi_process()->files;

    dfi_placeholder_adopt(files, fd);
    if (!*(bool *)peeks)
        dfi_sent_arrived(files, dfi_file_of(files, fd));
}

static void adopt_all(const struct msghdr *message, unsigned long flags)
{
    bool peeks = flags & MSG_PEEK;

    visit_fds(message, adopt, &peeks);
}

/* Of the message that was received: who sent it, by the name the program knows. `at`: where the
 * program has the message; `room`: bytes it has for the name, of which the kernel may tell more. */
static void show_sender(const struct msghdr *message, struct msghdr *at, socklen_t room)
{
    socklen_t len = message->msg_namelen;
    union dfi_socket_name name;

    memset(&name, 0, sizeof(name));
    if (!message->msg_name || len > room || len > sizeof(name) ||
        dfi_copy_from(&name, message->msg_name, len) < 0 || !dfi_socket_show(&name, &len))
        return;
    if (dfi_copy_to(message->msg_name, &name, len < room ? len : room) == 0)
        dfi_copy_to(&at->msg_namelen, &len, sizeof(len));
}

static void take_in(struct msghdr *at, socklen_t room, unsigned long flags)
{
    struct msghdr message;

    if (dfi_copy_from(&message, at, sizeof(message)) < 0)
        return;
    adopt_all(&message, flags);
    show_sender(&message, at, room);
}

/* What the kernel has written into a copy of the program's message. 0 or -EFAULT. */
static long tell(struct msghdr *at, const struct msghdr *message)
{
    if (dfi_copy_to(&at->msg_namelen, &message->msg_namelen, sizeof(at->msg_namelen)) < 0 ||
        dfi_copy_to(&at->msg_controllen, &message->msg_controllen, sizeof(at->msg_controllen)) < 0)
        return -EFAULT;
    return dfi_copy_to(&at->msg_flags, &message->msg_flags, sizeof(at->msg_flags));
}

/* With a name: into ours first, for one that is cut off would not be known. `message`: a copy of
 * what is at `at`. */
static long receive_named(const struct dfi_frame *frame, struct msghdr *at, struct msghdr *message)
{
    const socklen_t room = message->msg_namelen;
    void *const to = message->msg_name;
    union dfi_socket_name name;
    socklen_t len;
    long ret;

    memset(&name, 0, sizeof(name));
    message->msg_name = &name;
    message->msg_namelen = sizeof(name);
    ret = dfi_kernel_wait(__NR_recvmsg, frame->args[0], message, frame->args[2]);
    if (ret < 0)
        return ret;
    adopt_all(message, frame->args[2]);
    len = message->msg_namelen;
    dfi_socket_show(&name, &len);
    message->msg_namelen = len;
    if (dfi_copy_to(to, &name, len < room ? len : room) < 0 || tell(at, message) < 0)
        return -EFAULT;
    return ret;
}

static long receive(const struct dfi_frame *frame, const struct msghdr *at)
{
    long ret = dfi_kernel_wait(__NR_recvmsg, frame->args[0], at, frame->args[2]);
    struct msghdr message;

    if (ret >= 0 && dfi_copy_from(&message, at, sizeof(message)) == 0)
        adopt_all(&message, frame->args[2]);
    return ret;
}

long dfi_do_recvmsg(struct dfi_frame *frame)
{
    struct msghdr *at = (struct msghdr *)frame->args[1], message;

    if (!df_table_any() || dfi_other_fd(frame->args[0]) != DFI_PASS ||
        dfi_copy_from(&message, at, sizeof(message)) < 0 ||
        ((!message.msg_control || message.msg_controllen == 0) && !message.msg_name))
        return dfi_other_fd(frame->args[0]);
    if (message.msg_name && (int)message.msg_namelen >= 0)
        return receive_named(frame, at, &message);
    return receive(frame, at);
}

/* Bytes for the names of so many messages; no name of a socket is longer than UINT8_MAX. */
static void take_rooms(const struct mmsghdr *at, unsigned long count, uint8_t *rooms)
{
    struct msghdr message;

    for (unsigned long i = 0; i < count && i < MESSAGES_MAX; i++) {
        if (dfi_copy_from(&message, &at[i].msg_hdr, sizeof(message)) < 0)
            return;
        rooms[i] = message.msg_namelen < UINT8_MAX ? (uint8_t)message.msg_namelen : UINT8_MAX;
    }
}

long dfi_do_recvmmsg(struct dfi_frame *frame)
{
    struct mmsghdr *at = (struct mmsghdr *)frame->args[1];
    uint8_t rooms[MESSAGES_MAX] = {0};
    long ret;

    if (!df_table_any() || dfi_other_fd(frame->args[0]) != DFI_PASS)
        return dfi_other_fd(frame->args[0]);
    take_rooms(at, (unsigned)frame->args[2], rooms);
    ret = dfi_kernel_wait(__NR_recvmmsg, frame->args[0], frame->args[1], frame->args[2],
                          frame->args[3], frame->args[4]);
    for (long i = 0; i < ret && i < MESSAGES_MAX; i++)
        take_in(&at[i].msg_hdr, rooms[i], frame->args[3]);
    return ret;
}

/* ---- sending --------------------------------------------------------------------------------- */

/* What goes with a message: files of mounts. */
struct sending {
    struct dfi_files *files;
    uint64_t handles[FDS_MAX];
    size_t count;
    bool hidden; /* some descriptor is none of the program's */
};

/* The file is not to go before the receiver has it. */
static void hold(int fd, void *argument)
{
    struct sending *s = argument;
    uint64_t handle;

    s->hidden = s->hidden || dfi_is_hidden(dfi_process(), fd);
    if (s->count == FDS_MAX || !(handle = dfi_handle_in(dfi_fd_take(s->files, fd))))
        return;
    dfi_sent_hold(s->files, handle);
    s->handles[s->count++] = handle;
}

static void take_back(const struct sending *s)
{
    for (size_t i = 0; i < s->count; i++)
        dfi_sent_arrived(s->files, s->handles[i]);
}

/* By the kernel's name of the socket that the message names. DFI_PASS: as it stands. */
static long send_by(struct msghdr *message, unsigned long fd, unsigned long flags)
{
    struct sockaddr_un real;
    socklen_t len;
    long found;

    if (!message->msg_name)
        return DFI_PASS;
    found = dfi_socket_find(fd, true, (unsigned long)message->msg_name, message->msg_namelen, &real,
                            &len);
    if (found == DF_NOT_OURS)
        return DFI_PASS;
    message->msg_name = &real;
    message->msg_namelen = len;
    return dfi_socket_reached(found,
                              dfi_kernel_wait(__NR_sendmsg, fd, (unsigned long)message, flags));
}

/* One message. DFI_PASS: as it stands. */
static long send_one(unsigned long fd, const struct msghdr *at, unsigned long flags)
{
    struct sending sending; /* not zeroed: it is large */
    struct msghdr message;
    long ret;

    if (dfi_copy_from(&message, at, sizeof(message)) < 0)
        return DFI_PASS;
    sending.files = dfi_process()->files;
    sending.count = 0;
    sending.hidden = false;
    visit_fds(&message, hold, &sending);
    ret = sending.hidden ? -EBADF : send_by(&message, fd, flags);
    if (ret == DFI_PASS && sending.count > 0)
        ret = dfi_kernel_wait(__NR_sendmsg, fd, (unsigned long)at, flags);
    if (ret < 0)
        take_back(&sending);
    return ret;
}

long dfi_do_sendmsg(struct dfi_frame *frame)
{
    if (!df_table_any() || dfi_other_fd(frame->args[0]) != DFI_PASS)
        return dfi_other_fd(frame->args[0]);
    return send_one(frame->args[0], (const struct msghdr *)frame->args[1], frame->args[2]);
}

/* One after the other, as the kernel does it. Of none it looks at the socket alone. */
long dfi_do_sendmmsg(struct dfi_frame *frame)
{
    struct mmsghdr *at = (struct mmsghdr *)frame->args[1];
    unsigned long count = (unsigned)frame->args[2];
    unsigned sent;

    if (!df_table_any() || count == 0 || dfi_other_fd(frame->args[0]) != DFI_PASS)
        return dfi_other_fd(frame->args[0]);
    for (unsigned long i = 0; i < count && i < MESSAGES_MAX; i++) {
        long ret = send_one(frame->args[0], &at[i].msg_hdr, frame->args[3]);

        if (ret == DFI_PASS)
            ret = dfi_kernel_wait(__NR_sendmsg, frame->args[0], (unsigned long)&at[i].msg_hdr,
                                  frame->args[3]);
        if (ret < 0)
            return i > 0 ? (long)i : ret;
        sent = (unsigned)ret;
        if (dfi_copy_to(&at[i].msg_len, &sent, sizeof(sent)) < 0)
            return i > 0 ? (long)i : -EFAULT;
    }
    return (long)(count < MESSAGES_MAX ? count : MESSAGES_MAX);
}
