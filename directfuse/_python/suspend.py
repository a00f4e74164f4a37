"""Can a coroutine suspend? A conservative answer from its code, before it runs.

An operation that never suspends and touches no event loop can be driven to its end on any thread.
One that does must run in its loop: outside it raises, perhaps after it has done half its work. So
"no" is said only when the code shows it: there is no await but of coroutines that are shown not to
suspend themselves, and nothing in reach of it belongs to trio, asyncio or their relatives.

What is in reach: globals and closures that the code names; what it calls by name, in the file
system's own classes and in what it holds; the values that the file system's attributes have now.
"""

import ast
import dis
import functools
import inspect
import sys
import textwrap
import types
from collections.abc import Iterator
from typing import Any

__all__ = ["why_suspends"]

#: Modules whose objects may be used in a running loop only.
LOOPS = frozenset({"trio", "asyncio", "anyio", "sniffio", "curio", "outcome", "tricycle"})

#: Methods without await that belong to a running loop, whatever object they are called on.
TOUCHES_LOOP = frozenset(
    (  # noqa: SIM905
        "acquire_nowait acquire_on_behalf_of_nowait send_nowait receive_nowait get_nowait "
        "put_nowait start_soon spawn_system_task run_sync_soon current_task current_time "
        "reschedule create_task ensure_future create_future call_soon call_later call_at "
        "set_result set_exception from_thread add_done_callback"
    ).split()
)

#: Code objects looked at for one question; a file system that reaches further is not judged safe.
BUDGET = 500

_AWAITS = frozenset({"GET_AITER", "GET_ANEXT", "BEFORE_ASYNC_WITH", "ASYNC_GEN_WRAP"})


def why_suspends(method: Any, owner: object) -> str | None:
    """None when the coroutine that `method` makes never suspends; otherwise why it may.

    owner: the file system, whose methods and attributes the code may use.
    """
    function = _function(method)
    if function is None:
        return "it is not a Python function"
    if not function.__code__.co_flags & inspect.CO_COROUTINE:
        return "it is not an async def"
    return _Search(owner).function(function)


def why_touches(method: Any, owner: object) -> str | None:
    """The same for a plain function: why it has to be called inside the loop."""
    function = _function(method)
    return None if function is None else _Search(owner).function(function)


def _function(value: Any) -> types.FunctionType | None:
    while isinstance(value, functools.partial | types.MethodType | staticmethod | classmethod):
        value = value.func if isinstance(value, functools.partial) else value.__func__
    return value if isinstance(value, types.FunctionType) else None


def _root(name: object) -> str:
    return name.partition(".")[0] if isinstance(name, str) else ""


def _of_loop(value: object) -> bool:
    if isinstance(value, types.ModuleType):
        return _root(value.__name__) in LOOPS
    module = getattr(value if isinstance(value, type) else type(value), "__module__", "")
    named = getattr(value, "__module__", "") if callable(value) else ""
    return _root(module) in LOOPS or _root(named) in LOOPS


def _of_others(module: object) -> bool:
    """Of the standard library or of pyfuse3: looked into no further."""
    return _root(module) in sys.stdlib_module_names or _root(module) in ("pyfuse3", "directfuse")


