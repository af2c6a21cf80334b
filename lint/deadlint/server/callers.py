"""Who calls what under which limits, over all files of the projects, kept up to date as files change.

A file says what it has around its calls of others (its exits); these are judged under that, and may then say more of
what they call themselves. It settles within a few rounds, as limits are handed on over a few calls only.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from time import perf_counter

from deadlint.join import Join
from deadlint.outcome import Exits

# Judges a file under what is around the calls of it: its exits.
JudgeExits = Callable[[str, bytes], Exits]

# Seconds of work at a time: a keystroke waits no longer for it than that, and one file.
PORTION_S = 0.02
# How often a file is judged anew before it is left as it is, if its callers should say something else each time.
_MOST_ROUNDS = 20


@dataclass(slots=True)
class Callers:
    """The exits of all files, and the files that are to be judged for theirs."""

    waiting: deque[str] = field(default_factory=deque)
    _queued: set[str] = field(default_factory=set)
    _join: Join = field(default_factory=Join)
    _exits: dict[str, Exits] = field(default_factory=dict)
    _under: dict[str, bytes] = field(default_factory=dict)
    _rounds: dict[str, int] = field(default_factory=dict)

    def entered(self, path: str) -> bytes:
        """What others have around their calls of the file at `path`."""
        return self._join.entered(path)

    def add(self, paths: Iterable[str]) -> None:
        """Let files wait that have come or changed."""
        for path in paths:
            if path not in self._queued:
                self._queued.add(path)
                self.waiting.append(path)

    def leave(self) -> None:
        """Let no file wait any more."""
        self.waiting.clear()
        self._queued.clear()

    def put(self, path: str, exits: Exits, under: bytes) -> set[str]:
        """Take note of the exits of a file that was judged `under` what is around the calls of it.

        Returns the files that are called under something else since; they wait to be judged themselves.
        """
        before = self._exits.get(path, ())
        self._under[path] = under
        if exits == before:
            return set()
        self._exits[path] = exits
        self._join.put(path, exits)
        called = {one for one, _ in (*before, *exits)}
        changed = {one for one in called if self._join.entered(one) != self._under.get(one, b"")}
        for one in changed:
            self._rounds[one] = self._rounds.get(one, 0) + 1
        self.add(one for one in changed if self._rounds[one] <= _MOST_ROUNDS)
        return changed

    def settle(self, judge: JudgeExits) -> set[str]:
        """Judge some of the files that wait. Returns those that are called under something else since."""
        began = perf_counter()
        changed: set[str] = set()
        while self.waiting and perf_counter() - began < PORTION_S:
            path = self.waiting.popleft()
            self._queued.discard(path)
            under = self.entered(path)
            changed |= self.put(path, judge(path, under), under)
        if not self.waiting:
            self._rounds.clear()
        return changed
