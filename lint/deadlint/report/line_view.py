"""One source line laid out in terminal cells, cut to the room there is.

Columns count characters, a terminal counts cells: tabs are laid out, wide characters take two cells, what a
terminal would act on is shown as an escape, and a line wider than the room is cut around its marks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from rich.cells import get_character_cell_size

from deadlint.report.printable import printable

TAB = 4
BEFORE = 12  # cells kept to the left of a mark in a line that is cut
LONGEST = 4000  # characters that are laid out at most: generated files hold lines of megabytes

Piece = tuple[str, str]  # text, and its role: source, span, mark, related, label, frame
Columns = tuple[int, int]  # where a mark begins and ends in a line, in characters from 0


@dataclass(frozen=True, slots=True)
class LineView:
    """The part of a line that is shown."""

    skipped: int  # characters in front that are not even laid out
    shown: Sequence[str]  # what stands for each character after those
    starts: Sequence[int]  # the cell at which each begins, and at which the last ends
    first: int  # the first character of `shown` that there is room for
    last: int  # the character after the last one
    cut_left: bool
    cut_right: bool

    @classmethod
    def of(cls, line: str, marked: Sequence[Columns], room: int) -> LineView:
        """The view of `line` that is at most `room` cells wide and holds the start of what is `marked`."""
        focus = min((start for start, _ in marked), default=0)
        skipped = max(focus - LONGEST // 2, 0) if len(line) > LONGEST else 0
        shown, starts = _laid_out(line[skipped : skipped + LONGEST])
        more = skipped + len(shown) < len(line)
        if not skipped and not more and starts[-1] <= room:
            return cls(0, shown, starts, 0, len(shown), False, False)
        reach = max((starts[min(end - skipped, len(shown))] for _, end in marked), default=0)
        if not skipped and reach < room:
            return cls(0, shown, starts, 0, _until(starts, room - 1), False, True)
        wanted = max(min(starts[focus - skipped] - BEFORE, starts[-1] - room + 1), 0)
        first = next(index for index, start in enumerate(starts) if start >= wanted)
        left = skipped > 0 or first > 0
        right = more or starts[-1] - starts[first] > room - left
        last = _until(starts, starts[first] + room - left - right)
        return cls(skipped, shown, starts, first, last, left, right)

    def cell(self, column: int) -> int:
        """Where a character is shown, in cells from the left edge; the nearest edge if it is cut off."""
        index = min(max(column - self.skipped, self.first), self.last)
        return self.starts[index] - self.starts[self.first] + self.cut_left

    def pieces(self, spans: Sequence[Columns] = ()) -> tuple[Piece, ...]:
        """What is shown, the characters of `spans` (in order, none overlapping) apart from the rest."""
        pieces: list[Piece] = [("…", "frame")] if self.cut_left else []
        at = self.first
        for start, end in spans:
            start, end = (min(max(column - self.skipped, at), self.last) for column in (start, end))  # noqa: PLW2901
            pieces += [("".join(self.shown[at:start]), "source"), ("".join(self.shown[start:end]), "span")]
            at = end
        pieces.append(("".join(self.shown[at : self.last]), "source"))
        if self.cut_right:
            pieces.append(("…", "frame"))
        return tuple(piece for piece in pieces if piece[0])


def _until(starts: Sequence[int], cell: int) -> int:
    """The first character that does not end by `cell`."""
    return next((index for index in range(len(starts) - 1) if starts[index + 1] > cell), len(starts) - 1)


def _laid_out(line: str) -> tuple[Sequence[str], Sequence[int]]:
    """What stands for each character of a line; at which cell each begins, and the last one ends."""
    if line.isascii() and line.isprintable():
        return line, range(len(line) + 1)  # nearly every line, and ten times as fast
    shown, widths, at = [], [], 0
    for character in line:
        text = " " * (TAB - at % TAB) if character == "\t" else printable(character)
        width = get_character_cell_size(character) if text == character else len(text)
        shown.append(text)
        widths.append(width)
        at += width
    return shown, list(accumulate(widths, initial=0))
