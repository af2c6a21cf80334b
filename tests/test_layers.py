"""Who may import whom: the helpers nobody, the tool no rule, so that each can be used and read alone."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FORBIDDEN = {
    "budget/deadlint_budget": ("deadlint", "deadlint_rules", "libcst", "click", "rich"),
    "lint/deadlint": ("deadlint_rules",),
}


def _imported(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.Import(names=names):
                found |= {name.name.partition(".")[0] for name in names}
            case ast.ImportFrom(module=str() as module, level=0):
                found.add(module.partition(".")[0])
    return found


@pytest.mark.parametrize("folder", FORBIDDEN)
def test_imports_stay_within_their_layer(folder: str) -> None:
    files = sorted((ROOT / folder).rglob("*.py"))
    assert files
    for path in files:
        assert not _imported(path) & set(FORBIDDEN[folder]), path


def test_the_tool_names_no_rule_module() -> None:
    modules = {path.stem for path in (ROOT / "rules/deadlint_rules").glob("[!_]*.py")}
    assert len(modules) >= 12
    for path in (ROOT / "lint/deadlint").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert not [name for name in modules if name in text], path


def _loaded(code: str) -> set[str]:
    run = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport sys; print(*sys.modules)"],
        check=True, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    return set(run.stdout.split())


def test_the_helpers_load_the_standard_library_only() -> None:
    allowed = {*sys.stdlib_module_names, *_loaded("pass"), "deadlint_budget"}
    tops = {name.partition(".")[0] for name in _loaded("import deadlint_budget")}
    assert not tops - {name.partition(".")[0] for name in allowed}


@pytest.mark.parametrize("heavy", ["libcst", "rich", "multiprocessing", "ahocorasick_rs"])
def test_the_command_line_loads_nothing_heavy(heavy: str) -> None:
    assert heavy not in _loaded("import deadlint.cli")
