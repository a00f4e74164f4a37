/*
 * aio.c - Linux AIO by its system calls, in one context on a file in the working directory, one at
 * argv[1] and a pipe. Prints what came back.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static aio_context_t context;
static struct iocb io[16];
static struct iocb *list[16];

static struct iocb *prepare(int i, int opcode, int fd, void *buf, size_t size, long offset)
{
    memset(&io[i], 0, sizeof(io[i]));
    io[i].aio_data = 100 + i;
    io[i].aio_lio_opcode = opcode;
    io[i].aio_fildes = fd;
    io[i].aio_buf = (uintptr_t)buf;
    io[i].aio_nbytes = size;
    io[i].aio_offset = offset;
    return list[i] = &io[i];
}

static void submit(const char *what, int first, int count)
{
    long ret = syscall(SYS_io_submit, context, (long)count, &list[first]);

    printf("%s: submitted %ld%s%s\n", what, ret, ret < 0 ? " " : "",
           ret < 0 ? strerror(errno) : "");
}

/* In order of data: real files may be done later than others. */
static void reap(long wanted)
{
    struct io_event events[16] = {0};
    struct timespec none = {0, 0};
    long ret = syscall(SYS_io_getevents, context, wanted, 16L, events, wanted ? NULL : &none);

    printf("%ld events:", ret);
    for (unsigned long data = 0; data < 200; data++)
        for (long i = 0; i < ret; i++)
            if (events[i].data == data)
                printf(" %lu=%ld%s", data, (long)events[i].res,
                       events[i].obj == (uintptr_t)&io[data - 100] ? "" : " of another");
    printf("\n");
}

/* On the last page of all, where without randomized addresses the stack is: fewer bytes lie behind
 * it than it is about. */
static struct iocb *on_the_last_page(void)
{
    char *page = (char *)0x7fffffffe000;

    mmap(page, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1,
         0);
    return (struct iocb *)page;
}

int main(int argc, char *argv[])
{
    char a[8192], b[8192], c[16] = "";
    struct iovec parts[2] = {{a, 1000}, {b, 24}};
    int here = open("f", O_RDWR | O_CREAT | O_TRUNC, 0600);
    int there = open(argc > 1 ? argv[1] : "g", O_RDWR | O_CREAT | O_TRUNC, 0600);
    int ends[2], event = eventfd(0, 0);
    uint64_t told = 0;

    if (here < 0 || there < 0 || pipe(ends) < 0 || syscall(SYS_io_setup, 32L, &context) < 0)
        return 1;
    memset(a, 'a', sizeof(a));
    memset(b, 'b', sizeof(b));

    prepare(0, IOCB_CMD_PWRITE, here, a, 5000, 0);
    prepare(1, IOCB_CMD_PWRITE, there, b, 6000, 0);
    prepare(2, IOCB_CMD_PWRITE, here, b, 100, 4950);
    prepare(3, IOCB_CMD_FSYNC, here, NULL, 0, 0);
    submit("writes", 0, 4);
    reap(4);

    memset(a, 0, sizeof(a));
    memset(b, 0, sizeof(b));
    prepare(0, IOCB_CMD_PREAD, here, a, sizeof(a), 0);
    prepare(1, IOCB_CMD_PREAD, there, b, sizeof(b), 10);
    for (int i = 0; i < 2; i++) {
        io[i].aio_flags = IOCB_FLAG_RESFD;
        io[i].aio_resfd = event;
    }
    submit("reads", 0, 2);
    reap(2);
    if (read(event, &told, sizeof(told)) < 0)
        return 1;
    printf("eventfd %lu, %c%c%c%c %c\n", (unsigned long)told, a[0], a[4949], a[4950], a[5049],
           b[0]);

    prepare(0, IOCB_CMD_PREADV, here, parts, 2, 4900);
    prepare(1, IOCB_CMD_PREAD, here, c, sizeof(c), 1 << 20);
    prepare(2, IOCB_CMD_PWRITEV, here, parts, 2, 9000);
    submit("vectors", 0, 3);
    reap(3);
    printf("%c%c%c size %ld opcode %d\n", a[49], a[50], b[0], (long)lseek(here, 0, SEEK_END),
           io[0].aio_lio_opcode);

    prepare(0, IOCB_CMD_PWRITE, here, a, sizeof(a), 0);
    list[0] = on_the_last_page();
    *list[0] = io[0];
    submit("on the last page", 0, 1);
    reap(1);

    prepare(0, IOCB_CMD_PWRITE, here, a, 1, 0);
    prepare(1, IOCB_CMD_PWRITE, 999, a, 1, 0);
    prepare(2, IOCB_CMD_PWRITE, here, a, 1, 0);
    submit("a bad one second", 0, 3);
    submit("a bad one first", 1, 2);
    reap(1);
    prepare(0, 99, here, a, 1, 0);
    submit("unknown", 0, 1);
    if (write(ends[1], "xy", 2) < 0)
        return 1;
    prepare(0, IOCB_CMD_PREAD, ends[0], c, 2, 0);
    submit("a pipe", 0, 1);
    prepare(0, IOCB_CMD_PREAD, here, c, 2, -3);
    submit("a negative offset", 0, 1);
    prepare(0, IOCB_CMD_PREAD, open(".", O_RDONLY), c, 2, 0);
    submit("of a directory", 0, 1);
    prepare(0, IOCB_CMD_PREAD, open("f", O_WRONLY), c, 2, 0);
    submit("not open for reading", 0, 1);
    prepare(0, IOCB_CMD_FSYNC, open("f", O_PATH), NULL, 0, 0);
    submit("open for its place", 0, 1);
    prepare(0, IOCB_CMD_FSYNC, here, NULL, 0, 1);
    submit("fsync of a part", 0, 1);
    prepare(0, IOCB_CMD_PWRITE, here, "end", 3, 0);
    io[0].aio_rw_flags = RWF_APPEND | RWF_DSYNC;
    submit("appended", 0, 1);
    reap(1);
    io[0].aio_rw_flags = 1 << 20;
    submit("unknown flags", 0, 1);
    printf("size %ld\n", (long)lseek(here, 0, SEEK_END));
    reap(0);
    if (syscall(SYS_io_destroy, context) < 0)
        return 1;
    prepare(0, IOCB_CMD_PREAD, here, c, 2, 0);
    submit("no context", 0, 1);
    return 0;
}
