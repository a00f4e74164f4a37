/*
 * fiber.c - swapcontext(3), and what the sanitizers must know of it; see fiber.h.
 */
#include "loader/fiber.h"

#include <stdint.h>

/* ---- what sanitizers want to know ------------------------------------------------------------ */

#if defined(__SANITIZE_ADDRESS__)

#include <sanitizer/common_interface_defs.h>
#include <sanitizer/lsan_interface.h>

static void made(struct df_fiber *fiber)
{
    __lsan_register_root_region(fiber->stack, fiber->size); /* what main keeps is no leak */
}

static void gone(struct df_fiber *fiber)
{
    __lsan_unregister_root_region(fiber->stack, fiber->size);
}

static void entering(struct df_fiber *fiber)
{
    __sanitizer_start_switch_fiber(&fiber->state[1], fiber->stack, fiber->size);
}

static void entered(struct df_fiber *fiber)
{
    __sanitizer_finish_switch_fiber(fiber->state[0], &fiber->thread_stack,
                                    &fiber->thread_stack_size);
}

static void leaving(struct df_fiber *fiber)
{
    __sanitizer_start_switch_fiber(fiber->ended ? NULL : &fiber->state[0], fiber->thread_stack,
                                   fiber->thread_stack_size);
}

static void left(struct df_fiber *fiber)
{
    __sanitizer_finish_switch_fiber(fiber->state[1], NULL, NULL);
}

#elif defined(__SANITIZE_THREAD__)

#include <sanitizer/tsan_interface.h>

static void made(struct df_fiber *fiber)
{
    fiber->state[0] = __tsan_create_fiber(0);
}

static void gone(struct df_fiber *fiber)
{
    __tsan_destroy_fiber(fiber->state[0]);
}

static void entering(struct df_fiber *fiber)
{
    fiber->state[1] = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(fiber->state[0], 0);
}

static void entered(struct df_fiber *fiber)
{
    (void)fiber;
}

static void leaving(struct df_fiber *fiber)
{
    __tsan_switch_to_fiber(fiber->state[1], 0);
}

static void left(struct df_fiber *fiber)
{
    (void)fiber;
}

#else

static void made(struct df_fiber *fiber)
{
    (void)fiber;
}

#define gone     made
#define entering made
#define entered  made
#define leaving  made
#define left     made

#endif

/* ---- switching ------------------------------------------------------------------------------- */

/* makecontext(3) passes ints. */
static void begin(unsigned high, unsigned low)
{
    struct df_fiber *fiber = (struct df_fiber *)((uintptr_t)high << 32 | low);

    entered(fiber);
    fiber->function(fiber->argument);
    fiber->ended = true;
    leaving(fiber);
    setcontext(&fiber->outside);
}

void df_fiber_init(struct df_fiber *fiber, char *stack, size_t size, void (*function)(void *),
                   void *argument)
{
    uintptr_t self = (uintptr_t)fiber;

    *fiber =
        (struct df_fiber){.function = function, .argument = argument, .stack = stack, .size = size};
    getcontext(&fiber->inside);
    fiber->inside.uc_stack.ss_sp = stack;
    fiber->inside.uc_stack.ss_size = size;
    makecontext(&fiber->inside, (void (*)(void))begin, 2, (unsigned)(self >> 32), (unsigned)self);
    made(fiber);
}

bool df_fiber_run(struct df_fiber *fiber)
{
    entering(fiber);
    swapcontext(&fiber->outside, &fiber->inside);
    left(fiber);
    if (fiber->ended)
        gone(fiber);
    return fiber->ended;
}

void df_fiber_leave(struct df_fiber *fiber)
{
    leaving(fiber);
    swapcontext(&fiber->inside, &fiber->outside);
    entered(fiber);
}
