"""The engine: one file in, its findings out. It knows rules only by what they say of themselves."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import TYPE_CHECKING

from deadlint.interest import interest_of
from deadlint.model import Finding, Fix, Level, Span
from deadlint.outcome import Exits
from deadlint.rule import Rule
from deadlint.screen import concerned
from deadlint.settings import Settings
from deadlint.site import Report
from deadlint.source import SourceFile

if TYPE_CHECKING:
    from deadlint.index.module import Module
    from deadlint.part import Before, Part
    from deadlint.project import Project

SYNTAX_ERROR = ("DL001", "syntax-error")


class CannotCheck(Exception):
    """The file is beyond what the tool can handle; the text says why, in one line."""


@dataclass(frozen=True, slots=True)
class Checked:
    """What a file holds: its findings, and what it has around its calls of functions of other files.

    `seconds` is the time that each rule took, with what it asked of the index for the first time.
    """

    findings: list[Finding]
    exits: Exits = ()
    partial: bool = False  # whether only one function was looked at, and the rest was found before
    seconds: Mapping[str, float] = field(default_factory=dict)
    tree: ast.Module | None = None  # of the whole file, where that was parsed


def check_source(
    source: SourceFile,
    settings: Settings,
    rules: Sequence[Rule],
    *,
    with_fixes: bool = True,
    project: Project | None = None,
    entered: bytes = b"",
    whole: bool = True,
) -> list[Finding]:
    """The findings of one file in the order of the source, suppressed or not, of either level.

    With a `project`, names are followed into the modules that the file imports from it. `entered` is what the callers
    of its functions in other files have around their calls (`Join.entered`). A file that is not wanted `whole` is
    parsed as far as its findings need it: a syntax error in the rest of it is not told.
    Raises `CannotCheck` where the file is nested too deeply for the parser.
    """
    return examine(
        source, settings, rules, with_fixes=with_fixes, project=project, entered=entered, whole=whole
    ).findings


def examine(
    source: SourceFile,
    settings: Settings,
    rules: Sequence[Rule],
    *,
    with_fixes: bool = True,
    project: Project | None = None,
    entered: bytes = b"",
    with_exits: bool = False,
    before: Before | None = None,
    whole: bool = True,
    screened: bool = False,
) -> Checked:
    """The same with the exits of the file where `with_exits` asks for them. Raises as `check_source` does.

    All rules look at a file that is not to be `screened`, also those whose words only what it imports may hold.
    Where it differs from what was `before` in the body of one function only, only that is looked at.
    """
    from deadlint.exits import decode, encode  # noqa: PLC0415 - see below
    from deadlint.index.module import Module  # noqa: PLC0415 - a warm run does not need it

    try:
        module = Module(source, settings, project, decode(entered), whole=whole)
    except SyntaxError as error:
        return Checked([_syntax_error(source, error)])
    except (RecursionError, MemoryError) as error:
        raise CannotCheck("nested too deeply for Python's parser") from error
    except ValueError as error:
        raise CannotCheck(str(error)) from error
    try:
        here = _part(before, module)
        seconds: dict[str, float] = {}
        screened = screened and not entered
        findings = list(_findings(module, rules, seconds, here, with_fixes=with_fixes, screened=screened))
        if here is not None and before is not None:
            findings += here.kept(before)
        exits = encode(module.graph.exits()) if with_exits else ()
        if module.walker.broken:
            raise _Broken
        tree = module.tree if whole else None
    except _Broken:
        return examine(
            source, settings, rules, with_fixes=with_fixes, project=project, entered=entered, with_exits=with_exits
        )
    except RecursionError as error:
        raise CannotCheck("expressions are nested too deeply to be followed") from error
    finally:
        module.release()
    findings = sorted(_most_telling(findings), key=lambda f: f.sort_key)
    return Checked(findings, exits, partial=here is not None, seconds=seconds, tree=tree)


class _Broken(Exception):
    """The body of a function could not be parsed on its own."""


def _part(before: Before | None, module: Module) -> Part | None:
    if before is None:
        return None
    from deadlint.part import part  # noqa: PLC0415 - an editor asks for it

    return part(before.text, module.source.text, module.tree)


def _findings(
    module: Module,
    rules: Sequence[Rule],
    seconds: dict[str, float],
    here: Part | None,
    *,
    with_fixes: bool,
    screened: bool,
) -> Iterator[Finding]:
    for what, error in module.source.left_out():
        yield _syntax_error(module.source, error, what)
    if screened:  # which limits hold in the file is then in its text
        rules = concerned(tuple(rules), module.source.text)
    if not rules:
        return
    interest = interest_of(tuple(rules))
    for site in module.sites_of(interest.wanted(module.source.text), here):
        for rule, name in interest.rules_for(site):
            with _charged(rule, seconds):
                for report in rule.check(replace(site, name=name)):
                    yield _finding(rule, module, report, with_fixes=with_fixes)
    for rule in rules:
        with _charged(rule, seconds):
            for report in rule.check_module(module):
                yield _finding(rule, module, report, with_fixes=with_fixes)


@contextmanager
def _charged(rule: Rule, seconds: dict[str, float]) -> Iterator[None]:
    """Count the time of a rule, and note whose fault an error is: the rule may be another package's."""
    start = perf_counter()
    try:
        yield
    except Exception as error:
        error.add_note(f"rule {rule.code} {rule.name} of {type(rule).__module__.partition('.')[0]}")
        raise
    finally:
        seconds[rule.code] = seconds.get(rule.code, 0.0) + perf_counter() - start


def _finding(rule: Rule, module: Module, report: Report, *, with_fixes: bool) -> Finding:
    return Finding(
        code=rule.code,
        name=rule.name,
        path=module.source.path,
        span=module.span(report.node),
        message=report.message,
        remedy=report.remedy,
        level=report.level,
        related=report.related,
        fix=_fix(module.source, report) if with_fixes else None,
    )


def _fix(source: SourceFile, report: Report) -> Fix | None:
    fix = report.fix() if report.fix is not None else None
    return fix if fix is None or source.allows(fix) else None


def _most_telling(findings: Iterable[Finding]) -> list[Finding]:
    """One finding for each rule and place: where several targets give one, the one of the default level."""
    best: dict[tuple[str, Span], Finding] = {}
    for finding in findings:
        key = (finding.code, finding.span)
        if key not in best or (best[key].level is Level.STRICT and finding.level is Level.DEFAULT):
            best[key] = finding
    return list(best.values())


def _syntax_error(source: SourceFile, error: SyntaxError, what: str = "this file") -> Finding:
    line = min(max(error.lineno or 1, 1), len(source.line_starts))
    column = max(error.offset or 1, 1)
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    return Finding(
        code=SYNTAX_ERROR[0],
        name=SYNTAX_ERROR[1],
        path=source.path,
        span=Span(line, column, line, column + 1),
        message=f"Python {python} cannot parse {what}: {error.msg}",
        remedy="mend the syntax, run deadlint under a Python that knows it, or exclude the file",
    )
