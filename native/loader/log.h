/*
 * log.h - the latest lines that somebody said: a bounded text from which the oldest lines drop.
 */
#ifndef DF_LOADER_LOG_H
#define DF_LOADER_LOG_H

#include <pthread.h>
#include <stddef.h>

struct df_log {
    pthread_mutex_t lock; /* protects size and text; taken by others only around fork(2) */
    size_t capacity;      /* bytes */
    size_t size;          /* bytes used; ends with a newline unless 0 */
    char *text;
};

/* Returns 0 or -ENOMEM. A log of zero bytes may be destroyed, too. */
int df_log_init(struct df_log *log, size_t capacity);
void df_log_destroy(struct df_log *log);

/* Appends a line, or several; of one that is too long, its end. Any thread. */
void df_log_add(struct df_log *log, const char *line);

/* Copies the end of the text, as much as fits into size bytes, NUL-terminated. Any thread. */
void df_log_copy(struct df_log *log, char *text, size_t size);

#endif
