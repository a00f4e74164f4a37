/*
 * tracer.h - a debugger inside, and programs inside that it traces.
 */
#ifndef DF_INTERCEPT_TRACER_H
#define DF_INTERCEPT_TRACER_H

/* %rdx as a traced loader finds it; %rax and %rdx when it stops with the program in its place, and
 * %r11 where that begins (loader.S). */
#define DFI_TRACED 0x64665452

#ifndef __ASSEMBLER__
#include "intercept/intercept.h"

/* struct dfi_thread.trace_me, by PTRACE_TRACEME. */
enum dfi_trace { DFI_TRACE_ASKED = 1, DFI_TRACE_BEGUN };

/* Before an execve: a thread that has asked to be traced (PTRACE_TRACEME) is. */
void dfi_tracer_begin(struct dfi_thread *self);

/* The same with every signal blocked, and the program's mask. That of the execve itself is let in
 * as the program would: a tracer that has asked for no event is stopped for by it, SIGTRAP. */
void dfi_tracer_execute(struct dfi_thread *self, unsigned long mask);
#endif

#endif
