/*
 * companion.c - libraries that share variables with a program; see companion.h.
 */
#include "loader/companion.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "loader/constructors.h"
#include "loader/hooks.h"
#include "loader/image.h"
#include "loader/needed.h"
#include "loader/object.h"

/* An object that is being loaded: the program, or a companion. */
struct member {
    int fd; /* of its image */
    struct df_elf elf;
    const char *name; /* what others call it */
    char *alias;      /* what they are to call it; in its own image. NULL: the program */
    const struct link_map *map;
    struct df_constructors constructors;
};

struct company {
    struct member program;
    struct member list[DF_COMPANIONS_MAX];
    size_t count;
};

/* ---- which they are ---------------------------------------------------------------------------
 */

/* libc's have ways of their own: hooks_getopt.c, guest.c. */
static bool is_of_a_library(void *libc, const Elf64_Rela *relocation, const Elf64_Sym *symbol,
                            const char *name)
{
    (void)relocation;
    (void)symbol;
    return !dlsym(libc, name);
}

/* (RTLD_DEFAULT would be wrong: once a program has been loaded, its libraries are in our scope.) */
static bool has_data_of_libraries(const struct df_elf *program)
{
    void *libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
    bool found = libc && df_elf_visit_copies(program, is_of_a_library, libc);
    if (libc)
        dlclose(libc);
    return found;
}

static bool is_variable_here(void *library, const Elf64_Rela *relocation, const Elf64_Sym *symbol,
                             const char *name)
{
    const struct df_elf *elf = library;
    const Elf64_Sym *found = df_elf_symbol(elf, name, true);
    (void)relocation;
    (void)symbol;
    return found && df_elf_is_variable(elf, found->st_value);
}

/* A library that needs a companion is one: it is to see the same variables. */
static bool needs_chosen(const struct df_needed *needed, const bool *chosen,
                         const struct df_elf *elf)
{
    for (size_t i = 0; i < needed->count; i++)
        if (chosen[i] && df_elf_needs(elf, needed->list[i].name))
            return true;
    return false;
}

static size_t choose(const struct df_needed *needed, const struct df_elf *program, bool *chosen)
{
    size_t count = 0, before;
    for (size_t i = 0; i < needed->count; i++)
        count += chosen[i] =
            df_elf_visit_copies(program, is_variable_here, (void *)&needed->list[i].elf);
    do {
        before = count;
        for (size_t i = 0; i < needed->count; i++)
            if (!chosen[i] && needs_chosen(needed, chosen, &needed->list[i].elf))
                count += chosen[i] = true;
    } while (count != before);
    return count;
}

/* ---- their images -----------------------------------------------------------------------------
 */

static int open_member(struct member *member, int fd)
{
    member->fd = fd;
    return fd < 0 ? fd : df_image_inspect(fd, &member->elf);
}

/* No other object of the process has it; never longer than the name it replaces. 0 or -ENOEXEC. */
static int make_alias(struct member *member)
{
    static unsigned long last_serial; /* under the lock of library.h */
    char alias[32];
    const Elf64_Dyn *entry = df_elf_dynamic(&member->elf, DT_SONAME);
    char *name = entry ? df_elf_string(&member->elf, entry->d_un.d_val) : NULL;
    int length = snprintf(alias, sizeof(alias), "df-%lx", ++last_serial);
    if (!name || strcmp(name, member->name) != 0 || (size_t)length > strlen(name))
        return -ENOEXEC;
    member->alias = strcpy(name, alias);
    return 0;
}

/* The version-needs entry names a library by the same string. */
static void rename_needed(const struct df_elf *elf, const char *from, const char *to)
{
    for (size_t i = 0; i < elf->dynamic_count; i++) {
        if (elf->dynamic[i].d_tag != DT_NEEDED)
            continue;
        char *name = df_elf_string(elf, elf->dynamic[i].d_un.d_val);
        if (name && strcmp(name, from) == 0)
            strcpy(name, to);
    }
}

static int read_company(struct company *company, const struct df_needed *needed, const bool *chosen)
{
    for (size_t i = 0; i < needed->count; i++) {
        if (!chosen[i])
            continue;
        struct member *member = &company->list[company->count++];
        *member = (struct member){.name = needed->list[i].name};
        int error = open_member(member, df_image_copy(needed->list[i].path));
        if (!error)
            error = member->elf.kind == DF_ELF_MALFORMED ? -ENOEXEC : make_alias(member);
        if (error)
            return error;
    }
    return 0;
}

