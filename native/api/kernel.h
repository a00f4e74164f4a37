/*
 * kernel.h - the only way to the real kernel: df_kernel_<name>() for each row of calls.def.
 *
 * To be called right after df_call_<name>() answered DF_NOT_OURS on this thread: where the core had
 * followed the path through a mount, the kernel goes on where it came out (df_left_path()).
 * Returns as df_call_* do, a negative errno on failure.
 */
#ifndef DF_API_KERNEL_H
#define DF_API_KERNEL_H

#include "core/calls.h"

#define DF_CALL(type, name, parameters, arguments, level, note) type df_kernel_##name parameters;
#include "core/calls.def"
#undef DF_CALL

#endif
