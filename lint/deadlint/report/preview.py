"""What a fix would change, as removed and added lines: short, around its edits only."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import accumulate

from deadlint.model import Edit
from deadlint.report.source_text import SourceText, lines_of

COMPARED = 300  # words of a line that are compared one by one; the time grows with their square

_WORD = re.compile(r"\w+|\W")

Columns = tuple[int, int]  # from, to; in characters from 0


@dataclass(frozen=True, slots=True)
class Changed:
    """A line that goes (`-`) or comes (`+`), with the number in the old text of what it replaces."""

    sign: str
    number: int
    text: str
    columns: tuple[Columns, ...] = ()  # what differs from the line that it replaces, or is replaced by


def preview(source: SourceText, edits: Iterable[Edit]) -> list[Changed]:
    """The lines that `edits` change, in order.

    Edits that overlap, or lie outside of the text, are not shown: they belong to another version of the file.
    """
    changed: list[Changed] = []
    text, starts = source.text, source.starts
    for first, last, group in _regions(text, starts, edits):
        begin = starts[first]
        end = starts[last + 1] if last + 1 < len(starts) else len(text)
        old, new = text[begin:end], _applied(text, begin, end, group)
        changed += _differing(old, new, first + 1)
    return changed


def _regions(text: str, starts: Sequence[int], edits: Iterable[Edit]) -> list[tuple[int, int, list[Edit]]]:
    """Edits that share lines, with the first and last line of each such group (from 0)."""
    regions: list[tuple[int, int, list[Edit]]] = []
    reached = 0
    for edit in sorted(edits, key=lambda e: (e.start, e.end)):
        if edit.start < reached or edit.end > len(text):
            continue
        reached = edit.end
        first = bisect_right(starts, edit.start) - 1
        last = bisect_right(starts, edit.end) - 1
        if regions and first <= regions[-1][1]:
            regions[-1] = (regions[-1][0], max(last, regions[-1][1]), [*regions[-1][2], edit])
        else:
            regions.append((first, last, [edit]))
    return regions


def _applied(text: str, begin: int, end: int, edits: Sequence[Edit]) -> str:
    parts = []
    at = begin
    for edit in edits:
        parts += [text[at : edit.start], edit.text]
        at = edit.end
    return "".join((*parts, text[at:end]))


def _differing(old: str, new: str, number: int) -> Iterator[Changed]:
    """The lines of which the one text has to lose and gain some to be the other; blank ones say nothing."""
    before, after = lines_of(old), lines_of(new)
    for kind, a, b, c, d in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if kind == "equal":
            continue
        gone, come = before[a:b], after[c:d]
        paired = len(gone) == len(come)
        columns = [_columns(*pair) for pair in zip(gone, come, strict=True)] if paired else []
        for sign, lines, side in (("-", gone, 0), ("+", come, 1)):
            for index, line in enumerate(lines):
                if line.strip():
                    yield Changed(sign, number + a + index, line, columns[index][side] if paired else ())


def _columns(old: str, new: str) -> tuple[tuple[Columns, ...], tuple[Columns, ...]]:
    """Where two lines differ, in each of them; whole words, for `run` is read better than the `u` in it."""
    one, other = _WORD.findall(old), _WORD.findall(new)
    same = _agreeing(one, other)
    same_end = _agreeing(one[same:][::-1], other[same:][::-1])
    middle = one[same : len(one) - same_end], other[same : len(other) - same_end]
    begin = len("".join(one[:same]))
    if max(map(len, middle)) > COMPARED:
        return (((begin, begin + len("".join(middle[0]))),), ((begin, begin + len("".join(middle[1]))),))
    starts = [list(accumulate(map(len, words), initial=begin)) for words in middle]
    codes = SequenceMatcher(None, *middle, autojunk=False).get_opcodes()
    changed = [code for code in codes if code[0] != "equal"]
    return (
        tuple((starts[0][a], starts[0][b]) for _, a, b, _, _ in changed if a < b),
        tuple((starts[1][c], starts[1][d]) for _, _, _, c, d in changed if c < d),
    )


def _agreeing(one: Sequence[str], other: Sequence[str]) -> int:
    """How many words both begin with."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((index for index, (a, b) in pairs if a != b), min(len(one), len(other)))
