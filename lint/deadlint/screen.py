"""Which files are worth parsing: a search of their bytes for words that occur together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
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
        # By the longest word of each group: all groups of all rules, one after the other, took longer than the search.
        self._groups: dict[int, list[tuple[int, frozenset[int]]]] = {}
        for rule_number, rule in enumerate(self._rules):
            for group in rule.words:
                key = number[max(group, key=len)]
                self._groups.setdefault(key, []).append((rule_number, frozenset(number[word] for word in group)))
        self._words = ahocorasick_rs.BytesAhoCorasick([word.encode() for word in words]) if words else None

    def wants(self, data: bytes) -> bool:
        """Whether some rule could find something in a file of these bytes."""
        return next(self._wanting(data), None) is not None

    def interested(self, data: bytes) -> tuple[_Worded, ...]:
        """The rules that could find something in a file of these bytes."""
        wanting = set(self._wanting(data))
        return tuple(rule for number, rule in enumerate(self._rules) if number in wanting)

    def _wanting(self, data: bytes) -> Iterator[int]:
        """The numbers of the rules that want a file of these bytes, perhaps several times."""
        if self._words is None:
            return
        found = {match[0] for match in self._words.find_matches_as_indexes(data, overlapping=True)}
        for word in found & self._groups.keys():
            for rule, group in self._groups[word]:
                if group <= found:
                    yield rule


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
