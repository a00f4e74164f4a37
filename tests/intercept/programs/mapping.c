/*
 * mapping.c - what mmap(2) promises of files: private and shared memory, its end, truncation,
 * protection, remapping. argv[1] is the size of the file in MiB. Prints what it saw.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)

static sigjmp_buf out;
static volatile int caught;

static void on_fault(int signal, siginfo_t *info, void *context)
{
    (void)info, (void)context;
    caught = signal;
    siglongjmp(out, 1);
}

/* 0, or the signal that the access ended with. */
static int touch(volatile char *at, int write)
{
    caught = 0;
    if (sigsetjmp(out, 1) == 0) {
        char byte = *at;

        if (write)
            *at = byte;
    }
    return caught;
}

static char expected(size_t at)
{
    return (char)('a' + (at >> 12) % 23);
}

static int differs(const volatile char *memory, size_t from, size_t to)
{
    int count = 0;

    for (size_t at = from; at < to; at += 4096)
        count += memory[at] != expected(at);
    return count;
}

static void fill(int fd, size_t size)
{
    char page[4096];

    for (size_t at = 0; at < size; at += sizeof(page)) {
        memset(page, expected(at), sizeof(page));
        if (pwrite(fd, page, sizeof(page), (off_t)at) != sizeof(page))
            exit(1);
    }
}

static char byte_of(int fd, size_t at)
{
    char byte = '?';

    return pread(fd, &byte, 1, (off_t)at) == 1 ? byte : '?';
}

static char *map(size_t size, int prot, int flags, int fd, off_t offset)
{
    char *memory = mmap(NULL, size, prot, flags, fd, offset);

    if (memory == MAP_FAILED) {
        perror("mmap");
        exit(1);
    }
    return memory;
}

static void in_child(void (*act)(char *memory, size_t size), char *memory, size_t size)
{
    if (fork() == 0) {
        act(memory, size);
        _exit(0);
    }
    wait(NULL);
}

static void store(char *memory, size_t size)
{
    memory[size / 2 + 3] = 'C';
}

static void store_and_die(char *memory, size_t size)
{
    memory[size / 2 + 5] = 'K';
    kill(getpid(), SIGKILL);
}

static void ends(int fd, size_t size)
{
    static const int kinds[] = {MAP_PRIVATE, MAP_SHARED};

    for (int i = 0; i < 2; i++) {
        char *memory = map(size + 3 * 4096, PROT_READ | PROT_WRITE, kinds[i], fd, 0);
        int last = touch(memory + size - 1, 0), behind = touch(memory + size, 0);

        printf("end: %d %d %d\n", last, behind, touch(memory + size + 8192, 1));
        munmap(memory, size + 3 * 4096);
    }
}

