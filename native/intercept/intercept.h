/*
 * intercept.h - the contract inside the core of intercepted programs: how a system call arrives,
 * what a handler may do with it, and what it may use.
 *
 * The core is freestanding: no libc, no thread-local storage, no vector registers, none of the
 * program's memory but what its arguments name. It runs in the program's threads, on a stack of
 * its own, with the program's signals held back until it is left. Results are what the kernel
 * would return: a count, 0, or a negative errno.
 *
 * The way of a call: a rewritten site jumps to (or SIGSYS sends the thread to) the entry of
 * entry.S, which fills a struct dfi_frame at the top of the thread's core stack and calls
 * dfi_dispatch(). The table of calls is syscalls.def; a handler is `long dfi_do_<name>(struct
 * dfi_frame *)`, and dfi_pass where the kernel is to answer.
 *
 * Three ways to the kernel, and no other:
 *   return DFI_PASS       the program's own call, with frame->nr and frame->args as they now are,
 *                         is made after the core has been left: signals, restarts and blocking are
 *                         the kernel's as without us. Arguments may be changed, but must not point
 *                         into the core's stack. What every call that is not ours should do.
 *   dfi_kernel(...)       made here and now. Signals wait until the core is left: for calls that
 *                         cannot block for long.
 *   dfi_kernel_wait(...)  made here, and may block: a signal of the program ends it with -EINTR
 *                         (also one that came just before). Return that -EINTR: if the program's
 *                         handler was installed with SA_RESTART the whole call is made again, from
 *                         dfi_dispatch(), after the handler has run.
 */
#ifndef DF_INTERCEPT_INTERCEPT_H
#define DF_INTERCEPT_INTERCEPT_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <asm/unistd.h>
#include <linux/errno.h>

#define PR_SET_SYSCALL_USER_DISPATCH 59 /* prctl(2), in headers since Linux 5.11 */

/* The answer of a handler that leaves the call to the kernel. No kernel result has this value. */
#define DFI_PASS LONG_MIN

/* Numbers of system calls the dispatch array has room for; higher ones are passed and counted. */
#define DFI_CALLS_MAX 512

/*
 * One system call of the program. Stands at the top of the thread's core stack; its layout is
 * known to entry.S (offsets.h).
 */
struct dfi_frame {
    long nr;                 /* number of the call, as in rax */
    unsigned long args[6];   /* rdi, rsi, rdx, r10, r8, r9; a handler that passes may change them */
    long result;             /* written by the entry after dfi_dispatch() */
    uintptr_t ip;            /* where the program goes on: the instruction after its syscall */
    uintptr_t sp;            /* the program's stack pointer */
    unsigned long flags;     /* ah and al as lahf and seto left them */
    unsigned long saved[6];  /* the argument registers as the program had them */
    unsigned long callee[6]; /* rbx, rbp, r12 to r15 */
    long saved_nr;           /* nr as the program had it */
};

/* ---- dispatch.c ---- */

/* Runs the call's handler, for a process with late memory or a descriptor that lingers after what
 * they want; the result, or DFI_PASS. */
long dfi_dispatch(struct dfi_frame *frame);

/* Runs the handler itself; a number that the table does not know is counted: DFI_PASS. */
long dfi_handle(struct dfi_frame *frame);

/* The handlers of rows that are the kernel's: DFI_PASS; of calls on descriptors, -EBADF if one is
 * ours. */
long dfi_pass(struct dfi_frame *frame);
long dfi_pass_fd(struct dfi_frame *frame);

/* The handler of rows that are refused so that programs fall back: minus the row's error. */
long dfi_refuse(struct dfi_frame *frame);

/* The same, when an argument leads to a mount; else DFI_PASS. */
long dfi_refuse_ours(struct dfi_frame *frame);

enum dfi_level {
    DFI_HANDLED, /* as Linux on a local file system */
    DFI_PARTIAL, /* the note says what differs */
    DFI_PASSED,  /* the kernel's own */
    DFI_REFUSED, /* a documented errno */
};

/* What those who see every call ask of it. */
enum dfi_trait {
    DFI_BLIND = 1,    /* knows no descriptors and does not last, or ends all; mmap: if anonymous */
    DFI_ANSWERED = 2, /* mounts answer it for their files, without a look at other descriptors */
    DFI_LOOKS = 4,    /* may be asked of a directory above a mountpoint that is not on disk */
    DFI_OF_LINK = 8,  /* a symlink at the end of a path is meant itself */
    DFI_NOFOLLOW_THIRD = 16, /* the same if its third argument has AT_SYMLINK_NOFOLLOW */
    DFI_NOFOLLOW_FOURTH = 32,
    DFI_NOFOLLOW_FIFTH = 64,
    DFI_NAMES = 128, /* makes, moves or removes the names at the ends of its paths */
};

