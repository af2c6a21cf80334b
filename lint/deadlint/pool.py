"""Work on numbered items in several processes; one that dies is replaced, and its item is named.

`multiprocessing.Pool` hangs and `ProcessPoolExecutor` gives everything up when a worker dies.
"""

from __future__ import annotations

import multiprocessing
import signal
import sys
from collections import deque
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, Generic, TypeVar

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Died:
    """The process that worked on an item ended before it was done; `how` says how, in words."""

    how: str


@dataclass(frozen=True, slots=True)
class Done(Generic[Result]):
    """What came of some items; a process that died leaves one item at a time."""

    items: range
    result: Result | Died


def in_processes(
    work: Callable[[range], Result], count: int, *, processes: int, chunk: int
) -> Generator[Done[Result], None, None]:
    """Run `work` on the items 0 to `count`, `chunk` at a time; yields what is done, in any order.

    When the caller stops, by an exception or Ctrl-C, the processes are killed at once.
    """
    pool = _Pool(work, deque(range(at, min(at + chunk, count)) for at in range(0, count, chunk)))
    try:
        for _ in range(min(processes, len(pool.waiting))):
            pool.start()
        while pool.busy:
            for connection in wait(list(pool.busy)):
                yield from pool.collect(connection)  # type: ignore[arg-type]
    finally:
        pool.kill()


class _Pool(Generic[Result]):
    """The processes, each with the chunk that it works on; it gets the next one when it hands that in."""

    def __init__(self, work: Callable[[range], Result], waiting: deque[range]) -> None:
        self._work = work
        self._context = _context()
        self.waiting = waiting
        self.busy: dict[Connection[Any, Any], tuple[BaseProcess, range]] = {}

    def start(self) -> None:
        """Start a process on the next chunk."""
        ours, theirs = self._context.Pipe()
        # A forked process has our ends of all pipes as well. While it does, no end of us would be seen by any.
        inherited = [ours, *self.busy] if self._context.get_start_method() == "fork" else []
        process = self._context.Process(target=_serve, args=(theirs, inherited, self._work), daemon=True)
        # Ctrl-C waits until the process is on our books, or it would be left running; and it stays away from
        # the process for good: it reaches us too, and we end what we have started.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            process.start()
            theirs.close()
            self._give(ours, process)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def _give(self, connection: Connection[Any, Any], process: BaseProcess) -> None:
        chunk = self.waiting.popleft()
        self.busy[connection] = (process, chunk)
        try:
            connection.send(chunk)
        except OSError:
            return  # it died while idle: the end of its pipe is found next

    def collect(self, connection: Connection[Any, Any]) -> Iterator[Done[Result]]:
        """Take what a process hands in, or see that it died; then keep the next chunk going."""
        process, chunk = self.busy.pop(connection)
        try:
            result = connection.recv()
        except (EOFError, OSError):
            connection.close()
            process.join()
            yield from self._mourn(chunk, _how(process.exitcode))
            if self.waiting:
                self.start()
            return
        # The process has its next chunk before the caller looks at this one: so it never waits, and `kill` knows it.
        if self.waiting:
            self._give(connection, process)
        else:
            connection.close()
            process.join(1)
        yield Done(chunk, result)

    def _mourn(self, chunk: range, how: str) -> Iterator[Done[Result]]:
        """One item alone is what did it; of several each is tried again by itself."""
        if len(chunk) == 1:
            yield Done(chunk, Died(how))
        else:
            self.waiting.extendleft(range(item, item + 1) for item in reversed(chunk))

    def kill(self) -> None:
        """End what still runs."""
        for process, _ in self.busy.values():
            process.kill()
        for process, _ in self.busy.values():
            process.join()
        self.busy.clear()


def _serve(
    connection: Connection[Any, Any], inherited: list[Connection[Any, Any]], work: Callable[[range], Any]
) -> None:
    """What a process does: take a chunk, hand in what came of it, until the other end closes."""
    for other in inherited:
        other.close()
    try:
        while True:
            connection.send(work(connection.recv()))
    except (EOFError, OSError):
        return


def _context() -> Any:
    """Forking starts in milliseconds and shares what is loaded; it is only safe on Linux."""
    return multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")


def _how(code: int | None) -> str:
    if code is not None and code < 0:
        return f"killed by {signal.Signals(-code).name}"
    return f"exit status {code}"
