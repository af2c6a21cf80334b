"""A migration as text: the tree of changes, and what is left to a person."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator
from typing import TextIO

from deadlint.migrate.deadlines import OWN
from deadlint.migrate.leaves import Leaf
from deadlint.migrate.migration import Migration
from deadlint.migrate.names import FunctionName, name_of
from deadlint.migrate.reach import Means, Reached
from deadlint.migrate.signature import Parameter, declared
from deadlint.result import Change


def shown_changes(migration: Migration) -> tuple[Change, ...]:
    """The changes, with their paths as they are shown."""
    files = migration.files.by_path
    return tuple(Change(files[c.path].shown, c.before, c.after, bom=c.bom) for c in migration.changes)


def print_plan(migration: Migration, out: TextIO) -> None:
    """Print what changes, as a tree of calls; then what is left, with the reason and what to do."""
    for line in _lines(migration):
        out.write(line + "\n")


def _lines(migration: Migration) -> Iterator[str]:
    entry = migration.reach.entry
    yield f"{migration.wanted.entry}  {_place(entry, migration)}"
    for said in migration.opening.said if migration.changes else ():
        yield f"  + {said}"
    budget = migration.opening.budget
    if migration.changes and isinstance(entry.scope.definition, ast.AsyncFunctionDef):
        yield f"  + ends with it what it awaits: `async with {budget}.scope():`"
    elif migration.ambient:
        yield f"  + makes it the ambient budget: `with {budget}:`"
    yield from _body(entry, migration, "", {entry.name})
    yield from _left(migration)
    yield from _remaining(migration)
    yield from _notes(migration)
    yield ""
    if migration.changes and not migration.helpers_at_hand:
        yield (
            f"The changed files import `{migration.helpers}`, which no dependency of the project brings: add `deadlint`"
            " to them, or copy the helpers with `deadlint vendor`."
        )
    yield _summary(migration)


def _body(one: Reached, migration: Migration, indentation: str, seen: set[FunctionName]) -> Iterator[str]:
    """The leaves of a function and what it calls."""
    for leaf in _leaves_of(one, migration):
        yield f"{indentation}  ~ line {leaf.finding.span.line}: {_title(leaf)}"
    passed = {(p.line, p.callee.name) for p in migration.passes if p.caller is one}
    children: dict[FunctionName, tuple[Reached, list[int]]] = {}
    for use, callee in migration.reach.below(one):
        children.setdefault(callee.name, (callee, []))[1].append(use.node.lineno)
    for place, (callee, lines) in enumerate(children.values()):
        last = place == len(children) - 1
        at = ", ".join(str(line) for line in dict.fromkeys(lines))
        is_passed = any((line, callee.name) in passed for line in lines)
        known = callee.name in seen
        said = _said(callee, is_passed=is_passed, known=known)
        where = f"{callee.name.qualified}  {_place(callee, migration)}"
        yield f"{indentation}{'└─' if last else '├─'} {where}, called in line {at}{said}"
        if not known and callee.means is not Means.LEFT:
            seen.add(callee.name)
            below = indentation + ("   " if last else "│  ")
            yield from _body(callee, migration, below, seen)
        elif not known:
            seen.add(callee.name)
            below = indentation + ("   " if last else "│  ")
            for leaf in _leaves_of(callee, migration):
                yield f"{below}  ~ line {leaf.finding.span.line}: {_title(leaf)}"


def _said(callee: Reached, *, is_passed: bool, known: bool) -> str:
    if known:
        return ": see above" if not is_passed else ": passes it on; see above"
    match callee.means:
        case Means.PARAMETER:
            definition = callee.scope.definition
            text = declared(definition, Parameter(callee.parameter, callee.required, "Budget"))  # type: ignore[arg-type]
            return f": gets `{text}`"
        case Means.GIVEN:
            return f": has `{callee.budget}`" + (", which is passed now" if is_passed else "")
        case Means.AROUND:
            return f": has `{callee.budget}` from around it"
        case Means.LEFT:
            return f": left, {callee.reason.why}" if callee.reason else ": left"
    return ""


def _leaves_of(one: Reached, migration: Migration) -> list[Leaf]:
    """What is rewritten in a function, less what functions nested in it show themselves."""
    others = [other.name for other in migration.reach.by_scope.values() if other is not one]
    nested = [name for name in others if name.path == one.name.path and one.name.holds(name.qualified)]
    found = [
        leaf
        for leaf in migration.leaves.rewritten
        if leaf.function.path == one.name.path
        and one.name.holds(leaf.function.qualified)
        and not any(name.holds(leaf.function.qualified) for name in nested)
    ]
    return sorted(found, key=lambda leaf: leaf.finding.span.line)


def _title(leaf: Leaf) -> str:
    fix = leaf.finding.fix
    code = "" if leaf.finding.code == OWN else f" ({leaf.finding.code})"
    return f"{fix.title if fix else leaf.finding.message}{code}"


def _place(one: Reached, migration: Migration) -> str:
    known = migration.files.by_path.get(one.name.path)
    shown = known.shown if known is not None else os.path.relpath(one.name.path)
    return f"{shown}:{getattr(one.scope.definition, 'lineno', 0)}"


def _left(migration: Migration) -> Iterator[str]:
    """What is not touched: once each, with the reason and the remedy."""
    left = [one for one in migration.reach.left if one.reason is not None]
    if not left:
        return
    beyond = migration.reach.beyond()
    yield ""
    yield "Left as it is" + (", under the ambient budget:" if migration.ambient else ":")
    for one in left:
        assert one.reason is not None
        yield f"  {_place(one, migration)}: `{one.name.qualified}`: {one.reason.why}"
        yield f"    → {one.reason.remedy}"
        names = [name_of(scope) for scope, through in beyond.items() if through is one]
        behind = [f"`{name.qualified}`" for name in names if name in migration.waiting]
        if behind:
            yield f"    what waits below it: {', '.join(behind)}"


def _remaining(migration: Migration) -> Iterator[str]:
    has = {one.name for one in migration.reach.holders}
    told = [leaf for leaf in migration.leaves.remaining if leaf.function in has]
    if told:
        yield ""
        yield "Still found in what has the budget, for a person:"
    for leaf in told:
        shown = migration.files.by_path[leaf.function.path].shown
        code = "" if leaf.finding.code == OWN else f"{leaf.finding.code} "
        yield f"  {shown}:{leaf.finding.span.line}: {code}{leaf.finding.message}"
        yield f"    → {leaf.finding.remedy}"


def _notes(migration: Migration) -> Iterator[str]:
    if migration.notes:
        yield ""
        yield "To look at:"
    for note in migration.notes:
        yield f"  {migration.files.by_path[note.path].shown}:{note.line}: {note.what}"
        yield f"    → {note.remedy}"


def _summary(migration: Migration) -> str:
    if not migration.changes:
        unused = migration.opening.is_new
        return "Nothing to change" + (": nothing that is reached would take the budget." if unused else ".")
    taken = sum(one.means is Means.PARAMETER for one in migration.reach.holders)
    counts = (
        _count(len(migration.changes), "file"), _count(taken, "parameter"), _count(len(migration.passes), "call"),
        _count(len(migration.leaves.rewritten), "rewrite"), f"{len(migration.reach.left)} left",
    )  # fmt: skip
    return ", ".join(counts)


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'s' if number != 1 else ''}"
