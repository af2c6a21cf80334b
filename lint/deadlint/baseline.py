"""Comparing what was found with baselines: what is known, what is new, and which entries are stale.

It decides what is shown, and nothing that is remembered of files. An entry stands for one finding of its path. What
is left over matches by fingerprint alone, for files are renamed and functions moved; but only an entry whose own
path is gone or was looked at: a run over a few files must not use up what stands for the others.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from deadlint.baseline_file import Baselines, Entry
from deadlint.fingerprint import identities
from deadlint.model import FileProblem, Finding, SilencedBy, Suppression
from deadlint.result import Comparison, RunResult

SYNTAX_ERROR = "DL001"


@dataclass(frozen=True)
class Checked:
    """Which paths a run looked at: `paths` and what is below them. `everything` is False where rules were chosen."""

    paths: Sequence[str]
    everything: bool = True

    @cached_property
    def _absolute(self) -> tuple[str, ...]:
        return tuple(os.path.abspath(path).rstrip("/") for path in self.paths)

    def covers(self, path: str) -> bool:
        """Whether the absolute `path` is among them."""
        return any(path == one or path.startswith(one + "/") for one in self._absolute)


def with_baselines(
    result: RunResult, baselines: Baselines, found: Mapping[str, Sequence[Finding]], checked: Checked
) -> RunResult:
    """`result` with those of its findings marked that a baseline knows, and the comparisons.

    `found` holds, for the path of each baseline, all findings of its files, those included that are below the level
    of `result`: an entry may stand for one of them.
    """
    shown = {id(finding) for finding in result.findings}
    marks: dict[int, Suppression] = {}
    comparisons = []
    for path, entries in sorted(baselines.items()):
        one = _Comparing(path, entries, result, checked).run(found.get(path, ()), shown)
        name = os.path.relpath(path)
        marks |= {mark: Suppression(0, name, f"known in {name}", SilencedBy.BASELINE) for mark in one.known}
        comparisons.append(one.comparison())
    stale = [_stale(one) for one in comparisons if one.stale]
    findings = (replace(one, suppressed=marks[id(one)]) if id(one) in marks else one for one in result.findings)
    return replace(result, findings=tuple(findings), warnings=(*result.warnings, *stale), baselines=tuple(comparisons))


def entries_of(findings: Sequence[Finding], result: RunResult, path: str) -> list[Entry]:
    """The entries that stand for `findings` of `result` in the baseline at `path`."""
    names = identities(findings, result.source)
    home = os.path.dirname(path)
    return [Entry(_from(home, one.path), one.code, name) for one, name in zip(findings, names, strict=True)]


def _stale(comparison: Comparison) -> FileProblem:
    count = len(comparison.stale)
    entries, stand = ("1 entry is", "it stands") if count == 1 else (f"{count} entries are", "they stand")
    text = f"{entries} stale: what {stand} for is gone; `deadlint baseline update` takes out what is stale"
    return FileProblem(os.path.relpath(comparison.path), text)


def _from(home: str, path: str) -> str:
    """`path` as an entry has it."""
    return os.path.relpath(os.path.abspath(path), home).replace(os.sep, "/")


@dataclass(slots=True)
class _Comparing:
    """One baseline while it is compared: the entries that are left, by fingerprint and path."""

    path: str
    entries: Sequence[Entry]
    result: RunResult
    checked: Checked
    known: list[int] = field(default_factory=list)  # the identities of findings that have an entry
    new: list[Finding] = field(default_factory=list)
    kept: list[Entry] = field(default_factory=list)
    moved: int = 0
    left: dict[str, dict[str, list[Entry]]] = field(default_factory=lambda: defaultdict(lambda: defaultdict(list)))
    unread: set[str] = field(default_factory=set)  # absolute paths whose findings are not known

    def run(self, findings: Iterable[Finding], shown: set[int]) -> _Comparing:
        for entry in self.entries:
            self.left[entry.identity][entry.path].append(entry)
        problems = (problem.path for problem in self.result.problems)
        broken = (finding.path for finding in self.result.findings if finding.code == SYNTAX_ERROR)
        self.unread = {os.path.abspath(path) for path in (*problems, *broken)}
        ordered = sorted((one for one in findings if one.suppressed is None), key=lambda one: one.sort_key)
        open_ = self._at_their_paths([one for one in ordered if id(one) in shown])
        below = []
        if any(rest for paths in self.left.values() for rest in paths.values()):
            # Only now: fingerprints cost the reading of files, and most runs are done with every entry.
            below = self._at_their_paths([one for one in ordered if id(one) not in shown])
        self.new = [finding for finding, _ in self._elsewhere(open_)]
        self._elsewhere(below)
        return self

    def comparison(self) -> Comparison:
        rest = [entry for paths in self.left.values() for entries in paths.values() for entry in entries]
        stale = [entry for entry in rest if self._is_stale(entry)]
        kept = [*self.kept, *(entry for entry in rest if not self._is_stale(entry))]
        return Comparison(self.path, tuple(sorted(kept)), tuple(sorted(stale)), tuple(self.new), self.moved)

    def _at_their_paths(self, findings: Sequence[Finding]) -> list[tuple[Finding, Entry]]:
        """Take the entries of the findings' own paths; the findings that have none there."""
        rest = []
        for finding, entry in zip(findings, entries_of(findings, self.result, self.path), strict=True):
            if found := self.left[entry.identity][entry.path]:
                self._take(finding, found, entry)
            else:
                rest.append((finding, entry))
        return rest

    def _elsewhere(self, findings: Iterable[tuple[Finding, Entry]]) -> list[tuple[Finding, Entry]]:
        """Take entries of paths that have no use for them; the findings that are left."""
        rest = []
        for finding, entry in findings:
            free = (found for found in self.left[entry.identity].values() if found and self._is_free(found[0]))
            if found := next(free, None):
                self._take(finding, found, entry)
                self.moved += 1
            else:
                rest.append((finding, entry))
        return rest

    def _take(self, finding: Finding, found: list[Entry], entry: Entry) -> None:
        found.pop()
        self.kept.append(entry)
        self.known.append(id(finding))

    def _is_free(self, entry: Entry) -> bool:
        return self._was_looked_at(entry) or not os.path.lexists(self._place(entry))

    def _is_stale(self, entry: Entry) -> bool:
        return self.checked.everything and self._was_looked_at(entry)

    def _was_looked_at(self, entry: Entry) -> bool:
        place = self._place(entry)
        return place not in self.unread and self.checked.covers(place)

    def _place(self, entry: Entry) -> str:
        return os.path.normpath(os.path.join(os.path.dirname(self.path), entry.path))
