"""Putting the outcomes of many files together into the result of a run, and the time of its steps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from time import perf_counter

from deadlint.model import FileProblem, Finding
from deadlint.outcome import Outcome, Target, is_shown
from deadlint.result import Change, RunResult, Step


@dataclass(slots=True)
class Steps:
    """Seconds and files of each step, in the order in which they first came; processes add up."""

    seconds: dict[str, float] = field(default_factory=dict)
    files: dict[str, int] = field(default_factory=dict)
    started: float = field(default_factory=perf_counter)

    @contextmanager
    def time(self, name: str, files: int = 0) -> Iterator[None]:
        """Count the time of the body as that of a step."""
        start = perf_counter()
        try:
            yield
        finally:
            self.add({name: perf_counter() - start}, {name: files})

    def add(self, seconds: Mapping[str, float], files: Mapping[str, int]) -> None:
        """Add what another process, or another part of this one, has counted."""
        for name, value in seconds.items():
            self.seconds[name] = self.seconds.get(name, 0.0) + value
            self.files[name] = self.files.get(name, 0) + files.get(name, 0)

    def all(self) -> tuple[Step, ...]:
        """The steps as a result holds them."""
        return tuple(Step(name, self.seconds[name], self.files[name]) for name in self.seconds)


@dataclass(slots=True)
class Collected:
    """What has been found so far, in any order."""

    problems: list[FileProblem] = field(default_factory=list)
    warnings: list[FileProblem] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    fixed: list[Finding] = field(default_factory=list)
    beside: dict[str, list[Finding]] = field(default_factory=dict)  # of either level, for each baseline
    changes: dict[str, Change] = field(default_factory=dict)
    sources: dict[str, str] = field(default_factory=dict)  # of what is not on disk as it was judged

    def find(self, target: Target, findings: Iterable[Finding]) -> None:
        """Add what was found in one file: to the report as far as its reader is to see it, for its baseline all."""
        found = tuple(findings)
        self.findings += [one for one in found if is_shown(one, target.settings.level)]
        if target.settings.baseline is not None:
            self.beside.setdefault(target.settings.baseline, []).extend(found)

    def add(self, target: Target, outcome: Outcome) -> None:
        """Add what else came of judging one file."""
        if outcome.problem is not None:
            self.problems.append(FileProblem(target.shown, outcome.problem))

    def change(self, target: Target, outcome: Outcome) -> None:
        """Add what was fixed in one file, after what was fixed in it before."""
        assert outcome.change is not None
        self.fixed += outcome.fixed
        before = self.changes.get(target.shown, outcome.change).before
        self.changes[target.shown] = replace(outcome.change, before=before)
        self.sources[target.shown] = outcome.change.after

    def give_source(self, target: Target, data: bytes) -> None:
        """Remember the text of what is in no file."""
        self.sources.setdefault(target.shown, _text(target.shown, data) or "")

    def result(self, steps: Steps, *, files: int, cached: int, written: bool) -> RunResult:
        """The result of the run, sorted: the same whoever found what first."""
        return RunResult(
            findings=tuple(sorted(self.findings, key=lambda one: one.sort_key)),
            problems=tuple(sorted(self.problems, key=lambda one: (one.path, one.message))),
            warnings=tuple(self.warnings),
            files=files,
            cached=cached,
            source=_Source(self.sources),
            fixed=tuple(sorted(self.fixed, key=lambda one: one.sort_key)),
            changes=tuple(change for _, change in sorted(self.changes.items())),
            written=written and bool(self.changes),
            steps=steps.all(),
            seconds=perf_counter() - steps.started,
        )


@dataclass(slots=True)
class _Source:
    """The text that findings point into: as it was judged where that is not on disk, else what is on disk."""

    known: Mapping[str, str]
    _last: tuple[str, str | None] | None = None  # reports go through the findings file by file

    def __call__(self, path: str) -> str | None:
        if path in self.known:
            return self.known[path]
        if self._last is None or self._last[0] != path:
            self._last = (path, _read(path))
        return self._last[1]


def _read(path: str) -> str | None:
    try:
        with open(path, "rb") as file:
            return _text(path, file.read())
    except OSError:
        return None


def _text(path: str, data: bytes) -> str | None:
    from deadlint.source import SourceFile, UnreadableSource  # noqa: PLC0415 - only where there is a finding

    try:
        return SourceFile.decode(path, data).text
    except UnreadableSource:
        return None
