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
            match node:
                case ast.Call(func=func, args=[*_, ast.Constant(value=str() as last)]) | ast.Call(
                    func=func, args=[*_, ast.Constant(value=str() as last), _]
                ) if dotted(func).rpartition(".")[2] in _PATCHING:
                    head = next((name for name in modules if last.startswith(f"{name}.")), None)
                    if head is None and last not in names:
                        continue
                    yield Note(
                        path, node.lineno, f"it replaces `{last}`, in a file that changes",
                        "let the stand-in take `budget`, or patch the helper that is called there now",
                    )  # fmt: skip
