"""The name of a cell as reports show it: the notebook's path, a colon, and the number of the cell."""

from __future__ import annotations


class CellPath(str):
    """`path.ipynb:3`, which goes wherever a path does; `file` is the notebook."""

    file: str

    def __new__(cls, file: str, cell: int) -> CellPath:
        """The name of the cell with that number in `file`."""
        made = super().__new__(cls, f"{file}:{cell}")
        made.file = file
        return made


def file_of(path: str) -> str:
    """The file that a path is of."""
    return path.file if isinstance(path, CellPath) else path
