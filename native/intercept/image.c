/*
 * image.c - mapping an ELF program or its interpreter, as execve(2) does.
 *
 * A position-independent image gets one reservation of its whole span, aligned as its segments
 * want, and its segments are placed in it. A fixed one is placed where it says, or not at all.
 */
#include "intercept/image.h"

#include "intercept/image_head.h"
#include "intercept/learn.h"
#include "intercept/maps.h"
#include "intercept/mem.h"
#include "intercept/rewrite.h"

#include <linux/elf.h>

#define PROT_READ           1
#define PROT_WRITE          2
#define PROT_EXEC           4

#define MAP_PRIVATE         0x02
#define MAP_FIXED           0x10
#define MAP_ANONYMOUS       0x20
#define MAP_NORESERVE       0x4000
#define MAP_FIXED_NOREPLACE 0x100000

struct image {
    int fd;
    const Elf64_Ehdr *elf; /* in head */
    const Elf64_Phdr *segments;
    void *memory;               /* of segments that are not in head */
    uintptr_t low, high, align; /* of all PT_LOAD, as the file says */
    uintptr_t base;
    const Elf64_Phdr *mapped; /* with the reservation; NULL: none */
    uintptr_t own, own_end;   /* of one that is fixed: what it has taken last, in one piece */
    struct dfi_head head;
};

static uintptr_t down(uintptr_t at)
{
    return at & -DFI_PAGE;
}

static uintptr_t up(uintptr_t at)
{
    return down(at + DFI_PAGE - 1);
}

static bool is_error(long result)
{
    return result < 0 && result > -4096;
}

static long read_headers(struct image *image)
{
    if (dfi_image_look(image->fd, &image->head, NULL) != DFI_IMAGE_ELF)
        return -ENOEXEC;
    image->elf = (const Elf64_Ehdr *)image->head.bytes;
    image->segments = dfi_image_segments(image->fd, &image->head, &image->memory);
    return image->segments == NULL ? -ENOEXEC : 0;
}

static long measure(struct image *image)
{
    image->low = UINTPTR_MAX;
    image->high = 0;
    image->align = DFI_PAGE;
    for (unsigned i = 0; i < image->elf->e_phnum; i++) {
        const Elf64_Phdr *segment = &image->segments[i];
        if (segment->p_type != PT_LOAD)
            continue;
        uintptr_t end = segment->p_vaddr + segment->p_memsz;
        if (end < segment->p_vaddr || end > DFI_USER_END || segment->p_filesz > segment->p_memsz)
            return -ENOEXEC;
        if (down(segment->p_vaddr) < image->low)
            image->low = down(segment->p_vaddr);
        if (up(end) > image->high)
            image->high = up(end);
        bool power = (segment->p_align & (segment->p_align - 1)) == 0;
        if (power && segment->p_align > image->align && segment->p_align < DFI_USER_END)
            image->align = segment->p_align; /* what no address has is not asked of one */
    }
    return image->low < image->high ? 0 : -ENOEXEC;
}

static int protection(const Elf64_Phdr *segment)
{
    return ((segment->p_flags & PF_R) != 0 ? PROT_READ : 0) |
           ((segment->p_flags & PF_W) != 0 ? PROT_WRITE : 0) |
           ((segment->p_flags & PF_X) != 0 ? PROT_EXEC : 0);
}

/* The first of the segments if they leave no page between them, and it is all from the file. */
static const Elf64_Phdr *first_of_gapless(const struct image *image)
{
    const Elf64_Phdr *first = NULL;
    uintptr_t end = image->low;
    for (unsigned i = 0; i < image->elf->e_phnum; i++) {
        const Elf64_Phdr *segment = &image->segments[i];
        if (segment->p_type != PT_LOAD)
            continue;
        if (down(segment->p_vaddr) != end)
            return NULL;
        end = up(segment->p_vaddr + segment->p_memsz);
        if (first == NULL)
            first = segment;
    }
    return first->p_filesz == first->p_memsz && first->p_filesz > 0 ? first : NULL;
}

/* A place for the whole image, as the first segment if the others will cover what is too much. */
static long reserve_whole(struct image *image, const Elf64_Phdr *first)
{
    uintptr_t offset = first->p_offset - (first->p_vaddr - image->low);
    long at = dfi_kernel(__NR_mmap, 0, image->high - image->low, protection(first), MAP_PRIVATE,
                         image->fd, offset);
    if (is_error(at))
        return at;
    image->base = (uintptr_t)at - image->low;
    image->mapped = first;
    return 0;
}

