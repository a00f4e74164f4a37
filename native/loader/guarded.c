/*
 * guarded.c - ops of an unmodified program, made safe for the thread that calls them; see
 * guarded.h.
 *
 * A program that ends itself inside an op never returns from it: locks that its adapter held for
 * the op stay held, and so does whatever the op had allocated. Nobody meets those locks again,
 * since `dead` keeps every later op out, except release, which must not touch them either.
 */
#include "loader/guarded.h"

#include <errno.h>
#include <setjmp.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "core/call.h"
#include "core/export.h"
#include "host/on_stack.h"
#include "loader/plugin.h"

struct guarded {
    struct df_fs fs;
    struct df_ops ops;
    struct df_fs *below;
    struct df_guest *guest;
    _Atomic bool dead; /* the program has ended inside an op */
};

/* The innermost guarded op of this thread. */
struct landing {
    jmp_buf place;
    struct guarded *self;
    struct df_guest *before; /* whom the thread worked for outside */
    struct landing *outer;
};

static _Thread_local struct landing *landing;

static void enter(struct landing *here, struct guarded *self)
{
    here->self = self;
    here->before = df_guest_enter(self->guest);
    here->outer = landing;
    landing = here;
}

static void leave(struct landing *here)
{
    landing = here->outer;
    df_guest_enter(here->before);
}

bool df_guarded_inside(void)
{
    return landing;
}

void df_guarded_bar(void)
{
    if (landing)
        atomic_store(&landing->self->dead, true);
}

void df_guarded_leave(void)
{
    if (!landing)
        return;
    df_guarded_bar();
    df_on_stack_cut(landing);
    longjmp(landing->place, 1);
}

/* 0, or why no op may enter: the program has ended inside one, or this is a forked child that its
 * threads did not come to. The kernel says ENOTCONN of a mount whose server is gone. */
static inline int barred(const struct guarded *self)
{
    if (DF_UNLIKELY(atomic_load_explicit(&self->dead, memory_order_relaxed)))
        return -EIO;
    return DF_UNLIKELY(self->guest->severed) ? -ENOTCONN : 0;
}

#define GUARDED(here, self, ret, expression)                                                       \
    do {                                                                                           \
        int barred_with = barred(self);                                                            \
        if (DF_UNLIKELY(barred_with))                                                              \
            return barred_with;                                                                    \
        enter(&(here), self);                                                                      \
        if (DF_LIKELY(_setjmp((here).place) == 0))                                                 \
            ret = (expression);                                                                    \
        else                                                                                       \
            ret = -EIO;                                                                            \
        leave(&(here));                                                                            \
    } while (0)

#define DF_OP_CALL(type, name, parameters, arguments, bytes)                                       \
    static type guarded_##name parameters                                                          \
    {                                                                                              \
        struct guarded *self = (struct guarded *)fs;                                               \
        struct df_fs *below = self->below;                                                         \
        struct landing here;                                                                       \
        volatile type ret;                                                                         \
                                                                                                   \
        GUARDED(here, self, ret, below->ops->name arguments);                                      \
        return ret;                                                                                \
    }
#include "core/ops_calls.def"
#undef DF_OP_CALL

static int guarded_read_batch(struct df_fs *fs, struct df_call *call, struct df_extent *extents,
                              size_t count)
{
    struct guarded *self = (struct guarded *)fs;
    struct landing here;
    volatile int ret;

    GUARDED(here, self, ret, self->below->ops->read_batch(self->below, call, extents, count));
    return ret;
}

static ssize_t guarded_lend(struct df_fs *fs, struct df_call *call, struct df_file *file,
                            void *buffer, size_t size, off_t offset, const char **at)
{
    struct guarded *self = (struct guarded *)fs;
    struct landing here;
    volatile ssize_t ret;

    *at = buffer;
    GUARDED(here, self, ret,
            self->below->ops->lend(self->below, call, file, buffer, size, offset, at));
    return ret;
}

static int release(struct guarded *self, struct df_call *call, struct df_file *file)
{
    struct landing here;
    volatile int ret;

    GUARDED(here, self, ret, (self->below->ops->release(self->below, call, file), 0));
    return ret;
}

static void guarded_release(struct df_fs *fs, struct df_call *call, struct df_file *file)
{
    release((struct guarded *)fs, call, file);
}

static void guarded_unborrow(struct df_fs *fs, struct df_call *call, struct df_file *file,
                             const void *ptr, size_t size)
{
    struct guarded *self = (struct guarded *)fs;
    self->below->ops->unborrow(self->below, call, file, ptr, size);
}

static void guarded_destroy(struct df_fs *fs)
{
    struct guarded *self = (struct guarded *)fs;
    self->below->ops->destroy(self->below);
    free(self);
}

/* Who waits is not kept waiting. */
static int poll_or_drop(struct df_fs *fs, struct df_call *call, struct df_file *file, int events,
                        struct df_wake *wake)
{
    int barred_with = barred((struct guarded *)fs);

    if (barred_with)
        df_wake_drop(wake);
    return barred_with ? barred_with : guarded_poll(fs, call, file, events, wake);
}

/* None of the program's code runs in it. */
static int guarded_known(struct df_fs *fs, struct df_call *call, const struct df_where *where,
                         struct stat *st)
{
    struct guarded *self = (struct guarded *)fs;
    int barred_with = barred(self);

    return barred_with ? barred_with : self->below->ops->known(self->below, call, where, st);
}

struct df_fs *df_guarded_new(struct df_fs *below, struct df_guest *guest)
{
    struct guarded *self = calloc(1, sizeof(*self));
    if (!self)
        return NULL;
    self->ops = (struct df_ops){
        .version = DF_OPS_VERSION,
        .size = sizeof(struct df_ops),
#define DF_OP(name) .name = guarded_##name,
#include "core/ops.def"
#undef DF_OP
    };
    self->ops.poll = poll_or_drop;
    self->fs = df_fs_around(below, &self->ops);
    self->below = below;
    self->guest = guest;
    return &self->fs;
}
