/*
 * sys.h - the few system calls of the channel, without libc: no errno, no cancellation, no TLS.
 *
 * A result is what the kernel returned: a count, 0 or a negative errno.
 */
#ifndef DF_CHANNEL_SYS_H
#define DF_CHANNEL_SYS_H

#include <errno.h>
#include <linux/futex.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>

#if defined(__x86_64__)
static inline long df_sys6(long number, long a, long b, long c, long d, long e, long f)
{
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    long ret;

    __asm__ volatile("syscall"
                     : "=a"(ret)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return ret;
}
#elif defined(__aarch64__)
static inline long df_sys6(long number, long a, long b, long c, long d, long e, long f)
{
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    register long x4 __asm__("x4") = e;
    register long x5 __asm__("x5") = f;

    __asm__ volatile("svc 0"
                     : "+r"(x0)
                     : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
                     : "memory");
    return x0;
}
#else
#error "system calls of this machine are not known to the channel"
#endif

static inline long df_sys3(long number, long a, long b, long c)
{
    return df_sys6(number, a, b, c, 0, 0, 0);
}

/* Sleeps while *word == value, at most `nanoseconds` (< 0: for ever). Shared between processes.
 * 0, -EAGAIN (it has another value), -ETIMEDOUT, -EINTR. */
static inline long df_sys_wait(_Atomic uint32_t *word, uint32_t value, int64_t nanoseconds)
{
    struct timespec limit = {nanoseconds / 1000000000, nanoseconds % 1000000000};

    return df_sys6(SYS_futex, (long)word, FUTEX_WAIT, (long)value,
                   nanoseconds < 0 ? 0 : (long)&limit, 0, 0);
}

/* How many it has woken. */
static inline long df_sys_wake(_Atomic uint32_t *word, int count)
{
    return df_sys6(SYS_futex, (long)word, FUTEX_WAKE, count, 0, 0, 0);
}

/* ns of CLOCK_MONOTONIC: for waits that have slept already. */
static inline int64_t df_sys_now(void)
{
    struct timespec now = {0};

    df_sys3(SYS_clock_gettime, CLOCK_MONOTONIC, (long)&now, 0);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

/* One step of a spin. */
static inline void df_sys_relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#else
    __asm__ volatile("yield" ::: "memory");
#endif
}

/* Ticks of a cheap clock of constant rate: for the length of spins only. */
static inline uint64_t df_sys_ticks(void)
{
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#else
    uint64_t ticks;

    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
#endif
}

/* The same, and on which processor: one instruction where Linux has put the number beside the
 * clock. UINT32_MAX: it cannot be told so cheaply. */
static inline uint64_t df_sys_clock(uint32_t *cpu)
{
#if defined(__x86_64__)
    uint64_t ticks = __builtin_ia32_rdtscp(cpu);

    *cpu &= 0xfff; /* above it stands the node: vdso's getcpu() */
    return ticks;
#else
    *cpu = UINT32_MAX;
    return df_sys_ticks();
#endif
}

/* The line of a processor's cache at that address is on its way here, to be written to: so that
 * other things are done meanwhile. */
static inline void df_sys_fetch_to_write(const void *at)
{
#if defined(__x86_64__)
    __asm__ volatile("prefetchw %0" : : "m"(*(const char *)at)); /* does nothing where it is none */
#else
    __builtin_prefetch(at, 1);
#endif
}

/* Bytes. */
static inline void df_sys_copy(void *to, const void *from, size_t size)
{
    __builtin_memcpy(to, from, size);
}

/* Of bytes that another processor is to read: they leave no line in the caches here, and none has
 * to be fetched from there first (past.h). `to` begins a line of 64 bytes. */
static inline void df_sys_copy_past(void *to, const void *from, size_t size)
{
#if defined(__x86_64__)
    size_t whole = size & ~(size_t)63;

    for (size_t at = 0; at < whole; at += sizeof(uint64_t)) {
        uint64_t word;

        __builtin_memcpy(&word, (const char *)from + at, sizeof(word));
        __asm__ volatile("movnti %1, %0" : "=m"(*(uint64_t *)((char *)to + at)) : "r"(word));
    }
    __asm__ volatile("sfence" ::: "memory"); /* before whatever says that they are there */
    df_sys_copy((char *)to + whole, (const char *)from + whole, size - whole);
#else
    df_sys_copy(to, from, size);
#endif
}

/* Of bytes that somebody may be writing: who reads them looks afterwards whether that was so
 * (frames.h). Out of the sight of what looks for data races. */
static inline void df_sys_copy_unsure(void *to, const void *from, size_t size)
{
#if defined(__SANITIZE_THREAD__) && defined(__x86_64__)
    __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(size) : : "memory");
#else
    df_sys_copy(to, from, size);
#endif
}

/* What was loaded before is not loaded after what follows; the same of stores. */
static inline void df_sys_loads_before(void)
{
#if defined(__x86_64__)
    __asm__ volatile("" ::: "memory");
#else
    __asm__ volatile("dmb ishld" ::: "memory");
#endif
}

static inline void df_sys_stores_before(void)
{
#if defined(__x86_64__)
    __asm__ volatile("" ::: "memory");
#else
    __asm__ volatile("dmb ishst" ::: "memory");
#endif
}

/* The same from or to memory of the program's own, which may not be there. Who catches the fault
 * (native/intercept) defines DF_CHANNEL_USER_COPY and these functions. How many bytes could be
 * copied. */
#ifdef DF_CHANNEL_USER_COPY
size_t df_channel_user_copy_some(void *to, const void *from, size_t size);
size_t df_channel_user_copy_past(void *to, const void *from, size_t size);
#define df_channel_user_copy_unsure df_channel_user_copy
#else
static inline long df_channel_user_copy_unsure(void *to, const void *from, size_t size)
{
    df_sys_copy_unsure(to, from, size);
    return 0;
}

static inline size_t df_channel_user_copy_some(void *to, const void *from, size_t size)
{
    df_sys_copy(to, from, size);
    return size;
}

static inline size_t df_channel_user_copy_past(void *to, const void *from, size_t size)
{
    df_sys_copy_past(to, from, size);
    return size;
}
#endif

/* All of them: 0 or -EFAULT. */
static inline long df_channel_user_copy(void *to, const void *from, size_t size)
{
    return df_channel_user_copy_some(to, from, size) == size ? 0 : -EFAULT;
}

#endif
