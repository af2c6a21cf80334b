"""The man page is the one that the commands make, and man has nothing to say against it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from deadlint.cli import cli
from deadlint.commands import LAZY
from deadlint.man_page import man_page

PAGE = Path(__file__).parents[2] / "docs" / "deadlint.1"


def test_the_man_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == man_page(), "run `python -m deadlint.man_page > docs/deadlint.1`"


@pytest.mark.skipif(shutil.which("man") is None, reason="needs man: apt-get install man-db")
def test_man_shows_every_command_and_warns_of_nothing() -> None:
    done = subprocess.run(
        ["man", "--warnings=all", "-l", str(PAGE)],
        env={"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "MANWIDTH": "100"},
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    assert done.stderr == ""
    for name in (*cli.commands, *LAZY):
        assert f"deadlint {name}" in done.stdout
    for text in ("--unsafe-fixes", "-h, --help", "EXIT STATUS", "DEADLINT(1)"):
        assert text in done.stdout
