"""Which files are parsed at all."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

import pytest
from deadlint.rule import Rule
from deadlint.screen import Screen
from deadlint.site import Report, Site


class Pairs(Rule):
    """Wants two words together, or one alone."""

    code, name, since = "XX1", "pairs", "0"
    calls = frozenset({"a.b"})
    words: ClassVar[tuple[tuple[str, ...], ...]] = (("subprocess", "timeout"), ("urlopen",))

    def check(self, site: Site) -> Iterable[Report]:
        return ()


class Within(Pairs):
    """Wants a word that another one holds."""

    code, name = "XX2", "within"
    words: ClassVar[tuple[tuple[str, ...], ...]] = (("sub",),)


@pytest.mark.parametrize(
    ("data", "codes"),
    [
        (b"import subprocess\nrun(timeout=1)", ["XX1", "XX2"]),
        (b"import subprocess", ["XX2"]),
        (b"timeout = 1", []),
        (b"urlopen(1)", ["XX1"]),
        (b"", []),
    ],
)
def test_words_count_together(data: bytes, codes: list[str]) -> None:
    screen = Screen([Pairs(), Within()])
    assert [rule.code for rule in screen.interested(data)] == codes
    assert screen.wants(data) == bool(codes)


def test_no_rules_want_nothing() -> None:
    assert not Screen([]).wants(b"import subprocess")
