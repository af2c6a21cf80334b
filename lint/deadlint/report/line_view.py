"""One source line laid out in terminal cells, cut to the room there is.

Columns count characters, a terminal counts cells: tabs are laid out, wide characters take two cells, what a
terminal would act on is shown as an escape, and a line wider than the room is cut: around its marks, or in
their middle, for the limit of a call mostly stands at its end.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from rich.cells import get_character_cell_size

from deadlint.report.printable import printable

TAB = 4
BEFORE = 12  # cells kept to the left of a mark in a line that is cut
NEAR = 12  # characters
LONGEST = 4000  # characters that are laid out at most: generated files hold lines of megabytes

Piece = tuple[str, str]  # text, and its role: source, span, mark, related, label, frame
Columns = tuple[int, int]  # where a mark begins and ends in a line, in characters from 0


@dataclass(frozen=True, slots=True)
class LineView:
    """The parts of a line that are shown, with an ellipsis for each part that is not."""

    skipped: int  # characters in front that are not even laid out
    shown: Sequence[str]  # what stands for each character after those
    starts: Sequence[int]  # the cell at which each begins, and at which the last ends
    parts: tuple[Columns, ...]  # the stretches of `shown` that there is room for
    cut_right: bool

    @classmethod
    def of(cls, line: str, marked: Sequence[Columns], room: int) -> LineView:
        """The view of `line` that is at most `room` cells wide and holds both ends of what is `marked`."""
        focus = min((start for start, _ in marked), default=0)
        skipped = max(focus - LONGEST // 2, 0) if len(line) > LONGEST else 0
        shown, starts = _laid_out(line[skipped : skipped + LONGEST])
        more = skipped + len(shown) < len(line)
        if not skipped and not more and starts[-1] <= room:
            return cls(0, shown, starts, ((0, len(shown)),), False)
        end = max((end for _, end in marked), default=0) - skipped
        reach = starts[min(end, len(shown))]
        if not skipped and reach < room:
            return cls(0, shown, starts, ((0, _until(starts, room - 1)),), True)
        wanted = max(min(starts[focus - skipped] - BEFORE, starts[-1] - room + 1), 0)
        if not skipped and starts[focus] <= room // 3:
            wanted = 0  # what little would be gained is not worth a line without its beginning
        first = _from(starts, wanted)
        left = skipped > 0 or first > 0
        if end <= len(shown) and reach - starts[first] > room - left - 1:
            right = more or end < len(shown)
            tail = _from(starts, reach - room * 2 // 5)
            head = _until(starts, starts[first] + room - left - right - 1 - (reach - starts[tail]))
            head, tail = _at_spaces(shown, head, tail)
            return cls(skipped, shown, starts, ((first, head), (tail, end)), right)
        right = more or starts[-1] - starts[first] > room - left
        last = _until(starts, starts[first] + room - left - right)
        return cls(skipped, shown, starts, ((first, last),), right)

    @property
    def _cut_left(self) -> bool:
        return self.skipped > 0 or self.parts[0][0] > 0

    def cell(self, column: int) -> int:
        """Where a character is shown, in cells from the left edge; the next that is shown if it is not."""
        index = max(column - self.skipped, self.parts[0][0])
        at = int(self._cut_left)
        for first, last in self.parts:
            if index <= last:
                return at + self.starts[max(index, first)] - self.starts[first]
            at += self.starts[last] - self.starts[first] + 1
        return at - 1

    def pieces(self, spans: Sequence[Columns] = ()) -> tuple[Piece, ...]:
        """What is shown, the characters of `spans` (in order, none overlapping) apart from the rest."""
        pieces: list[Piece] = [("…", "frame")] if self._cut_left else []
        for number, (first, last) in enumerate(self.parts):
            if number:
                pieces.append(("…", "frame"))
            at = first
            for span in spans:
                start, end = (min(max(column - self.skipped, at), last) for column in span)
                pieces += [
                    ("".join(self.shown[at:start]), "source"),
                    ("".join(self.shown[start:end]), "span"),
                ]
                at = end
            pieces.append(("".join(self.shown[at:last]), "source"))
        if self.cut_right:
            pieces.append(("…", "frame"))
        return tuple(piece for piece in pieces if piece[0])


def _at_spaces(shown: Sequence[str], head: int, tail: int) -> tuple[int, int]:
    """The ends of a gap moved apart to spaces, where those are near: half a name reads as another name."""
    spaces = [at for at in range(max(head - NEAR, 0), head) if shown[at] == " "]
    after = next((at for at in range(tail, min(tail + NEAR, len(shown))) if shown[at] == " "), tail)
    return (spaces[-1] + 1 if spaces else head), after


def _from(starts: Sequence[int], cell: int) -> int:
    """The first character that begins at `cell` or behind it."""
    return min(bisect_left(starts, cell), len(starts) - 1)


def _until(starts: Sequence[int], cell: int) -> int:
    """The first character that does not end by `cell`."""
    return max(bisect_right(starts, cell) - 1, 0)


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