struct dfi_call {
    char name[24];
    char arguments[8];    /* syscalls.def: a letter for each */
    short error;          /* of a call that is refused, positive */
    unsigned char level;  /* enum dfi_level */
    unsigned char traits; /* enum dfi_trait */
};

/* By number; a row without a name is a number that the table does not know. */
extern const struct dfi_call dfi_calls[DFI_CALLS_MAX];

/* ---- the kernel ---- */

/* A call of the core to the kernel. Program's signals stay pending meanwhile. */
static inline long dfi_kernel6(long nr, unsigned long a, unsigned long b, unsigned long c,
                               unsigned long d, unsigned long e, unsigned long f)
{
    long result;
    register unsigned long r10 __asm__("r10") = d;
    register unsigned long r8 __asm__("r8") = e;
    register unsigned long r9 __asm__("r9") = f;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "0"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
}

/* The same, ended with -EINTR by a signal for which the program has a handler. */
long dfi_kernel_wait6(long nr, unsigned long a, unsigned long b, unsigned long c, unsigned long d,
                      unsigned long e, unsigned long f);

/* dfi_kernel(nr, ...) and dfi_kernel_wait(nr, ...): up to six arguments of any scalar type. */
#define DFI_WORD(x)                 ((unsigned long)(x))
#define DFI_KERNEL_1(f, n)          f(n, 0, 0, 0, 0, 0, 0)
#define DFI_KERNEL_2(f, n, a)       f(n, DFI_WORD(a), 0, 0, 0, 0, 0)
#define DFI_KERNEL_3(f, n, a, b)    f(n, DFI_WORD(a), DFI_WORD(b), 0, 0, 0, 0)
#define DFI_KERNEL_4(f, n, a, b, c) f(n, DFI_WORD(a), DFI_WORD(b), DFI_WORD(c), 0, 0, 0)
#define DFI_KERNEL_5(f, n, a, b, c, d)                                                             \
    f(n, DFI_WORD(a), DFI_WORD(b), DFI_WORD(c), DFI_WORD(d), 0, 0)
#define DFI_KERNEL_6(f, n, a, b, c, d, e)                                                          \
    f(n, DFI_WORD(a), DFI_WORD(b), DFI_WORD(c), DFI_WORD(d), DFI_WORD(e), 0)
#define DFI_KERNEL_7(f, n, a, b, c, d, e, g)                                                       \
    f(n, DFI_WORD(a), DFI_WORD(b), DFI_WORD(c), DFI_WORD(d), DFI_WORD(e), DFI_WORD(g))
#define DFI_KERNEL_PICK(_1, _2, _3, _4, _5, _6, _7, name, ...) name
#define DFI_KERNEL_BY(...)                                                                         \
    DFI_KERNEL_PICK(__VA_ARGS__, DFI_KERNEL_7, DFI_KERNEL_6, DFI_KERNEL_5, DFI_KERNEL_4,           \
                    DFI_KERNEL_3, DFI_KERNEL_2, DFI_KERNEL_1, 0)
#define dfi_kernel(...)      DFI_KERNEL_BY(__VA_ARGS__)(dfi_kernel6, __VA_ARGS__)
#define dfi_kernel_wait(...) DFI_KERNEL_BY(__VA_ARGS__)(dfi_kernel_wait6, __VA_ARGS__)

/* ---- the program's memory: fault.c ---- */

#define DFI_PAGE     4096ul
#define DFI_USER_END 0x7ffffffff000ul /* end of user addresses with four levels of page tables */

/* Copies size bytes; 0, or -EFAULT, in which case a part may have been copied. */
long dfi_copy_from(void *to, const void *program, size_t size);
long dfi_copy_to(void *program, const void *from, size_t size);

/* In copy.S: the byte there, or -1. */
int dfi_copy_byte(const void *program);

/* The byte there, or -1 if it is not: what many a call asks that is not ours. */
static inline int dfi_byte_at(const void *program)
{
    return (unsigned long)program < DFI_USER_END ? dfi_copy_byte(program) : -1;
}

/* As the above; the bytes that were copied before a fault, size when there was none. */
size_t dfi_copy_some(void *to, const void *from, size_t size);

/* The same past the caches: df_sys_copy_past() of channel/sys.h, without its sfence. */
size_t dfi_copy_past(void *to, const void *from, size_t size);

