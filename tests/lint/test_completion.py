"""Completion as bash does it: the script is read, and its function asked as bash asks it."""

from __future__ import annotations

import os
import pty
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from deadlint.commands import LAZY

BIN = Path(sys.executable).parent
pytestmark = pytest.mark.skipif(
    shutil.which("bash") is None or not (BIN / "deadlint").exists(),
    reason="needs bash, and the command `deadlint` beside this Python",
)

ASK = """
eval "$(deadlint completion bash)"
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=()
compopt() { echo "files"; }
_deadlint_completion deadlint
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture(autouse=True)
def _place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{BIN}{os.pathsep}{os.environ['PATH']}")


def completed(*words: str) -> list[str]:
    """What bash offers for the last of `words`."""
    done = subprocess.run(
        ["bash", "--norc", "-c", ASK, "bash", "deadlint", *words],
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.stderr == ""
    return done.stdout.split()


def test_commands_are_offered_those_too_that_are_loaded_late() -> None:
    offered = completed("")
    assert {"check", "rule", "rules", *LAZY} <= set(offered)
    assert completed("che") == ["check"]
    assert completed("migrate", "--ent") == ["--entry"]
    assert completed("baseline", "up") == ["update"]


def test_options_and_their_values_are_offered() -> None:
    assert completed("check", "--unsafe") == ["--unsafe-fixes"]
    assert completed("check", "--level", "") == ["default", "strict"]
    assert completed("check", "--output-format", "s") == ["sarif"]
    assert completed("completion", "") == ["bash", "zsh", "fish"]


def test_rules_are_offered_by_code_and_by_name_and_in_lists() -> None:
    assert completed("rule", "DL20") == ["DL201", "DL202", "DL203"]
    assert completed("rule", "request-w") == ["request-without-timeout"]
    assert completed("check", "--select", "DL101,DL20") == ["DL101,DL201", "DL101,DL202", "DL101,DL203"]
    assert completed("check", "--ignore", "DL101,request-w") == ["DL101,request-without-timeout"]


def test_files_are_left_to_the_shell() -> None:
    assert completed("check", "pipe") == ["files"]
    assert completed("check", "--config", "") == ["files"]


def test_the_tab_key_completes_in_a_real_session() -> None:
    pid, terminal = pty.fork()
    if pid == 0:
        os.execvpe("bash", ["bash", "--norc", "--noprofile", "-i"], {**os.environ, "PS1": "", "TERM": "dumb"})
    try:
        os.write(terminal, b'eval "$(deadlint completion bash)"; echo re""ady\n')
        assert "ready" in _until(terminal, "ready")
        os.write(terminal, b"deadlint check --unsafe\t")
        assert "--unsafe-fixes" in _until(terminal, "--unsafe-fixes")
    finally:
        os.close(terminal)
        os.waitpid(pid, 0)


def _until(terminal: int, wanted: str) -> str:
    """What the terminal shows until `wanted` is there, for a minute at the most."""
    shown, end = "", time.monotonic() + 60
    while wanted not in shown and time.monotonic() < end:
        if select.select([terminal], [], [], 1)[0]:
            shown += os.read(terminal, 4096).decode(errors="replace")
    return shown


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_take_their_script(shell: str) -> None:
    made = subprocess.run(["deadlint", "completion", shell], capture_output=True, text=True, check=True, timeout=60)
    assert "_DEADLINT_COMPLETE" in made.stdout
    if shutil.which(shell) is not None:
        Path("script").write_text(made.stdout, encoding="utf-8")
        subprocess.run([shell, "-n", "script"], check=True, timeout=60)


def test_the_shell_in_use_is_taken_where_none_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHELL", "/usr/bin/fish")
    assert (
        "fish_complete" in subprocess.run(["deadlint", "completion"], capture_output=True, text=True, check=True).stdout
    )
    monkeypatch.setenv("SHELL", "/bin/csh")
    done = subprocess.run(["deadlint", "completion"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, "error: no completion for csh; name one of bash, zsh, fish\n")
