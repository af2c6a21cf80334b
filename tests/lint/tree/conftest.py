"""What the tests of `deadlint tree` share: a program on disk, and its tree as data."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from deadlint.cli import cli

FIXTURES = Path(__file__).parents[3] / "fixtures" / "trees"

Grow = Callable[..., "Found"]


class Found:
    """A tree as `--output-format json` has it."""

    def __init__(self, record: dict[str, Any]) -> None:
        self.record = record
        self.roots = record["entries"]

    def __iter__(self) -> Iterator[dict[str, Any]]:
        pending = list(reversed(self.roots))
        while pending:
            node = pending.pop()
            yield node
            pending += reversed(node["children"])

    def node(self, layer: str, name: str) -> dict[str, Any]:
        """The only node of that layer and name."""
        (found,) = [n for n in self if (n["layer"], n["name"]) == (layer, name)]
        return found

    def worst(self, layer: str, name: str) -> float | None:
        """Its worst case in seconds; None where nothing bounds it."""
        return self.node(layer, name)["worst"]["seconds"]

    def marks(self, layer: str, name: str) -> set[str]:
        """The kinds of its marks."""
        return {mark["kind"] for mark in self.node(layer, name)["marks"]}


def run(*arguments: str) -> Result:
    """`deadlint tree` in this process."""
    return CliRunner().invoke(cli, ["tree", *arguments], catch_exceptions=False)


def grown(*arguments: str) -> Found:
    """The tree of the working directory."""
    result = run("--output-format", "json", *arguments)
    assert result.exit_code == 0, result.stderr
    return Found(json.loads(result.stdout))


@pytest.fixture
def grow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Grow:
    """The tree of a program of these files, by name; `main` alone where it is one text."""

    def make(text: str = "", *arguments: str, **files: str) -> Found:
        monkeypatch.chdir(tmp_path)
        for name, source in {"app": text, **files}.items():
            path = tmp_path / f"{name.replace('__', '/')}.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(source)
        return grown("--isolated", *arguments)

    return make


@pytest.fixture
def fixture(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Found]:
    """The tree of a program under `fixtures/trees`."""

    def make(name: str) -> Found:
        monkeypatch.chdir(FIXTURES / name)
        return grown()

    return make
