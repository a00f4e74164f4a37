/*
 * acl.c - what an access control list is, and what it lets a caller do. See acl.h.
 */
#include "host/acl.h"

#include <endian.h>
#include <errno.h>
#include <linux/posix_acl.h>
#include <linux/posix_acl_xattr.h>
#include <stdint.h>
#include <string.h>

#include "core/caller.h"

struct acl {
    char *entries; /* of 8 bytes each, and not aligned to anything */
    size_t count;
};

struct entry {
    unsigned tag, rights, id;
};

static struct entry entry_at(const struct acl *acl, size_t index)
{
    struct posix_acl_xattr_entry found;

    memcpy(&found, acl->entries + index * sizeof(found), sizeof(found));
    return (struct entry){le16toh(found.e_tag), le16toh(found.e_perm), le32toh(found.e_id)};
}

/* posix_acl_from_xattr(), which looks at no entry's place among the others. */
static int parse(const void *list, size_t size, struct acl *acl)
{
    const unsigned known =
        ACL_USER_OBJ | ACL_USER | ACL_GROUP_OBJ | ACL_GROUP | ACL_MASK | ACL_OTHER;
    struct posix_acl_xattr_header header;
    const size_t each = sizeof(struct posix_acl_xattr_entry);

    if (size < sizeof(header))
        return -EINVAL;
    memcpy(&header, list, sizeof(header));
    if (le32toh(header.a_version) != POSIX_ACL_XATTR_VERSION)
        return -EOPNOTSUPP;
    if ((size - sizeof(header)) % each != 0)
        return -EINVAL;
    *acl = (struct acl){(char *)(uintptr_t)list + sizeof(header), (size - sizeof(header)) / each};
    for (size_t i = 0; i < acl->count; i++) {
        struct entry entry = entry_at(acl, i);

        if (entry.tag == 0 || entry.tag & ~known || entry.tag & (entry.tag - 1) ||
            (entry.tag & (ACL_USER | ACL_GROUP) && entry.id == (unsigned)ACL_UNDEFINED_ID))
            return -EINVAL;
    }
    return 0;
}

static unsigned mask_behind(const struct acl *acl, size_t index)
{
    while (++index < acl->count) {
        struct entry entry = entry_at(acl, index);

        if (entry.tag == ACL_MASK)
            return entry.rights;
    }
    return 7;
}

static bool names_caller(const struct df_caller *caller, const struct stat *st,
                         const struct entry *entry)
{
    switch (entry->tag) {
    case ACL_USER:
        return caller->uid == entry->id;
    case ACL_GROUP_OBJ:
        return df_caller_in_group(caller, st->st_gid);
    case ACL_GROUP:
        return df_caller_in_group(caller, entry->id);
    default:
        return entry->tag == ACL_OTHER;
    }
}

/* The first entry of a user decides, or the first of a group that has all that is wanted; others
 * are who is in no group of the list. */
static int consult(const struct df_caller *caller, const struct stat *st, const struct acl *acl,
                   unsigned wanted)
{
    bool in_group = false;

    for (size_t i = 0; i < acl->count; i++) {
        struct entry entry = entry_at(acl, i);
        bool has_all = (entry.rights & wanted) == wanted;

        if (!names_caller(caller, st, &entry))
            continue;
        if (entry.tag == ACL_OTHER)
            return has_all && !in_group ? 0 : -EACCES;
        if (entry.tag == ACL_USER || has_all)
            return has_all && (mask_behind(acl, i) & wanted) == wanted ? 0 : -EACCES;
        in_group = true;
    }
    return -EIO;
}

int df_acl_check(const struct df_caller *caller, const struct stat *st, const void *list,
                 ssize_t answer, int mask)
{
    struct acl acl;
    int result;

    if (answer == 0 || answer == -ENODATA || answer == -EOPNOTSUPP)
        return DF_ACL_ABSENT;
    if (answer < 0)
        return answer == -ERANGE ? -E2BIG : (int)answer;
    result = parse(list, (size_t)answer, &acl);
    if (result)
        return result;
    return acl.count == 0 ? DF_ACL_ABSENT : consult(caller, st, &acl, (unsigned)mask & 7);
}

/* ---- the attribute --------------------------------------------------------------------------- */

bool df_acl_is_name(const char *name)
{
    return strcmp(name, DF_ACL_ACCESS) == 0 || strcmp(name, "system.posix_acl_default") == 0;
}

ssize_t df_acl_get(void *list, ssize_t answer)
{
    struct acl acl;
    int result;

    if (answer <= 0)
        return answer == 0 ? -ENODATA : answer;
    result = parse(list, (size_t)answer, &acl);
    if (result)
        return result;
    for (size_t i = 0; i < acl.count; i++)
        if (!(entry_at(&acl, i).tag & (ACL_USER | ACL_GROUP)))
            memset(acl.entries + i * sizeof(struct posix_acl_xattr_entry) +
                       offsetof(struct posix_acl_xattr_entry, e_id),
                   0xff, sizeof(uint32_t));
    return acl.count > 0 ? answer : -ENODATA;
}

/* The tags that may follow: of the entries that name somebody there may be any number; with one
 * there has to be a mask. */
static unsigned next_tags(unsigned tag, bool needs_mask)
{
    switch (tag) {
    case 0:
        return ACL_USER_OBJ;
    case ACL_USER_OBJ:
    case ACL_USER:
        return ACL_USER | ACL_GROUP_OBJ;
    case ACL_GROUP_OBJ:
    case ACL_GROUP:
        return ACL_GROUP | ACL_MASK | (needs_mask ? 0 : ACL_OTHER);
    default:
        return tag == ACL_MASK ? ACL_OTHER : 0;
    }
}

static bool is_valid(const struct acl *acl)
{
    const unsigned all = ACL_READ | ACL_WRITE | ACL_EXECUTE;
    bool needs_mask = false;
    unsigned last = 0;

    for (size_t i = 0; i < acl->count; i++) {
        struct entry entry = entry_at(acl, i);

        if (!(entry.tag & next_tags(last, needs_mask)) || entry.rights & ~all)
            return false;
        needs_mask |= entry.tag == ACL_USER || entry.tag == ACL_GROUP;
        last = entry.tag;
    }
    return last == ACL_OTHER;
}

int df_acl_set(const char *name, mode_t type, int refused, const void *list, size_t size)
{
    struct acl acl = {NULL, 0};
    int result = size > 0 ? parse(list, size, &acl) : 0;

    if (result)
        return result;
    if (S_ISLNK(type))
        return -EOPNOTSUPP;
    if (!S_ISDIR(type) && strcmp(name, DF_ACL_ACCESS) != 0)
        return acl.count > 0 ? -EACCES : DF_ACL_NEVER;
    if (refused)
        return refused;
    if (acl.count == 0)
        return DF_ACL_ABSENT;
    if (!is_valid(&acl))
        return -EINVAL;
    return size > DF_ACL_SIZE ? -E2BIG : 0;
}
