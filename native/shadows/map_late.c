/*
 * map_late.c - memory that is brought when it is touched: by the program, or for a system call.
 *
 * A chunk is in the data file, and held by the process, before its memory is made accessible, for
 * all threads at once by one mprotect(2). The lock of the mappings is held meanwhile, so the memory
 * stays what it is.
 */
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <linux/aio_abi.h>

#include "intercept/brief.h"
#include "shadows/map.h"
#include "shadows/pins.h"
#include "shadows/shadow.h"

#define WRITES      2ul /* bits of a page fault's error code */
#define EXECUTES    16ul

#define PROTECTIONS (PROT_READ | PROT_WRITE | PROT_EXEC | PROT_SEM)
#ifndef PROT_SEM /* glibc's headers leave it to asm/mman.h, which they do not go with */
#define PROT_SEM 8
#endif

/* Late memory of the list from the address on: the next, or NULL. Under the lock. */
static struct dfi_mapping *late_from(const struct dfi_files *files, uintptr_t at, uintptr_t end)
{
    struct dfi_mapping *next = NULL;

    for (size_t i = 0; i < files->maps->count; i++) {
        struct dfi_mapping *m = &files->maps->list[i];

        if (m->late && m->end > at && m->start < end && (!next || m->start < next->start))
            next = m;
    }
    return next;
}

/* ---- bringing -------------------------------------------------------------------------------- */

/* Memory that cannot be had gives SIGBUS, as where a disk fails: pages of an empty file. False:
 * there is no descriptor for that one either. */
static bool give_up(uintptr_t start, uintptr_t end, int prot)
{
    long empty = dfi_brief(__NR_memfd_create, "directfuse-lost", MFD_CLOEXEC), at;

    if (empty < 0)
        return false;
    at = dfi_kernel(__NR_mmap, start, end - start, prot, MAP_PRIVATE | MAP_FIXED, empty, 0);
    dfi_brief_close(empty);
    return at == (long)start;
}

/* What is shown beside what is not is a mapping of the kernel's, and a process may have 65,530. */
static long show(struct dfi_files *files, uintptr_t start, uintptr_t end, int prot)
{
    long ret;

    while ((ret = dfi_kernel(__NR_mprotect, start, end - start, prot)) == -ENOMEM &&
           dfi_maps_give_up_one(files))
        ;
    return ret;
}

/* The chunk around the address: [*start, *end) is accessible now. Under the lock. 0 or -errno. */
static long bring(struct dfi_files *files, const struct dfi_mapping *m, uintptr_t at, bool patient,
                  uintptr_t *start, uintptr_t *end)
{
    uint64_t chunk = ((uint64_t)m->offset + (at - m->start)) / DF_HELD_CHUNK;
    long ret = dfi_maps_hold(files, m, chunk, patient);

    dfi_maps_part(m, chunk, start, end);
    return ret < 0 ? ret : show(files, *start, *end, m->prot);
}

static bool allows(int prot, unsigned long error)
{
    if (error & WRITES)
        return prot & PROT_WRITE;
    if (error & EXECUTES)
        return prot & PROT_EXEC;
    return prot != PROT_NONE;
}

bool dfi_maps_fault(struct dfi_files *files, uintptr_t at, unsigned long error)
{
    struct dfi_mapping *m;
    uintptr_t start, end;
    bool known;

    dfi_maps_lock(files);
    m = files->maps ? late_from(files, at, at + 1) : NULL;
    known = m && allows(m->prot, error);
    if (known && bring(files, m, at, true, &start, &end) < 0)
        known = give_up(start, end, m->prot);
    dfi_maps_unlock(files);
    return known;
}

/* Whose mappings the memory of the process is: of who lends it to a child of vfork(2). */
static struct dfi_files *owner(void)
{
    struct dfi_files *files = dfi_process()->files;

    return files->lender ? files->lender : files;
}

bool dfi_files_fault(uintptr_t at, unsigned long error)
{
    return dfi_maps_fault(owner(), at, error);
}

