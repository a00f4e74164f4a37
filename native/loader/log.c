/*
 * log.c - the latest lines that somebody said; see log.h.
 */
#include "loader/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int df_log_init(struct df_log *log, size_t capacity)
{
    *log = (struct df_log){.capacity = capacity, .text = malloc(capacity)};
    pthread_mutex_init(&log->lock, NULL);
    return log->text ? 0 : -ENOMEM;
}

void df_log_destroy(struct df_log *log)
{
    pthread_mutex_destroy(&log->lock);
    free(log->text);
    *log = (struct df_log){0};
}

/* Makes room for `size` bytes, at most the whole log, by dropping whole lines where it can. */
static void drop_oldest(struct df_log *log, size_t size)
{
    size_t drop = log->size + size - log->capacity;
    const char *end = memchr(log->text + drop - 1, '\n', log->size - (drop - 1));
    if (end)
        drop = (size_t)(end + 1 - log->text);
    log->size -= drop;
    memmove(log->text, log->text + drop, log->size);
}

void df_log_add(struct df_log *log, const char *line)
{
    size_t size = strlen(line);
    if (size > 0 && line[size - 1] == '\n')
        size--;
    if (size >= log->capacity) {
        line += size - (log->capacity - 1);
        size = log->capacity - 1;
    }
    pthread_mutex_lock(&log->lock);
    if (log->size + size + 1 > log->capacity)
        drop_oldest(log, size + 1);
    memcpy(log->text + log->size, line, size);
    log->text[log->size + size] = '\n';
    log->size += size + 1;
    pthread_mutex_unlock(&log->lock);
}

void df_log_copy(struct df_log *log, char *text, size_t size)
{
    if (size == 0)
        return;
    pthread_mutex_lock(&log->lock);
    const char *from = log->text;
    size_t used = log->size > 0 ? log->size - 1 : 0; /* without the last newline */
    if (used >= size) {
        from += used - (size - 1);
        used = size - 1;
    }
    memcpy(text, from, used);
    text[used] = '\0';
    pthread_mutex_unlock(&log->lock);
}
