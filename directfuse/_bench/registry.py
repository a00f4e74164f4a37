"""The list of all routes, in the order of the report."""

from directfuse._bench.kernel_routes import IoUring, Kernel, KernelBacked, KernelCached, Plain
from directfuse._bench.own_routes import Helper, Inline, InlinePython, Run, Server
from directfuse._bench.routes import Route

__all__ = ["ROUTES", "describe"]

ROUTES: dict[str, type[Route]] = {
    route.name: route
    for route in (
        Plain,
        Kernel,
        KernelCached,
        IoUring,
        KernelBacked,
        Inline,
        InlinePython,
        Server,
        Helper,
        Run,
    )
}


def describe() -> dict[str, str]:
    return {name: route.words for name, route in ROUTES.items()}
