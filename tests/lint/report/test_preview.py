"""What a fix would change, around its edits only."""

from __future__ import annotations

import pytest
from deadlint.model import Edit
from deadlint.report.preview import Changed, preview
from deadlint.report.source_text import SourceText
from hypothesis import given
from hypothesis import strategies as st


def changes(text: str, *edits: Edit) -> list[tuple[str, int, str]]:
    return [(line.sign, line.number, line.text) for line in preview(SourceText(text), edits)]


def test_one_line() -> None:
    assert changes("a\nrun(x)\nb\n", Edit(7, 7, ", y")) == [("-", 2, "run(x)"), ("+", 2, "run(x, y)")]


def test_edits_of_one_line_come_together() -> None:
    assert changes("a(b(c))\n", Edit(0, 1, "x"), Edit(4, 5, "z")) == [
        ("-", 1, "a(b(c))"),
        ("+", 1, "x(b(z))"),
    ]


def test_lines_that_stay_are_not_shown() -> None:
    text = "f(\n  a,\n  b,\n)\n"
    assert changes(text, Edit(0, len(text), "g(\n  a,\n  b,\n  c,\n)\n")) == [
        ("-", 1, "f("),
        ("+", 1, "g("),
        ("+", 4, "  c,"),
    ]


def test_a_line_that_comes_and_one_that_goes() -> None:
    assert changes("a\nb\nc\n", Edit(0, 0, "import x\n")) == [("+", 1, "import x")]
    assert changes("a\nb\nc\n", Edit(2, 4, "")) == [("-", 2, "b")]


def test_edits_of_another_version_of_the_file_are_not_shown() -> None:
    assert changes("a\n", Edit(5, 9, "x")) == []
    assert changes("abcdef\n", Edit(0, 3, "x"), Edit(2, 4, "y")) == [("-", 1, "abcdef"), ("+", 1, "xdef")]


@pytest.mark.parametrize(
    ("old", "new", "differing"),
    [
        ("x = subprocess.run(y)", "x = run(y)", ("subprocess.", "")),
        ("timeout=900,", "want=900,", ("timeout", "want")),
        ("get(u)", "get(u, timeout=3)", ("", ", timeout=3")),
        ("limit=900", "limit=540", ("900", "540")),
        ("subprocess.run(a, timeout=9)", "run(a, want=9)", ("subprocess.|timeout", "want")),
        ("a" * 999, "b" * 999, ("a" * 999, "b" * 999)),
        ("a " * 999, "b " * 999, ("a " * 998 + "a", "b " * 998 + "b")),
        ("same", "same ", ("", " ")),
    ],
)
def test_what_differs_in_a_line_is_whole_words(old: str, new: str, differing: tuple[str, str]) -> None:
    lines = preview(SourceText(old), [Edit(0, len(old), new)])
    assert tuple("|".join(line.text[slice(*span)] for span in line.columns) for line in lines) == differing


@given(
    st.text("ab(=\n", max_size=30),
    st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30), st.text("xy\n"))),
)
def test_removed_lines_are_lines_of_the_text(text: str, edits: list[tuple[int, int, str]]) -> None:
    source = SourceText(text)
    shown = preview(source, [Edit(min(a, b), max(a, b), new) for a, b, new in edits])
    for line in shown:
        assert isinstance(line, Changed)
        assert line.sign == "+" or source.lines[line.number - 1] == line.text
