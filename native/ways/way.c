/*
 * way.c - takes the paths of a call from the program's memory, and asks mounts and kernel in turn.
 */
#include "client/table.h"
#include "core/calls.h"
#include "core/fd.h"
#include "core/route.h"
#include "core/scan.h"
#include "core/walk.h"
#include "intercept/run.h"
#include "shadows/shadow.h"
#include "ways/cwd.h"
#include "ways/proc.h"
#include "ways/root.h"
#include "ways/way_private.h"

#define NR_SETXATTRAT 463 /* which headers of Linux before 6.13 do not have */
#define NR_GETXATTRAT 464

enum { FIRST, KERNEL, REFUSED, AGAIN, DONE }; /* dfi_way.state: what comes next */

/* ---- opened for the call --------------------------------------------------------------------- */

long dfi_way_open(struct dfi_way *way, const struct dfi_leg *leg, int flags)
{
    long ret = leg->empty ? df_call_open_again(leg->dirfd, flags, 0)
                          : df_call_openat(leg->dirfd, leg->path, flags, 0);

    if (ret < 0)
        return ret;
    way->record.foreign = way->record.opened->host[DFI_HOST_HANDLE];
    way->record.lent = flags & O_PATH;
    return 0;
}

void dfi_way_keep(struct dfi_way *way)
{
    way->record.foreign = 0;
    way->record.lent = false;
}

void dfi_way_shut(struct dfi_way *way)
{
    struct df_trip trip = {.link = &way->record.files->link};

    df_trip_drop(&trip, way->record.foreign);
    dfi_way_keep(way);
}

/* The working directory, open for this call: its name and the path together are too long. */
static int open_here(struct dfi_way *way)
{
    char name[PATH_MAX];
    int ret = dfi_cwd_join(way->record.files, "", name);

    if (ret <= 0)
        return ret < 0 ? ret : -ENOENT;
    if (!dfi_fd_room(way->record.files))
        return -ENOMEM;
    ret = df_call_openat(AT_FDCWD, name, O_PATH | O_DIRECTORY, 0);
    if (ret < 0)
        return ret == DF_NOT_OURS ? -ENAMETOOLONG : ret;
    way->record.here = way->record.opened->host[DFI_HOST_HANDLE];
    dfi_fd_hold(way->record.files, way->record.here);
    return 0;
}

/* The same, for its name leads through what the caller may not search: Linux looks at nothing above
 * the working directory. */
static int open_here_regardless(struct dfi_way *way)
{
    const struct df_caller *caller = way->record.thread.caller;
    struct df_caller regardless = *caller;
    int ret;

    regardless.capable = true;
    way->record.thread.caller = &regardless;
    ret = open_here(way);
    way->record.thread.caller = caller;
    return ret;
}

/* ---- taking paths ---------------------------------------------------------------------------- */

/* By the handle of the working directory, which may be open already. */
static int begin_here(struct dfi_way *way, struct dfi_leg *leg)
{
    int ret = 0;

    if (!dfi_cwd_take(&way->record))
        ret = open_here(way);
    leg->dirfd = DF_FD_BASE + DFI_FD_HERE;
    return ret;
}

/* The working directory itself, by an empty path. One above a mountpoint is the kernel's. */
static int take_here(struct dfi_way *way, struct dfi_leg *leg)
{
    char name[PATH_MAX];
    int ret;

    if (!way->record.here && dfi_cwd_join(way->record.files, "", name) == 0)
        return 0;
    ret = begin_here(way, leg);
    if (ret == -ENAMETOOLONG)
        leg->dirfd = AT_FDCWD;
    return ret == -ENAMETOOLONG ? 0 : ret;
}

static bool is_component(const char *path, size_t len)
{
    return len > 0 && (path[len] == '/' || path[len] == '\0');
}

/* What begins so may lead to an open file, from a directory of /proc: a number, or this process. */
static bool may_be_from_proc(const char *path)
{
    return is_component(path, strspn(path, "0123456789")) ||
           (strncmp(path, "self", 4) == 0 && is_component(path, 4)) ||
           (strncmp(path, "thread-self", 11) == 0 && is_component(path, 11));
}

