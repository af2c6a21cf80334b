"""What a migration cannot follow, for a person to look at: calls of what is not known, and tests that patch."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from deadlint.index.newer import parse
from deadlint.index.scopes import dotted
from deadlint.migrate.names import dotted_module
from deadlint.migrate.reach import Means, Reach
from deadlint.migrate.sources import Sources
from deadlint.result import Change

_PATCHING = frozenset({"patch", "object", "setattr", "spy"})


@dataclass(frozen=True, slots=True)
class Note:
    """A place, what is there, and what to do."""

    path: str
    line: int
    what: str
    remedy: str


def notes_on(reach: Reach, changes: Sequence[Change], sources: Sources) -> Iterator[Note]:
    """The calls in functions with the budget that nobody can follow, and the tests that replace what changed."""
    yield from _dynamic(reach)
    yield from _patched(reach, changes, sources)


def _dynamic(reach: Reach) -> Iterator[Note]:
    takers = {one.name.last for one in reach.by_scope.values() if one.means in (Means.PARAMETER, Means.LEFT)}
    for one in reach.holders:
        for module, call in reach.uses.unknown.get(one.scope, ()):
            match call.func:
                case ast.Subscript() | ast.Call(func=ast.Name(id="getattr")):
                    what = "what it runs is only known when it runs"
                case ast.Attribute(attr=attr) if attr in takers and not attr.startswith("__"):
                    what = f"it may run the `{attr}` that takes a budget now"
                case _:
                    continue
            text = ast.unparse(call.func)
            shown = text if len(text) <= 40 else "…"
            yield Note(
                module.source.path, call.lineno, f"`{shown}(…)` in `{one.name.qualified}` is not followed: {what}",
                f"pass `budget={one.budget}` there by hand, if it takes one",
            )  # fmt: skip


def _patched(reach: Reach, changes: Sequence[Change], sources: Sources) -> Iterator[Note]:
    """Tests that patch by name: what is patched may be called no more, or with a budget as well."""
    modules = {dotted_module(change.path) for change in changes}
    names = {one.name.last for one in reach.holders if one.means is Means.PARAMETER}
    for path, file in sorted(sources.files.by_path.items()):
        if not file.is_test:
            continue
        try:
            tree = parse(file.source.text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
        for node in ast.walk(tree):
            replaced = _replaced(node)
            head, _, last = replaced.rpartition(".")
            touched = any(f"{replaced}.".startswith(f"{name}.") or _ends(head, name) for name in modules)
            if replaced and (touched or (last in names and not head)):
                yield Note(
                    path, getattr(node, "lineno", 0), f"it replaces `{replaced}`, in a file that changes",
                    "let the stand-in take `budget`, or patch the helper that is called there now",
                )  # fmt: skip


def _ends(head: str, module: str) -> bool:
    """Whether `rasters.subprocess` begins with what a test may call the module `mosaic.rasters`."""
    return bool(head) and head.partition(".")[0] == module.rpartition(".")[2]


def _replaced(node: ast.AST) -> str:
    """What a call patches, as dotted names: `patch("flows.run")`, `setattr(flows.subprocess, "run", …)`; else empty."""
    match node:
        case ast.Call(func=func, args=[ast.Constant(value=str() as target), *_]) if _patches(func):
            return target
        case ast.Call(func=func, args=[ast.Name() | ast.Attribute() as owner, ast.Constant(value=str() as name), *_]):
            return f"{dotted(owner)}.{name}" if _patches(func) else ""
    return ""


def _patches(func: ast.expr) -> bool:
    return dotted(func).rpartition(".")[2] in _PATCHING
