"""Calls in which a signal's handler runs."""

import sys


class Interrupted(BaseException):
    """What a handler raises."""


def _raise():
    raise Interrupted


def interrupted_at(step, call, handler=_raise):
    """call(), in which handler() runs at the beginning or behind a call of ours: there the
    interpreter runs the handlers of signals."""
    steps = iter(range(step + 1))

    def look(frame, event, _):
        ours = frame.f_globals.get("__name__", "").startswith("directfuse")
        if event in ("call", "c_return") and ours and next(steps, None) == step:
            sys.setprofile(None)
            handler()

    sys.setprofile(look)
    try:
        return call()
    finally:
        sys.setprofile(None)


def interrupted_everywhere(call, after, stride=1):
    """Interrupts call() at one step after the other, after() behind each time, and gives the result
    of the one that comes to its end. stride: of the steps behind the first hundred."""
    step = 0
    while True:
        try:
            return interrupted_at(step, call)
        except Interrupted:
            after()
        step += 1 if step < 100 else stride
