"""What the tests of the server share."""

from __future__ import annotations

from pathlib import Path

import pytest

UNSAFE = "import requests\n\n\ndef fetch(url):\n    return requests.get(url)\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder that is a project of its own, with nothing in it."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "deadlint.toml").write_text("", encoding="utf-8")
    return folder


def write(folder: Path, name: str, text: str) -> Path:
    """A file of a project."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8", newline="")
    return path