/* copy_struct_from_user() of the kernel: a struct of which the program says how large its own is,
 * and of which `size` is the first version's. What a later one has put behind that has to be 0. 0
 * or -errno. */
long dfi_copy_struct(void *to, size_t size, const void *program, size_t programs_size);

/* Copies bytes up to the NUL: their number without it; size: none of so many is one; -1: they end
 * before, where no memory is. What is behind the NUL in `to`, below size, may be overwritten. */
long dfi_copy_text(char *to, const char *from, size_t size);

/* Length of a string copied with its NUL; -EFAULT; -ENAMETOOLONG when it does not fit. */
long dfi_copy_path(char *to, const char *program, size_t size);

/* A variable that is written to at every start: it lies with the initialised ones, on the page that
 * the kernel has written to already. A page of its own would cost 2 microseconds. */
#define DFI_HOT __attribute__((section(".data.hot")))

/* ---- memory of the core: alloc.c. Of the process: shared by its threads. ---- */

/* Zeroed, aligned to 16 bytes; NULL when the kernel has none. Safe in every thread. */
void *dfi_alloc(size_t size);
void dfi_free(void *memory);

/* ---- locks: lock.c ---- */

/*
 * A lock of the core. Its holder cannot be interrupted by the program's signals. Every lock that
 * may be held while another thread forks has to be among the fork_locks of lock.c, in lock order.
 */
struct dfi_lock {
    int word; /* 0: free; else whose it is, and whether it is waited for: lock.c */
};
void dfi_lock(struct dfi_lock *lock);
void dfi_unlock(struct dfi_lock *lock);

/* ---- threads and processes: thread.c, process.c ---- */

#define DFI_HIDDEN_MAX 32

struct dfi_action;     /* signal.h */
struct dfi_brief;      /* brief.h */
struct dfi_exec_block; /* exec_words.c */
struct dfi_parked;     /* signal.h */
struct dfi_files;      /* files.h: what the handlers of paths and descriptors know */

/* The program as it was found, for /proc/self/exe; and for others, by DFI_AT_EXE (shown.h). It
 * stays until the process is another program: children that share our memory have it too. */
struct dfi_exe {
    uintptr_t start, end; /* its first mapping, by which the kernel knows its name */
    char name[];          /* that it was called by: absolute, canonical as far as the text goes */
};

/*
 * All that belongs to a process. A child that shares our memory but not our descriptors or
 * dispositions (vfork, posix_spawn) gets a copy: reach it through dfi_self() only.
 */
struct dfi_process {
    int pid;
    int holder;                 /* of locks, of its kind: lock.c; 0: no child that shares memory */
    int threads;                /* sharing this object; under thread.c's lock */
    bool lends;                 /* its actions are those of others, too: CLONE_SIGHAND */
    struct dfi_action *actions; /* by signal, as the program set them: behind this, in one block */
    struct dfi_parked *parked;  /* what waits for any of the threads: parked.c; in that block too */
    struct dfi_files *files;    /* made, copied and ended by dfi_files_*() below */
    int hidden[DFI_HIDDEN_MAX]; /* descriptors that are ours: the program's calls get EBADF */
    int hidden_count;
    int hidden_from; /* none of them is lower */
    int late;    /* mappings whose memory is brought when it is touched: map.h; under their lock */
    int lingers; /* descriptors that the program has closed and are still there: linger.h */
    struct dfi_exe *exe;     /* the program; NULL: it is not known */
    struct dfi_brief *brief; /* NULL: there has been one thread only */
};

/* What the core knows of a thread. Found by the base of %gs, which is ours while it is in the core,
 * and, as long as the program wants none of its own, all the time: gs.h. */
struct dfi_thread {
    struct dfi_thread *self; /* %gs:0 */
    unsigned char in_core;   /* signals wait while this is set */
    unsigned char pad[3];
    unsigned char deferred;  /* a signal waits */
    unsigned char refused;   /* a call of the core's was refused by a filter of the program's */
    unsigned char gs_apart;  /* the program has a base of its own for %gs: gs.h */
    unsigned char pad_too;   /* 0 */
    struct dfi_frame *frame; /* at the top of the core stack */
    unsigned long gs_base;   /* the program's, while the core has its own in place of it */
    struct dfi_process *process;
    struct dfi_counts *counts;                   /* counters of this thread, in shared memory */
    int tid;                                     /* 0: it has ended */
    unsigned char shares_memory, shares_process; /* with whom it was born from */
    unsigned char trace_me;                      /* enum dfi_trace: tracer.h */
    unsigned char loses_handlers;                /* CLONE_CLEAR_SIGHAND */
    struct dfi_thread *next;                     /* of the list of all, under thread.c's lock */
    unsigned long birth_mask;                    /* the program's signal mask at birth */
    unsigned long birth_limit;                   /* dfi_limit_inherit() */
    struct dfi_pending *pending;                 /* signal.c */
    struct dfi_exec_block *exec;                 /* memory of an execve under way: exec_words.c */
    struct dfi_thread *next_beside;              /* clone.c: children beside us */
    const struct dfi_process *parent;            /* of such a child, */
    int pid;                                     /* and what its parent knows it by */
    _Alignas(8) unsigned char files_room[80];    /* for the handlers of paths and descriptors */
};

