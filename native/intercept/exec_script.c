/*
 * exec_script.c - execve(2) of a script: "#! interpreter [argument]".
 */
#include "intercept/exec_private.h"
#include "intercept/mem.h"

#include <linux/fcntl.h>

static char *keep_word(struct dfi_order *order, const char *word, size_t size)
{
    if (size + 1 > DFI_WORDS_SIZE - order->words_used)
        return NULL;
    char *kept = order->words + order->words_used;
    memcpy(kept, word, size);
    kept[size] = '\0';
    order->words_used += size + 1;
    return kept;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* Takes "#! interpreter [argument]" apart: execve(2). */
static long split_script(struct dfi_order *order, char *line, char **words)
{
    char *at = line + 2, *end = line + 2;
    while (*end != '\0' && *end != '\n')
        end++;
    bool cut = *end == '\0'; /* the line is longer than what the kernel reads */
    while (end > at && is_blank(end[-1]))
        end--;
    while (at < end && is_blank(*at))
        at++;
    char *name = at;
    while (at < end && !is_blank(*at))
        at++;
    if (at == name || (cut && at == end && end - line >= DFI_LINE - 1))
        return -ENOEXEC;
    words[0] = keep_word(order, name, (size_t)(at - name));
    while (at < end && is_blank(*at))
        at++;
    words[1] = at < end ? keep_word(order, at, (size_t)(end - at)) : NULL;
    return words[0] == NULL ? -E2BIG : 0;
}

long dfi_exec_script(struct dfi_order *order, char *line)
{
    char *words[2];
    char *script = keep_word(order, order->path, strlen(order->path));
    long result = script == NULL ? -E2BIG : split_script(order, line, words);
    if (result < 0)
        return result;
    size_t count = words[1] == NULL ? 1 : 2;
    if (order->head_count == 0)
        order->head[order->head_count++] = script; /* in place of argv[0] */
    else
        order->head[0] = script;
    memmove(order->head + count, order->head, order->head_count * sizeof *order->head);
    memcpy(order->head, words, count * sizeof *words);
    order->head_count += count;
    memcpy(order->path, words[0], strlen(words[0]) + 1);
    dfi_kernel(__NR_close, order->fd);
    bool virtual;
    order->fd = dfi_files_program(AT_FDCWD, order->path, 0, &virtual);
    return order->fd < 0 ? order->fd : 0;
}
