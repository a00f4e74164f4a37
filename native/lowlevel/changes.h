/*
 * changes.h - what is told of changes (core/changes.h).
 */
#ifndef DF_LOWLEVEL_CHANGES_H
#define DF_LOWLEVEL_CHANGES_H

#include "lowlevel/private.h"

/* An op that changes names or attributes begins: all that it changes is told from here on. */
static inline void df_lowlevel_tells(const struct df_call *call)
{
    if (DF_UNLIKELY(call->changes))
        call->changes->listings = call->changes->answers = true;
}

void df_lowlevel_tell_bytes(struct df_changes *changes, const struct df_node *node);
void df_lowlevel_tell_names(struct df_changes *changes, const struct df_node *dir);
void df_lowlevel_tell_made(struct df_changes *changes, const struct df_node *dir,
                           const struct df_node_name *name, mode_t type);
void df_lowlevel_tell_lost(struct df_changes *changes, const struct df_node *node);
void df_lowlevel_tell_attr(struct df_changes *changes, const struct df_node *node, bool access);

/* Before the plugin is asked. The names of a directory are changed. */
#define DF_TELL_NAMES(call, dir) DF_TELL(call, names, dir)

/* The same by a name that is made there, for something of that type. */
#define DF_TELL_MADE(call, dir, name, type) DF_TELL(call, made, dir, name, type)

/* A node loses a name; if it moves, for another one. */
#define DF_TELL_LOST(call, node) DF_TELL(call, lost, node)

/* Its attributes are changed, and if `access` perhaps who may do what with it. */
#define DF_TELL_ATTR(call, node, access) DF_TELL(call, attr, node, access)

/* The bytes of a file, as a whole. */
#define DF_TELL_BYTES(call, node) DF_TELL(call, bytes, node)

#define DF_TELL(call, what, ...)                                                                   \
    do {                                                                                           \
        if (DF_UNLIKELY((call)->changes))                                                          \
            df_lowlevel_tell_##what((call)->changes, __VA_ARGS__);                                 \
    } while (0)

#endif