static inline struct dfi_thread *dfi_self(void)
{
    struct dfi_thread *self;
    __asm__("movq %%gs:0, %0" : "=r"(self));
    return self;
}

static inline struct dfi_process *dfi_process(void)
{
    return dfi_self()->process;
}

/* A descriptor is ours from now on. */
void dfi_hidden_add(struct dfi_process *process, int fd);

/*
 * Moves a descriptor of ours out of the program's way (or adds one): its new number, high and
 * recorded in process->hidden, or a negative errno. The old number is closed; where no other can be
 * had, it stays.
 */
int dfi_hide_fd(struct dfi_process *process, int fd);

/* It is closed, and nobody's: in a process of one thread. */
void dfi_unhide_fd(struct dfi_process *process, int fd);

/* The same as the first without a process to record it. */
int dfi_move_high(int fd);
bool dfi_is_hidden(const struct dfi_process *process, int fd);

/* What a call gets for a descriptor that is no file of a mount: DFI_PASS, or -EBADF: it is ours. */
static inline long dfi_other_fd(unsigned long argument)
{
    const struct dfi_process *process = dfi_process();

    if ((int)argument < process->hidden_from)
        return DFI_PASS; /* ours are high: nearly always */
    return dfi_is_hidden(process, (int)argument) ? -EBADF : DFI_PASS;
}

/* The soft limit of descriptors as high as it may be, for a moment; what it was, to be put back. A
 * lock of lock.h is held between the two, which take no other. */
unsigned long dfi_limit_raise(void);
void dfi_limit_restore(unsigned long soft);

/* Around what looks at the limit, changes it or hands it on: no other thread has raised it
 * meanwhile. Whether release() has something to do. */
bool dfi_limit_hold(void);
void dfi_limit_release(bool held);

/* The program's soft limit, and a child that shares our memory gets it: what the kernel gave it may
 * have been raised by another thread. 0: it is not known, or there is none. */
unsigned long dfi_limit_soft(void);
void dfi_limit_inherit(unsigned long soft);

/* Where the run's memory is, which each of its programs has mapped, and its bytes. */
uintptr_t dfi_run_memory(unsigned long *size);

/* Its last DFI_RUN_SPARE bytes are address space only, for what some programs of the run share and
 * map over it: so the run takes as much of the space that a program may have in each of them. */
#define DFI_RUN_SPARE (131ul << 20)
uintptr_t dfi_run_spare(void);

/* ---- calls that wait with a signal mask of their own: signal_mask.c ---- */

/* Before the call: what argument (counted from 0) points to is as the kernel may have it. The
 * second: it points to a pointer to the mask, and the mask's size. DFI_PASS, or -EINTR: a signal
 * that the mask lets in has waited. */
long dfi_wait_with(struct dfi_frame *frame, unsigned argument);
long dfi_wait_with_pair(struct dfi_frame *frame, unsigned argument);

/* Such a call was made by the core, with the mask that is there now (0: with none), and ended by
 * -EINTR: what its handler returns. */
long dfi_wait_ended(struct dfi_frame *frame, unsigned long mask);

/* ---- a stack that its own thread unmaps: signal_stack.c ---- */

/* Whether the range has memory in which a call that is passed keeps what it needs. */
bool dfi_stack_is_in(const struct dfi_frame *frame, uintptr_t start, uintptr_t end);

/* It was in the range, which is memory no more: the calls to come find room elsewhere. */
void dfi_stack_gone(uintptr_t start, uintptr_t end);

/* prctl(2) with this option answers inside of a run, EINVAL elsewhere. Its argument is 0, or the
 * path of the directory of a run's placeholders: 1 inside of any run, or of that one, else 0. */
#define DFI_PR_INSIDE 0x64664931

/* ---- what process creation and execution ask the handlers of paths and descriptors ---- */

/*
 * At start: from the configuration text of the run. After execve too, then with the text that
 * dfi_files_exec() made in the program before; NULL at first. 0 or a negative errno: nothing is
 * run.
 */
