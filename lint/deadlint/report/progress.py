"""A progress bar for runs that take long enough to wonder, on a terminal only."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from rich.progress import Progress

PATIENCE_S = 1.0  # a bar that flashes up and goes is noise
EVERY_S = 0.1  # between two pictures: ten a second look smooth, more cost time

Advance = Callable[[int, int], None]  # how many are done, and of how many


@contextmanager
def progress(
    err: TextIO, what: str, *, quiet: bool = False, clock: Callable[[], float] = monotonic
) -> Iterator[Advance]:
    """A function to call as the work goes on; it draws on `err`, and leaves nothing there at the end.

    It draws in the caller's thread, so that a pool of processes may be forked meanwhile.
    """
    if quiet or not err.isatty():
        yield lambda done, total: None
        return
    bar = _Bar(err, what, clock)
    try:
        yield bar.advance
    finally:
        bar.close()


class _Bar:
    def __init__(self, err: TextIO, what: str, clock: Callable[[], float]) -> None:
        self._err = err
        self._what = what
        self._clock = clock
        self._next = clock() + PATIENCE_S
        self._shown: Progress | None = None

    def advance(self, done: int, total: int) -> None:
        now = self._clock()
        if now < self._next:
            return
        self._next = now + EVERY_S
        if self._shown is None:
            self._shown = _started(self._err)
            self._shown.add_task(self._what, total=total)
        self._shown.update(self._shown.task_ids[0], completed=done, total=total)
        self._shown.refresh()

    def close(self) -> None:
        if self._shown is not None:
            self._shown.stop()


def _started(err: TextIO) -> Progress:
    # Only here: a run that is over within a second, or is not watched, does not pay for these imports.
    from rich.console import Console  # noqa: PLC0415
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn  # noqa: PLC0415

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    bar = Progress(*columns, console=Console(file=err), transient=True, auto_refresh=False)
    bar.start()
    return bar