static int take_from_proc(struct dfi_way *way, struct dfi_leg *leg)
{
    char name[PATH_MAX];

    if (df_walk_absolute(leg->dirfd, leg->text, name) < 0 || strncmp(name, "/proc/", 6) != 0)
        return 0;
    leg->len = (uint32_t)strlen(name);
    memcpy(leg->text, name, leg->len + 1);
    return dfi_way_take_proc(way, leg);
}

/* These two apart: a path from an open directory of a mount needs none of their registers. */
__attribute__((noinline)) static int take_from_cwd(struct dfi_way *way, struct dfi_leg *leg)
{
    int ret;

    if (way->unwalked)
        return 0;
    way->moved = dfi_cwd_count_moved(way->record.files);
    ret = way->record.here || dfi_cwd_handle(way->record.files)
              ? -ENAMETOOLONG
              : dfi_cwd_join(way->record.files, leg->text, leg->text);
    leg->changed = ret != 0;
    if (ret == -ENAMETOOLONG)
        return begin_here(way, leg);
    if (ret == 0 && may_be_from_proc(leg->text))
        return take_from_proc(way, leg);
    return ret < 0 ? ret : 0;
}

__attribute__((noinline)) static int take_from_real(struct dfi_way *way, struct dfi_leg *leg)
{
    if (dfi_is_hidden(dfi_process(), leg->dirfd))
        return -EBADF;
    return !way->unwalked && may_be_from_proc(leg->text) ? take_from_proc(way, leg) : 0;
}

static int take_relative(struct dfi_way *way, struct dfi_leg *leg)
{
    if (leg->dirfd == AT_FDCWD)
        return take_from_cwd(way, leg);
    leg->dirfd = dfi_fd_given(way->record.files, leg->dirfd);
    return leg->dirfd >= DF_FD_BASE ? 0 : take_from_real(way, leg);
}

/* NULL is an empty path there, of the working directory too: since Linux 6.11. */
static bool takes_no_path(long nr)
{
    return nr == __NR_newfstatat || nr == __NR_statx || nr == NR_SETXATTRAT || nr == NR_GETXATTRAT;
}

static int take_rooted(struct dfi_way *way, struct dfi_leg *leg)
{
    if (!way->unwalked)
        return dfi_way_take_root(way, leg);
    return leg->text[0] == '/' ? 0 : take_relative(way, leg);
}

/* More slashes, or dots: only a look by components tells. */
static bool is_doubled(const char *name)
{
    return name[0] == '/' || name[0] == '.';
}

static bool may_be_of_dev(const char *name)
{
    return __builtin_memcmp(name, "fd", 2) == 0 || __builtin_memcmp(name, "std", 3) == 0 ||
           is_doubled(name);
}

/* May it lead through a link of /proc or /dev? What is behind the path's end may be looked at: it
 * lies in leg->text. */
static bool may_be_proc(const char *path)
{
    switch (path[1]) {
    case 'p':
        return __builtin_memcmp(path, "/proc/", 6) == 0;
    case 'd':
        return __builtin_memcmp(path, "/dev/", 5) == 0 && may_be_of_dev(path + 5);
    default:
        return is_doubled(path + 1);
    }
}

static int take(struct dfi_way *way, struct dfi_leg *leg)
{
    const char *program = (const char *)way->frame->args[leg->name];
    long len;

    leg->dirfd = leg->at >= 0 ? (int)way->frame->args[leg->at] : AT_FDCWD;
    leg->path = NULL;
    leg->empty = leg->changed = false;
    if (!program) {
        leg->text[0] = '\0';
        leg->dirfd = dfi_fd_given(way->record.files, leg->dirfd);
        if (leg->dirfd == AT_FDCWD)
            return takes_no_path(way->frame->nr) ? take_here(way, leg) : 0;
        return dfi_is_hidden(dfi_process(), leg->dirfd) ? -EBADF : 0;
    }
    len = dfi_copy_path(leg->text, program, PATH_MAX);
    if (len < 0) {
        way->refused = true;
        return (int)len;
    }
    leg->path = leg->text;
    leg->len = (uint32_t)len;
    if (__builtin_expect(dfi_root_of(way->record.files) != 0, 0) && len > 0 &&
        dfi_root_begin_way(way))
        return take_rooted(way, leg);
    if (leg->text[0] == '/')
        return may_be_proc(leg->text) ? dfi_way_take_proc(way, leg) : 0;
    if (len == 0 && leg->dirfd == AT_FDCWD)
        return take_here(way, leg);
    return take_relative(way, leg);
}

