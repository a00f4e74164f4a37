/*
 * ids.h - user and group ids where a program is in another user namespace than the run: the mount
 * server and its files know those of the run.
 *
 * No program pays for it before one of the run has made or entered such a namespace. What is inside
 * is read from /proc/self/uid_map and gid_map, which say it in ids of the namespace above; that one
 * is known from before, also across execve(2), so that they can be nested.
 *
 * Until its maps are written, a namespace has no ids: then all owners are shown as nobody's, and
 * files are made by who the process was.
 */
#ifndef DF_CLIENT_IDS_H
#define DF_CLIENT_IDS_H

#include "client/files.h"
#include "intercept/text.h"

struct dfi_id_range {
    uint32_t inside, outside, count;
};

/* Never changed: another one is put in its place, and it stays, a few bytes. */
struct dfi_ids {
    uint64_t ns;            /* number of the namespace; 0: not both of its maps are written */
    uint32_t users, groups; /* ranges of each */
    struct dfi_id_range range[];
};

/* A program has begun: in which namespace the run is, for those who will ask. */
void dfi_ids_begin(struct dfi_files *files);

/* What execve(2) tells the next program. */
void dfi_ids_tell(const struct dfi_files *files, struct dfi_text *text);
long dfi_ids_hear(struct dfi_files *files, const char **text);

/* The process or a child of it is, or will be, in another one: the next call of either looks. */
void dfi_ids_expect(struct dfi_files *files);

/* Where the process is now, and whether the maps are written. True: its ids are to be read again.
 */
bool dfi_ids_look(struct dfi_files *files);

/* Whether owners are shown as what they are called elsewhere. */
static inline bool dfi_ids_differ(const struct dfi_files *files)
{
    return files->ids || files->ids_awaited;
}

/* The namespace has all ids of the run: its root is the run's. */
bool dfi_ids_all(const struct dfi_files *files);

/* Ids that the program names, as the run knows them. False: it has none of that number. (uid_t)-1
 * is itself. */
bool dfi_ids_user(const struct dfi_files *files, uid_t *id);
bool dfi_ids_group(const struct dfi_files *files, gid_t *id);

/* What the program calls an id of the run; -1: it has no number for it. */
uid_t dfi_ids_user_inside(const struct dfi_files *files, uid_t id);
gid_t dfi_ids_group_inside(const struct dfi_files *files, gid_t id);

/* The owner of a file as the program is to see it. */
void dfi_ids_show(const struct dfi_files *files, uid_t *user, gid_t *group);

#endif
