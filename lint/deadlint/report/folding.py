"""Fold a line that is wider than the room into several rows: for what is to be read whole, with no marks beneath."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, groupby

from rich.cells import cell_len, get_character_cell_size

from deadlint.report.line_view import Piece

HANGING = 4  # how much further in than its line a row begins that continues it
NARROWEST = 10  # cells of a row that continues a deeply indented line


def folded(pieces: Sequence[Piece], room: int) -> list[tuple[Piece, ...]]:
    """`pieces` in rows of at most `room` cells, broken at a space where one is near."""
    if sum(cell_len(text) for text, _ in pieces) <= room:
        return [tuple(pieces)]
    characters = [(character, role) for text, role in pieces for character in text]
    text = "".join(character for character, _ in characters)
    indent = max(min(len(text) - len(text.lstrip()) + HANGING, room - NARROWEST), 0)
    rows: list[tuple[Piece, ...]] = []
    while characters:
        lead = indent if rows else 0
        end = _end(characters, max(room - lead, 1))
        rows.append((*((((" " * lead), "source"),) if lead else ()), *_joined(characters[:end])))
        characters = characters[end:]
        while rows and characters and characters[0][0] == " ":
            del characters[0]
    return rows


def _end(characters: Sequence[Piece], room: int) -> int:
    """How many characters the next row takes."""
    used = accumulate(map(_width, characters))
    index = next((at for at, cells in enumerate(used) if cells > room), len(characters))
    if index == len(characters):
        return index
    spaces = [at for at in range(index // 2, index) if characters[at][0] == " "]
    return spaces[-1] + 1 if spaces else max(index, 1)


def _width(character: Piece) -> int:
    return get_character_cell_size(character[0])


def _joined(characters: Sequence[Piece]) -> list[Piece]:
    return [
        ("".join(text for text, _ in group), role)
        for role, group in groupby(characters, key=lambda character: character[1])
    ]
