/*
 * shadow_kept.c - data files by the names under which they are kept; see shadow_kept.h.
 */
#include "shadows/shadow_kept.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "channel/frames.h"
#include "client/number.h"
#include "intercept/brief.h"
#include "intercept/text.h"
#include "shadows/shadow.h"

#define KEPT_DATA   'k'
#define KEPT_CHUNKS 'l'

/* ---- which bytes a file has ------------------------------------------------------------------ */

static bool is_written_to(const struct dfi_files *files, const struct df_ofd *ofd)
{
    struct dfi_shadow_look look = {0};
    const struct df_ofd *at;

    while ((at = dfi_shadow_next(files, ofd, &look)))
        if ((atomic_load(&at->flags) & O_ACCMODE) != O_RDONLY)
            return true;
    return false;
}

/* What is known of the file's bytes; NULL: nothing. */
static struct df_content *content_of(const struct dfi_files *files, const struct df_ofd *ofd)
{
    const struct df_segment *segment = files->link.segment;
    uint32_t content = atomic_load_explicit(&ofd->content, memory_order_acquire);

    if (segment->frames_size == 0 || content == 0 ||
        content >= df_frames_of(segment)->content_count)
        return NULL;
    return df_content_number(df_frames_of(segment), content);
}

struct dfi_kept dfi_kept_of(const struct dfi_files *files, const struct df_ofd *ofd,
                            uint64_t handle)
{
    const struct df_content *content = content_of(files, ofd);
    struct dfi_kept kept = {0};

    if (!content)
        return kept;
    kept.written = atomic_load(&content->written);
    kept.id = df_content_id_of(files->link.segment, ofd, handle);
    return kept;
}

struct dfi_kept dfi_kept_now(const struct dfi_files *files, const struct df_ofd *ofd,
                             uint64_t handle)
{
    struct dfi_kept kept = dfi_kept_of(files, ofd, handle);

    if (kept.id != 0 && is_written_to(files, ofd)) /* a write may have been counted already */
        kept.id = 0;
    return kept;
}

/* Two pairs that give the same number do no harm. By the same open file nothing is said of the
 * next: where opens end caches, it has other bytes. */
bool dfi_kept_again(const struct dfi_files *files, const struct df_ofd *ofd, uint64_t handle)
{
    struct df_content *content = content_of(files, ofd);
    struct dfi_kept kept = dfi_kept_of(files, ofd, handle);
    uint64_t bytes = kept.id * UINT64_C(0x9e3779b97f4a7c15) ^ kept.written;

    if (!content || kept.id == 0)
        return false;
    if (atomic_exchange_explicit(&content->copied, bytes, memory_order_relaxed) != bytes) {
        atomic_store_explicit(&content->by, handle, memory_order_relaxed);
        return false;
    }
    return atomic_load_explicit(&content->by, memory_order_relaxed) != handle &&
           !is_written_to(files, ofd);
}

bool dfi_kept_holds(const struct dfi_files *files, const struct df_ofd *ofd, uint64_t handle,
                    const struct dfi_kept *kept)
{
    struct dfi_kept later = dfi_kept_of(files, ofd, handle);

    return later.id == kept->id && later.written == kept->written;
}

/* ---- names ----------------------------------------------------------------------------------- */

void dfi_kept_name(const struct dfi_files *files, char letter, const struct df_ofd *ofd,
                   const struct dfi_kept *kept, char name[DFI_KEPT_NAME_MAX])
{
    char *end;

    dfi_shadow_name(files, letter, (uint32_t)ofd->mount, ofd->ino, name);
    end = name + strlen(name);
    *end++ = '.';
    end = dfi_number_put(end, kept->id);
    *end++ = '.';
    end = dfi_number_put(end, kept->written);
    *end = '\0';
}