static void rewrite(const struct company *company, struct member *member)
{
    for (size_t i = 0; i < company->count; i++)
        rename_needed(&member->elf, company->list[i].name, company->list[i].alias);
    member->constructors = df_constructors_hold_back(&member->elf);
}

/* The program's descriptor is its object's. */
static void close_company(struct company *company)
{
    df_image_release(&company->program.elf);
    for (size_t i = 0; i < company->count; i++) {
        df_image_release(&company->list[i].elf);
        if (company->list[i].fd >= 0)
            close(company->list[i].fd);
    }
}

/* ---- loading them -----------------------------------------------------------------------------
 */

static void *load_member(struct member *member)
{
    struct link_map *map = NULL;
    void *handle = df_image_load(member->fd, RTLD_NOW | RTLD_LOCAL);
    if (handle && dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0)
        member->map = map;
    return handle;
}

/* Whether all companions that it needs are loaded; it may need itself. */
static bool is_ready(const struct company *company, const struct member *member)
{
    for (size_t i = 0; i < company->count; i++) {
        const struct member *other = &company->list[i];
        if (other != member && !other->map && df_elf_needs(&member->elf, other->alias))
            return false;
    }
    return !member->map;
}

static struct member *next(struct company *company)
{
    for (size_t i = 0; i < company->count; i++)
        if (is_ready(company, &company->list[i]))
            return &company->list[i];
    return NULL;
}

/* ---- one variable -----------------------------------------------------------------------------
 */

struct copying {
    const struct company *company;
    const struct member *member;
};

static int64_t tables[][2] = {{DT_RELA, DT_RELASZ}, {DT_JMPREL, DT_PLTRELSZ}};

static void bind_table(const struct member *member, const Elf64_Rela *table, size_t count,
                       const char *name, uintptr_t address)
{
    for (size_t i = 0; i < count; i++) {
        uint32_t type = ELF64_R_TYPE(table[i].r_info);
        size_t index = ELF64_R_SYM(table[i].r_info);
        if ((!SLOT_RELOCATION(type) && type != POINTER_RELOCATION) ||
            index >= member->elf.symbols_room)
            continue;
        const char *found = df_elf_string(&member->elf, member->elf.symbols[index].st_name);
        if (found && strcmp(found, name) == 0)
            df_hooks_write_slot(member->map->l_addr + table[i].r_offset,
                                (void *)(address + (uint64_t)table[i].r_addend),
                                member->map->l_addr, member->elf.segments,
                                member->elf.segment_count);
    }
}

/* Points a companion's references at the program's copy. */
static bool bind(void *argument, const Elf64_Rela *relocation, const Elf64_Sym *symbol,
                 const char *name)
{
    const struct copying *copying = argument;
    uintptr_t address = copying->company->program.map->l_addr + relocation->r_offset;
    (void)symbol;
    for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
        const Elf64_Rela *table;
        size_t count;
        if (df_elf_relocations(&copying->member->elf, tables[i][0], tables[i][1], &table, &count) ==
            0)
            bind_table(copying->member, table, count, name, address);
    }
    return false;
}

/* Where the dynamic linker takes write permission away from an object when it has relocated it. */
static void protect_again(const struct member *member)
{
    const uintptr_t page = (uintptr_t)getpagesize();
    for (size_t i = 0; i < member->elf.segment_count; i++) {
        const Elf64_Phdr *relro = &member->elf.segments[i];
        uintptr_t start = (member->map->l_addr + relro->p_vaddr) & -page;
        uintptr_t end = (member->map->l_addr + relro->p_vaddr + relro->p_memsz) & -page;
        if (relro->p_type == PT_GNU_RELRO && start < end)
            mprotect((void *)start, end - start, PROT_READ);
    }
}

/* Takes the copy anew, now that what is copied points at copies. */
static bool copy(void *argument, const Elf64_Rela *relocation, const Elf64_Sym *symbol,
                 const char *name)
{
    const struct copying *copying = argument;
    const uintptr_t page = (uintptr_t)getpagesize();
    uintptr_t to = copying->company->program.map->l_addr + relocation->r_offset;
    const Elf64_Sym *found = df_elf_symbol(&copying->member->elf, name, true);
    if (!found)
        return false;
    size_t size = symbol->st_size < found->st_size ? symbol->st_size : found->st_size;
    uintptr_t start = to & -page;
    if (mprotect((void *)start, to + size - start, PROT_READ | PROT_WRITE) == 0)
        memcpy((void *)to, (void *)(copying->member->map->l_addr + found->st_value), size);
    return false;
}

