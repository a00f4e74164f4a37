/*
 * close.h - what every way of closing a descriptor does.
 */
#ifndef DF_CORE_CLOSE_H
#define DF_CORE_CLOSE_H

#include "core/file.h"

/* Flushes, drops the closing owner's POSIX locks and the reference; the file is out of the table
 * already. Inside the gate. Returns the flush's error, which is close's. */
int df_close_file(struct df_thread *thread, struct df_file *file);

#endif
