"""What a run found: the one value that the runner returns and every printer reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING

from deadlint.model import NOTEBOOK, FileProblem, Finding

if TYPE_CHECKING:
    from deadlint.baseline_file import Entry
    from deadlint.notebook.source import Notebook


class ExitStatus(IntEnum):
    """How a run ends, for the shell. An error outweighs findings: the run was not complete."""

    CLEAN = 0
    FINDINGS = 1
    ERROR = 2


@dataclass(frozen=True, slots=True)
class Change:
    """A file that fixes change: its text before and after, the newlines as they are in the file.

    Of a notebook these are the texts of its code; `notebook` puts them into the file.
    `bom` is whether the file begins with a byte order mark, which its text does not hold.
    """

    path: str
    before: str
    after: str
    notebook: Notebook | None = None
    bom: bool = False


@dataclass(frozen=True, slots=True)
class Step:
    """Where time went: seconds that one step of the run, or one rule, took over so many files."""

    name: str
    seconds: float
    files: int


@dataclass(frozen=True, slots=True)
class Comparison:
    """What was found, beside a baseline."""

    path: str  # of the baseline, absolute
    kept: tuple[Entry, ...]  # sorted, at the paths where their findings are now
    stale: tuple[Entry, ...]  # of what is gone
    new: tuple[Finding, ...]  # at the level asked for
    moved: int  # entries whose findings are in another file now


def no_source(path: str) -> str | None:
    """The source of a run that has none to show."""
    return None


@dataclass(frozen=True, slots=True)
class RunResult:
    """What a run found, in the order of `Finding.sort_key`; the same for one process and for many.

    `findings` are those left after any fixing, at the level asked for, suppressed ones included and marked.
    `source` gives the decoded text that the spans of `findings` count in, or None where it cannot be had.
    """

    findings: tuple[Finding, ...] = ()
    problems: tuple[FileProblem, ...] = ()
    warnings: tuple[FileProblem, ...] = ()  # worth a line, no error: such as a directory without Python
    files: int = 0  # how many files were checked, those answered by the cache included
    cached: int = 0  # how many of them the cache answered
    source: Callable[[str], str | None] = field(default=no_source, compare=False)
    fixed: tuple[Finding, ...] = ()  # what `--fix` repaired, or `--diff` would
    changes: tuple[Change, ...] = ()  # the files that fixes changed, or would
    written: bool = False  # whether `changes` are on disk: False under `--diff`
    steps: tuple[Step, ...] = field(default=(), compare=False)
    seconds: float = field(default=0.0, compare=False)
    baselines: tuple[Comparison, ...] = ()  # those that hold for any of the files

    @property
    def open_findings(self) -> tuple[Finding, ...]:
        """The findings that neither a comment nor a baseline silences."""
        return tuple(finding for finding in self.findings if finding.suppressed is None)

    @property
    def in_notebooks(self) -> bool:
        """Whether a finding, or what it is related to, stands in a notebook."""
        found = (*self.findings, *self.fixed)
        return any(path.endswith(NOTEBOOK) for one in found for path in (one.path, *(r.path for r in one.related)))

    @property
    def counts(self) -> Mapping[str, int]:
        """How many open findings each code has, the most frequent first."""
        counted: dict[str, int] = {}
        for finding in self.open_findings:
            counted[finding.code] = counted.get(finding.code, 0) + 1
        return dict(sorted(counted.items(), key=lambda item: (-item[1], item[0])))

    @property
    def exit_status(self) -> ExitStatus:
        """Error before findings before clean; changes that are only shown count as findings."""
        if self.problems:
            return ExitStatus.ERROR
        if self.open_findings or (self.changes and not self.written):
            return ExitStatus.FINDINGS
        return ExitStatus.CLEAN