/* ---- for system calls ------------------------------------------------------------------------ */

/* What cannot be brought stays as it is: EFAULT, or less than was asked for. Under the lock. */
static void bring_range(struct dfi_files *files, uintptr_t start, size_t size)
{
    uintptr_t end = start + size < start ? UINTPTR_MAX : start + size, from, to;
    struct dfi_maps *maps = files->maps;
    struct dfi_mapping *m;

    if (start >= maps->brought && end <= maps->brought_end) {
        dfi_pins_add(maps->pins, start, end);
        return;
    }
    while (start < end && (m = late_from(files, start, end))) {
        if (start < m->start)
            start = m->start;
        to = m->end;
        if (m->prot != PROT_NONE) {
            if (bring(files, m, start, maps->pins->count == 0, &from, &to) < 0)
                return;
            dfi_pins_add(maps->pins, start, end < to ? end : to);
            maps->brought = from;
            maps->brought_end = to;
        }
        start = to;
    }
}

static void bring_vector(struct dfi_files *files, const struct iovec *program, unsigned long count)
{
    struct iovec iov;

    bring_range(files, (uintptr_t)program, count * sizeof(iov));
    for (unsigned long i = 0; i < count && i < IOV_MAX; i++)
        if (dfi_copy_from(&iov, program + i, sizeof(iov)) == 0)
            bring_range(files, (uintptr_t)iov.iov_base, iov.iov_len);
}

static void bring_message(struct dfi_files *files, const struct msghdr *program)
{
    struct msghdr message;

    bring_range(files, (uintptr_t)program, sizeof(message));
    if (dfi_copy_from(&message, program, sizeof(message)) < 0)
        return;
    bring_range(files, (uintptr_t)message.msg_name, message.msg_namelen);
    bring_range(files, (uintptr_t)message.msg_control, message.msg_controllen);
    bring_vector(files, message.msg_iov, message.msg_iovlen);
}

static void bring_requests(struct dfi_files *files, struct iocb *const *program, long count)
{
    struct iocb *one, io;

    bring_range(files, (uintptr_t)program, (size_t)count * sizeof(one));
    for (long i = 0; i < count; i++) {
        if (dfi_copy_from(&one, program + i, sizeof(one)) < 0)
            return;
        bring_range(files, (uintptr_t)one, sizeof(io));
        if (dfi_copy_from(&io, one, sizeof(io)) < 0)
            return;
        if (io.aio_lio_opcode == IOCB_CMD_PREADV || io.aio_lio_opcode == IOCB_CMD_PWRITEV)
            bring_vector(files, (const struct iovec *)io.aio_buf, io.aio_nbytes);
        else
            bring_range(files, io.aio_buf, io.aio_nbytes);
    }
}

/* Any argument may be a pointer; the one behind it, how many bytes are meant. */
static void bring_arguments(struct dfi_files *files, const unsigned long a[6])
{
    for (int i = 0; i < 6; i++) {
        const struct dfi_mapping *m = late_from(files, a[i], a[i] + 1);
        size_t size = DFI_PAGE;

        if (!m)
            continue;
        if (i < 5 && a[i + 1] > size && a[i + 1] <= m->end - a[i])
            size = a[i + 1];
        bring_range(files, a[i], size);
    }
}

/* mlock(2), munlock(2): of whole mappings, which is more than is asked for. */
static void lock_memory(struct dfi_files *files, uintptr_t start, size_t size, bool locked)
{
    for (size_t i = 0; i < files->maps->count; i++) {
        struct dfi_mapping *m = &files->maps->list[i];

        if (m->end > start && m->start < start + size)
            m->locked = locked;
    }
}

/* What is to be in memory, and bytes of the file that are to be zeros: only of what is there do
 * others learn. */
static bool is_about_contents(int advice)
{
    return advice == MADV_POPULATE_READ || advice == MADV_POPULATE_WRITE || advice == MADV_REMOVE;
}

