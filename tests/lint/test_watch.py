"""Checking again whenever a file is saved."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from queue import Queue
from threading import Thread

import pytest

pytest.importorskip("watchfiles")

BAD = "import requests\nrequests.get('http://x')\n"
GOOD = "import requests\nrequests.get('http://x', timeout=(3, 5))\n"


class Watching:
    """A `deadlint check --watch`, line by line."""

    def __init__(self, folder: Path) -> None:
        command = [sys.executable, "-m", "deadlint", "check", "--watch", "--output-format=concise"]
        self.process = subprocess.Popen(
            command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
        )
        self._lines: Queue[str] = Queue()
        Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line)

    def until(self, word: str) -> str:
        """What is said up to the line that holds `word`."""
        said = ""
        while word not in said:
            said += self._lines.get(timeout=60)
        return said


@pytest.fixture
def watching(tmp_path: Path) -> Iterator[Watching]:
    (tmp_path / "deadlint.toml").write_text("")
    (tmp_path / "a.py").write_text(BAD)
    watching = Watching(tmp_path)
    try:
        yield watching
    finally:
        if watching.process.poll() is None:
            os.killpg(watching.process.pid, signal.SIGKILL)
        watching.process.wait()
        assert watching.process.stdout is not None
        watching.process.stdout.close()


def save_until(watching: Watching, path: Path, text: str, word: str) -> str:
    """Save once more until it is seen: the first save may come before the watch has begun."""
    path.write_text(text)
    end = time.monotonic() + 60
    while time.monotonic() < end:
        if not watching._lines.empty():
            return watching.until(word)
        path.touch()
        time.sleep(0.2)
    raise AssertionError("the save was not seen")


def test_a_save_is_reported(watching: Watching, tmp_path: Path) -> None:
    assert "DL201" in watching.until("Watching")
    said = save_until(watching, tmp_path / "b.py", BAD, "Found")
    assert "Changed: b.py" in said
    assert "b.py:2:1: DL201" in said


def test_ctrl_c_ends_it_with_the_status_of_the_last_check(watching: Watching, tmp_path: Path) -> None:
    watching.until("Watching")
    save_until(watching, tmp_path / "b.py", BAD, "Found")
    os.killpg(watching.process.pid, signal.SIGINT)
    assert watching.process.wait(timeout=60) == 1


def test_it_does_not_fix(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "deadlint", "check", "--watch", "--fix"],
        cwd=tmp_path, capture_output=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 2
    assert b"--watch" in done.stderr
