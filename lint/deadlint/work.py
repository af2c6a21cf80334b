"""Judging many files: in this process where they are few, else in one for each processor."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

from deadlint.collect import Steps
from deadlint.errors import UserError
from deadlint.judge import Judge
from deadlint.outcome import Order, Outcome, Status, Target
from deadlint.rule import all_rules

if TYPE_CHECKING:
    from deadlint.rule import Rule

# Below this a second process costs more than it saves: to load `multiprocessing` and fork takes 60 ms.
WORTH_A_POOL = 200
MOST_AT_ONCE = 64  # files handed to a process at a time: few, so that none is left alone with the last


def installed_rules() -> Sequence[Rule]:
    """The rules. Raises `UserError` where not even those of the engine are found."""
    rules = all_rules()
    if not rules:
        raise UserError("no rules are found: deadlint is not installed; install it with `pip install deadlint`")
    return rules


def judged_text(target: Target, data: bytes, order: Order, rules: Sequence[Rule], steps: Steps) -> Outcome:
    """The outcome for content that is in no file."""
    judge = Judge(rules, order)
    outcome = judge.judge_bytes(target, data)
    steps.add(judge.seconds, judge.files)
    return outcome


@contextmanager
def without_collector() -> Iterator[None]:
    """Syntax trees are many objects and no cycles: with the collector on, it took more than half of the time."""
    gc.freeze()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


class Workers:
    """Judges many files for one order. In one process what was parsed is kept from one lot to the next."""

    def __init__(self, order: Order, processes: int | None, steps: Steps) -> None:
        """Raises `UserError` where no rules are found. Without `processes` it is one for each processor."""
        self.rules = installed_rules()
        self._order = order
        self._workers = processes or _processors()
        self._steps = steps
        self._judge: Judge | None = None

    def judged(
        self, targets: Sequence[Target], progress: Callable[[int, int], None]
    ) -> Generator[tuple[Target, Outcome], None, None]:
        """Each target with its outcome, in any order."""
        alone = self._workers == 1 or len(targets) <= WORTH_A_POOL
        results = self._alone(targets) if alone else _together(targets, self._order, self._steps, self._workers)
        with closing(results):
            for done, result in enumerate(results, 1):
                yield result
                progress(done, len(targets))

    def _alone(self, targets: Sequence[Target]) -> Generator[tuple[Target, Outcome], None, None]:
        if self._judge is None:
            self._judge = Judge(self.rules, self._order)
        judge = self._judge
        judge.seconds.clear()
        judge.files.clear()
        for target in targets:
            yield target, judge.judge(target)
        self._steps.add(judge.seconds, judge.files)


def _processors() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _together(
    targets: Sequence[Target], order: Order, steps: Steps, workers: int
) -> Generator[tuple[Target, Outcome], None, None]:
    from deadlint.pool import Died, in_processes  # noqa: PLC0415 - small runs stay in one process

    chunk = max(1, min(MOST_AT_ONCE, len(targets) // (workers * 4)))
    work = Work(targets, order)
    # Closed here and not when it is collected: whoever stops the run must not leave the processes behind.
    with closing(in_processes(work, len(targets), processes=workers, chunk=chunk)) as finished:
        for done in finished:
            if isinstance(done.result, Died):
                yield targets[done.items.start], Outcome(problem=_death(done.result.how))
                continue
            outcomes, seconds, files = done.result
            steps.add(seconds, files)
            for item, outcome in zip(done.items, outcomes, strict=True):
                yield targets[item], outcome if isinstance(outcome, Outcome) else Outcome(status=outcome)


class Work:
    """What a process does. Forked processes share all of it; for others it is pickled once for each."""

    def __init__(self, targets: Sequence[Target], order: Order) -> None:
        self._targets = targets
        self._order = order
        self._judge: Judge | None = None

    def __call__(self, items: range) -> tuple[list[Outcome | Status | None], dict[str, float], dict[str, int]]:
        if self._judge is None:
            self._judge = Judge(installed_rules(), self._order)
        judge = self._judge
        judge.seconds.clear()
        judge.files.clear()
        outcomes = [judge.judge(self._targets[item]) for item in items]
        # Nine files of ten are left out by the screen: only their status crosses to the other process.
        return (
            [one.status if one == Outcome(status=one.status) else one for one in outcomes],
            judge.seconds,
            judge.files,
        )


def _death(how: str) -> str:
    return f"could not be checked: its process ended early ({how}); exclude the file, and please report it"
