/*
 * offsets.h - where entry.S finds the fields of struct dfi_thread and struct dfi_frame. thread.c
 * asserts that each of them is there.
 */
#ifndef DF_INTERCEPT_OFFSETS_H
#define DF_INTERCEPT_OFFSETS_H

/* struct dfi_thread, from the base of %gs */
#define T_SELF     0
#define T_IN_CORE  8
#define T_DEFERRED 12 /* with two more bytes: the exits look at the four at once */
#define T_REFUSED  13
#define T_GS_APART 14
#define T_FRAME    16
#define T_GS_BASE  24
#define T_TID      48
#define T_NEXT     56

/* struct dfi_frame */
#define F_NR     0
#define F_ARGS   8
#define F_RESULT 56
#define F_IP     64
#define F_SP     72
#define F_FLAGS  80
#define F_SAVED  88
#define F_CALLEE 136
#define F_ORIGIN 184 /* saved_nr */
#define F_SIZE   192 /* a multiple of 16, as stacks are aligned */

/* dfi_signal_release(): how the core is left, with a signal that waits or, by the last two,
 * without */
#define DFI_RELEASE_DONE  0 /* the call is done */
#define DFI_RELEASE_REDO  1 /* the call is made again, after the handler */
#define DFI_RELEASE_PASS  2 /* the kernel makes the call */
#define DFI_RELEASE_LEAVE 3

#define RED_ZONE 128 /* bytes below the stack pointer that belong to the program (x86-64 ABI) */

/* What lies on the program's stack, below its red zone, while a call is made for it (entry.S): */
#define P_IP    0
#define P_SAVED 8
#define P_ROOM  (RED_ZONE + 56)

/* and while a signal that has been waiting is let in: */
#define D_TARGET 0
#define D_IP     8
#define D_RAX    16
#define D_FLAGS  24
#define D_SAVED  32
#define D_MASK   80
#define D_ROOM   (RED_ZONE + 96)

/* and while it is asked which thread this is: */
#define G_RAX      0
#define G_IP       8
#define G_RDX      16
#define G_FLAGS    24
#define G_ROOM     (RED_ZONE + 32)

#define GS_THREADS 1024 /* entries of dfi_gs_threads: a power of two */

#endif