static void bring_for(struct dfi_files *files, const struct dfi_frame *frame)
{
    const unsigned long *a = frame->args;

    switch (frame->nr) {
    case __NR_mmap: /* these look at no memory */
    case __NR_munmap:
    case __NR_mprotect:
    case __NR_pkey_mprotect:
    case __NR_mremap:
    case __NR_remap_file_pages:
    case __NR_msync:
    case __NR_mincore:
    case __NR_brk:
    case __NR_munlockall:
    case __NR_exit: /* nor do these, which do not come back */
    case __NR_exit_group:
    case __NR_rt_sigreturn:
        return;
    case __NR_madvise:
        if (is_about_contents((int)a[2]))
            bring_range(files, a[0], a[1]);
        return;
    case __NR_munlock:
        lock_memory(files, a[0], a[1], false);
        return;
    case __NR_mlock:
    case __NR_mlock2:
        bring_range(files, a[0], a[1]);
        lock_memory(files, a[0], a[1], true);
        return;
    case __NR_readv:
    case __NR_writev:
    case __NR_preadv:
    case __NR_pwritev:
    case __NR_preadv2:
    case __NR_pwritev2:
    case __NR_vmsplice:
    case __NR_process_vm_readv:
    case __NR_process_vm_writev:
        bring_vector(files, (const struct iovec *)a[1], a[2]);
        return;
    case __NR_sendmsg:
    case __NR_recvmsg:
        bring_message(files, (const struct msghdr *)a[1]);
        return;
    case __NR_sendmmsg:
    case __NR_recvmmsg:
        for (unsigned long i = 0; i < a[2] && i < IOV_MAX; i++)
            bring_message(files, &((const struct mmsghdr *)a[1] + i)->msg_hdr);
        return;
    case __NR_io_submit:
        bring_requests(files, (struct iocb *const *)a[2], (long)a[1]);
        return;
    default:
        bring_arguments(files, a);
    }
}

/* Calls that cannot be made inside of the core, or may never come back to it. */
static bool is_made_outside(long nr)
{
    switch (nr) {
    case __NR_execve:
    case __NR_execveat:
    case __NR_fork:
    case __NR_vfork:
    case __NR_clone:
    case __NR_clone3:
        return true;
    default:
        return false;
    }
}

static void unpin(struct dfi_maps *maps, const struct dfi_pins *pins)
{
    struct dfi_pins **at = &maps->pins;

    while (*at && *at != pins)
        at = &(*at)->next;
    if (*at)
        *at = pins->next;
}

bool dfi_files_touch(const struct dfi_frame *frame, struct dfi_pins *pins)
{
    struct dfi_files *files = owner();
    bool pinned = false;

    dfi_maps_lock(files);
    if (files->maps) {
        pins->next = files->maps->pins;
        pins->of = dfi_process()->files;
        pins->count = 0;
        files->maps->pins = pins;
        dfi_maps_oblige(files);
        bring_for(files, frame);
        pinned = pins->count > 0 && !is_made_outside(frame->nr);
        if (!pinned)
            files->maps->pins = pins->next;
    }
    dfi_maps_unlock(files);
    return pinned;
}

void dfi_files_untouch(struct dfi_pins *pins)
{
    struct dfi_files *files = owner();

    dfi_maps_lock(files);
    unpin(files->maps, pins);
    dfi_maps_unlock(files);
}

void dfi_maps_unpin(struct dfi_files *files, const struct dfi_files *of)
{
    struct dfi_pins **at;

    dfi_maps_lock(files);
    for (at = files->maps ? &files->maps->pins : NULL; at && *at;)
        if ((*at)->of == of)
            *at = (*at)->next;
        else
            at = &(*at)->next;
    dfi_maps_unlock(files);
}

/* ---- protection ------------------------------------------------------------------------------ */

/* What the kernel would refuse were the memory accessible: mprotect(2). 0 or -errno. */
static long check_wish(const struct dfi_files *files, const struct dfi_mapping *m, int prot)
{
    if (prot & ~PROTECTIONS)
        return -EINVAL;
    return m->shared && prot & PROT_WRITE && !dfi_maps_may_write(files, m) ? -EACCES : 0;
}

