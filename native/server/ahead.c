/*
 * ahead.c - answers to questions that come next: who lists a directory asks how its entries are.
 *
 * The host is asked what the client would ask, in the client's name, and the answer is kept as if
 * it had been: nothing here decides what is true. It is asked only for what it knows, which is what
 * a READDIRPLUS has told it; the plugin is never asked for more than by the listing itself.
 */
#include <dirent.h>
#include <errno.h>
#include <string.h>

#include "server/server_private.h"

#define NAME_AT offsetof(struct dirent64, d_name)
#define UNKNOWN_MAX                                                                                \
    4 /* names that the host does not know: then it was no listing with attributes */

/* True: the host knows. */
static bool answer(struct df_work *w, const struct df_trip_where *question)
{
    struct df_where where = {question->base ? w->files[0] : NULL, question->name, question->len,
                             question->flags};
    struct df_cacher_ticket ticket = df_cacher_ask(&w->server->cacher, w->index);
    struct stat st;
    int result;

    if (!ticket.valid)
        return false;
    w->call.valid_ns = w->call.absent = 0;
    result = (int)DF_EXECUTE_CALL(known, &where, &st);
    if (result == 0)
        st.st_dev = w->call.mount->dev;
    df_execute_keep(w, ticket, question, result, &st);
    return result == 0;
}

/* One record, which the client could write to as well: it is copied before anybody looks at it. A
 * name that is too long for it is left out. Returns its size, 0 for none. */
static size_t take_record(const char *at, size_t left, struct dirent64 *record)
{
    size_t room = sizeof(record->d_name);

    if (left <= NAME_AT)
        return 0;
    memcpy(record, at, NAME_AT);
    if (record->d_reclen <= NAME_AT || record->d_reclen > left)
        return 0;
    if (room > record->d_reclen - NAME_AT)
        room = record->d_reclen - NAME_AT;
    memcpy(record->d_name, at + NAME_AT, room);
    if (!memchr(record->d_name, '\0', room))
        record->d_name[0] = '\0';
    return record->d_reclen;
}

/* The path by which the client calls the directory, with a slash behind it: as it says, or as it
 * was opened. Its length; 0: it is not known, or programs go by the open directory: that was opened
 * from another one. */
static size_t take_path(struct df_work *w, char path[PATH_MAX])
{
    size_t opened = df_files_called(&w->server->files, w->message.files[0], path);
    size_t said = w->message.wheres[1].len, len = said ? said : opened;

    if (opened == 0 || len > PATH_MAX - NAME_MAX - 2)
        return 0;
    if (said)
        memcpy(path, w->area->names[1], said);
    if (path[0] != '/' || memchr(path, '\0', len))
        return 0;
    if (path[len - 1] != '/')
        path[len++] = '/';
    return len;
}

/* A name whose answer would be kept. */
static bool is_asked_for(const struct dirent64 *record)
{
    const char *name = record->d_name;

    return name[0] != '\0' && strcmp(name, ".") != 0 && strcmp(name, "..") != 0 &&
           !strchr(name, '/') && record->d_type != DT_LNK;
}

/* By the open directory, and by the path. */
static bool answer_both(struct df_work *w, const char *name, char path[PATH_MAX], size_t dir_len)
{
    uint32_t len = (uint32_t)strlen(name);
    struct df_trip_where by_file = {w->message.files[0], name, len, DF_WHERE_NOFOLLOW};
    struct df_trip_where by_path = {0, path, (uint32_t)dir_len + len, DF_WHERE_NOFOLLOW};

    if (!answer(w, &by_file))
        return false;
    if (dir_len > 0) {
        memcpy(path + dir_len, name, len + 1);
        answer(w, &by_path);
    }
    return true;
}

void df_execute_ahead(struct df_work *w)
{
    char path[PATH_MAX];
    size_t dir_len = take_path(w, path), size;
    unsigned unknown = 0;
    struct dirent64 record;

    for (size_t at = 0; unknown < UNKNOWN_MAX; at += size) {
        size = take_record(w->area->payload + at, w->listed - at, &record);
        if (size == 0)
            break;
        if (is_asked_for(&record) && !answer_both(w, record.d_name, path, dir_len))
            unknown++;
    }
}
