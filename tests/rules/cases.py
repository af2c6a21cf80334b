"""Case files: Python with the expected findings as comments on the very lines."""

from __future__ import annotations

from pathlib import Path

from deadlint import testing
from deadlint.model import Finding
from deadlint.rule import Rule, all_rules
from deadlint.source import SourceFile
from deadlint.testing import Case

ROOT = Path(__file__).parents[2] / "fixtures" / "cases"

__all__ = ["ROOT", "Case", "all_cases", "find", "implemented", "read"]


def read(path: Path) -> Case:
    return Case.read(path)


def implemented(codes: tuple[str, ...]) -> bool:
    return set(codes) <= {r.code for r in all_rules()}


def all_cases() -> list[Case]:
    """Every case whose rules exist; files of rules that are still to be written wait beside them."""
    return [case for case in testing.cases(ROOT) if implemented(case.codes)]


def find(case: Case, source: SourceFile | None = None, *, rules: tuple[Rule, ...] | None = None) -> list[Finding]:
    return testing.find(source or case.source, case.of(all_rules()) if rules is None else rules)
