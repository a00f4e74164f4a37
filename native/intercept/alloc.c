/*
 * alloc.c - memory of the core: powers of two cut from mapped chunks, larger blocks mapped alone.
 *
 * The program's allocator is not ours to call, its brk is not ours to move. Freed blocks are kept
 * in a list for each size. A block's first 16 bytes say its size. Who has the lock may be killed
 * (lock.c): what it protects is whole between any two stores, though memory may be lost.
 */
#include "intercept/lock.h"
#include "intercept/mem.h"

#define CLASS_MIN 5  /* 32 bytes, header included */
#define CLASS_MAX 15 /* 32 KiB */
#define CHUNK     (256 * 1024ul)
#define PAGE      4096ul

#define PROT_RW   3       /* PROT_READ | PROT_WRITE */
#define MAP_ANON  0x24022 /* PRIVATE | ANONYMOUS | NORESERVE | STACK: one mapping with the stack */

struct block {
    size_t size; /* of the block with this header */
    struct block *next;
};

struct dfi_lock dfi_alloc_lock DFI_HOT;

static struct block *free_blocks[CLASS_MAX + 1] DFI_HOT; /* all under dfi_alloc_lock */
static char *chunk_end DFI_HOT;
static size_t chunk_left DFI_HOT;

static void *map(size_t size)
{
    long at = dfi_kernel(__NR_mmap, 0, size, PROT_RW, MAP_ANON, -1, 0);
    return at < 0 && at > -4096 ? NULL : (void *)at;
}

static struct block *cut(size_t size)
{
    if (chunk_left < size) {
        char *more = map(CHUNK);
        if (more == NULL)
            return NULL;
        chunk_end = more + CHUNK;
        __atomic_signal_fence(__ATOMIC_RELEASE);
        chunk_left = CHUNK;
    }
    chunk_left -= size;
    return (struct block *)(chunk_end - chunk_left - size);
}

/* What is new is zero already: a page of it that nobody uses is never touched. */
static struct block *small(int class)
{
    dfi_lock(&dfi_alloc_lock);
    struct block *used = free_blocks[class];
    struct block *block = used != NULL ? used : cut((size_t)1 << class);
    if (used != NULL)
        free_blocks[class] = used->next;
    dfi_unlock(&dfi_alloc_lock);
    if (used != NULL)
        memset(used, 0, (size_t)1 << class);
    return block;
}

void *dfi_alloc(size_t size)
{
    struct block *block;
    if (size > SIZE_MAX / 2)
        return NULL;
    size += sizeof *block;
    if (size > (size_t)1 << CLASS_MAX) {
        size = (size + PAGE - 1) & -PAGE;
        block = map(size);
    } else {
        int class = CLASS_MIN;
        while ((size_t)1 << class < size)
            class++;
        size = (size_t)1 << class;
        block = small(class);
    }
    if (block == NULL)
        return NULL;
    block->size = size;
    return block + 1;
}

void dfi_free(void *memory)
{
    if (memory == NULL)
        return;
    struct block *block = (struct block *)memory - 1;
    if (block->size > (size_t)1 << CLASS_MAX) {
        dfi_kernel(__NR_munmap, block, block->size);
        return;
    }
    int class = __builtin_ctzl(block->size);
    dfi_lock(&dfi_alloc_lock);
    block->next = free_blocks[class];
    __atomic_store_n(&free_blocks[class], block, __ATOMIC_RELEASE);
    dfi_unlock(&dfi_alloc_lock);
}
