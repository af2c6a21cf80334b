"""Paths as CI services want them: from the root of the checkout, with slashes."""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path, PurePath


def checkout_path(path: str) -> str:
    """`path` relative to the checkout that holds the working directory; as it is where it lies outside.

    A job may run in a subdirectory of the checkout, and the service knows only paths from its root.
    """
    here = Path.cwd()
    try:
        return (here / path).relative_to(_root(here)).as_posix()
    except ValueError:
        return PurePath(path).as_posix()


def path_bytes(path: str) -> bytes:
    """The bytes of a path's name; a surrogate that stands for no byte, as Windows allows, keeps its own."""
    try:
        return os.fsencode(path)
    except UnicodeEncodeError:
        return path.encode("utf-8", "surrogatepass")


@lru_cache(maxsize=8)
def _root(directory: Path) -> Path:
    """The nearest directory upward that holds `.git` (in a worktree that is a file); else `directory`."""
    for candidate in (directory, *directory.parents):
        if (candidate / ".git").exists():
            return candidate
    return directory