/* The call's paths among its arguments: a bit in the byte of each. */
static DF_FLAT uint64_t places_of_paths(const char letters[8])
{
    uint64_t word;

    memcpy(&word, letters, sizeof(word));
    return df_scan_zeros(word ^ DF_SCAN_ONES * 'p'); /* no letter is 'q', which would become 1 */
}

static DF_FLAT long begin(struct dfi_way *way, struct dfi_frame *frame, bool unwalked)
{
    const char *letters = dfi_calls[frame->nr].arguments;
    int ret = 0;

    way->frame = frame;
    way->legs = 0;
    way->state = FIRST;
    way->blocks = way->ours = way->held = false;
    way->unwalked = unwalked;
    way->rooted = way->refused = way->missing = way->back = false;
    way->turns = way->moves = 0;
    way->opens = -1;
    dfi_record_begin(&way->record);
    dfi_table_refresh(way->record.files->link.segment);
    for (uint64_t places = places_of_paths(letters); places != 0 && ret == 0;
         places &= places - 1) {
        int i = __builtin_ctzll(places) / 8;
        struct dfi_leg *leg = &way->leg[way->legs++];

        leg->at = i > 0 && letters[i - 1] == 'd' ? (signed char)(i - 1) : -1;
        leg->name = (signed char)i;
        ret = take(way, leg);
    }
    return ret;
}

long dfi_way_begin(struct dfi_way *way, struct dfi_frame *frame)
{
    return begin(way, frame, false);
}

long dfi_way_begin_unwalked(struct dfi_way *way, struct dfi_frame *frame)
{
    return begin(way, frame, true);
}

long dfi_way_end(struct dfi_way *way, long ret)
{
    if (__builtin_expect(way->held, 0))
        dfi_root_end(&way->record);
    dfi_record_end(&way->record);
    return ret;
}

int dfi_way_flags(const struct dfi_leg *leg)
{
    return leg->empty ? AT_EMPTY_PATH : 0;
}

/* ---- the kernel ------------------------------------------------------------------------------ */

/* Whether the process has ever had a file of a mount open, or stands in one: the kernel may come to
 * the placeholder, or to the shadow. */
static bool has_placeholders(const struct dfi_way *way)
{
    const struct dfi_files *files = way->record.files;

    return (atomic_load_explicit(&files->top, memory_order_relaxed) > 0 ||
            dfi_cwd_is_ours(files)) &&
           !way->held;
}

static DF_FLAT long ask_kernel(struct dfi_way *way, bool may_meet)
{
    const char *paths[2] = {NULL, NULL};
    long ret = -ELOOP;

    for (unsigned i = 0; i < way->legs; i++) {
        const struct dfi_leg *leg = &way->leg[i];

        paths[i] = df_left_path((int)i);
        if (!paths[i] && leg->changed && leg->dirfd == AT_FDCWD)
            paths[i] = leg->text;
    }
    if (way->opens >= 0)
        ret = dfi_way_open_plainly(way, paths[0]);
    if (may_meet && way->opens >= 0 && ret == -ELOOP)
        ret = dfi_way_open_on_disk(way, paths[0]);
    return ret == -ELOOP && !way->back ? dfi_way_ask(way, paths) : ret;
}