/* A place for the whole image; what alignment took too much is given back. */
static long reserve(struct image *image)
{
    image->mapped = NULL;
    image->base = 0;
    if (image->elf->e_type == ET_EXEC)
        return 0;
    const Elf64_Phdr *first = image->align == DFI_PAGE ? first_of_gapless(image) : NULL;
    if (first != NULL)
        return reserve_whole(image, first);
    size_t size = image->high - image->low, slack = image->align - DFI_PAGE;
    long at = dfi_kernel(__NR_mmap, 0, size + slack, 0, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                         -1, 0);
    if (is_error(at))
        return at;
    uintptr_t start = ((uintptr_t)at + slack) & -image->align;
    if (start > (uintptr_t)at)
        dfi_kernel(__NR_munmap, at, start - (uintptr_t)at);
    if (start + size < (uintptr_t)at + size + slack)
        dfi_kernel(__NR_munmap, start + size, (uintptr_t)at + slack - start);
    image->base = start - image->low;
    return 0;
}

/*
 * An image with an address of its own may map over what it has itself taken, for its segments may
 * overlap; and over nothing else. The flag that says so.
 */
static long take_place(struct image *image, uintptr_t at, size_t size)
{
    uintptr_t end = at + size, rest = image->own_end;
    if (image->elf->e_type != ET_EXEC)
        return MAP_FIXED;
    if (at < image->own || at >= image->own_end) {
        image->own = at;
        image->own_end = end;
        return MAP_FIXED_NOREPLACE;
    }
    if (end <= rest)
        return MAP_FIXED;
    image->own_end = end;
    long got = dfi_kernel(__NR_mmap, rest, end - rest, 0,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    return is_error(got) ? got : MAP_FIXED;
}

static long place(struct image *image, uintptr_t at, size_t size, int prot, long flags,
                  uintptr_t offset)
{
    long fixed = take_place(image, at, size), got;
    if (is_error(fixed))
        return fixed;
    flags |= fixed;
    bool anonymous = (flags & MAP_ANONYMOUS) != 0;
    if (!anonymous && prot == (PROT_READ | PROT_EXEC))
        got = dfi_rewrite_map(at, size, (unsigned long)flags, image->fd, offset);
    else
        got = dfi_kernel(__NR_mmap, at, size, prot, flags, anonymous ? -1 : image->fd, offset);
    return is_error(got) ? got : 0;
}

/* The file's bytes, then zeros: in what is left of the last page, and on pages of their own. */
static long map_segment(struct image *image, const Elf64_Phdr *segment)
{
    uintptr_t start = image->base + segment->p_vaddr, page = down(start);
    uintptr_t file_end = start + segment->p_filesz, end = start + segment->p_memsz;
    int prot = protection(segment);
    long result = 0;
    if (segment->p_filesz > 0 && segment != image->mapped)
        result = place(image, page, up(file_end) - page, prot, MAP_PRIVATE,
                       segment->p_offset - (start - page));
    if (segment == image->mapped && prot == (PROT_READ | PROT_EXEC))
        dfi_maps_known(page, up(file_end), DFI_LEARN_NONE, 0);
    if (result < 0 || end == file_end)
        return result;
    uintptr_t zeros = segment->p_filesz > 0 ? up(file_end) : page;
    if (segment->p_filesz > 0 && (prot & PROT_WRITE) != 0)
        memset((void *)file_end, 0, zeros - file_end);
    if (up(end) > zeros)
        result = place(image, zeros, up(end) - zeros, prot, MAP_PRIVATE | MAP_ANONYMOUS, 0);
    return result;
}

static void describe(const struct image *image, struct dfi_map *map)
{
    map->base = image->base;
    map->start = image->base + image->low;
    map->end = image->base + image->high;
    map->first_end = 0;
    map->headers = 0;
    map->executable_stack = false;
    map->entry = image->base + image->elf->e_entry;
    map->headers_count = image->elf->e_phnum;
    for (unsigned i = 0; i < image->elf->e_phnum; i++) {
        const Elf64_Phdr *segment = &image->segments[i];
        Elf64_Off offset = image->elf->e_phoff;
        if (segment->p_type == PT_LOAD && map->first_end == 0)
            map->first_end = up(image->base + segment->p_vaddr + segment->p_filesz);
        if (segment->p_type == PT_GNU_STACK)
            map->executable_stack = (segment->p_flags & PF_X) != 0;
        if (segment->p_type == PT_LOAD && segment->p_offset <= offset &&
            offset < segment->p_offset + segment->p_filesz)
            map->headers = image->base + segment->p_vaddr + offset - segment->p_offset;
    }
}

long dfi_map_image(int fd, struct dfi_map *map)
{
    struct image image;
    image.fd = fd;
    image.memory = NULL;
    image.own = image.own_end = 0;
    long result = read_headers(&image);
    if (result == 0)
        result = measure(&image);
    if (result == 0)
        result = reserve(&image);
    for (unsigned i = 0; result == 0 && i < image.elf->e_phnum; i++) {
        if (image.segments[i].p_type == PT_LOAD)
            result = map_segment(&image, &image.segments[i]);
    }
    if (result == 0)
        describe(&image, map);
    dfi_free(image.memory);
    return result;
}
