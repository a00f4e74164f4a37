/*
 * test_intercept_copy.c - copies of what may not be there: all of it, or up to the last byte.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <cmocka.h>

#define PAGE ((size_t)4096)
#define ALL  (4 * PAGE)

typedef size_t copy(void *to, const void *from, size_t size);

extern copy dfi_copy_some, dfi_copy_past;
extern int dfi_copy_byte(const void *from);
extern long dfi_copy_text(char *to, const char *from, size_t size);
extern const char dfi_copy_rest[], dfi_copy_insn[], dfi_copy_fault[], dfi_byte_fault[],
    dfi_text_fault[];

/* As dfi_signal_pick() does. */
static void redirect(int signal, siginfo_t *info, void *context)
{
    greg_t *rip = &((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];

    (void)signal, (void)info;
    if ((uintptr_t)*rip == (uintptr_t)dfi_copy_insn)
        *rip = (greg_t)(uintptr_t)dfi_copy_fault;
    else if ((uintptr_t)*rip >= (uintptr_t)dfi_copy_some &&
             (uintptr_t)*rip < (uintptr_t)dfi_copy_rest)
        *rip = (greg_t)(uintptr_t)dfi_copy_rest;
    else if ((uintptr_t)*rip == (uintptr_t)dfi_copy_byte)
        *rip = (greg_t)(uintptr_t)dfi_byte_fault;
    else if ((uintptr_t)*rip >= (uintptr_t)dfi_copy_text &&
             (uintptr_t)*rip < (uintptr_t)dfi_text_fault)
        *rip = (greg_t)(uintptr_t)dfi_text_fault;
    else
        _exit(1);
}

static char *new_pages(void)
{
    char *pages = mmap(NULL, ALL, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    assert_ptr_not_equal(pages, MAP_FAILED);
    return pages;
}

/* copies(to, from, size), with bytes in %xmm0 that have to be there behind it. */
static size_t copy_and_keep(copy *copies, char *to, const char *from, size_t size)
{
    static const char before[] = "bytes of programs";
    char kept[16];
    size_t done;

    memcpy(kept, before, sizeof(kept));
    __asm__ volatile("subq $128, %%rsp\n\t" /* the compiler's red zone */
                     "movups (%[kept]), %%xmm0\n\t"
                     "call *%[copies]\n\t"
                     "movups %%xmm0, (%[kept])\n\t"
                     "addq $128, %%rsp"
                     : "=a"(done), "+D"(to), "+S"(from), "+d"(size)
                     : [kept] "b"(kept), [copies] "r"(copies)
                     : "rcx", "r8", "r9", "r10", "r11", "xmm0", "memory", "cc");
    assert_memory_equal(kept, before, sizeof(kept));
    return done;
}

/* `size` bytes, of which as many as `there` can be read: then comes a page that is not there. */
static void check(copy *copies, const char *end, char *to, size_t size, size_t there)
{
    memset(to, 0, size + 1);
    assert_int_equal(copy_and_keep(copies, to, end - there, size), there < size ? there : size);
    assert_memory_equal(to, end - there, there < size ? there : size);
    assert_int_equal(to[size], 0);
}

static void check_sizes(copy *copies)
{
    static const size_t sizes[] = {64,  65,   127,  128,       144,         150,
                                   256, 1000, PAGE, PAGE + 63, 2 * PAGE + 1};
    char *from = new_pages(), *to = new_pages(), *end = from + ALL - PAGE;

    for (size_t i = 0; i < ALL; i++)
        from[i] = (char)(i * 7 + i / 251 + 1);
    assert_int_equal(mprotect(end, PAGE, PROT_NONE), 0);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
        for (size_t less = 0; less < 140 && less <= sizes[i]; less++) {
            check(copies, end, to, sizes[i], sizes[i] - less);
            check(copies, end, to, sizes[i], sizes[i] + less);
        }
    munmap(from, ALL);
    munmap(to, ALL);
}

static void check_copies(void)
{
    check_sizes(dfi_copy_some);
    check_sizes(dfi_copy_past);
}

static void check_byte(void)
{
    char *from = new_pages(), *end = from + ALL - PAGE;

    end[-1] = (char)0xff;
    assert_int_equal(mprotect(end, PAGE, PROT_NONE), 0);
    assert_int_equal(dfi_copy_byte(end - 2), 0);
    assert_int_equal(dfi_copy_byte(end - 1), 0xff);
    assert_int_equal(dfi_copy_byte(end), -1);
    munmap(from, ALL);
}

/* A text of that length whose NUL lies `before` bytes before memory that is not there. */
static void check_text_of(char *end, char *to, size_t length, size_t before)
{
    char *from = end - before - 1 - length;

    memset(from, 0x80, length);
    from[length] = '\0';
    for (size_t size = length > 9 ? length - 9 : 0; size < length + 9; size++) {
        memset(to, 1, length + 20);
        assert_int_equal(dfi_copy_text(to, from, size), size < length ? size : length);
        assert_memory_equal(to, from, size <= length ? size : length + 1);
        assert_int_equal(to[size], 1);
    }
}

/* None of `length` bytes, behind which no memory is, is a NUL. */
static void check_text_without_end(char *end, char *to, size_t length)
{
    memset(end - length, 1, length);
    assert_int_equal(dfi_copy_text(to, end - length, length), length);
    assert_int_equal(dfi_copy_text(to, end - length, length + 1), -1);
    assert_int_equal(dfi_copy_text(to, end - length, length + 20), -1);
}

static void check_text(void)
{
    char *from = new_pages(), *to = new_pages(), *end = from + ALL - PAGE;

    assert_int_equal(mprotect(end, PAGE, PROT_NONE), 0);
    for (size_t length = 0; length < 40; length++)
        for (size_t before = 0; before < 20; before++)
            check_text_of(end, to, length, before);
    for (size_t before = PAGE - 20; before < PAGE; before++)
        check_text_of(end, to, 30, before); /* goes on in another page */
    for (size_t length = 0; length < 40; length++)
        check_text_without_end(end, to, length);
    munmap(from, ALL);
    munmap(to, ALL);
}

/* In a test: cmocka has a handler of its own there. */
static void with_faults_redirected(void (*run)(void))
{
    const struct sigaction action = {.sa_sigaction = redirect, .sa_flags = SA_SIGINFO};
    struct sigaction before;

    sigaction(SIGSEGV, &action, &before);
    run();
    sigaction(SIGSEGV, &before, NULL);
}

static void what_is_there_is_copied_and_no_more(void **state)
{
    (void)state;
    with_faults_redirected(check_copies);
}

static void a_byte_is_told_from_none(void **state)
{
    (void)state;
    with_faults_redirected(check_byte);
}

static void a_text_is_copied_up_to_its_end(void **state)
{
    (void)state;
    with_faults_redirected(check_text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_there_is_copied_and_no_more),
        cmocka_unit_test(a_byte_is_told_from_none),
        cmocka_unit_test(a_text_is_copied_up_to_its_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
