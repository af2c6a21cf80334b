"""Folding loses nothing but the spaces at a fold, and keeps to the room."""

from __future__ import annotations

from deadlint.report.folding import folded
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

PIECES = st.lists(
    st.tuples(st.text("ab ,日é", min_size=1, max_size=40), st.sampled_from(["source", "span"])), max_size=6
)


@given(PIECES, st.integers(20, 60))
def test_folding(pieces: list[tuple[str, str]], room: int) -> None:
    rows = folded(pieces, room)
    assert all(sum(cell_len(text) for text, _ in row) <= room for row in rows)
    whole = "".join(text for text, _ in pieces)
    assert "".join(text for row in rows for text, _ in row).replace(" ", "") == whole.replace(" ", "")
    marked = "".join(text for row in rows for text, role in row if role == "span").replace(" ", "")
    assert marked == "".join(text for text, role in pieces if role == "span").replace(" ", "")


def test_a_short_line_stays_as_it_is() -> None:
    assert folded([("a = ", "source"), ("b", "span")], 20) == [(("a = ", "source"), ("b", "span"))]
