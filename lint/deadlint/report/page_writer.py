"""Put lines of styled pieces on a terminal, or on what is none; it alone knows what is coloured how."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TextIO

from rich.console import Console
from rich.segment import Segment, Segments
from rich.style import Style

from deadlint.report.line_view import Piece
from deadlint.report.printable import encodable

STYLES = {
    "path": "bold",
    "code": "bold red",
    "code strict": "bold yellow",
    "message": "",
    "name": "bold",
    "frame": "bright_black",
    "number": "bright_black",
    "source": "",
    "span": "bold",
    "mark": "bold red",
    "mark label": "bold red",
    "related": "bold cyan",
    "related label": "cyan",
    "place": "bold",
    "head": "bold",
    "removed": "red",
    "removed span": "bold red",
    "added": "green",
    "added span": "bold green",
    "safe": "bold green",
    "unsafe": "bold yellow",
    "display": "bold blue",
}
DRAWN = "│╭╰─┆…├"
_ASCII = str.maketrans(DRAWN, "|/\\-:~|")  # what stands for them where the output's encoding has none

_END = Segment.line()
BATCH = 2000  # pieces that are printed at once: one at a time costs rich as much as all the rest

Line = tuple[Piece, ...]


def console_for(out: TextIO) -> Console:
    """A console that prints what it is given; colours on a terminal only, NO_COLOR and FORCE_COLOR count."""
    return Console(file=out, highlight=False, markup=False, emoji=False, soft_wrap=True)


class PageWriter:
    """Prints lines as they are; rich neither wraps nor interprets them, for sources hold anything."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._styles = {role: Style.parse(style) for role, style in STYLES.items()}
        try:
            DRAWN.encode(console.encoding)
            self._draws = True
        except (UnicodeEncodeError, LookupError):
            self._draws = False

    def write(self, lines: Iterable[Line]) -> None:
        """Print whole lines, without white space at their ends."""
        segments: list[Segment] = []
        out = self._console.file
        for line in lines:
            for text, role in _without_trailing_space(line):
                drawn = text if self._draws else text.translate(_ASCII)
                segments.append(Segment(encodable(drawn, out), self._styles[role]))
            segments.append(_END)
            if len(segments) >= BATCH:
                self._console.print(Segments(segments), end="")
                segments = []
        if segments:
            self._console.print(Segments(segments), end="")


def _without_trailing_space(line: Line) -> Line:
    while line and not (stripped := line[-1][0].rstrip()):
        line = line[:-1]
    return (*line[:-1], (stripped, line[-1][1])) if line else ()
