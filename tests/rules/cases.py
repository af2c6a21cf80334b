"""Case files: Python with the expected findings as comments on the very lines."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from deadlint.check import check_source
from deadlint.model import Finding, Level
from deadlint.rule import Rule, all_rules
from deadlint.settings import Settings
from deadlint.source import SourceFile

ROOT = Path(__file__).parents[2] / "fixtures" / "cases"
_HEADER = re.compile(r"# rules: ([A-Z0-9 ]+)")
_MARK = re.compile(r"# (error|strict): ([A-Z0-9, ]+)")


@dataclass(frozen=True)
class Case:
    """A file, the rules that it is exhaustive for, and its marks as (line, code, level)."""

    path: Path
    codes: tuple[str, ...]
    marks: frozenset[tuple[int, str, Level]]

    @property
    def rules(self) -> tuple[Rule, ...]:
        return tuple(r for r in all_rules() if r.code in self.codes)

    @property
    def source(self) -> SourceFile:
        return SourceFile.read(self.path)


def read(path: Path) -> Case:
    text = path.read_text(encoding="utf-8")
    header = _HEADER.match(text)
    assert header, f"{path}: the first line of a case names its rules"
    marks = set()
    for number, line in enumerate(text.split("\n"), 1):
        for mark in _MARK.finditer(line):
            level = Level.DEFAULT if mark[1] == "error" else Level.STRICT
            marks |= {(number, code, level) for code in re.findall(r"DL\d{3}", mark[2])}
    return Case(path, tuple(header[1].split()), frozenset(marks))


def implemented(codes: tuple[str, ...]) -> bool:
    return set(codes) <= {r.code for r in all_rules()}


def all_cases() -> list[Case]:
    """Every case whose rules exist; files of rules that are still to be written wait beside them."""
    return [case for path in sorted(ROOT.rglob("*.py")) if implemented((case := read(path)).codes)]


def find(case: Case, source: SourceFile | None = None, *, rules: tuple[Rule, ...] | None = None) -> list[Finding]:
    return check_source(source or case.source, Settings(), case.rules if rules is None else rules)