class _Search:
    """One question: what has been looked at, and whom the code may call."""

    def __init__(self, owner: object) -> None:
        self.owner = owner
        self.seen: set[types.CodeType] = set()
        self.held = dict(_attributes(owner))
        self.classes = [kind for kind in type(owner).__mro__ if not _of_others(kind.__module__)]
        for value in list(self.held.values()):
            kind = type(value)
            if hasattr(value, "__dict__") and not _of_others(kind.__module__):
                self.classes.extend(kind.__mro__[:-1])
                self.held = dict(_attributes(value)) | self.held

    def function(self, function: types.FunctionType) -> str | None:
        if function.__code__ in self.seen:
            return None
        self.seen.add(function.__code__)  # its closure may hold its own class
        cells = function.__closure__ or ()
        free = dict(zip(function.__code__.co_freevars, cells, strict=True))
        for name, cell in free.items():
            try:
                reason = self.value(name, cell.cell_contents)
            except ValueError:  # not bound yet
                reason = f"it uses {name}, which has no value yet"
            if reason:
                return reason
        return self.code(function.__code__, function.__globals__) or self.awaits(function)

    def code(self, code: types.CodeType, scope: dict[str, Any]) -> str | None:
        """What the instructions name, nested functions and comprehensions included."""
        self.seen.add(code)
        if len(self.seen) > BUDGET:
            return "it reaches too much code to be judged"
        for instruction in dis.get_instructions(code):
            if reason := self.instruction(instruction, scope):
                return reason
        for constant in code.co_consts:
            if not isinstance(constant, types.CodeType) or constant in self.seen:
                continue
            if reason := self.code(constant, scope):
                return reason
        return None

    def instruction(self, instruction: dis.Instruction, scope: dict[str, Any]) -> str | None:
        kind, name = instruction.opname, instruction.argval
        if kind in _AWAITS:
            return "it has an async for or an async with"
        if kind == "IMPORT_NAME" and _root(name) in LOOPS:
            return f"it imports {name}"
        if kind in ("LOAD_GLOBAL", "LOAD_NAME") and name in scope:
            return self.value(name, scope[name])
        if "ATTR" in kind or kind == "LOAD_METHOD":
            return self.attribute(name)
        return None

    def value(self, name: str, value: object) -> str | None:
        """What a global or a closure holds."""
        if _of_loop(value):
            return f"it uses {name}, which belongs to an event loop"
        if isinstance(value, type):
            made = _function(value.__dict__.get("__init__"))
            return self.called(made) if made else None
        function = _function(value)
        return self.called(function) if function else None

    def attribute(self, name: str) -> str | None:
        if name in TOUCHES_LOOP:
            return f"it calls {name}(), which belongs to a running loop"
        if name in self.held and _of_loop(self.held[name]):
            return f"it uses .{name}, a {type(self.held[name]).__qualname__} of an event loop"
        for kind in self.classes:
            member = kind.__dict__.get(name)
            member = member.fget if isinstance(member, property) else member
            function = _function(member)
            if function and (reason := self.called(function)):
                return reason
        return None

    def called(self, function: types.FunctionType) -> str | None:
        """A function that may be called without await. A coroutine function is not run by that;
        where it is awaited, awaits() looks at it."""
        flags = inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
        if function.__code__.co_flags & flags or _of_others(function.__module__):
            return None
        reason = self.function(function)
        return f"{reason} (in {function.__qualname__})" if reason else None

    # ---- await ----

    def awaits(self, function: types.FunctionType) -> str | None:
        names = [instruction.opname for instruction in dis.get_instructions(function.__code__)]
        count = names.count("GET_AWAITABLE")
        if count == 0:
            return None
        awaited = _awaited(function)
        if awaited is None or len(awaited) != count:
            return "it awaits, and its source is not at hand"
        for expression in awaited:
            if reason := self.awaited(expression, function):
                return reason
        return None

    def awaited(self, expression: ast.expr, function: types.FunctionType) -> str | None:
        text = ast.unparse(expression)
        callee = self.callee(expression, function)
        if callee is None or not callee.__code__.co_flags & inspect.CO_COROUTINE:
            return f"it awaits {text}"
        reason = self.function(callee)
        return f"it awaits {text}: {reason}" if reason else None

    def callee(
        self, expression: ast.expr, function: types.FunctionType
    ) -> types.FunctionType | None:
        """self.name(...), super().name(...), name(...): the function; None for anything else."""
        match expression:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=receiver), attr=name)):
                first = function.__code__.co_varnames[:1]
                return _function(getattr(self.owner, name, None)) if (receiver,) == first else None
            case ast.Call(
                func=ast.Attribute(value=ast.Call(func=ast.Name(id="super"), args=[]), attr=name)
            ):
                return self.inherited(name, function)
            case ast.Call(func=ast.Name(id=name)):
                return _function(function.__globals__.get(name))
        return None

    def inherited(self, name: str, function: types.FunctionType) -> types.FunctionType | None:
        line = type(self.owner).__mro__
        for place, kind in enumerate(line):
            if function in map(_function, kind.__dict__.values()):
                members = (later.__dict__.get(name) for later in line[place + 1 :])
                return next(filter(None, map(_function, members)), None)
        return None


def _attributes(value: object) -> Iterator[tuple[str, Any]]:
    yield from getattr(value, "__dict__", {}).items()
    for kind in type(value).__mro__:
        for name in getattr(kind, "__slots__", ()):
            if hasattr(value, name):
                yield name, getattr(value, name)


def _awaited(function: types.FunctionType) -> list[ast.expr] | None:
    """What the function's own body awaits; None when its source cannot be read."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError, SyntaxError):
        return None
    found: list[ast.expr] = []
    (body,) = tree.body[:1]
    if not isinstance(body, ast.AsyncFunctionDef):
        return None
    pending: list[ast.AST] = list(body.body)
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Await):
            found.append(node.value)
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            pending.extend(ast.iter_child_nodes(node))
    return found
