/*
 * proc_maps.c - whose memory is which: the kernel's list, with what it does not know.
 *
 * What the kernel shows are our copies: anonymous memory, files of the run's directory, and the
 * memfd that the program is. What lies in each line is looked up in the lists of mappings (map.h,
 * map_copies.h), and the line is cut where the kernel has merged what are several files here.
 */
#include "shown/proc_maps_private.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "client/number.h"
#include "core/calls.h"
#include "core/fd.h"
#include "intercept/brief.h"
#include "intercept/text.h"
#include "shown/replace.h"
#include "ways/proc.h"

#define NAME_COLUMN 73 /* of a line: fs/proc/task_mmu.c */
#define BUFFER      (4 * PATH_MAX)

/* ---- lines ----------------------------------------------------------------------------------- */

static void write_out(struct dfi_maps_job *job, const char *text, size_t size)
{
    long ret = job->error < 0 ? job->error : dfi_kernel(__NR_write, job->to, text, size);

    if (ret < 0 || (size_t)ret != size)
        job->error = ret < 0 ? ret : -ENOSPC;
}

static void add_range(struct dfi_text *text, const struct dfi_area *area)
{
    dfi_text_add_digits(text, area->start, 8);
    dfi_text_add(text, "-");
    dfi_text_add_digits(text, area->end, 8);
    dfi_text_add(text, " ");
    dfi_text_add_size(text, area->rights, sizeof(area->rights));
    dfi_text_add(text, " ");
}

/* Only a newline is escaped there. */
static void add_name(struct dfi_text *text, const char *name)
{
    while (text->used < NAME_COLUMN)
        dfi_text_add(text, " ");
    for (; *name != '\0'; name++)
        dfi_text_add_size(text, *name == '\n' ? "\\012" : name, *name == '\n' ? 4 : 1);
}

static void write_last(struct dfi_maps_job *job)
{
    char line[BUFFER + 256];
    struct dfi_text text = DFI_TEXT(line);

    if (job->last.end == 0)
        return;
    dfi_shows_name(job, job->last.of);
    add_range(&text, &job->last);
    dfi_text_add_digits(&text, job->last.offset, 8);
    dfi_text_add(&text, " ");
    dfi_text_add_digits(&text, major(job->dev), 2);
    dfi_text_add(&text, ":");
    dfi_text_add_digits(&text, minor(job->dev), 2);
    dfi_text_add(&text, " ");
    dfi_text_add_number(&text, job->ino);
    add_name(&text, job->name);
    dfi_text_add(&text, "\n");
    write_out(job, line, text.used);
    job->last.end = 0;
}

/* What the kernel has cut because some of it is not there yet is one. */
static bool goes_on(const struct dfi_area *last, const struct dfi_area *area)
{
    return last->end == area->start && last->of == area->of &&
           memcmp(last->rights, area->rights, sizeof(last->rights)) == 0 &&
           last->offset + (last->end - last->start) == area->offset;
}

static void put_ours(struct dfi_maps_job *job, const struct dfi_area *area)
{
    if (!job->is_smaps && job->last.end != 0 && goes_on(&job->last, area)) {
        job->last.end = area->end;
        return;
    }
    write_last(job);
    job->last = *area;
    if (job->is_smaps)
        write_last(job);
}

/* rest: behind the rights, with the newline. */
static void put_kernels(struct dfi_maps_job *job, const struct dfi_area *area, const char *rest,
                        size_t size)
{
    char range[64];
    struct dfi_text text = DFI_TEXT(range);

    write_last(job);
    add_range(&text, area);
    write_out(job, range, text.used);
    write_out(job, rest, size);
}

static void set_rights(struct dfi_area *area, int prot)
{
    area->rights[0] = prot & PROT_READ ? 'r' : '-';
    area->rights[1] = prot & PROT_WRITE ? 'w' : '-';
    area->rights[2] = prot & PROT_EXEC ? 'x' : '-';
}

/* [start, end) of a line of the kernel's, of which s is all there is to know. */
static void put_shown(struct dfi_maps_job *job, const struct dfi_area *line,
                      const struct dfi_shows *s)
{
    struct dfi_area area = *line;

    area.of = s->of;
    area.offset = s->offset + (area.start - s->start);
    if (s->prot >= 0)
        set_rights(&area, s->prot);
    put_ours(job, &area);
}