/* The same where it may come to a placeholder, of which an open learns by openat2(2). */
static DF_FLAT long ask_beside_placeholders(struct dfi_way *way)
{
    bool looks = way->opens < 0 || !dfi_run_has(DFI_RUN_OPENAT2);
    long ret = 0;

    if (looks)
        dfi_way_look_before(way);
    if (!way->back)
        ret = ask_kernel(way, true);
    if (looks && !way->back)
        dfi_way_look_after(way, ret);
    return ret;
}

/* ---- once more ------------------------------------------------------------------------------- */

static bool try_again(struct dfi_way *way, long *ret)
{
    bool may = false;

    if (way->first != -ENOENT && way->first != -ENOTDIR)
        return false;
    if (dfi_way_look_above(way, false, ret) || way->missing)
        return false;
    for (unsigned i = 0; i < way->legs; i++)
        may = may || dfi_way_may_lead(way, i);
    way->record.thread.follow_real_links = may;
    return may;
}

/* Most paths of programs are the kernel's, and can be seen to be without scanning them. */
static bool are_foreign(const struct dfi_way *way)
{
    for (unsigned i = 0; i < way->legs; i++) {
        const struct dfi_leg *leg = &way->leg[i];

        if (!leg->path || leg->path[0] != '/' || !dfi_table_is_foreign(leg->path, dfi_leg_len(leg)))
            return false;
    }
    return true;
}

/* Links of /proc that lead to links of /proc: as often as Linux follows them. */
static void count_turn(struct dfi_way *way, long *ret)
{
    *ret = ++way->turns > DF_LINKS_MAX ? -ELOOP : 0;
}

/* The kernel has found that the path leads back. */
static bool turn_round(struct dfi_way *way, long *ret)
{
    way->back = false;
    way->state = KERNEL;
    count_turn(way, ret);
    return *ret == 0;
}

/* True: mounts are to be asked again. */
static bool turn_to_kernel(struct dfi_way *way, long *ret)
{
    way->state = DONE;
    way->first = *ret =
        has_placeholders(way) ? ask_beside_placeholders(way) : ask_kernel(way, false);
    if (way->back)
        return turn_round(way, ret);
    if (!try_again(way, ret))
        return false;
    way->state = AGAIN;
    return true;
}

/* A path that was walked already and leads to nothing, *ret: of flags and other words the kernel
 * knows more, and they come first. */
static void refuse_walked(const struct dfi_way *way, long *ret)
{
    static const char *const nowhere[2] = {DFI_PROC_NOTHING, DFI_PROC_NOTHING};
    long said = dfi_way_ask(way, nowhere);

    if (said != -ENOENT)
        *ret = said;
}

/* A path of no memory, or too long for any: the kernel does not look for it either, and says before
 * what else is wrong with the call. A second one, which may as well have been walked in vain, it
 * takes when it has been on the way of the first, which may be a mount's: there native/core is to
 * find none. True: it is to be asked. */
static bool refuse(struct dfi_way *way, long *ret)
{
    const char *as_given[2] = {NULL, NULL};

    way->state = DONE;
    if (way->legs == 2) {
        way->leg[1].path = NULL;
        way->state = REFUSED;
        way->first = *ret;
        return true;
    }
    if (way->refused)
        *ret = dfi_way_ask(way, as_given);
    else
        refuse_walked(way, ret);
    return false;
}

/* Where a link in a mount has led out of it: is that /proc/self/fd/5 or its like, which leads back?
 */
static bool leads_back(struct dfi_way *way, unsigned which)
{
    const char *left = df_left_path((int)which);

    if (!left || way->held || (strncmp(left, "/proc/", 6) != 0 && strncmp(left, "/dev/", 5) != 0))
        return false;
    return dfi_way_goes_on(way, &way->leg[which], left);
}

/* True: mounts are to be asked for where it goes on, unless it goes round and round. */
static bool turn_back(struct dfi_way *way, long *ret)
{
    bool back = leads_back(way, 0);

    if (way->legs == 2)
        back = leads_back(way, 1) || back;
    if (back)
        count_turn(way, ret);
    return back;
}

