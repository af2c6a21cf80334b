"""One migration: what an entry reaches, who takes the budget, what the leaves become. Nothing is written here."""

from __future__ import annotations

import ast
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from deadlint import header
from deadlint.errors import UserError
from deadlint.fix import apply_edits, top_edits
from deadlint.index.newer import parse
from deadlint.index.scopes import Scope
from deadlint.migrate.ambient import around_body
from deadlint.migrate.entry import find_entry
from deadlint.migrate.leaves import Leaves, Under, repaired
from deadlint.migrate.names import FunctionName, name_of
from deadlint.migrate.notes import Note, notes_on
from deadlint.migrate.opening import Opening, Order, opening
from deadlint.migrate.passing import Pass, passes
from deadlint.migrate.reach import Means, Reach, Reached, around, reach
from deadlint.migrate.reasons import Reasons
from deadlint.migrate.signature import Parameter, free_name, needs_type, signature_edits
from deadlint.migrate.sources import Files, Sources
from deadlint.migrate.unused import without_unused_imports
from deadlint.migrate.uses import Uses
from deadlint.model import Constant, Edit, Import
from deadlint.result import Change
from deadlint.rule import Rule


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is asked for: the entry, its budget, and whether what is left takes the ambient one."""

    entry: str
    order: Order
    ambient: bool = False
    exported: bool = False  # whether what is exported gets an optional parameter


@dataclass(frozen=True, eq=False)
class Migration:
    """All that a migration does, and what it leaves to a person."""

    wanted: Wanted
    reach: Reach
    opening: Opening
    passes: tuple[Pass, ...]
    leaves: Leaves
    changes: tuple[Change, ...]  # by the absolute path
    files: Files
    ambient: bool  # whether the entry makes its budget the ambient one
    waiting: frozenset[FunctionName]  # the functions with a leaf
    helpers: str  # the module that changed files import
    helpers_at_hand: bool  # whether the project has it, as far as is known
    notes: tuple[Note, ...] = ()  # what cannot be followed


@dataclass(eq=False)
class _Edits:
    """The edits of each file, and what goes to its top."""

    edits: dict[str, list[Edit]] = field(default_factory=dict)
    imports: dict[str, list[Import]] = field(default_factory=dict)
    constants: dict[str, list[Constant]] = field(default_factory=dict)

    def add(
        self, path: str, edits: Sequence[Edit], imports: Sequence[Import] = (), constants: Sequence[Constant] = ()
    ) -> None:
        self.edits.setdefault(path, []).extend(edits)
        self.imports.setdefault(path, []).extend(imports)
        self.constants.setdefault(path, []).extend(constants)

    def texts(self, sources: Sources) -> dict[str, str]:
        """The files with their edits."""
        found = {}
        for path, edits in self.edits.items():
            source = sources.source(path)
            top = top_edits(source, self.imports.get(path, ()), self.constants.get(path, ()))
            text = apply_edits(source.text, [*top, *edits])
            if text != source.text:
                found[path] = text
        return found


def migrate(wanted: Wanted, files: Files, sources: Sources, rules: Sequence[Rule]) -> Migration:
    """What has to change for one budget to come from the entry to every leaf. Raises `UserError` where it cannot."""
    entry = find_entry(wanted.entry, sources)
    _refuse_if_given(entry, wanted)
    uses = Uses.of(sources)
    reasons = Reasons.of(sources, uses, exported_too=wanted.exported)
    everything = reach(entry, sources, uses, reasons)
    waiting = _waiting(everything, wanted, sources, rules)
    needed = _needed(everything, waiting)
    result = reach(entry, sources, uses, reasons, needed)
    threaded = _threaded(result, wanted, sources)
    under = _under(result, sources, ambient=wanted.ambient)
    leaves = repaired(sources.changed(threaded.texts), under, rules)
    texts = {**threaded.texts, **leaves.texts}
    if threaded.opening.is_new and not threaded.passes and not leaves.rewritten:
        texts = {}  # nothing takes the budget, so none is made
    is_ambient = wanted.ambient and any(leaf.function in _ambient(result, sources) for leaf in leaves.rewritten)
    if texts or not threaded.opening.is_new:
        name = name_of(entry)
        source = sources.changed(texts).source(name.path)
        texts[name.path] = around_body(source, name.qualified, threaded.opening.budget, ambient=is_ambient)
    texts = {path: without_unused_imports(sources.source(path), text) for path, text in texts.items()}
    _refuse_if_broken(texts, sources)
    changes = tuple(
        Change(path, sources.source(path).text, text, bom=sources.source(path).bom)
        for path, text in sorted(texts.items())
        if text != sources.source(path).text
    )
    settings = files.by_path[name_of(entry).path].settings
    notes = tuple(notes_on(result, changes, sources))
    return Migration(
        wanted, result, threaded.opening, threaded.passes, leaves, changes, files, is_ambient, waiting,
        settings.helpers, settings.helpers_are_own, notes,
    )  # fmt: skip


def _waiting(
    everything: Reach, wanted: Wanted, sources: Sources, rules: Sequence[Rule]
) -> frozenset[FunctionName]:
    """The functions with a leaf. The rules say who has one, and what they do with it, once all have a budget."""
    trial = _threaded(everything, wanted, sources)
    under = _under(everything, sources, ambient=True)
    return repaired(sources.changed(trial.texts), under, rules).functions(under)


def _refuse_if_given(entry: Scope, wanted: Wanted) -> None:
    taken = {parameter.arg for parameter in entry.parameters()} & {"budget", "_budget"}
    if taken:
        raise UserError(
            f"--entry {wanted.entry}: it takes a budget from its callers (`{taken.pop()}`), so it is no entry point;"
            " name the function that should make the budget"
        )


@dataclass(frozen=True, slots=True)
class _Threaded:
    texts: dict[str, str]
    opening: Opening
    passes: tuple[Pass, ...]


def _threaded(result: Reach, wanted: Wanted, sources: Sources) -> _Threaded:
    """The texts with the budget made, taken and passed on; the leaves as they were."""
    edits = _Edits()
    entry = result.entry
    path = entry.name.path
    module = sources.module(path)
    assert module is not None
    made = opening(entry.scope, module, wanted.order, module.settings.helpers)
    entry.budget = made.budget
    edits.add(path, made.edits, made.imports, made.constants)
    for one in result.holders:
        if one.means is Means.PARAMETER:
            _take(one, sources, edits)
    for one in result.holders:
        if one.means is Means.AROUND:
            outer = around(one, result)
            one.budget = outer.budget if outer is not None else ""
    passed = tuple(passes(result))
    for each in passed:
        edits.add(each.path, each.edits, each.imports)
    return _Threaded(edits.texts(sources), made, passed)


def _take(one: Reached, sources: Sources, edits: _Edits) -> None:
    """Give a function its parameter."""
    path = one.name.path
    module = sources.module(path)
    node = one.scope.definition
    assert module is not None
    assert isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    one.budget = one.parameter = free_name(node)
    kind = header.free_import(module.tree, module.bound_names, module.settings.helpers, "Budget")
    parameter = Parameter(one.parameter, one.required, kind.alias or kind.name)
    imports = [kind] if needs_type(node, one.parameter) else []
    edits.add(path, signature_edits(module.source, node, parameter), imports)


def _needed(result: Reach, leaves: Collection[FunctionName]) -> frozenset[FunctionName]:
    """The functions that lead to a leaf, or to one that takes a budget already."""
    found = {one.name for one in result.by_scope.values() if one.means is Means.GIVEN and one.parameter}
    for one in result.by_scope.values():
        if any(name.path == one.name.path and one.name.holds(name.qualified) for name in leaves):
            found.add(one.name)
    found |= {through.name for scope, through in result.beyond().items() if name_of(scope) in leaves}
    callers: dict[FunctionName, set[FunctionName]] = {}
    for one in result.holders:
        for _, callee in result.below(one):
            callers.setdefault(callee.name, set()).add(one.name)
    pending = list(found)
    while pending:
        for caller in callers.get(pending.pop(), ()):
            if caller not in found:
                found.add(caller)
                pending.append(caller)
    return frozenset(found)


def _ambient(result: Reach, sources: Sources) -> frozenset[FunctionName]:
    """The functions that are left, and what only they reach: where the ambient budget serves."""
    found = [*(one.scope for one in result.left), *result.beyond()]
    files = sources.files.by_path
    return frozenset(
        name_of(f) for f in found if f.module.path in files and not files[f.module.path or ""].is_test
    )


def _under(result: Reach, sources: Sources, *, ambient: bool) -> dict[FunctionName, Under]:
    under = {one.name: Under(one.budget, one.required) for one in result.holders if one.budget}
    if ambient:
        under |= {name: Under(None) for name in _ambient(result, sources) if name not in under}
    return {name: what for name, what in under.items() if name.path in sources.files.by_path}


def _refuse_if_broken(texts: dict[str, str], sources: Sources) -> None:
    for path, text in texts.items():
        try:
            parse(text)
            sources.source(path).with_text(text).encode()
        except (SyntaxError, UnicodeEncodeError) as error:
            shown = sources.files.by_path[path].shown
            raise UserError(f"{shown} would not parse afterwards ({error}); nothing was changed, report it") from error
