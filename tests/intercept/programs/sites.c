/*
 * sites.c - system calls among random instructions: sites SEED THREADS. Each function is called
 * many times, from its beginning, behind its first instructions and at the system call itself; what
 * it leaves in registers and flags is told as a number. Some of them end with their page, or with
 * what is mapped of the file. So many threads do the same, also with mappings of their own, which
 * go.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE      4096
#define PAGES     16
#define SIZE      (PAGES * PAGE)
#define FUNCTIONS 400
#define STARTS    8 /* in a function, at most */
#define CALLS     7
#define MAPPINGS  3
#define THREADS   15

struct registers {
    uint64_t rax, rdi, rsi, rdx, r10, r8, r9, flags;
};

/* Calls the code with these registers and leaves there what it returns with. */
void call_with(struct registers *registers, const void *code);
__asm__(".text\n"
        "call_with:\n"
        "push %rbx\n push %rbp\n push %r12\n push %r13\n push %r14\n push %r15\n push %rdi\n"
        "mov %rsi, %rbx\n mov %rdi, %rbp\n"
        "mov (%rbp), %rax\n mov 8(%rbp), %rdi\n mov 16(%rbp), %rsi\n mov 24(%rbp), %rdx\n"
        "mov 32(%rbp), %r10\n mov 40(%rbp), %r8\n mov 48(%rbp), %r9\n"
        "push 56(%rbp)\n popf\n"
        "call *%rbx\n"
        "pushf\n mov 8(%rsp), %rbp\n pop 56(%rbp)\n"
        "mov %rax, (%rbp)\n mov %rdi, 8(%rbp)\n mov %rsi, 16(%rbp)\n mov %rdx, 24(%rbp)\n"
        "mov %r10, 32(%rbp)\n mov %r8, 40(%rbp)\n mov %r9, 48(%rbp)\n"
        "pop %rdi\n pop %r15\n pop %r14\n pop %r13\n pop %r12\n pop %rbp\n pop %rbx\n"
        "ret\n");

struct function {
    size_t starts[STARTS]; /* where its instructions begin; the last: the syscall */
    int count;
    unsigned nr;
};

static uint64_t state;
static unsigned char *code; /* while it is written */
static size_t used;
static struct function functions[FUNCTIONS + 1];
static int count, file;
static const unsigned char *shared; /* the code as all threads execute it */

static unsigned draw(unsigned below)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(state >> 33) % below;
}

static void put(const void *bytes, size_t size)
{
    memcpy(code + used, bytes, size);
    used += size;
}

/* Of arithmetic on %rdi, %rsi, %rdx, %r8 and %r9, which all may change; and on nothing. */
static void put_instruction(void)
{
    static const unsigned char registers[] = {7, 6, 2}, none[] = {0x0f, 0x1f, 0x44, 0, 0};
    static const unsigned char operations[] = {0x01, 0x09, 0x21, 0x29, 0x31, 0x39, 0x85, 0x89};
    unsigned char to = registers[draw(3)], from = registers[draw(3)];
    unsigned number = draw(1u << 31);
    unsigned char two[] = {operations[draw(8)], (unsigned char)(0xc0 | from << 3 | to)};
    unsigned char wide[] = {(unsigned char)(0x48 | draw(2)), 0x89,
                            (unsigned char)(0xc0 | from << 3)};
    unsigned char load[5] = {(unsigned char)(0xb8 | to)};
    unsigned char sum[] = {0x48, 0x8d, (unsigned char)(0x40 | to << 3 | from),
                           (unsigned char)number};
    unsigned char set[] = {0x0f, (unsigned char)(0x90 | draw(16)), 0xc2};
    unsigned char with[6] = {0x81, (unsigned char)(0xc0 | draw(8) << 3 | to)};
    memcpy(load + 1, &number, 4);
    memcpy(with + 2, &number, 4);
    switch (draw(8)) {
    case 0:
        put(two, sizeof two);
        break;
    case 1:
        wide[2] = (unsigned char)(wide[0] & 1 ? wide[2] | draw(2) : wide[2] | to);
        put(wide, sizeof wide);
        break;
    case 2:
        put(load, sizeof load);
        break;
    case 3:
        put(sum, sizeof sum);
        break;
    case 4:
        put(set, sizeof set);
        break;
    case 5:
        put(with, sizeof with);
        break;
    case 6:
        put(none, sizeof none);
        break;
    default:
        put("\x90", 1);
    }
}

static void put_number(unsigned nr)
{
    unsigned char number[] = {0x48, 0xc7, 0xc0, 0, 0, 0, 0};
    memcpy(number + 3, &nr, 4);
    if (draw(4) == 0) {
        put(number, sizeof number);
        return;
    }
    number[2] = 0xb8;
    put(number + 2, 5);
}

/* Calls that fail, or tell what does not change; none of them looks at its arguments. */
static const unsigned numbers[] = {39, 102, 104, 107, 108, 24, 134, 180, 1000, 4096};

