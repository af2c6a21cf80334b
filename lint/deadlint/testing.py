"""What a package of rules tests itself with: case files with the expected findings on the very lines.

The first line of a case names the rules that the file is exhaustive for: `# rules: ACM101`. With only these selected,
exactly the marked lines are found:

- `# error: ACM101` at the end of a line: found at the default level;
- `# strict: ACM101`: found at `--level strict` only;
- no mark: clean at both levels.

The checks raise `AssertionError`; they need no test framework.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from deadlint.check import check_source
from deadlint.fix import fix_file
from deadlint.model import Finding, Level, Safety
from deadlint.rule import HEADINGS, Rule
from deadlint.rule_pages import code_under, sections
from deadlint.settings import Settings
from deadlint.source import SourceFile

_HEADER = re.compile(r"# rules: ([A-Z0-9 ]+)")
_MARK = re.compile(r"# (error|strict): ([A-Z0-9, ]+)")
_CODE = re.compile(r"[A-Z]+\d+")
EVERY_SAFETY = (Safety.SAFE, Safety.UNSAFE)


@dataclass(frozen=True)
class Case:
    """A file, the codes of the rules that it is exhaustive for, and its marks as (line, code, level)."""

    path: Path
    codes: tuple[str, ...]
    marks: frozenset[tuple[int, str, Level]]

    @classmethod
    def read(cls, path: Path) -> Case:
        """The case in a file. Raises `AssertionError` where its first line names no rules."""
        text = path.read_text(encoding="utf-8")
        header = _HEADER.match(text)
        assert header, f"{path}: the first line of a case names its rules, as `# rules: ACM101`"
        marks = set()
        for number, line in enumerate(text.split("\n"), 1):
            for mark in _MARK.finditer(line):
                level = Level.DEFAULT if mark[1] == "error" else Level.STRICT
                marks |= {(number, code, level) for code in _CODE.findall(mark[2])}
        return cls(path, tuple(header[1].split()), frozenset(marks))

    @property
    def source(self) -> SourceFile:
        """The text of the case."""
        return SourceFile.read(self.path)

    def of(self, rules: Sequence[Rule]) -> tuple[Rule, ...]:
        """Those of `rules` that the case is exhaustive for."""
        return tuple(rule for rule in rules if rule.code in self.codes)

    def __str__(self) -> str:
        return f"{self.path.parent.name}/{self.path.stem}"


def cases(directory: Path) -> list[Case]:
    """Every case below a directory, sorted by path."""
    return [Case.read(path) for path in sorted(directory.rglob("*.py"))]


def find(source: SourceFile, rules: Sequence[Rule], settings: Settings | None = None) -> list[Finding]:
    """What rules find in a text, at either level."""
    return check_source(source, settings or Settings(), rules)


def check_case(case: Case, rules: Sequence[Rule]) -> None:
    """Exactly the marked lines are found; fixes leave Python, mend what they say, and a second run finds no more."""
    chosen = case.of(rules)
    assert {rule.code for rule in chosen} == set(case.codes), f"{case.path}: names a rule that there is not"
    found = find(case.source, chosen)
    places = {(finding.span.line, finding.code, finding.level) for finding in found}
    assert places == case.marks, f"{case.path}: {_difference(places, case.marks)}"
    fixed = fix_file(case.source, lambda source: find(source, chosen), EVERY_SAFETY)
    ast.parse(fixed.source.text)
    fixable = [finding for finding in found if finding.fix and finding.fix.safety in EVERY_SAFETY]
    left = Counter(finding.code for finding in fixed.remaining)
    expected = Counter(finding.code for finding in found) - Counter(finding.code for finding in fixable)
    assert left <= expected, f"{case.path}: after the fixes there is still {dict(left)}, expected {dict(expected)}"
    again = fix_file(fixed.source, lambda source: find(source, chosen), EVERY_SAFETY)
    assert again.source.text == fixed.source.text, f"{case.path}: fixing twice changes something more"


def _difference(found: set[tuple[int, str, Level]], marked: frozenset[tuple[int, str, Level]]) -> str:
    false, missed = sorted(found - marked), sorted(marked - found)
    said = [f"line {line}: {code} is a false alarm ({level})" for line, code, level in false]
    return "; ".join(said + [f"line {line}: {code} is missed ({level})" for line, code, level in missed])


def check_documentation(rule: Rule) -> None:
    """The docstring has the headings in their order, its example fires, and what to use instead is clean."""
    parts = sections(rule)
    assert tuple(parts) == HEADINGS, f"{rule.code}: the headings are {', '.join(HEADINGS)}, in that order"
    empty = [heading for heading, text in parts.items() if not text]
    assert not empty, f"{rule.code}: nothing stands under {', '.join(empty)}"
    assert rule.summary().endswith("."), f"{rule.code}: the first line is a sentence"
    example = find(SourceFile("example.py", code_under(rule, "Example")), [rule])
    assert example, f"{rule.code}: the example is not found"
    instead = find(SourceFile("instead.py", code_under(rule, "Use instead")), [rule])
    assert not instead, f"{rule.code}: what to use instead is found too"
