/* messages.c - several messages in one call, to and from unix sockets that are bound to names in
 * the working directory, one with a descriptor of a file there. Prints what came of it. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define COUNT 3

static int bound_to(const char *name)
{
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_DGRAM, 0);

    strcpy(un.sun_path, name);
    if (bind(fd, (struct sockaddr *)&un, sizeof(un)) < 0)
        perror(name);
    return fd;
}

struct message {
    struct sockaddr_un un;
    char text[16];
    struct iovec piece;
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int))];
};

static struct msghdr header_of(struct message *m)
{
    m->piece = (struct iovec){m->text, sizeof(m->text)};
    return (struct msghdr){.msg_name = &m->un,
                           .msg_namelen = sizeof(m->un),
                           .msg_iov = &m->piece,
                           .msg_iovlen = 1,
                           .msg_control = m->control,
                           .msg_controllen = sizeof(m->control)};
}

static void put_descriptor(struct msghdr *header, int fd)
{
    struct cmsghdr *c = CMSG_FIRSTHDR(header);

    *c = (struct cmsghdr){CMSG_LEN(sizeof(fd)), SOL_SOCKET, SCM_RIGHTS};
    memcpy(CMSG_DATA(c), &fd, sizeof(fd));
}

/* One to each name; the second has a descriptor with it. */
static void send_to(int socket, const char *const *names, int fd)
{
    struct mmsghdr headers[COUNT] = {0};
    struct message messages[COUNT] = {0};
    int sent;

    for (int i = 0; i < COUNT; i++) {
        messages[i].un.sun_family = AF_UNIX;
        strcpy(messages[i].un.sun_path, names[i]);
        sprintf(messages[i].text, "message %d", i);
        headers[i].msg_hdr = header_of(&messages[i]);
        if (i == 1)
            put_descriptor(&headers[i].msg_hdr, fd);
        else
            headers[i].msg_hdr.msg_controllen = 0;
    }
    errno = 0;
    sent = sendmmsg(socket, headers, COUNT, 0);
    printf("sent %d: %s; %u %u %u bytes\n", sent, strerror(errno), headers[0].msg_len,
           headers[1].msg_len, headers[2].msg_len);
}

static void receive(int socket)
{
    struct mmsghdr headers[COUNT] = {0};
    struct message messages[COUNT] = {0};
    char text[8] = "";
    int came, fd;

    for (int i = 0; i < COUNT; i++)
        headers[i].msg_hdr = header_of(&messages[i]);
    came = recvmmsg(socket, headers, COUNT, MSG_DONTWAIT, NULL);
    for (int i = 0; i < came; i++) {
        struct cmsghdr *c = CMSG_FIRSTHDR(&headers[i].msg_hdr);

        printf("%s from %s", messages[i].text, messages[i].un.sun_path);
        if (c) {
            memcpy(&fd, CMSG_DATA(c), sizeof(fd));
            printf(" with %s", pread(fd, text, sizeof(text) - 1, 0) > 0 ? text : strerror(errno));
        }
        puts("");
    }
}

/* A sender's name goes no further than its room. */
static void receive_with_little_room(int socket, int room)
{
    struct message m = {0};
    struct msghdr header = header_of(&m);

    memset(&m.un, '#', sizeof(m.un));
    header.msg_namelen = (socklen_t)room;
    header.msg_controllen = 0;
    errno = 0;
    ssize_t size = recvmsg(socket, &header, MSG_DONTWAIT);
    printf("%zd, %s, %s, room %d: %u", size, strerror(errno), m.text, room, header.msg_namelen);
    for (const char *at = (const char *)&m.un; at < m.un.sun_path + 8; at++)
        printf(" %02x", *at);
    puts("");
}

/* A header whose size is `len`, alone or behind one that is right. */
static void send_wrong(int socket, size_t len, int first)
{
    _Alignas(struct cmsghdr) char control[3 * CMSG_SPACE(sizeof(int))] = {0};
    struct iovec piece = {control, 1};
    struct msghdr header = {.msg_iov = &piece,
                            .msg_iovlen = 1,
                            .msg_control = control,
                            .msg_controllen = sizeof(control)};
    struct cmsghdr *c = (struct cmsghdr *)(control + (first ? 0 : CMSG_SPACE(sizeof(int))));

    put_descriptor(&header, 1);
    *c = (struct cmsghdr){len, SOL_SOCKET, SCM_RIGHTS};
    errno = 0;
    ssize_t sent = sendmsg(socket, &header, MSG_DONTWAIT);
    printf("%zx: %zd, %s\n", len, sent, strerror(errno));
}

static void send_wrong_sizes(void)
{
    const size_t half = (size_t)1 << 63;
    const size_t sizes[] = {0, 1, 15, 4096, -1, -8, -16, -24, -32, -40, half, half - 1, half + 16};
    int pair[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) < 0)
        perror("socketpair");
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        send_wrong(pair[0], sizes[i], 1);
        send_wrong(pair[0], sizes[i], 0);
    }
}

static void send_none(int socket)
{
    errno = 0;
    int sent = sendmmsg(socket, NULL, 0, 0);
    printf("sent %d of none: %s\n", sent, strerror(errno));
}

int main(void)
{
    const struct sockaddr_un name_of_a = {.sun_family = AF_UNIX, .sun_path = "a"};
    int a = bound_to("a"), b = bound_to("b"), fd = open("file", O_RDWR | O_CREAT, 0600);

    if (write(fd, "in it", 5) != 5 || rename("file", "other") < 0)
        perror("file");
    send_to(b, (const char *[]){"a", "a", "none"}, fd);
    receive(a);
    send_to(b, (const char *[]){"other", "a", "a"}, fd);
    send_to(b, (const char *[]){"a", "other", "a"}, fd);
    for (int room = -1; room < 6; room++) {
        sendto(b, "again", 6, 0, (const struct sockaddr *)&name_of_a, sizeof(name_of_a));
        receive_with_little_room(a, room);
    }
    send_wrong_sizes();
    send_none(a);
    send_none(fd);
    send_none(-1);
    return 0;
}
