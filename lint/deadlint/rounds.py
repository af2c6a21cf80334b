"""Judging files until it is settled what their callers in other files have around their calls.

A file says what it has around its calls of others. These are judged under that, and may then say more of what they
call themselves; a few rounds settle it, since limits are handed on over a few calls only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from deadlint.collect import Steps
from deadlint.discover import Folder
from deadlint.join import Join
from deadlint.memory import Known, Memory, target_of
from deadlint.outcome import Order, Outcome, Target

if TYPE_CHECKING:
    from deadlint.work import Workers

Progress = Callable[[int, int], None]  # files done, and of how many

# More calls than a limit is handed on over. It bounds the work if a file should say something else each time.
_MOST_ROUNDS = 20


@dataclass(slots=True)
class Rounds:
    """What is known of the files of a run, and who calls whom under what."""

    memory: Memory
    processes: int | None
    steps: Steps
    progress: Progress
    known: dict[str, Known] = field(default_factory=dict)  # by path; without those of which there is nothing to say
    problems: dict[str, tuple[Target, Outcome]] = field(default_factory=dict)  # by path, where the last look failed
    judged: set[str] = field(default_factory=set)  # the paths of what was judged
    _under: dict[str, bytes] = field(default_factory=dict)  # by path, what a file was judged under, if anything
    _join: Join = field(default_factory=Join)
    _folders: dict[str, list[tuple[Folder, frozenset[str], bool]]] = field(default_factory=dict)

    def recall(self, folders: Sequence[Folder], *, indexed: bool = False) -> list[Target]:
        """Take what is known of unchanged files; the others, which are to be judged."""
        targets: list[Target] = []
        for folder in folders:
            known, left = self.memory.recall(folder, indexed=indexed)
            self._folders.setdefault(folder.path, []).append((folder, frozenset(folder.names), indexed))
            for one in known:
                self._take(one)
            targets += left
        return targets

    def settle(self, targets: Sequence[Target], order: Order) -> None:
        """Judge `targets`, and then every file that others turn out to call under something else than was thought."""
        # What is known of a content holds only under what it was judged under.
        placed = ((target, self.under_callers(target)) for target in targets)
        pending = [target if target.entered == there.entered else there for target, there in placed]
        pending = pending or list(self._stale())
        if not pending:
            return
        from deadlint.work import Workers, without_collector  # noqa: PLC0415 - a warm run judges nothing

        workers = Workers(order, self.processes, self.steps)
        with without_collector():
            for _ in range(_MOST_ROUNDS):
                for _ in self._judge(workers, pending):
                    pass
                pending = list(self._stale())
                if not pending:
                    return

    def judge(self, targets: Sequence[Target], order: Order) -> list[tuple[Target, Outcome]]:
        """Judge `targets` once, under what is known of their callers. Returns those that fixes change."""
        from deadlint.work import Workers, without_collector  # noqa: PLC0415 - a warm run judges nothing

        with without_collector():
            return [
                (target, outcome)
                for target, outcome in self._judge(Workers(order, self.processes, self.steps), targets)
                if outcome.change is not None
            ]

    def _judge(self, workers: Workers, targets: Sequence[Target]) -> Iterator[tuple[Target, Outcome]]:
        """Judge `targets`, take note of what comes of each, and hand it on: there may be too many to keep."""
        self.memory.begin(workers.rules)
        for target, outcome in workers.judged(targets, self.progress):
            path = target.path
            self.judged.add(path)
            self.problems.pop(path, None)
            if outcome.problem is not None:
                self.problems[path] = (target, outcome)
            self._take(self.memory.settle(target, outcome))
            yield target, outcome

    def under_callers(self, target: Target) -> Target:
        """`target` with what its callers have around their calls."""
        return target._replace(entered=self._join.entered(target.path), digest=None)

    def _take(self, known: Known) -> None:
        path = known.target.path
        if known.entered:
            self._under[path] = known.entered
        else:
            self._under.pop(path, None)
        self._join.put(path, known.exits)
        if known.findings or known.entered or known.exits:
            self.known[path] = known
        else:
            self.known.pop(path, None)

    def _stale(self) -> Iterator[Target]:
        """The files that were judged under something else than what their callers have now."""
        for path in sorted({*self._join.called(), *self._under}):
            if self._join.entered(path) != self._under.get(path, b""):
                known = self.known.get(path)
                target = known.target if known is not None else self._target(path)
                if target is not None:
                    yield self.under_callers(target)

    def _target(self, path: str) -> Target | None:
        """A file of the run of which there was nothing to say so far; None where the run has no such file."""
        directory, _, name = path.rpartition("/")
        for folder, names, indexed in self._folders.get(directory, ()):
            if name in names:
                return target_of(folder, name, indexed=indexed)
        return None

