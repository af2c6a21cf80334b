"""What holds for every notebook: an edit changes its lines alone, and what is IPython's own can be had back."""

from __future__ import annotations

import json
from typing import Any

from deadlint.notebook.document import Document
from deadlint.notebook.ipython import Masks, as_python, commented
from hypothesis import example, given
from hypothesis import strategies as st

_lines = st.text(st.sampled_from("ab é𝄞\"\\/\t\u2028\x0c'#%!?=(){}\x7f"), max_size=8)
_sources = st.lists(_lines, max_size=5).map("\n".join)
_styles = st.fixed_dictionaries(
    {
        "indent": st.sampled_from([None, 0, 1, 4]),
        "ensure_ascii": st.booleans(),
        "separators": st.sampled_from([(", ", ": "), (",", ":"), (" ,  ", " :\t")]),
        "sort_keys": st.booleans(),
    }
)


def _listed(source: str, shape: int) -> Any:
    """A source as one string, as a list of its lines, or as a list of one string."""
    return (source, source.splitlines(keepends=True), [source])[shape]


@st.composite
def _notebooks(draw: st.DrawFn) -> tuple[str, list[str]]:
    """The text of a notebook in some layout, and the sources of its cells."""
    sources = draw(st.lists(_sources, min_size=1, max_size=3))
    cells = [
        {"cell_type": "code", "source": _listed(source, draw(st.integers(0, 2))), "outputs": [{"text": "é\\n"}]}
        for source in sources
    ]
    content = {"metadata": {"é": 1.50}, "cells": cells, "nbformat": 4}
    return json.dumps(content, **draw(_styles)) + draw(st.sampled_from(["", "\n"])), sources


def _edited(document: Document, sources: dict[int, str]) -> str:
    text = document.text
    for edit in reversed(document.edits(sources)):
        text = text[: edit.start] + edit.text + text[edit.end :]
    return text


def _read(text: str) -> list[str]:
    return ["".join(cell["source"]) for cell in json.loads(text)["cells"]]


@given(_notebooks())
def test_sources_are_read_and_where_each_character_stands(made: tuple[str, list[str]]) -> None:
    text, sources = made
    document = Document.parse(text)
    assert [cell.text for cell in document.cells] == sources
    for cell in document.cells:
        for offset, character in enumerate(cell.text):
            at = document.position(cell, offset)
            assert json.loads(f'"{_character(text, at)}"') == character


def _character(text: str, at: int) -> str:
    """The character of a JSON string that begins at an offset, as it is written."""
    if not text.startswith("\\", at):
        return text[at]
    if not text.startswith("\\u", at):
        return text[at : at + 2]
    pair = text[at + 2 : at + 4].lower() in ("d8", "d9", "da", "db") and text.startswith("\\u", at + 6)
    return text[at : at + (12 if pair else 6)]


@given(_notebooks(), _sources)
def test_another_source_changes_one_cell_and_nothing_around_it(made: tuple[str, list[str]], new: str) -> None:
    text, sources = made
    document = Document.parse(text)
    assert _edited(document, dict(enumerate(sources, 1))) == text
    changed = _edited(document, {1: new})
    assert _read(changed) == [new, *sources[1:]]
    first = document.cells[0]
    assert changed.startswith(text[: first.start])
    assert changed.endswith(text[first.end :])
    before, after = json.loads(text), json.loads(changed)
    before["cells"][0]["source"] = after["cells"][0]["source"] = None
    assert before == after
    assert changed.isascii() or not text.isascii() or not new.isascii()


@given(_notebooks(), st.integers(0, 4), _lines)
def test_lines_that_stay_keep_every_byte(made: tuple[str, list[str]], at: int, line: str) -> None:
    """In the usual layout, a string for each line."""
    text, _ = made
    document = Document.parse(text)
    cell = document.cells[0]
    if (
        not cell.listed
        or [piece.text for piece in cell.pieces] != cell.text.splitlines(keepends=True)
        or not cell.pieces
    ):
        return
    at %= len(cell.pieces)
    pieces = [piece.text for piece in cell.pieces]
    old = pieces[at]
    pieces[at] = line.replace("\x0c", "").replace("\u2028", "") + old[len(old.rstrip("\n\x0c\u2028")) :]
    changed = _edited(document, {1: "".join(pieces)})
    for number, piece in enumerate(cell.pieces):
        if number < at:
            assert changed[piece.start : piece.end] == text[piece.start : piece.end]
        elif number > at:
            behind = len(text) - piece.start, len(text) - piece.end
            assert changed[len(changed) - behind[0] : len(changed) - behind[1]] == text[piece.start : piece.end]


_code = st.lists(
    st.sampled_from(
        [
            "%time ",
            "%%bash",
            "!ls",
            "x = !ls",
            "x?",
            "\n",
            "\r\n",
            "    ",
            "if x:",
            "'''",
            '"',
            "# a?",
            "\\",
            "%cd",
            "(",
            "f()",
            "; ",
        ]
    ),
    max_size=12,
).map("".join)


@given(_code, st.booleans())
@example("%time x = f() \\\n  + 1", False)
@example("%%time\n%%time\nx?", False)
def test_what_is_masked_can_be_had_back_and_keeps_its_lines(text: str, leniently: bool) -> None:
    masks = Masks.for_text(text)
    masked = as_python(text, masks, leniently=leniently)
    for made in (masked, commented(text, masks)):
        if made is not None:
            assert masks.removed(made) == text
            assert made.count("\n") == text.count("\n")
            for old, new in zip(text.split("\n"), made.split("\n"), strict=True):
                assert masks.column(new, len(new) + 1) == len(old) + 1
