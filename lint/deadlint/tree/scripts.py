"""The commands that a project installs, as its pyproject.toml names them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import Any

import tomli


def scripts_of(files: Iterable[str], tops: Iterable[str]) -> Iterator[tuple[str, str, str]]:
    """The name, module and function of each script of the projects that hold `files`, or that `tops` lie in."""
    for directory in dict.fromkeys(_directories(files, tuple(tops))):
        yield from _scripts(os.path.join(directory, "pyproject.toml"))


def _directories(files: Iterable[str], tops: tuple[str, ...]) -> Iterator[str]:
    """The directories of the files, up to what was asked for; from there up to the nearest project."""
    seen: set[str] = set()
    for file in files:
        directory = os.path.dirname(file)
        while directory not in seen:
            seen.add(directory)
            yield directory
            if directory in tops or os.path.dirname(directory) == directory:
                break
            directory = os.path.dirname(directory)
    for top in tops:
        directory = top
        while not os.path.isfile(os.path.join(directory, "pyproject.toml")):
            above = os.path.dirname(directory)
            if above == directory or os.path.lexists(os.path.join(directory, ".git")):
                break
            directory = above
        yield directory


def _scripts(path: str) -> Iterator[tuple[str, str, str]]:
    try:
        with open(path, "rb") as file:
            content = tomli.load(file)
    except (OSError, ValueError):
        return  # its absence, and what is wrong with it, is for others to say
    project, poetry = _table(content, "project"), _table(_table(content, "tool"), "poetry")
    for table in (_table(project, "scripts"), _table(project, "gui-scripts"), _table(poetry, "scripts")):
        for name, target in table.items():
            if isinstance(target, str):
                module, colon, function = target.partition("[")[0].strip().partition(":")
                if colon:
                    yield name, module.strip(), function.strip()


def _table(content: dict[str, Any], key: str) -> dict[str, Any]:
    found = content.get(key)
    return found if isinstance(found, dict) else {}
