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

/* Before an execve: a thread that has asked to be traced (PTRACE_TRACEME) is. */
void dfi_tracer_begin(struct dfi_thread *self);
#endif

#endif
