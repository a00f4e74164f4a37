/*
 * exec_script.c - execve(2) of a script: "#! interpreter [argument]".
 */
#include "intercept/brief.h"
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

static char *skip_blanks(char *at, const char *end)
{
    while (at < end && is_blank(*at))
        at++;
    return at;
}

static char *skip_word(char *at, const char *end)
{
    while (at < end && *at != '\0' && !is_blank(*at))
        at++;
    return at;
}

/* Where the words of the line end: the newline, or the last byte that the kernel reads if the name
 * cannot be cut there. NULL: it may be. */
static char *end_of(char *line)
{
    char *last = line + DFI_LINE - 1, *at = line + 2;
    while (at < last && *at != '\n' && *at != '\0')
        at++;
    if (*at == '\n')
        return at;
    at = skip_word(skip_blanks(line + 2, last + 1), last + 1);
    return at <= last ? last : NULL;
}

/* Takes "#! interpreter [argument]" apart: execve(2). Only before a newline do blanks at the end
 * not count. */
static long split_script(struct dfi_order *order, char *line, char **words)
{
    char *end = end_of(line);
    if (end == NULL)
        return -ENOEXEC;
    while (is_blank(end[-1]))
        end--;
    char *name = skip_blanks(line + 2, end), *behind = skip_word(name, end);
    if (name == end)
        return -ENOEXEC;
    words[0] = keep_word(order, name, (size_t)(behind - name));
    words[1] = NULL;
    if (behind < end && *behind != '\0') {
        char *argument = skip_blanks(behind, end);
        size_t size = 0;
        while (argument + size < end && argument[size] != '\0')
            size++;
        words[1] = keep_word(order, argument, size);
    }
    return words[0] == NULL ? -E2BIG : 0;
}

/* A script below a descriptor that the execution closes: its interpreter could not open it. */
static bool is_out_of_reach(const struct dfi_exec *asked)
{
    return asked->dirfd != AT_FDCWD && asked->path[0] != '/' &&
           (dfi_kernel(__NR_fcntl, asked->dirfd, F_GETFD) & FD_CLOEXEC) != 0;
}

long dfi_exec_script(struct dfi_order *order, char *line)
{
    char *words[2];
    char *script = keep_word(order, order->path, strlen(order->path));
    long result = script == NULL ? -E2BIG : split_script(order, line, words);
    if (result == 0 && is_out_of_reach(order->asked))
        result = -ENOENT;
    if (result == 0 && words[0][0] == '\0')
        result = -EACCES; /* as the directory that an empty name is */
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
    dfi_brief_close(order->fd);
    bool virtual;
    order->fd = dfi_files_program(AT_FDCWD, order->path, 0, &virtual, order->name);
    return order->fd < 0 ? order->fd : 0;
}
