"""Which files are called under limits or budgets of others: the exits of all files, by the file that they lead to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from deadlint.outcome import Exits

BETWEEN = b"\n"  # no exit holds one: they are JSON texts of one line


@dataclass(slots=True)
class Join:
    """The exits of files, by both ends. It only compares them, as bytes; what they say is for `exits` to read."""

    _from: dict[str, Exits] = field(default_factory=dict)
    _into: dict[str, dict[str, bytes]] = field(default_factory=dict)

    def put(self, path: str, exits: Exits) -> None:
        """Take note of the exits of the file at `path`, in place of those that it had."""
        for called, _ in self._from.pop(path, ()):
            del self._into[called][path]
        if exits:
            self._from[path] = exits
        for called, said in exits:
            self._into.setdefault(called, {})[path] = said

    def entered(self, path: str) -> bytes:
        """What all others have around their calls of functions of the file at `path`; empty where nothing."""
        return BETWEEN.join(sorted(self._into.get(path, {}).values()))

    def called(self) -> Iterator[str]:
        """The files that others call under limits or budgets, or did."""
        return iter(self._into)