static void share(const struct company *company)
{
    for (size_t i = 0; i < company->count; i++) {
        struct copying copying = {company, &company->list[i]};
        df_elf_visit_copies(&company->program.elf, bind, &copying);
    }
    for (size_t i = 0; i < company->count; i++) {
        struct copying copying = {company, &company->list[i]};
        df_elf_visit_copies(&company->program.elf, copy, &copying);
    }
    protect_again(&company->program);
}

/* ---- constructors -----------------------------------------------------------------------------
 */

static void construct(const struct member *member)
{
    static char *arguments[] = {NULL};

    df_constructors_run(&member->constructors, member->map->l_addr, 0, arguments, environ);
}

/* ---- all of it --------------------------------------------------------------------------------
 */

/* Nothing of them runs before all are loaded. */
static void *load_with(struct df_companions *companions, struct company *company,
                       struct df_guest *guest, char *reason, size_t size)
{
    struct member *order[DF_COMPANIONS_MAX], *member;
    dlerror(); /* forgets the names that were not libc's */
    while ((member = next(company))) {
        void *handle = load_member(member);
        if (!handle)
            break;
        order[companions->count] = member;
        companions->handles[companions->count++] = handle;
    }
    void *handle = companions->count == company->count ? load_member(&company->program) : NULL;
    if (!handle) {
        const char *words = dlerror();
        snprintf(reason, size, "%s", words ? words : "its libraries need each other in a circle");
        df_companions_close(companions);
        return NULL;
    }
    share(company);
    for (size_t i = 0; i < companions->count; i++) {
        df_hooks_apply(order[i]->map, &order[i]->elf, guest);
        companions->linger |= df_object_lingers(&order[i]->elf);
        construct(order[i]);
    }
    return handle;
}

static int make_company(struct company *company, const struct df_needed *needed, int image)
{
    bool chosen[DF_NEEDED_MAX];
    int error = open_member(&company->program, image);
    if (error)
        return error;
    size_t count = choose(needed, &company->program.elf, chosen);
    if (count > DF_COMPANIONS_MAX)
        return -E2BIG;
    error = read_company(company, needed, chosen);
    if (error || company->count == 0)
        return error;
    for (size_t i = 0; i < company->count; i++)
        rewrite(company, &company->list[i]);
    rewrite(company, &company->program); /* the last: the names of the others may stand in it */
    return 0;
}

static void *load(struct df_companions *companions, const struct df_elf *program, int image,
                  struct df_guest *guest, char *reason, size_t size)
{
    struct company *company = calloc(1, sizeof(*company));
    struct df_needed *needed = calloc(1, sizeof(*needed));
    void *handle = NULL;
    int error = company && needed ? 0 : -ENOMEM;
    if (!error) {
        df_needed_find(needed, program);
        error = make_company(company, needed, image);
    }
    if (error)
        snprintf(reason, size,
                 "it shares variables with its libraries, of which private copies cannot be made "
                 "(%s): mount it with placement \"helper\", in a process of its own",
                 strerror(-error));
    else
        handle = load_with(companions, company, guest, reason, size);
    if (company)
        close_company(company);
    if (needed)
        df_needed_forget(needed);
    free(company);
    free(needed);
    return handle;
}

void *df_companions_load(struct df_companions *companions, int image, struct df_guest *guest,
                         char *reason, size_t size)
{
    struct df_elf program;
    void *handle;
    *companions = (struct df_companions){.count = 0};
    int error = df_image_inspect(image, &program);
    if (error) {
        snprintf(reason, size, "%s", strerror(-error));
        return NULL;
    }
    if (has_data_of_libraries(&program))
        handle = load(companions, &program, image, guest, reason, size);
    else if (!(handle = df_image_load(image, RTLD_NOW | RTLD_LOCAL)))
        snprintf(reason, size, "%s", dlerror());
    df_image_release(&program);
    return handle;
}

void df_companions_close(struct df_companions *companions)
{
    while (companions->count > 0)
        dlclose(companions->handles[--companions->count]);
}
