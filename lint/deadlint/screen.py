"""Which files are worth parsing: a search of their bytes for words that occur together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from deadlint.rule import Rule


class Worded(Protocol):
    """What a screen is made of: rules, and what else looks for words."""

    @property
    def words(self) -> tuple[tuple[str, ...], ...]:
        """A file is worth parsing if it holds every word of one of these groups."""


_Worded = TypeVar("_Worded", bound=Worded)


class Screen(Generic[_Worded]):
    """The words of a set of rules. A rule wants a file that holds every word of one of its groups.

    All words are searched for in one pass (Aho–Corasick): word by word the search took as long as everything after it.
    """

    def __init__(self, rules: Iterable[_Worded]) -> None:
        import ahocorasick_rs  # noqa: PLC0415 - a warm run screens nothing

        self._rules: Sequence[_Worded] = tuple(rules)
        words = sorted({word for rule in self._rules for group in rule.words for word in group})
        number = {word: i for i, word in enumerate(words)}
        self._groups = [[frozenset(number[word] for word in group) for group in rule.words] for rule in self._rules]
        self._words = ahocorasick_rs.BytesAhoCorasick([word.encode() for word in words]) if words else None

    def wants(self, data: bytes) -> bool:
        """Whether some rule could find something in a file of these bytes."""
        return any(self._wanting(data))

    def interested(self, data: bytes) -> tuple[_Worded, ...]:
        """The rules that could find something in a file of these bytes."""
        return tuple(rule for rule, wants in zip(self._rules, self._wanting(data), strict=True) if wants)

    def _wanting(self, data: bytes) -> list[bool]:
        if self._words is None:
            return [False] * len(self._rules)
        found = {match[0] for match in self._words.find_matches_as_indexes(data, overlapping=True)}
        return [any(group <= found for group in groups) for groups in self._groups]


def concerned(rules: tuple[Rule, ...], text: str) -> tuple[Rule, ...]:
    """Those of `rules` that could find something in a file of this text."""
    return tuple(one.rule for one in _screen(rules).interested(text.encode("utf-8", "surrogatepass")))


@dataclass(frozen=True, slots=True)
class _Parsed:
    """A rule in a file that is parsed anyway."""

    rule: Rule

    @property
    def words(self) -> tuple[tuple[str, ...], ...]:
        """What is enough there."""
        return (*self.rule.words, *self.rule.also)


@lru_cache(maxsize=64)
def _screen(rules: tuple[Rule, ...]) -> Screen[_Parsed]:
    return Screen([_Parsed(rule) for rule in rules])
