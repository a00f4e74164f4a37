/*
 * calls_epoll.c - epoll_pwait(2) and epoll_pwait2(2): their signal masks.
 */
#include "intercept/intercept.h"

long dfi_do_epoll_pwait(struct dfi_frame *frame);
long dfi_do_epoll_pwait(struct dfi_frame *frame)
{
    return dfi_wait_with(frame, 4);
}

long dfi_do_epoll_pwait2(struct dfi_frame *frame);
long dfi_do_epoll_pwait2(struct dfi_frame *frame)
{
    return dfi_wait_with(frame, 4);
}
