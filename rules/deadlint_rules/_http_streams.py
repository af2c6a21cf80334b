"""Whether whoever reads a streamed response looks at a clock while doing so."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from deadlint.index.scopes import dotted
from deadlint.index.values import Const
from deadlint.site import Site

_CLOCKS = frozenset(
    {
        "time.time", "time.monotonic", "time.perf_counter", "time.monotonic_ns", "time.time_ns",
        "time.perf_counter_ns", "datetime.datetime.now", "datetime.datetime.utcnow", "asyncio.get_event_loop.time",
        "asyncio.get_running_loop.time", "timeit.default_timer",
    }
)  # fmt: skip
_BUDGET_WORDS = ("budget", "deadline", "remaining", "time_left")
_LOOPS = (ast.For, ast.AsyncFor, ast.While, ast.comprehension)


def unwatched(site: Site) -> bool:
    """Whether the response is streamed, and no loop that reads it looks at a clock or a budget."""
    if not _streamed(site):
        return False
    return not any(_looks(loop, site) for loop in _reading_loops(site))


def _streamed(site: Site) -> bool:
    match site.argument("stream").constant:
        case Const(value=True):
            return True
    return False


def _reading_loops(site: Site) -> Iterator[ast.AST]:
    """The loops of the function that read the response, by the name that it goes by."""
    names = _names(site)
    function = site.function
    for node in ast.walk(function.node if function is not None else site.module.tree):
        if isinstance(node, _LOOPS) and getattr(node, "lineno", site.call.lineno) >= site.call.lineno:
            head = node.test if isinstance(node, ast.While) else node.iter
            inner = (head, *node.body) if isinstance(node, ast.While) else (head,)
            if any(isinstance(n, ast.Name) and n.id in names for part in inner for n in ast.walk(part)):
                yield node


def _names(site: Site) -> set[str]:
    """What the response is called: the target of its assignment or `with`, and what is made of that."""
    names: set[str] = set()
    parent = site.parent
    match parent:
        case ast.withitem(optional_vars=ast.Name(id=name)):
            names.add(name)
        case ast.Assign(targets=targets):
            names |= {target.id for target in targets if isinstance(target, ast.Name)}
        case ast.NamedExpr(target=ast.Name(id=name)) | ast.AnnAssign(target=ast.Name(id=name)):
            names.add(name)
    function = site.function
    for node in ast.walk(function.node if function is not None and names else site.call):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                if any(isinstance(n, ast.Name) and n.id in names for n in ast.walk(value)):
                    names.add(name)
    return names


def _looks(loop: ast.AST, site: Site) -> bool:
    """Whether a loop reads a clock, or asks something that is called a budget or a deadline."""
    for node in ast.walk(loop):
        match node:
            case ast.Call() if any(target.name in _CLOCKS for target in site.module.targets(node)):
                return True
            case ast.Attribute(value=base) if any(word in dotted(base).lower() for word in _BUDGET_WORDS):
                return True
            case ast.Call(func=func) if any(word in dotted(func).lower() for word in _BUDGET_WORDS):
                return True
    return False
