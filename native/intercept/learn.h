/*
 * learn.h - what the programs of a run tell each other of sites: those at which most trap are
 * rewritten when the next program maps the file, before anybody executes them.
 */
#ifndef DF_INTERCEPT_LEARN_H
#define DF_INTERCEPT_LEARN_H

#include "intercept/intercept.h"

#define DFI_LEARN_FILES 64
#define DFI_LEARN_SITES 1024
#define DFI_LEARN_PAGES 512 /* of a larger file several share a bit */
#define DFI_LEARN_NONE  (-1)

/* By which a file is known: one that is changed is another. */
struct dfi_learn_id {
    unsigned long device, inode, size, changed; /* changed: ctime, ns */
};

struct dfi_learn_file {
    struct dfi_learn_id id;
    int state;       /* 0 free, 1 being written, 2 to be read */
    unsigned starts; /* how often it was mapped as code */
    unsigned first;  /* of its sites: 1 + index; 0: none */
    unsigned pad;
    unsigned long pages[DFI_LEARN_PAGES / 64]; /* that are rewritten anyway: their number's bit */
};

enum dfi_learn_state { DFI_LEARN_COUNTS, DFI_LEARN_REWRITES, DFI_LEARN_CANNOT };

struct dfi_learn_site {
    unsigned long offset; /* of the syscall instruction in the file */
    unsigned short nr;    /* what %rax was in the trap */
    unsigned short users; /* programs that trapped at it */
    unsigned traps;       /* what it cost them */
    unsigned state;       /* enum dfi_learn_state */
    unsigned next;        /* of its file: 1 + index; 0: the last */
};

/* Lies in the memory of the run: nothing in it is believed, the bytes of the code decide. */
struct dfi_learn {
    struct dfi_learn_file files[DFI_LEARN_FILES];
    struct dfi_learn_site sites[DFI_LEARN_SITES];
    unsigned sites_used;
};

_Static_assert(sizeof(struct dfi_learn) <= 1 << 15, "directfuse/_run_block.py");

/* A file that is being mapped as code, which counts; DFI_LEARN_NONE: no room. */
int dfi_learn_known(const struct dfi_learn_id *id);

/* The same, that of a descriptor. */
int dfi_learn_file(int fd);

/* A program has trapped for its first time at an offset of a file. */
void dfi_learn_trap(int file, unsigned long offset, unsigned nr);

/* It has trapped there again, or done what costs as much as so many traps. */
void dfi_learn_cost(int file, unsigned long offset, unsigned traps);

/*
 * The next site of [offset, offset + size) that is to be rewritten, behind *at, which is 0 at
 * first; NULL: there is none.
 */
struct dfi_learn_site *dfi_learn_next(int file, unsigned long offset, unsigned long size,
                                      unsigned *at);

#endif