/* One of two paths is in a mount (EXDEV). True: both are, by another way. */
__attribute__((noinline)) static bool turn_across(struct dfi_way *way, long *ret)
{
    if (way->legs == 2 && !way->held)
        dfi_way_look_for_names(way);
    return way->back && turn_round(way, ret);
}

/* Whether the caller stands where he does not get by its name any more. */
static bool is_cut_off(struct dfi_way *way)
{
    char name[PATH_MAX];

    return !way->record.here && !way->held && dfi_cwd_is_ours(way->record.files) &&
           dfi_cwd_join(way->record.files, "", name) == 1 &&
           df_call_faccessat(AT_FDCWD, name, F_OK, 0) == -EACCES;
}

bool dfi_way_open_cut_off(struct dfi_way *way)
{
    return is_cut_off(way) && open_here_regardless(way) == 0;
}

static bool begins_here(const struct dfi_leg *leg)
{
    return leg->path && leg->changed && leg->dirfd == AT_FDCWD;
}

static bool any_begins_here(const struct dfi_way *way)
{
    bool any = false;

    for (unsigned i = 0; i < way->legs; i++)
        any = any || begins_here(&way->leg[i]);
    return any && !way->unwalked;
}

/* Those that begin there are asked for once more. */
static bool take_again(struct dfi_way *way, long *ret)
{
    int error = 0;

    for (unsigned i = 0; i < way->legs && error == 0; i++)
        if (begins_here(&way->leg[i]))
            error = take(way, &way->leg[i]);
    *ret = error;
    return error == 0;
}

/* Permission was denied. True: it was for the way to the working directory, by whose name a path
 * began that begins there; it is asked for by its handle. */
__attribute__((noinline)) static bool turn_here(struct dfi_way *way, long *ret)
{
    return any_begins_here(way) && dfi_way_open_cut_off(way) && take_again(way, ret);
}

#define MOVES 32 /* then it is not there */

/* Nothing was found. True: the working directory has another name by now. */
__attribute__((noinline)) static bool turn_along(struct dfi_way *way, long *ret)
{
    return any_begins_here(way) && way->moves++ < MOVES &&
           dfi_cwd_moved_since(way->record.files, way->moved) && take_again(way, ret);
}

/* No mount's in the end. Where real links have led into a mount, and links there out of it again,
 * it is by that name that the kernel finds it. */
__attribute__((noinline)) static long end_outside(struct dfi_way *way)
{
    long ret;

    if (df_left_path(0) || (way->legs == 2 && df_left_path(1)))
        way->first = ask_kernel(way, false);
    if (way->first != -ENOENT && way->first != -ENOTDIR)
        return way->first;
    return dfi_way_look_above(way, true, &ret) ? ret : way->first;
}

bool dfi_way_next(struct dfi_way *way, long *ret)
{
    switch (way->state) {
    case FIRST:
        if (*ret == 0 && are_foreign(way))
            return turn_to_kernel(way, ret);
        way->state = KERNEL;
        return *ret == 0 || refuse(way, ret);
    case KERNEL:
        way->ours = *ret != DF_NOT_OURS;
        if (!way->ours && turn_back(way, ret))
            return *ret == 0;
        if (!way->ours && !way->rooted)
            return turn_to_kernel(way, ret);
        if (__builtin_expect(*ret == -EXDEV, 0) && turn_across(way, ret))
            return true;
        if (__builtin_expect(*ret == -EACCES, 0) && turn_here(way, ret))
            return true;
        if (*ret == -ENOENT && turn_along(way, ret))
            return true;
        if (!way->ours) /* others have changed the way: it does not lead out all the same */
            *ret = -ENOENT;
        way->state = DONE;
        return false;
    case REFUSED:
        way->state = DONE;
        if (*ret == -EFAULT && way->leg[0].path)
            *ret = way->first;
        return false;
    case AGAIN:
        way->record.thread.follow_real_links = 0;
        way->state = DONE;
        way->ours = *ret != DF_NOT_OURS;
        if (!way->ours)
            *ret = end_outside(way);
        return false;
    default:
        return false;
    }
}