static void put_function(size_t end)
{
    static const unsigned char last[] = {0x0f, 0x05, 0xc3};
    struct function *f = &functions[count++];
    int before = (int)draw(3), behind = (int)draw(4);
    size_t start = used;
    f->nr = numbers[draw(sizeof numbers / sizeof *numbers)];
    f->count = 0;
    for (int i = 0; i < before + behind + 1; i++) {
        f->starts[f->count++] = used;
        if (i == before)
            put_number(f->nr);
        else
            put_instruction();
    }
    f->starts[f->count++] = used;
    put(last, sizeof last);
    if (end != 0) { /* the syscall shall be the last of the page: the return is on the next */
        size_t by = end + 1 - used;
        memmove(code + start + by, code + start, used - start);
        memset(code + start, 0xcc, by);
        for (int i = 0; i < f->count; i++)
            f->starts[i] += by;
        used += by;
    }
}

/* read(2) as glibc has it in some places: `xor %eax, %eax` behind a nop that nobody executes. Here
 * it is come through, too. */
static void put_read(void)
{
    static const unsigned char last[] = {0x31, 0xc0, 0x0f, 0x05, 0xc3};
    static const unsigned char nop[] = {0x66, 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0};
    static const unsigned char other[] = {0x0f, 0x1f, 0x44, 0, 0};
    struct function *f = &functions[count++];
    size_t prefixes = draw(4);
    memset(code + used, 0xcc, 32 - used % 16); /* the xor is aligned */
    used += 32 - used % 16 - (prefixes < 3 ? sizeof nop - prefixes : sizeof other);
    *f = (struct function){.starts = {used}, .count = 3};
    if (prefixes < 3)
        put(nop + prefixes, sizeof nop - prefixes);
    else
        put(other, sizeof other);
    f->starts[1] = used;
    f->starts[2] = used + 2;
    put(last, sizeof last);
}

/* Padding of all sizes, also what a jump fits into. */
static void put_padding(void)
{
    size_t size = draw(3) == 0 ? 16 - used % 16 + 16 * draw(2) : draw(4);
    memset(code + used, 0xcc, size);
    used += size;
}

static void write_code(void)
{
    while (count < FUNCTIONS && used < SIZE - PAGE / 2) {
        size_t left = PAGE - used % PAGE;
        if (draw(8) == 0)
            put_read();
        else if (left > 80 && left < 200 && draw(4) != 0)
            put_function(used + left);
        else
            put_function(0);
        put_padding();
    }
    put_function(SIZE);
}

static void make_file(void)
{
    write_code();
    file = memfd_create("code", 0);
    if (file < 0 || write(file, code, SIZE) != SIZE)
        exit(2);
}

/* The code from its file, and behind its end one page more, which is none of that mapping. */
static const unsigned char *map_code(void)
{
    unsigned char *at =
        mmap(NULL, SIZE + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED ||
        mmap(at, SIZE, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, file, 0) != at)
        exit(3);
    memcpy(at + SIZE, code + SIZE, PAGE);
    if (mprotect(at + SIZE, PAGE, PROT_READ | PROT_EXEC) != 0)
        exit(4);
    return at;
}

static uint64_t mix(uint64_t sum, const struct registers *r)
{
    const uint64_t words[] = {r->rax, r->rdi, r->rsi, r->rdx,
                              r->r10, r->r8,  r->r9,  r->flags & 0x8d5};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        sum = (sum ^ words[i]) * 1099511628211u;
    return sum;
}

/* Who enters behind the number brings it along: that of the function, or another. */
static uint64_t call(const unsigned char *at, unsigned nr, unsigned round)
{
    struct registers r = {nr, ~0ul, round, 3, 4, ~5ul, 6, 0x202 | (round & 1)};
    call_with(&r, at);
    if (r.rax == (uint64_t)getpid())
        r.rax = 1;
    return mix(0, &r);
}

/* Who enters behind the number brings it along: that of the function, or another. */
static uint64_t call_all(const unsigned char *at)
{
    uint64_t sum = 0, place = 0;
    for (const struct function *f = functions; f < functions + count; f++)
        for (unsigned round = 0; round < CALLS; round++)
            for (int k = 0; k < f->count; k++)
                sum += ++place *
                       call(at + f->starts[k], round % 3 == 2 ? numbers[round] : f->nr, round);
    return sum;
}

/* The code that all have, and that of a mapping of its own, which goes again. */
static void *run(void *result)
{
    uint64_t *sums = result;
    sums[0] = call_all(shared);
    for (int i = 1; i < MAPPINGS; i++) {
        const unsigned char *at = map_code();
        sums[i] = call_all(at);
        munmap((void *)at, SIZE + PAGE);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    int threads = argc > 2 ? atoi(argv[2]) : 0;
    pthread_t others[THREADS];
    static uint64_t sums[THREADS + 1][MAPPINGS];
    state = argc > 1 ? strtoul(argv[1], NULL, 10) : 0;
    code = calloc(1, SIZE + PAGE);
    if (code == NULL || threads > THREADS)
        return 1;
    make_file();
    shared = map_code();
    for (int i = 0; i < threads; i++)
        pthread_create(&others[i], NULL, run, sums[i + 1]);
    run(sums[0]);
    for (int i = 0; i < threads; i++)
        pthread_join(others[i], NULL);
    printf("%d functions: %lx\n", count, (unsigned long)sums[0][0]);
    for (int i = 0; i <= threads; i++)
        for (int k = 0; k < MAPPINGS; k++)
            if (sums[i][k] != sums[0][0])
                printf("thread %d, mapping %d: %lx\n", i, k, (unsigned long)sums[i][k]);
    return 0;
}
