"""Applying fixes: text edits that do not overlap, in rounds, until nothing more is found to fix."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

from deadlint import header, leftover_imports
from deadlint.index.newer import parse
from deadlint.model import Constant, Edit, Finding, Import, Safety
from deadlint.source import CannotEncode, SourceFile

_ROUNDS = 20  # each round applies what does not overlap; nested calls need one round a level


@dataclass(frozen=True, slots=True)
class FixResult:
    """A file after its fixes: the new text, what was fixed, and what is still found in it."""

    source: SourceFile
    applied: tuple[Finding, ...]
    remaining: tuple[Finding, ...]


class FixError(Exception):
    """A fix would have broken the file, so none was applied; a fault of the rule that offered it."""


def fix_file(
    source: SourceFile, check: Callable[[SourceFile], Iterable[Finding]], allowed: Collection[Safety]
) -> FixResult:
    """Apply the allowed fixes of a file until none is left. Nothing is written.

    Raises `FixError` where the result would not parse.
    """
    applied: list[Finding] = []
    findings = tuple(check(source))
    for _ in range(_ROUNDS):
        chosen = choose(findings, allowed)
        if not chosen:
            break
        fixed = source.with_text(apply(source, chosen))
        try:
            parse(fixed.text)
            fixed.encode()
        except (SyntaxError, UnicodeEncodeError, CannotEncode) as error:
            codes = ", ".join(sorted({f.code for f in chosen}))
            raise FixError(f"the fixes of {codes} would break the file ({error}); nothing was changed") from error
        if fixed.text == source.text:
            break
        applied.extend(chosen)
        source = fixed
        findings = tuple(check(source))
    return FixResult(source, tuple(applied), findings)


def choose(findings: Iterable[Finding], allowed: Collection[Safety]) -> list[Finding]:
    """The findings whose fixes can be applied together, in the order of the source."""
    chosen: list[Finding] = []
    taken: list[Edit] = []
    for finding in sorted(findings, key=lambda f: f.sort_key):
        fix = finding.fix
        if fix is None or finding.suppressed or fix.safety not in allowed or fix.safety is Safety.DISPLAY:
            continue
        if not any(_overlap(edit, other) for edit in fix.edits for other in taken):
            chosen.append(finding)
            taken.extend(fix.edits)
    return chosen


def _overlap(one: Edit, other: Edit) -> bool:
    """Whether two edits touch the same text; the very same edit, needed by two fixes, does not count."""
    if one == other:
        return False
    if one.start == one.end == other.start == other.end:
        return True
    return one.start < other.end and other.start < one.end


def apply(source: SourceFile, findings: Sequence[Finding]) -> str:
    """The text with the fixes of `findings`, which must not overlap."""
    fixes = [f.fix for f in findings if f.fix is not None]
    edits = [edit for fix in fixes for edit in fix.edits]
    imports = [i for fix in fixes for i in fix.imports]
    constants = [c for fix in fixes for c in fix.constants]
    return apply_edits(source.text, _with_leftovers(source, [*edits, *top_edits(source, imports, constants)]))


def top_edits(source: SourceFile, imports: Sequence[Import], constants: Sequence[Constant]) -> list[Edit]:
    """The edits at the top of the file for what fixes need there."""
    if not imports and not constants:
        return []
    return header.edits(source, parse(source.text), imports, constants)


def all_edits(source: SourceFile, finding: Finding) -> tuple[Edit, ...]:
    """Every edit of one finding's fix, those at the top of the file with it."""
    if finding.fix is None:
        return ()
    top = top_edits(source, finding.fix.imports, finding.fix.constants)
    return tuple(_with_leftovers(source, [*top, *finding.fix.edits]))


def _with_leftovers(source: SourceFile, edits: list[Edit]) -> list[Edit]:
    """The edits, and those that take out imports whose last use goes with them."""
    return leftover_imports.without_leftovers(source, parse(source.text), edits, apply_edits(source.text, edits))


def apply_edits(text: str, edits: Iterable[Edit]) -> str:
    """The text with edits applied; the same edit given twice counts once."""
    pieces = []
    position = 0
    for edit in sorted(dict.fromkeys(edits), key=lambda e: (e.start, e.end)):
        if edit.start < position:
            raise FixError("edits overlap")
        pieces += [text[position : edit.start], edit.text]
        position = edit.end
    return "".join([*pieces, text[position:]])
