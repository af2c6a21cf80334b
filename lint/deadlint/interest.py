"""Which calls a set of rules looks at, and which calls of a file could be one of those."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

from deadlint.index.candidates import Wanted
from deadlint.site import PROJECT, Site

if TYPE_CHECKING:
    from deadlint.index.scopes import Scope
    from deadlint.rule import Rule


@dataclass(frozen=True, eq=False)
class Interest:
    """The calls that rules look at, by canonical name, and the last parts of those names."""

    by_name: dict[str, list[Rule]]
    tails: frozenset[str]
    # First parts of names of which everything below is looked at, such as `airflow` for `airflow.**`.
    families: frozenset[str] = field(default_factory=frozenset)

    def wanted(self, text: str) -> Wanted:
        """The calls that matter in a file of this text."""
        tails = None if any(family in text for family in self.families) else self.tails
        return Wanted(tails, self._runs if PROJECT in self.by_name else None)

    def _runs(self, function: Scope) -> bool:
        return any(rule.concerns(function) for rule in self.by_name[PROJECT])

    def rules_for(self, site: Site) -> Iterator[tuple[Rule, str]]:
        """The rules that look at a call, each once, with the target's name that brought it there."""
        seen: set[str] = set()
        for target in site.targets:
            for name in (target.name, *_wildcards(target.name)):
                for rule in self.by_name.get(name, ()):
                    if rule.code not in seen:
                        seen.add(rule.code)
                        yield rule, target.name


@lru_cache(maxsize=64)
def interest_of(rules: Sequence[Rule]) -> Interest:
    """What these rules look at."""
    by_name: dict[str, list[Rule]] = {}
    for rule in rules:
        for name in rule.calls:
            by_name.setdefault(name, []).append(rule)
    families = {name for name in by_name if name.endswith(".**")}
    return Interest(
        by_name,
        frozenset(name.rpartition(".")[2] for name in by_name.keys() - families - {PROJECT}),
        frozenset(name.removesuffix(".**") for name in families),
    )


@lru_cache(maxsize=4096)
def _wildcards(name: str) -> tuple[str, ...]:
    """`a.b.**` and `a.**` for `a.b.c`."""
    parts = name.split(".")
    return tuple(f"{'.'.join(parts[:i])}.**" for i in range(len(parts) - 1, 0, -1))