static void private_memory(int fd, size_t size)
{
    char *memory = map(size, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    char *tail = map(size / 2, PROT_READ, MAP_PRIVATE, fd, (off_t)(size / 2));

    printf("private: %d differ\n", differs(memory, 0, size));
    memory[size / 2] = 'P';
    printf("kept to itself: %c %c %c\n", memory[size / 2], byte_of(fd, size / 2), tail[0]);
    printf("protection: %d\n", touch(tail, 1));
    in_child(store, memory, size);
    printf("a child's own: %d\n", memory[size / 2 + 3] == 'C');
    munmap(tail, size / 2);
    munmap(memory, size);
}

static void shared_memory(int fd, size_t size)
{
    char *memory = map(size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    int again = open("f", O_RDONLY);
    char *other = map(size, PROT_READ, MAP_SHARED, again, 0);

    close(again);
    in_child(store, memory, size);
    printf("shared: %c %c %c\n", memory[size / 2 + 3], other[size / 2 + 3],
           byte_of(fd, size / 2 + 3));
    if (pwrite(fd, "W", 1, 4097) != 1)
        exit(1);
    printf("written: %c %c\n", memory[4097], other[4097]);
    in_child(store_and_die, memory, size);
    printf("of one that was killed: %c\n", other[size / 2 + 5]);
    memory[7] = 'S';
    printf("msync: %d\n", msync(memory, size, MS_SYNC));
    munmap(other, size);
    munmap(memory, size);
    printf("after munmap: %c %c %c\n", byte_of(fd, 7), byte_of(fd, size / 2 + 3),
           byte_of(fd, size / 2 + 5));
}

/* Memory of a mapping that nobody has touched, handed to system calls. */
static void handed_over(int fd, size_t size)
{
    char *memory = map(size, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0), line[40] = "";
    int ends[2];
    struct iovec parts[2] = {{memory + size / 4 * 3, 10}, {memory + size / 4, 10}};

    if (pipe(ends) < 0)
        exit(1);
    printf("write: %zd", write(ends[1], memory + size / 2, 10));
    printf(" writev: %zd", writev(ends[1], parts, 2));
    printf(" read: %zd %.30s\n", read(ends[0], line, sizeof(line) - 1), line);
    if (write(ends[1], "into", 4) != 4)
        exit(1);
    printf("into memory: %zd", read(ends[0], memory + size - 8192, 4));
    printf(" %.5s\n", memory + size - 8192);
    munmap(memory, size);
}

/* Nobody else has it mapped. What a process has stored is there when its end is known; a mount
 * server learns of that end at about the same time. */
static void store_alone(char *memory, size_t size)
{
    int fd = open("f", O_RDWR);

    (void)memory;
    memory = map(size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    memory[size - 5] = 'L';
    kill(getpid(), SIGKILL);
}

static void killed_alone(int fd, size_t size)
{
    in_child(store_alone, NULL, size);
    for (int i = 0; i < 2000 && byte_of(fd, size - 5) != 'L'; i++)
        usleep(5000);
    printf("of the only one, that was killed: %c\n", byte_of(fd, size - 5));
}

/* In a thread that blocks every signal, and in a handler of a signal that came in another. */
static volatile int in_handler;

static void on_user(int signal)
{
    (void)signal;
    in_handler = 1;
}

static void blocked(int fd, size_t size)
{
    char *memory = map(size, PROT_READ, MAP_SHARED, fd, 0);
    sigset_t all, before, now;

    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before);
    printf("blocked: %c", memory[size - 1]);
    sigprocmask(SIG_SETMASK, &before, &now);
    printf(" %d %d\n", sigismember(&now, SIGSEGV), sigismember(&before, SIGSEGV));
    signal(SIGUSR1, on_user);
    sigprocmask(SIG_BLOCK, &all, NULL);
    raise(SIGUSR1);
    printf("held back: %c %d\n", memory[size / 2 - 1], in_handler);
    sigprocmask(SIG_SETMASK, &before, NULL);
    printf("let in: %d\n", in_handler);
    munmap(memory, size);
}

#define PARTS 10

static char *remap(char *memory, size_t old, size_t size)
{
    char *moved = mremap(memory, old, size, MREMAP_MAYMOVE);

    if (moved == MAP_FAILED)
        exit(1);
    return moved;
}

/* What was protected part by part, and is one mapping again, grows and moves as one. What is cut
 * off is in the file, as what is unmapped; the file is not open then. What is not moved stays. */
static void remapped(size_t size)
{
    size_t part = size / PARTS & ~(size_t)4095, old = part * PARTS;
    int fd = open("g", O_RDWR | O_CREAT | O_TRUNC, 0600), faults = 0;
    char *memory;

    fill(fd, old);
    memory = map(old, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    for (int i = 1; i < PARTS; i += 2)
        mprotect(memory + i * part, part, PROT_READ);
    mprotect(memory, old, PROT_READ | PROT_WRITE);
    memory[0] = 'Q';
    memory[old - 9] = 'R';
    mremap(memory, 4096, 4096, MREMAP_MAYMOVE | MREMAP_FIXED, memory); /* is refused */
    faults += touch(memory, 0) != 0;
    memory = remap(memory, old, 2 * old);
    for (int i = 0; i < PARTS; i++)
        faults += touch(memory + i * part, 1) != 0;
    printf("remapped: %d %c", faults, memory[old - 9]);
    memory[old - 7] = 'S';
    memory = remap(memory, 2 * old, part);
    munmap(memory, part);
    fd = open("g", O_RDONLY);
    printf(" %c\n", byte_of(fd, old - 7));
    close(fd);
    unlink("g");
}

/* What mremap(2) leaves in place shows the file there and where it was mapped again. */
static void mapped_again(size_t size)
{
    int fd = open("g", O_RDWR | O_CREAT | O_TRUNC, 0600);
    char *first, *second, *third;

    fill(fd, size);
    first = map(size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    first[9] = 'T';
    second = mremap(first, size, size, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, NULL);
    third = remap(first + 4096, 0, size - 4096);
    if (second == MAP_FAILED)
        exit(1);
    printf("again: %d %d %d", touch(first, 1), touch(second + size - 1, 1), touch(third, 1));
    second[8192] = 'U';
    third[3 * 4096] = 'V';
    printf(" %c %c %c %c\n", first[9], second[9], first[8192], third[4096]);
    munmap(second, size);
    munmap(third, size - 4096);
    first[size - 1] = 'W';
    munmap(first, size);
    fd = open("g", O_RDONLY);
    printf("and kept: %c %c %c %c\n", byte_of(fd, 9), byte_of(fd, 8192), byte_of(fd, 4 * 4096),
           byte_of(fd, size - 1));
    close(fd);
    unlink("g");
}

static void changed(int fd, size_t size)
{
    char *memory = map(size, PROT_READ, MAP_SHARED, fd, 0), *moved;

    mprotect(memory, size / 2, PROT_READ | PROT_WRITE);
    printf("mprotect: %d %d\n", touch(memory + 9, 1), touch(memory + size / 2, 1));
    munmap(memory + size / 4, size / 4);
    printf("hole: %d %d\n", touch(memory + size / 4, 0), touch(memory + size / 2, 0));
    moved = mremap(memory, size / 4, size / 8, MREMAP_MAYMOVE);
    printf("mremap: %d %c\n", moved == memory, moved[size / 8 - 1]);
    munmap(memory + size / 2, size / 2);
    munmap(moved, size / 8);
    memory = map(size, PROT_NONE, MAP_SHARED, fd, 0);
    printf("none: %d\n", touch(memory, 0));
    mprotect(memory, size, PROT_READ);
    printf("some: %d %c\n", touch(memory, 0), memory[size - 1]);
    if (ftruncate(fd, (off_t)size / 2) < 0)
        exit(1);
    printf("truncated: %d %d\n", touch(memory + size / 2 - 1, 0), touch(memory + size / 2, 0));
    munmap(memory, size);
}

/* By the call that may give a key, too. */
static void protected_by_key(int fd, size_t size)
{
    char *memory = map(size, PROT_NONE, MAP_SHARED, fd, 0);

    if (syscall(SYS_pkey_mprotect, memory, size / 2, PROT_READ, -1) < 0)
        exit(1);
    printf("by key: %d %d %d", differs(memory, 4096, size / 2), touch(memory + 9, 1),
           touch(memory + size / 2, 0));
    printf(" %ld\n", syscall(SYS_pkey_mprotect, memory, size, PROT_READ, 99));
    munmap(memory, size);
}

/* What mprotect(2) refuses changes nothing: writing to a file that is open for reading only, and
 * what is no protection. */
static void refused(size_t size)
{
    int fd = open("f", O_RDONLY);
    char *memory = map(size, PROT_READ, MAP_SHARED, fd, 0);
    int write = mprotect(memory, size, PROT_READ | PROT_WRITE), no = mprotect(memory, size, 0x100);

    printf("refused: %d %d %d %d\n", write, no, touch(memory + 5, 0), touch(memory + 6, 1));
    munmap(memory, size);
    memory = map(size, PROT_READ, MAP_PRIVATE, fd, 0);
    printf("a copy: %d", mprotect(memory, size, PROT_READ | PROT_WRITE));
    printf(" %d\n", touch(memory + size - 1, 1));
    munmap(memory, size);
    close(fd);
}

/* Bits that mmap(2) does not look at, and kinds of memory that no file is mapped as. */
static void other_words(size_t size)
{
    static const int kinds[] = {MAP_PRIVATE, MAP_SHARED, MAP_SHARED_VALIDATE};
    int fd = open("f", O_RDONLY);

    for (int i = 0; i < 3; i++) {
        char *memory = map(size, PROT_READ | 0x70 | PROT_GROWSUP, kinds[i], fd, 0);
        int grows, huge;

        errno = 0;
        grows = mmap(NULL, size, PROT_READ, kinds[i] | MAP_GROWSDOWN, fd, 0) == MAP_FAILED;
        printf("other words: %d %d %d", touch(memory, 0), grows, errno);
        errno = 0;
        huge = mmap(NULL, size, PROT_READ, kinds[i] | MAP_HUGETLB, fd, 0) == MAP_FAILED;
        printf(" %d %d\n", huge, errno);
        munmap(memory, size);
    }
    close(fd);
}

/* The error of a call that would put something over the memory, or take it away, were it right. */
static int cover_wrongly(int which, char *at, int file, int directory)
{
    const int fixed = MAP_FIXED | MAP_PRIVATE, both = PROT_READ | PROT_WRITE;
    const size_t much = (size_t)1 << 46;
    char *nothing = map(4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    void *made = MAP_FAILED;

    munmap(nothing, 4096);
    errno = 0;
    if (which == 0)
        return munmap(at, 2 * much) < 0 ? errno : 0;
    if (which == 1)
        made = mmap(at, 4096, both, fixed, 999, 0);
    else if (which == 2)
        made = mmap(at, 4096, both, MAP_FIXED, file, 0);
    else if (which == 3)
        made = mmap(at, 4096, PROT_READ, fixed, directory, 0);
    else if (which == 4)
        made = mmap(at, 4096, both, MAP_FIXED | MAP_SHARED, file, 0);
    else if (which == 5)
        made = mmap(at, 4096, PROT_READ, fixed, file, 1);
    else if (which == 6)
        made = mmap(at, 4096, PROT_READ, MAP_FIXED | MAP_SHARED_VALIDATE | 1 << 24, file, 0);
    else if (which == 7)
        made = mmap(at, much, PROT_READ, fixed, file, 0);
    else if (which == 8)
        made = mmap(at, much, PROT_READ, fixed | MAP_ANONYMOUS, -1, 0);
    else
        made = mremap(nothing, 4096, 4096, MREMAP_MAYMOVE | MREMAP_FIXED, at);
    return made == MAP_FAILED ? errno : 0;
}

/* What is refused leaves what lies there as it is: it finds its way into the file. */
static void not_covered(size_t size)
{
    int directory = open(".", O_RDONLY), file = open("f", O_RDONLY);

    for (int i = 0; i < 10; i++) {
        int fd = open("g", O_RDWR | O_CREAT | O_TRUNC, 0600);
        char *memory;

        fill(fd, size);
        memory = map(size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        close(fd);
        printf("not covered: %d", cover_wrongly(i, memory, file, directory));
        printf(" %d %d", touch(memory, 0), touch(memory + size - 1, 0));
        if (caught == 0)
            memory[0] = memory[size - 1] = 'X';
        munmap(memory, size);
        fd = open("g", O_RDONLY);
        printf(" %c %c\n", byte_of(fd, 0), byte_of(fd, size - 1));
        close(fd);
    }
    unlink("g");
    close(file);
    close(directory);
}

/* Pages of the file in another order: what is stored finds its way into those that are shown. */
static void turned(size_t size)
{
    int fd = open("g", O_RDWR | O_CREAT | O_TRUNC, 0600), ret, odd;
    size_t half = size / 2;
    char *memory;

    fill(fd, size);
    memory = map(size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    memory[3] = 'A';
    memory[half + 3] = 'B';
    ret = remap_file_pages(memory, 8192, 0, half / 4096, 0);
    odd = remap_file_pages(memory, 8192, PROT_READ, 0, 0);
    printf("turned: %d %d %c %c", ret, odd, memory[3], memory[8192] - expected(8192) + '0');
    memory[5] = 'C';
    memory[half + 7] = 'D';
    printf(" %d", msync(memory, size, MS_SYNC));
    memory[8191] = 'E';
    munmap(memory, size);
    fd = open("g", O_RDONLY);
    printf(" %c %c %c %c %c", byte_of(fd, 3), byte_of(fd, 5), byte_of(fd, half + 3),
           byte_of(fd, half + 5), byte_of(fd, half + 7));
    printf(" %c %d\n", byte_of(fd, half + 8191), byte_of(fd, 0) == expected(0));
    close(fd);
    unlink("g");
}

/* madvise(2) of what nobody has looked at: it is removed from the file, or brought. */
static void advised(size_t size)
{
    int fd = open("h", O_RDWR | O_CREAT | O_TRUNC, 0600);
    char *memory;

    fill(fd, size);
    memory = map(size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    printf("removed: %d", madvise(memory + size / 2, 8192, MADV_REMOVE));
    printf(" %d %d\n", memory[size / 2], differs(memory, size / 2 + 8192, size));
    munmap(memory, size);
    printf("in the file: %d %c\n", byte_of(fd, size / 2 + 8191), byte_of(fd, size / 2 + 8192));
    memory = map(size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    printf("populated: %d %d\n", madvise(memory, size / 2, MADV_POPULATE_READ),
           madvise(memory, size, MADV_POPULATE_WRITE));
    munmap(memory, size);
    close(fd);
    unlink("h");
}

int main(int argc, char *argv[])
{
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
    size_t size = (size_t)atoi(argc > 1 ? argv[1] : "1") * MIB;
    int fd = open("f", O_RDWR | O_CREAT | O_TRUNC, 0600);

    setvbuf(stdout, NULL, _IONBF, 0);
    sigaction(SIGSEGV, &action, NULL);
    sigaction(SIGBUS, &action, NULL);
    fill(fd, size);
    ends(fd, size);
    private_memory(fd, size);
    handed_over(fd, size);
    shared_memory(fd, size);
    killed_alone(fd, size);
    blocked(fd, size);
    remapped(size);
    mapped_again(size);
    protected_by_key(fd, size);
    refused(size);
    other_words(size);
    not_covered(size);
    turned(size);
    advised(size);
    changed(fd, size);
    close(fd);
    fd = open("f", O_RDONLY);
    printf("in the end: %c %c\n", byte_of(fd, 7), byte_of(fd, 4097));
    return 0;
}
