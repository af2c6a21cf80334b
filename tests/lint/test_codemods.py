"""The fixes as LibCST codemods: what `python -m libcst.tool codemod` does is what `deadlint check --fix` does."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from deadlint import codemods
from deadlint.rule import all_rules
from libcst import parse_module
from libcst.codemod import CodemodContext, CodemodTest, SkipFile

PIPELINES = Path(__file__).parents[2] / "fixtures" / "pipelines"
COMMANDS = {
    codemods.FixProcesses: "DL1",
    codemods.FixHttp: "DL2",
    codemods.FixPostgres: "DL3",
    codemods.FixLimits: "DL4",
    codemods.FixCancellation: "DL5",
    codemods.FixOutputs: "DL6",
}


def run(folder: Path, *command: str) -> str:
    """What a command of Python prints in a folder."""
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=folder, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode in (0, 1), done.stderr
    return done.stdout + done.stderr


def sources(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in sorted(folder.rglob("*.py"))}


def test_there_is_one_for_each_family() -> None:
    families = {rule.code[:3] for rule in all_rules() if rule.code[:2] == "DL" and rule.code[:3] != "DL0"}
    assert {command.FAMILY for command in COMMANDS} == families


@pytest.mark.parametrize("command", [codemods.FixProcesses, codemods.FixPostgres])
def test_a_codemod_does_what_check_does(command: type[codemods._Fix], tmp_path: Path) -> None:
    checked, modded = tmp_path / "checked", tmp_path / "modded"
    for folder in (checked, modded):
        shutil.copytree(PIPELINES, folder, ignore=shutil.ignore_patterns("__pycache__"))
    run(checked, "deadlint", "check", ".", "--fix", "--unsafe-fixes", "--no-cache", f"--select={command.FAMILY}")
    name = f"deadlint.codemods.{command.__name__}"
    said = run(modded, "libcst.tool", "codemod", "-x", name, "--no-format", "-j1", "--unsafe-fixes", ".")
    assert "Failed to codemod 0 files" in said
    assert sources(modded) == sources(checked) != sources(PIPELINES)


class TestFixProcesses(CodemodTest):
    """As LibCST tests a codemod."""

    TRANSFORM = codemods.FixProcesses

    def test_an_unsafe_fix_waits_for_its_option(self) -> None:
        before = "import subprocess\nsubprocess.run('a | b', shell=True, timeout=9)"
        self.assertCodemod(before, before)

    def test_an_unsafe_fix(self) -> None:
        before = "import subprocess\nsubprocess.run('a | b', shell=True, timeout=9)"
        after = "from deadlint_budget import run\nrun('a | b', shell=True, want=9)"
        self.assertCodemod(before, after, unsafe_fixes=True)


def test_what_cannot_be_checked_is_skipped() -> None:
    context = CodemodContext(filename="a.py")
    assert codemods.FixHttp(context).transform_module(parse_module("x  =  1\n")).code == "x  =  1\n"
    with pytest.raises(SkipFile):
        codemods.FixHttp(context).transform_module(parse_module("x = 1  # \0\n"))
