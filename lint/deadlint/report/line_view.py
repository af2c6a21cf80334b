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
    shown: tuple[str, ...]  # what stands for each character after those
    starts: tuple[int, ...]  # the cell at which each begins, and at which the last ends
    first: int  # the first cell that is shown
    last: int  # the cell after the last that is shown
    cut_left: bool
    cut_right: bool

    @classmethod
    def of(cls, line: str, marked: Sequence[Columns], room: int) -> LineView:
        """The view of `line` that is at most `room` cells wide and holds the start of what is `marked`."""
        focus = min((start for start, _ in marked), default=0)
        skipped = max(focus - LONGEST // 2, 0) if len(line) > LONGEST else 0
        shown, widths = _laid_out(line[skipped : skipped + LONGEST])
        starts = tuple(accumulate(widths, initial=0))
        more = skipped + len(shown) < len(line)
        if not skipped and not more and starts[-1] <= room:
            return cls(0, shown, starts, 0, starts[-1], False, False)
        reach = max((starts[min(end - skipped, len(shown))] for _, end in marked), default=0)
        if not skipped and reach < room:
            return cls(0, shown, starts, 0, room - 1, False, True)
        wanted = max(min(starts[focus - skipped] - BEFORE, starts[-1] - room + 1), 0)
        first = next(start for start in starts if start >= wanted)
        left = skipped > 0 or first > 0
        right = more or starts[-1] - first > room - left
        last = min(first + room - left - right, starts[-1])
        return cls(skipped, shown, starts, first, last, left, right)

    def cell(self, column: int) -> int:
        """Where a character is shown, in cells from the left edge; the nearest edge if it is cut off."""
        at = self.starts[min(max(column - self.skipped, 0), len(self.shown))]
        return max(min(at, self.last) - self.first, 0) + self.cut_left

    def pieces(self, spans: Sequence[Columns] = ()) -> tuple[Piece, ...]:
        """What is shown, the characters of `spans` apart from the rest."""
        pieces: list[Piece] = [("…", "frame")] if self.cut_left else []
        for index, text in enumerate(self.shown):
            if self.starts[index] < self.first or self.starts[index + 1] > self.last:
                continue
            column = index + self.skipped
            role = "span" if any(start <= column < end for start, end in spans) else "source"
            if pieces and pieces[-1][1] == role:
                pieces[-1] = (pieces[-1][0] + text, role)
            else:
                pieces.append((text, role))
        if self.cut_right:
            pieces.append(("…", "frame"))
        return tuple(pieces)


def _laid_out(line: str) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """What stands for each character of a line, and how many cells it takes."""
    shown, widths, at = [], [], 0
    for character in line:
        text = " " * (TAB - at % TAB) if character == "\t" else printable(character)
        width = get_character_cell_size(character) if text == character else len(text)
        shown.append(text)
        widths.append(width)
        at += width
    return tuple(shown), tuple(widths)