int dfi_files_begin(struct dfi_process *process, const char *config, size_t size, const char *text,
                    size_t text_size);

/* A thread of the process is about to be born. */
void dfi_files_thread(struct dfi_thread *thread);

/* A child with a copy of our descriptors that shares our memory: its own struct dfi_files. */
struct dfi_files *dfi_files_copy(struct dfi_files *files);
void dfi_files_free(struct dfi_files *files);

/* Around fork: all locks taken; then released in the parent, made new in the child. */
void dfi_files_fork_prepare(void);
void dfi_files_fork_parent(long child); /* its id; negative: there is none */
void dfi_files_fork_child(struct dfi_process *process);

/* A child is about to be made in a user namespace of its own. */
void dfi_files_namespace(void);

/* A child of the process was ended by a signal, and has been waited for. */
void dfi_files_child_killed(int pid);

/* First act of a child that has a copy (dfi_files_copy) and shares our memory. */
void dfi_files_born(struct dfi_process *process);

/*
 * Before a call of a process with late memory: what the arguments point to is there, and stays
 * until dfi_files_untouch(). False: there is no such memory, and nothing is to be undone.
 * True: a call that is the kernel's has to be made inside of the core, to know when it is done.
 */
#define DFI_PINS_MAX 8
struct dfi_pins {
    struct dfi_pins *next;
    const struct dfi_files *of; /* whose call it is: perhaps a child's that shares our memory */
    unsigned count;
    struct dfi_pin {
        uintptr_t start, end;
    } list[DFI_PINS_MAX];
};
bool dfi_files_touch(const struct dfi_frame *frame, struct dfi_pins *pins);
void dfi_files_untouch(struct dfi_pins *pins);

/* A fault of the program (processor's error code): true when it may go on. On the core's stack. */
bool dfi_files_fault(uintptr_t at, unsigned long error);

/* Before execve: what the next program has to be told, put into text; its size or -errno. */
long dfi_files_exec(struct dfi_process *process, char *text, size_t size);

/* Whether its root is in a mount: the kernel's is another one. */
bool dfi_files_rooted(const struct dfi_process *process);

/* Whether that is the directory of its placeholders: of its run, and all that join its server. */
bool dfi_files_belong(const struct dfi_process *process, const char *shadow);

/* Whether the kernel's file of that name is in that directory: it stands in for one of a mount. */
bool dfi_files_stands_in(const struct dfi_process *process, const char *name);

/* Before the process ends by exit_group, or its last thread by exit. */
void dfi_files_end(struct dfi_process *process);

/*
 * A program to execute: a descriptor of a real file with its bytes, opened read-only and to be
 * closed, or a negative errno as execve's. *virtual says that it came from a mount; then the
 * permission to execute has been checked, and the file's absolute name is put into `name`, PATH_MAX
 * bytes, if it has one. NULL: nobody wants it.
 */
int dfi_files_program(int dirfd, const char *path, int flags, bool *virtual, char *name);

/* The same for a path that is the kernel's: program.c. */
long dfi_program_open(int dirfd, const char *path, int flags);

/* Makes process->exe of the path by which the program was called, or (found) of the name that the
 * above has found; a mapping of it is not known yet. */
void dfi_files_name(struct dfi_process *process, const char *path, bool found);

/* An absolute name becomes the one without links, if it leads into a mount; else false. Inside a
 * record. */
bool dfi_files_straighten(char name[PATH_MAX]);

/* ---- counting: run.c ---- */

enum dfi_event {
    DFI_EVENT_TRAPPED,   /* calls that came by SIGSYS */
    DFI_EVENT_REWRITTEN, /* sites */
    DFI_EVENT_KEPT,      /* sites that cannot be rewritten */
    DFI_EVENT_ESCAPED,   /* programs run uninterposed (set-user-id) */
    DFI_EVENT_EXECS,
    DFI_EVENT_FORKS,
    DFI_EVENT_THREADS,
    DFI_EVENT_UNKNOWN, /* calls whose number is not in the table */
    DFI_EVENT_TRIPS,  /* messages to the mount server; told when a program ends, unless it is killed
                       */
    DFI_EVENT_HITS,   /* answers found in shared memory, without a trip; the same */
    DFI_EVENT_LEARNT, /* sites that were rewritten when their file was mapped */
    DFI_EVENTS
};

void dfi_count(enum dfi_event event);
void dfi_count_more(enum dfi_event event, unsigned long count);

/* One line to the log of the run (--verbose), never to the program's descriptors. */
void dfi_note(const char *text);

#endif
