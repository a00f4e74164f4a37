/*
 * sandbox.h - programs that filter their own system calls.
 */
#ifndef DF_INTERCEPT_SANDBOX_H
#define DF_INTERCEPT_SANDBOX_H

#include "intercept/intercept.h"

/*
 * The program forbids itself calls from now on; has_filter: all that the filter refuses, which the
 * third argument points to. Makes the call. Its result, or DFI_PASS.
 */
long dfi_sandbox_begin(struct dfi_frame *frame, bool has_filter);

#endif
