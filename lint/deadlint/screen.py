"""Which files are worth parsing: a search of their bytes for words that occur together."""

from __future__ import annotations

from collections.abc import Iterable

from deadlint.rule import Rule


class Screen:
    """The words of a set of rules. A rule's group holds if all of its words are in the file."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        groups = {tuple(word.encode() for word in group) for rule in rules for group in rule.words}
        # The rarer word of a group first would be better still; a group is short, so the order costs little.
        self._groups = tuple(sorted(groups))

    def wants(self, data: bytes) -> bool:
        """Whether some rule could find something in a file of these bytes."""
        return any(all(word in data for word in group) for group in self._groups)
