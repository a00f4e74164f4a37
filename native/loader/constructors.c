/*
 * constructors.c - hides the constructors of an object, and runs them; see constructors.h.
 */
#include "loader/constructors.h"

#include <string.h>

typedef void constructor(int argc, char **argv, char **environment);

/* The tag of an entry that the dynamic linker is not to see: one for operating systems to use. */
enum { UNSEEN = DT_LOOS + 0xdf };

static uint64_t take(const struct df_elf *elf, int64_t tag)
{
    Elf64_Dyn *entry = df_elf_dynamic(elf, tag);
    if (!entry)
        return 0;
    entry->d_tag = UNSEEN;
    return entry->d_un.d_val;
}

struct df_constructors df_constructors_hold_back(const struct df_elf *elf)
{
    struct df_constructors held = {
        .init = take(elf, DT_INIT),
        .array = take(elf, DT_INIT_ARRAY),
        .count = take(elf, DT_INIT_ARRAYSZ) / sizeof(uintptr_t),
    };
    if (!held.array)
        held.count = 0;
    return held;
}

void df_constructors_run(const struct df_constructors *held, uintptr_t base, int argc, char **argv,
                         char **environment)
{
    if (held->init) {
        uintptr_t address = base + held->init;
        constructor *init;
        memcpy(&init, &address, sizeof(init));
        init(argc, argv, environment);
    }
    constructor *const *array = (constructor *const *)(base + held->array);
    for (size_t i = 0; i < held->count; i++)
        array[i](argc, argv, environment);
}
