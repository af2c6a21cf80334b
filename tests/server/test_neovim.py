"""Neovim, without a screen: the one of the system, and a current one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.server.conftest import UNSAFE, write
from tests.services import missing, need_program

SCRIPTS = Path(__file__).parent / "neovim"
LIMITED = """\
import subprocess

from prefect import task


@task(timeout_seconds=600)
def build_tile(source):
    subprocess.run(["gdalinfo", source], timeout=900)
"""
# As the command line has it: `test_the_command_line_makes_the_same_of_it`.
FIXED = """\
from deadlint_budget import http

HTTP_LIMIT_S = 30


def fetch(url):
    return http.get(url, want=HTTP_LIMIT_S)
"""


def neovim(program: str, script: str, file: Path, **environment: str) -> dict[str, Any]:
    """What a script writes that Neovim runs with a file open."""
    out = file.parent.parent / "out.json"
    given = {**environment, "DEADLINT_OUT": str(out), "DEADLINT_PYTHON": sys.executable}
    home = file.parent.parent / "home"
    home.mkdir(exist_ok=True)
    # Neovim finds its runtime by its own place, not by what a plugin of the developer's sets.
    kept = {name: value for name, value in os.environ.items() if name not in ("VIMRUNTIME", "VIM")}
    done = subprocess.run(
        [program, "--headless", "--clean", str(file), "-c", f"luafile {SCRIPTS / script}"],
        cwd=file.parent,
        env={**kept, **given, "HOME": str(home), "XDG_CACHE_HOME": str(home), "XDG_STATE_HOME": str(home)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert out.exists(), done.stderr
    answer: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"))
    assert "error" not in answer, f"{answer}\n{done.stderr}"
    return answer


def current_neovim() -> str:
    """The Neovim of the test extra."""
    beside = Path(sys.executable).parent / "nvim"
    return str(beside) if beside.exists() else missing("a current Neovim", "pip install -e '.[test]'")


def test_a_quick_fix_is_taken_in_the_neovim_of_the_system(project: Path) -> None:
    """Debian's 0.7 does not pull, so the findings are pushed to it."""
    file = write(project, "fetch.py", UNSAFE)
    program = need_program("nvim", "neovim")
    answer = neovim(program, "fix.lua", file, DEADLINT_ACTION="send it through `http.get`")
    assert answer["before"] == [{"code": "DL201", "line": 4, "source": "deadlint"}]
    assert not answer["after"]
    assert answer["text"] == FIXED
    assert file.read_text(encoding="utf-8") == UNSAFE


def test_diagnostics_are_pulled_and_hints_shown_in_a_current_neovim(project: Path) -> None:
    answer = neovim(current_neovim(), "pull.lua", write(project, "flows.py", LIMITED))
    assert answer["pulls"] is True
    assert answer["pushed"] == 0
    assert answer["before"] == {"codes": ["DL401"], "hints": ["≤ 600 s via build_tile"]}
    assert not answer["after"]["codes"]
    assert not answer["after"]["hints"]


def test_a_quick_fix_is_taken_in_a_current_neovim(project: Path) -> None:
    file = write(project, "fetch.py", UNSAFE)
    answer = neovim(current_neovim(), "fix.lua", file, DEADLINT_ACTION="send it through `http.get`")
    assert answer["text"] == FIXED


def test_the_command_line_makes_the_same_of_it(project: Path) -> None:
    file = write(project, "fetch.py", UNSAFE)
    command = [sys.executable, "-m", "deadlint", "check", "--fix", "--unsafe-fixes", "--no-cache", str(file)]
    assert subprocess.run(command, capture_output=True, timeout=60, check=False).returncode == 0
    assert file.read_text(encoding="utf-8") == FIXED
