"""The blocking leaves under a budget: the rules' own fixes, as far as they take it, until none is left."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher

from deadlint.check import CannotCheck, check_source
from deadlint.errors import UserError
from deadlint.fix import FixError, fix_file
from deadlint.index.newer import parse
from deadlint.migrate.deadlines import OWN, AtHand, by_hand
from deadlint.migrate.names import FunctionName, extents, function_at
from deadlint.migrate.sources import Sources
from deadlint.model import Edit, Finding, Fix, Level, Safety
from deadlint.rule import Rule, selected
from deadlint.source import SourceFile
from deadlint.suppress import suppress

_APPLIED = frozenset({Safety.SAFE, Safety.UNSAFE})


@dataclass(frozen=True, slots=True)
class Under:
    """What the leaves of a function have: the expression of the budget, or None for the ambient one."""

    budget: str | None
    required: bool = True  # whether it is a budget for certain, and never None


@dataclass(frozen=True, slots=True)
class Leaf:
    """A finding in a function that is reached; its span counts in the text before the migration."""

    function: FunctionName
    finding: Finding


@dataclass(eq=False)
class Leaves:
    """What came of the leaves: the texts that changed, what was rewritten, what is still found."""

    texts: dict[str, str] = field(default_factory=dict)
    rewritten: list[Leaf] = field(default_factory=list)
    remaining: list[Leaf] = field(default_factory=list)

    def functions(self, under: Mapping[FunctionName, Under]) -> frozenset[FunctionName]:
        """The functions in which something takes the budget, or, where they have none, waits."""
        found = {leaf.function for leaf in self.rewritten}
        for leaf in self.remaining:
            what = under.get(leaf.function)
            if what is not None and what.budget is None:
                found.add(leaf.function)
        return frozenset(found)


def repaired(sources: Sources, under: Mapping[FunctionName, Under], rules: Sequence[Rule]) -> Leaves:
    """Rewrite the leaves of the functions in `under`.

    Raises `UserError` where a fix would break a file: then nothing is to be changed.
    """
    found = Leaves()
    for path in sorted({function.path for function in under}):
        file = _File(sources, path, under, rules)
        try:
            result = fix_file(sources.source(path), file.check, _APPLIED)
        except (FixError, CannotCheck) as error:
            raise UserError(f"{sources.files.by_path[path].shown}: {error}; nothing was changed") from error
        if result.source.text != sources.source(path).text:
            found.texts[path] = result.source.text
        found.rewritten += [file.leaf(one) for one in result.applied]
        found.remaining += [file.leaf(one) for one in result.remaining if one.level is Level.DEFAULT]
    return found


class _File:
    """One file while its leaves are rewritten."""

    def __init__(
        self, sources: Sources, path: str, under: Mapping[FunctionName, Under], rules: Sequence[Rule]
    ) -> None:
        self._sources = sources
        self._path = path
        self._settings = sources.files.by_path[path].settings
        self._rules = selected(rules, (), self._settings.ignore)
        self._known = [(rule.code, rule.name) for rule in rules]
        self._under = {one.qualified: what for one, what in under.items() if one.path == path}
        self._before = sources.files.by_path[path].source.text
        self._functions: dict[Finding, str] = {}

    def check(self, source: SourceFile) -> Iterable[Finding]:
        """What is found in the functions that are reached, with those fixes only that take the budget."""
        found = check_source(source, self._settings, self._rules, project=self._sources)
        found = suppress(source, found, self._known, [(rule.code, rule.name) for rule in self._rules])
        places = sorted(extents(parse(source.text)), key=lambda one: (one.first, -one.last))
        lines = original_lines(self._before, source.text)
        own = by_hand(source, self._settings, self._sources, self._at_hand())
        for finding in (*found, *own):
            function = function_at(places, finding.span.line)
            what = self._what(function)
            if function is None or what is None or finding.suppressed:
                continue
            line = lines.get(finding.span.line, 0)
            there = replace(
                finding,
                path=self._path,
                span=replace(finding.span, line=line, end_line=line),
                fix=finding.fix if finding.code == OWN else self._fix(finding.fix, what, source),
            )
            self._functions[there] = function
            yield there

    def _at_hand(self) -> dict[str, AtHand]:
        """The functions that have a budget, and what it is called there."""
        return {name: AtHand(what.budget, what.required) for name, what in self._under.items() if what.budget}

    def _what(self, function: str | None) -> Under | None:
        """What a function has, itself or by what it stands in."""
        while function:
            if function in self._under:
                return self._under[function]
            function = function.rpartition(".")[0]
        return None

    def _fix(self, fix: Fix | None, what: Under, source: SourceFile) -> Fix | None:
        """A fix as it is to be applied; None for one that has nothing to do with the budget."""
        if fix is None or fix.safety is Safety.DISPLAY:
            return None
        if what.budget is None:
            helpers = self._settings.helpers
            return fix if any(i.module.startswith(helpers) for i in fix.imports) else None
        if not any(_names(edit.text, what.budget) for edit in fix.edits):
            return None
        return fix if what.required else _for_perhaps(fix, what.budget, source)

    def leaf(self, finding: Finding) -> Leaf:
        """A finding that `check` gave."""
        return Leaf(FunctionName(self._path, self._functions[finding]), finding)


def _names(text: str, budget: str) -> bool:
    return re.search(rf"(?<![\w.]){re.escape(budget)}(?!\w)", text) is not None


def _for_perhaps(fix: Fix, budget: str, source: SourceFile) -> Fix | None:
    """A fix for a function whose budget may be None: helpers take that, its methods cannot be called."""
    match fix.edits:
        case (Edit(start=start, end=_, text=opened), Edit(start=end, end=_, text=")")) if opened == f"{budget}.slice(":
            limit = source.text[start:end]
            return replace(fix, edits=(fix.edits[0], Edit(end, end, f") if {budget} else {limit}")))
    return None if any(f"{budget}." in edit.text for edit in fix.edits) else fix


def original_lines(before: str, now: str) -> dict[int, int]:
    """For each line of `now` the line of `before` that it was, or that it took the place of."""
    old, new = before.splitlines(), now.splitlines()
    found: dict[int, int] = {}
    for tag, i1, i2, j1, j2 in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        for j in range(j1, j2):
            at = i1 + (j - j1 if tag == "equal" else min(j - j1, max(i2 - i1 - 1, 0)))
            found[j + 1] = at + 1
    return found