/* Each of the two is another name of the other's file. */
static long add_name(const struct dfi_files *files, const struct df_ofd *ofd,
                     const struct dfi_kept *kept, char letter, bool take)
{
    char kept_as[DFI_KEPT_NAME_MAX], used_as[DFI_SHADOW_NAME_MAX];

    dfi_kept_name(files, letter == DFI_SHADOW_DATA ? KEPT_DATA : KEPT_CHUNKS, ofd, kept, kept_as);
    dfi_shadow_name(files, letter, (uint32_t)ofd->mount, ofd->ino, used_as);
    return take ? dfi_kernel(__NR_link, kept_as, used_as) : dfi_kernel(__NR_link, used_as, kept_as);
}

static bool has_size(const struct dfi_files *files, const struct df_ofd *ofd, off_t size)
{
    char name[DFI_SHADOW_NAME_MAX];
    struct stat st;

    dfi_shadow_name(files, DFI_SHADOW_DATA, (uint32_t)ofd->mount, ofd->ino, name);
    return dfi_kernel(__NR_stat, name, &st) == 0 && st.st_size == size;
}

bool dfi_kept_take(const struct dfi_files *files, const struct df_ofd *ofd,
                   const struct dfi_kept *kept, off_t size, bool chunked)
{
    if (kept->id == 0 || add_name(files, ofd, kept, DFI_SHADOW_DATA, true) < 0)
        return false;
    if (has_size(files, ofd, size) &&
        (!chunked || add_name(files, ofd, kept, DFI_SHADOW_CHUNKS, true) == 0))
        return true;
    dfi_shadow_forget(files, ofd);
    return false;
}

/* The list first: who finds the data finds it, too. */
void dfi_kept_leave(const struct dfi_files *files, const struct df_ofd *ofd,
                    const struct dfi_kept *kept, bool chunked)
{
    if (kept->id != 0 && (!chunked || add_name(files, ofd, kept, DFI_SHADOW_CHUNKS, false) == 0))
        add_name(files, ofd, kept, DFI_SHADOW_DATA, false);
}

/* ---- room ------------------------------------------------------------------------------------ */

static uint64_t bytes_of(long directory, const char *name)
{
    struct stat st;

    return dfi_kernel(__NR_newfstatat, directory, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
                   S_ISREG(st.st_mode)
               ? (uint64_t)st.st_blocks * 512
               : 0;
}

static uint64_t drop_one(long directory, const char *name)
{
    return dfi_kernel(__NR_unlinkat, directory, name, 0) == 0;
}

/* The sum of what `of` says of each name. */
static uint64_t each(const struct dfi_files *files, char letter,
                     uint64_t (*of)(long directory, const char *name))
{
    _Alignas(8) char path[DFI_SHADOW_NAME_MAX], entries[2048];
    const char below[] = {'/', letter, '\0'};
    uint64_t sum = 0;
    long fd, got;

    strcpy(mempcpy(path, files->shadow, files->shadow_len), below);
    fd = dfi_brief_open(path, O_RDONLY | O_DIRECTORY);
    if (fd < 0)
        return 0;
    while ((got = dfi_kernel(__NR_getdents64, fd, entries, sizeof(entries))) > 0)
        for (long at = 0; at < got; at += ((struct dfi_dirent *)(entries + at))->size)
            sum += of(fd, ((struct dfi_dirent *)(entries + at))->name);
    dfi_brief_close(fd);
    return sum;
}

uint64_t dfi_kept_bytes(const struct dfi_files *files, char letter)
{
    return each(files, letter, bytes_of);
}

bool dfi_kept_drop_code(const struct dfi_files *files)
{
    return each(files, DFI_KEPT_CODE, drop_one) > 0;
}

bool dfi_kept_drop(const struct dfi_files *files)
{
    const char letters[] = {KEPT_DATA, KEPT_CHUNKS, DFI_KEPT_CODE};
    uint64_t any = 0;

    for (size_t i = 0; i < sizeof(letters); i++)
        any += each(files, letters[i], drop_one);
    return any > 0;
}
