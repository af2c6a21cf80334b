"""`deadlint server` as a command: what it says where it cannot serve."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def test_without_its_extra_it_says_what_to_install(tmp_path: Path) -> None:
    package = tmp_path / "pygls"
    package.mkdir()
    (package / "__init__.py").write_text("raise ModuleNotFoundError(\"No module named 'pygls'\", name='pygls')\n")
    done = subprocess.run(
        [sys.executable, "-m", "deadlint", "server"],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        input="",
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr == "error: `deadlint server` needs pygls; install it with `pip install 'deadlint[server]'`\n"


def test_it_ends_when_its_editor_is_gone() -> None:
    command = [sys.executable, "-m", "deadlint", "server", "--stdio"]
    done = subprocess.run(command, input=b"", capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_help_names_it_without_loading_it() -> None:
    code = "import sys\nfrom deadlint.cli import cli\ncli.main(['--help'], standalone_mode=False)\nprint('pygls' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert "Serve an editor" in done.stdout
    assert done.stdout.splitlines()[-1] == "False"
