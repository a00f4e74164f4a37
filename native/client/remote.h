/*
 * remote.h - the file systems of the mount server as struct df_fs: every op is a trip.
 */
#ifndef DF_CLIENT_REMOTE_H
#define DF_CLIENT_REMOTE_H

#include "core/ops.h"

/* The one df_fs of all mounts: df_call.mount says which is meant. Defined in shadows/remote.c: what
 * is read and written of a file that is mapped is in its shadow file. */
extern struct df_fs dfi_remote;

#endif