static void put_line(struct dfi_maps_job *job, const struct dfi_area *line, const char *rest,
                     size_t size)
{
    struct dfi_area area = *line;
    const struct dfi_shows *s;

    while (area.start < line->end) {
        s = dfi_shows_next(job, area.start);
        if (!s || s->start >= line->end ||
            (job->is_smaps && (s->start > line->start || s->end < line->end))) {
            area.end = line->end;
            put_kernels(job, &area, rest, size);
        } else if (s->start > area.start) {
            area.end = s->start;
            put_kernels(job, &area, rest, size);
        } else {
            area.end = s->end < line->end ? s->end : line->end;
            put_shown(job, &area, s);
        }
        area.start = area.end;
    }
}

/* The memfd that the program is, mapped as the file would be. Its first mapping is known. id: what
 * comes behind the offset. */
static bool is_program(struct dfi_maps_job *job, uintptr_t start, const char *id)
{
    size_t len = strspn(id, "0123456789abcdef: ");

    if (!job->program || len >= sizeof(job->program_id))
        return false;
    if (start == dfi_process()->exe->start)
        *(char *)mempcpy(job->program_id, id, len) = '\0';
    return strncmp(id, job->program_id, len) == 0 && job->program_id[len] == '\0';
}

/* A line with its newline. */
static void put(struct dfi_maps_job *job, const char *line, size_t size)
{
    const char *at = line, *behind;
    struct dfi_area area = {.start = dfi_number_get_hex(&at)};

    if (at == line || *at != '-') { /* of smaps */
        write_out(job, line, size);
        return;
    }
    at++;
    area.end = dfi_number_get_hex(&at);
    memcpy(area.rights, at + 1, sizeof(area.rights));
    at += 2 + sizeof(area.rights);
    behind = at;
    area.offset = dfi_number_get_hex(&behind);
    if (is_program(job, area.start, behind + 1)) {
        area.of = job->program;
        put_ours(job, &area);
    } else {
        put_line(job, &area, at, size - (size_t)(at - line));
    }
}

/* ---- the file -------------------------------------------------------------------------------- */

/* NULL: the rest of it has not been read yet. */
static char *line_end(char *at)
{
    while (*at != '\n' && *at != '\0')
        at++;
    return *at == '\n' ? at + 1 : NULL;
}

static void copy_lines(struct dfi_maps_job *job, int from)
{
    char *buffer = dfi_alloc(BUFFER), *line, *end;
    size_t kept = 0;
    long got;

    if (!buffer)
        job->error = -ENOMEM;
    while (job->error == 0 &&
           (got = dfi_kernel(__NR_read, from, buffer + kept, BUFFER - 1 - kept)) > 0) {
        kept += (size_t)got;
        buffer[kept] = '\0';
        for (line = buffer; (end = line_end(line)); line = end)
            put(job, line, (size_t)(end - line));
        kept -= (size_t)(line - buffer);
        memmove(buffer, line, kept);
    }
    write_last(job);
    dfi_free(buffer);
}

/* Which of the two it is called; NULL: neither. */
static const char *word_of(const char *path)
{
    const char *last = dfi_text_base(path);

    return strcmp(last, "maps") == 0 || strcmp(last, "smaps") == 0 ? last : NULL;
}

/* That lies in a mount; NULL: it does not. */
static struct dfi_copied *program_of_mount(void)
{
    char name[PATH_MAX];
    struct stat st;

    if (!dfi_process()->exe)
        return NULL;
    dfi_proc_exe(name);
    return df_call_fstatat(AT_FDCWD, name, &st, 0) == DF_NOT_OURS ? NULL : dfi_copied_new(name);
}

static long write_anew(struct dfi_maps_job *job, int fd)
{
    long memory;

    if (job->count == 0 && !job->program)
        return fd;
    memory = dfi_brief(__NR_memfd_create, job->is_smaps ? "smaps" : "maps", MFD_CLOEXEC);
    job->to = (int)memory;
    job->error = memory < 0 ? memory : 0;
    copy_lines(job, fd);
    return dfi_proc_replace(fd, memory, job->error);
}

long dfi_proc_maps(struct dfi_files *files, const char *path, int fd)
{
    const char *word = word_of(path);
    struct dfi_maps_job *job;
    long ret;

    if (!word || !dfi_proc_is_own(fd, word))
        return fd;
    if (!(job = dfi_alloc(sizeof(*job))))
        return dfi_proc_replace(fd, -1, -ENOMEM);
    job->is_smaps = word[0] == 's';
    job->program = program_of_mount();
    if (dfi_shows_take(job, files))
        ret = write_anew(job, fd);
    else
        ret = dfi_proc_replace(fd, -1, -ENOMEM);
    dfi_shows_drop(job, files);
    dfi_free(job);
    return ret;
}