/* The call, for a part of its range and another protection; a key goes along. */
static long protect(const struct dfi_frame *frame, uintptr_t start, uintptr_t end, int prot)
{
    return dfi_kernel(frame->nr, start, end - start, prot, frame->args[3]);
}

/* The next piece of the range: late memory, of which the wish is noted, or what is between. */
static long protect_piece(struct dfi_files *files, const struct dfi_frame *frame, uintptr_t *start,
                          uintptr_t end)
{
    int prot = (int)frame->args[2];
    struct dfi_mapping *m = late_from(files, *start, end);
    uintptr_t from = *start;
    long ret;

    if (!m || m->start > from) {
        *start = m ? m->start : end;
        return protect(frame, from, *start, prot);
    }
    if ((ret = check_wish(files, m, prot)) < 0 || (ret = dfi_maps_split(files, from)) < 0 ||
        (ret = dfi_maps_split(files, end)) < 0)
        return ret;
    m = late_from(files, from, end);
    *start = m->end;
    ret = protect(frame, m->start, m->end, PROT_NONE);
    if (ret == 0)
        m->prot = prot;
    return ret;
}

long dfi_maps_protect(struct dfi_files *files, const struct dfi_frame *frame, uintptr_t end)
{
    uintptr_t start = frame->args[0];
    long ret = DFI_PASS;

    dfi_maps_lock(files);
    if (files->maps && start < end && late_from(files, start, end)) {
        files->maps->brought_end = 0;
        for (ret = 0; ret == 0 && start < end;)
            ret = protect_piece(files, frame, &start, end);
    }
    dfi_maps_unlock(files);
    return ret;
}

static bool unready(uintptr_t start, uintptr_t end)
{
    return dfi_kernel(__NR_mprotect, start, end - start, PROT_NONE) == 0;
}

/* Some of it may have been left behind: MADV_DONTFORK. */
static void unready_each(struct dfi_mapping *m)
{
    m->torn = true;
    for (uintptr_t at = m->start; at < m->end; at += DFI_PAGE)
        unready(at, at + DFI_PAGE);
}

void dfi_maps_born(struct dfi_files *files)
{
    dfi_held_born(files);
    if (!files->maps)
        return;
    files->maps->pins = NULL;
    files->maps->brought_end = 0;
    for (size_t i = 0; i < files->maps->count; i++) {
        struct dfi_mapping *m = &files->maps->list[i];

        m->locked = false;
        if (m->late && !unready(m->start, m->end))
            unready_each(m);
    }
}

/* A mapping that is torn, to be mended now. */
static bool take_torn(struct dfi_files *files, struct dfi_mapping *torn)
{
    for (size_t i = 0; files->maps && i < files->maps->count; i++) {
        struct dfi_mapping *m = &files->maps->list[i];

        *torn = *m;
        m->torn = false;
        if (torn->torn)
            return true;
    }
    return false;
}

/* Nobody has touched it yet: no memory of it is ready. */
void dfi_maps_settle(struct dfi_files *files)
{
    struct dfi_mapping m;
    uintptr_t to;

    while (take_torn(files, &m))
        for (uintptr_t at = m.start; at < m.end; at = to + DFI_PAGE) {
            for (to = at; to < m.end && !unready(to, to + DFI_PAGE);)
                to += DFI_PAGE;
            if (to > at)
                dfi_maps_cut(files, at, to);
        }
}

void dfi_maps_unready(struct dfi_files *files, uintptr_t start, uintptr_t end)
{
    struct dfi_mapping *m;

    dfi_maps_lock(files);
    files->maps->brought_end = 0;
    while (start < end && (m = late_from(files, start, end))) {
        uintptr_t from = m->start > start ? m->start : start, to = m->end < end ? m->end : end;

        dfi_kernel(__NR_mprotect, from, to - from, PROT_NONE);
        start = to;
    }
    dfi_maps_unlock(files);
}
