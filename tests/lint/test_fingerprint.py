"""Fingerprints survive what does not change a fault, and tell apart what does."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from deadlint.fingerprint import enclosing, fingerprints, tokens
from deadlint.model import Finding, Span
from hypothesis import given
from hypothesis import strategies as st

BEFORE = """\
def fetch(url):
    return requests.get(url, params={"a": 1}, stream=True)
"""


def found(path: str, source: str, needle: str, code: str = "DL201", end: str | None = None) -> Finding:
    start = source.index(needle)
    last = source.index(end or needle, start) + len(end or needle)

    def at(offset: int) -> tuple[int, int]:
        return source.count("\n", 0, offset) + 1, offset - source.rfind("\n", 0, offset)

    return Finding(code, "name", path, Span(*at(start), *at(last)), "message", "remedy")


def fingerprint(
    source: str, needle: str = "requests.get(", end: str = ")", path: str = "a.py", code: str = "DL201"
) -> str:
    (name,) = fingerprints([found(path, source, needle, code, end)], {path: source}.get)
    return name


SAME = {
    "moved down": "import requests\n\nX = 1\n\n\n" + BEFORE,
    "reformatted": """\
def fetch(url):
    return requests.get(
        url,
        params={'a': 1},  # the first page
        stream=True,
    )
""",
    "in two lines": BEFORE.replace("params", "\\\n        params"),
    "other spaces": BEFORE.replace("params={", "params = { ").replace("    return", "\treturn"),
    "CRLF": BEFORE.replace("\n", "\r\n"),
    "assigned": BEFORE.replace("return ", "answer = "),
    "under an if": BEFORE.replace("    return", "    if url:\n        return"),
}
OTHER = {
    "another argument": BEFORE.replace("stream=True", "stream=False"),
    "another function": BEFORE.replace("fetch", "load"),
    "a method": "class Client:\n    " + BEFORE.replace("\n", "\n    "),
    "another string": BEFORE.replace('"a"', '"b"'),
}


@pytest.mark.parametrize("source", SAME.values(), ids=SAME)
def test_what_does_not_change_the_fault(source: str) -> None:
    assert fingerprint(source) == fingerprint(BEFORE)


@pytest.mark.parametrize("source", OTHER.values(), ids=OTHER)
def test_what_makes_it_another(source: str) -> None:
    assert fingerprint(source) != fingerprint(BEFORE)


def test_a_renamed_file() -> None:
    assert fingerprint(BEFORE, path="b.py") == fingerprint(BEFORE)


def test_another_rule_at_the_same_place() -> None:
    assert fingerprint(BEFORE, code="DL202") != fingerprint(BEFORE)


def test_equal_ones_are_counted() -> None:
    sources: Mapping[str, str] = {"a.py": BEFORE, "b.py": BEFORE}
    names = fingerprints([found(path, BEFORE, "requests.get(", end=")") for path in sources], sources.get)
    assert names[0] != names[1]
    assert [name.rpartition(":")[2] for name in names] == ["0", "1"]
    assert names[0].rpartition(":")[0] == names[1].rpartition(":")[0]


def test_what_follows_in_a_block_does_not_count() -> None:
    one = "with limit(5):\n    a()\n"
    other = "with limit(5):\n    a()\n    b()\n"
    assert fingerprint(one, "with", "a()") == fingerprint(other, "with", "b()")


def test_enclosing_names() -> None:
    lines = BEFORE.splitlines()
    assert enclosing(lines, 2) == "fetch"
    assert enclosing(lines, 1) == ""
    nested = ["class A:", "    def b(self):", "        async def c():", "", "            x", "    y", "z"]
    assert [enclosing(nested, line) for line in range(1, 8)] == ["", "A", "A.b", "", "A.b.c", "A", ""]


def test_tokens_leave_out_what_formatters_change() -> None:
    assert tokens("f( 'a',\n  b, # c\n)") == tokens('f("a", b)') == ["f", '"a"', ",", "b"]
    assert tokens("""f('"')""") != tokens('f("\'")')


def test_a_source_that_cannot_be_had() -> None:
    (name,) = fingerprints([found("a.py", BEFORE, "requests")], {}.get)
    assert name


@given(st.text(max_size=200), st.integers(1, 8), st.integers(1, 30), st.integers(1, 8), st.integers(1, 30))
def test_it_never_fails(source: str, line: int, column: int, end_line: int, end_column: int) -> None:
    made = Finding("DL201", "n", "a.py", Span(line, column, end_line, end_column), "m", "r")
    assert fingerprints([made], {"a.py": source}.get) == fingerprints([made], {"a.py": source}.get)
