"""What the tests of the runner, the cache and the command line share: rules that are theirs alone."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from io import BytesIO, TextIOWrapper
from pathlib import Path
from unittest.mock import patch

import pytest
from deadlint.cli import main
from deadlint.rule import all_rules

STANDINS = Path(__file__).parent / "standins"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty directory as working directory, with the stand-in rules installed beside the real ones."""
    monkeypatch.syspath_prepend(str(STANDINS))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(STANDINS), os.environ.get("PYTHONPATH", "")]))
    root = tmp_path / "project"
    root.mkdir()
    monkeypatch.chdir(root)
    all_rules.cache_clear()
    yield root
    all_rules.cache_clear()


class Deadlint:
    """`deadlint` as a user runs it."""

    def __call__(self, *arguments: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        command = [sys.executable, "-m", "deadlint", *arguments]
        return subprocess.run(command, input=stdin, capture_output=True, check=False, timeout=60)


@pytest.fixture
def deadlint(project: Path) -> Deadlint:
    """A command that runs deadlint in `project`."""
    return Deadlint()


class InProcess(Deadlint):
    """The same in this process, which takes a fraction of the time."""

    def __call__(self, *arguments: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        out, err = (TextIOWrapper(BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
        given = TextIOWrapper(BytesIO(stdin))
        with redirect_stdout(out), redirect_stderr(err), patch("sys.stdin", given), pytest.raises(SystemExit) as left:
            main(list(arguments))
        status = left.value.code
        assert isinstance(status, int)
        return subprocess.CompletedProcess(arguments, status, *(_content(one) for one in (out, err)))


def _content(stream: TextIOWrapper) -> bytes:
    assert isinstance(stream.buffer, BytesIO)
    return stream.buffer.getvalue()


@pytest.fixture
def quick(project: Path) -> Deadlint:
    """A command that runs deadlint in `project`, without a process of its own."""
    return InProcess()
