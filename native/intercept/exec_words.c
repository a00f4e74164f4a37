/*
 * exec_words.c - the words that the next program gets: argv with those of interpreters, envp with
 * one more string for the loader; and the memory that they are put in.
 */
#include "intercept/exec_private.h"
#include "intercept/mem.h"
#include "intercept/run.h"
#include "intercept/signal.h"
#include "intercept/text.h"

#define ARGS_MAX (1ul << 20)

/* ---- memory ---- */

struct dfi_exec_block {
    _Alignas(16) struct dfi_exec_block *next;
};

void *dfi_exec_take(size_t size)
{
    struct dfi_thread *self = dfi_self();
    struct dfi_exec_block *block = dfi_alloc(sizeof *block + size);
    if (block == NULL)
        return NULL;
    block->next = self->exec;
    self->exec = block;
    return block + 1;
}

void dfi_exec_free(struct dfi_thread *thread)
{
    while (thread->exec != NULL) {
        struct dfi_exec_block *block = thread->exec;
        thread->exec = block->next;
        dfi_free(block);
    }
}

/* ---- words ---- */

long dfi_exec_count(unsigned long array)
{
    unsigned long word;
    for (unsigned long count = 0; array != 0; count++) {
        if (dfi_copy_from(&word, (const void *)(array + count * sizeof word), sizeof word) < 0)
            return -EFAULT;
        if (word == 0)
            return (long)count;
        if (count == ARGS_MAX)
            return -E2BIG;
    }
    return 0;
}

char **dfi_exec_argv(const struct dfi_order *order, long count)
{
    size_t skip = order->head_count > 0 && count > 0 ? 1 : 0;
    char **argv = dfi_exec_take((order->head_count + (size_t)count - skip + 1) * sizeof *argv);
    if (argv == NULL)
        return NULL;
    memcpy(argv, order->head, order->head_count * sizeof *argv);
    size_t size = ((size_t)count - skip) * sizeof *argv;
    if (dfi_copy_from(argv + order->head_count, (char **)order->asked->argv + skip, size) < 0)
        return NULL;
    return argv;
}

char **dfi_exec_envp(const struct dfi_order *order, long count, char *marker)
{
    char **envp = dfi_exec_take(((size_t)count + 2) * sizeof *envp);
    if (envp == NULL)
        return NULL;
    if (dfi_copy_from(envp, (const void *)order->asked->envp, (size_t)count * sizeof *envp) < 0)
        return NULL;
    envp[count] = marker;
    return envp;
}

long dfi_exec_marker(const struct dfi_order *order, char *marker, char *scratch)
{
    long size = dfi_files_exec(order->asked->process, scratch, PATH_MAX);
    if (size < 0)
        return size;
    struct dfi_text text = {.start = marker, .size = DFI_MARKER_SIZE};
    dfi_text_add(&text, DFI_MARKER);
    dfi_text_add_number(&text, (unsigned long)dfi_run_fd);
    dfi_text_add(&text, " ");
    dfi_text_add_number(&text, (unsigned long)(dfi_loader_fd + 1));
    dfi_text_add(&text, " ");
    dfi_text_add_number(&text, (unsigned long)order->fd);
    dfi_text_add(&text, " ");
    dfi_text_add_number(&text, (unsigned long)(order->interpreter_fd + 1));
    dfi_text_add(&text, " ");
    dfi_text_add_number(&text, order->head_count);
    dfi_text_add(&text, " ");
    dfi_text_add_number(&text, order->asked->path[0] == '\0');
    dfi_text_add(&text, " ");
    dfi_text_add_number(&text,
                        order->asked->mask | dfi_believed(dfi_self()->pending, order->asked->mask));
    dfi_text_add(&text, " ");
    dfi_text_add_number(&text, dfi_signals_ignored(order->asked->process));
    dfi_text_add(&text, " ");
    dfi_text_add_number(&text, (unsigned long)size);
    dfi_text_add(&text, " ");
    dfi_text_add_number(&text, strlen(order->name));
    dfi_text_add(&text, " ");
    dfi_text_add_size(&text, scratch, (size_t)size);
    dfi_text_add(&text, order->name);
    dfi_text_add(&text, " ");
    dfi_text_add(&text, order->path);
    return text.full ? -ENAMETOOLONG : 0;
}
