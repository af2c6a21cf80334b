"""Limits and budgets that one file has around its calls of another's functions, carried there as places."""

from __future__ import annotations

from pathlib import Path

import pytest
from deadlint.check import check_source
from deadlint.graph import Entries, Entry
from deadlint.index.module import Module
from deadlint.project import Project
from deadlint.rule import all_rules
from deadlint.settings import Settings
from deadlint.source import SourceFile

FLOW = """\
from prefect import task
from deadlint_budget import Budget
from tiles.warp import warp, measure


@task(timeout_seconds=600)
def build():
    warp("a")


def main():
    budget = Budget.of(60)
    measure()
"""
WARP = """\
import subprocess
from deadlint_budget import Budget


def warp(tile):
    inner(tile)


def inner(tile):
    subprocess.run(["gdalwarp", tile], timeout=900)


def measure():
    return Budget.of(5)
"""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    (tmp_path / "tiles").mkdir()
    for name, text in {"__init__": "", "flow": FLOW, "warp": WARP}.items():
        (tmp_path / "tiles" / f"{name}.py").write_text(text)
    return Project(Settings(root=str(tmp_path)))


def entries_into(project: Project, tmp_path: Path, name: str, target: str) -> Entries:
    """What the module `name` has around its calls of functions of `target`."""
    module = Module(SourceFile.read(tmp_path / "tiles" / f"{name}.py"), Settings(root=str(tmp_path)), project)
    found: Entries = {}
    for path, function, entry in module.graph.exits():
        if Path(path).name == f"{target}.py":
            found[function] = found.get(function, Entry()).joined(entry)
    return found


def test_what_is_around_a_call_reaches_the_file_that_it_calls(project: Project, tmp_path: Path) -> None:
    entries = entries_into(project, tmp_path, "flow", "warp")
    assert set(entries) == {"warp", "measure"}
    (around,) = entries["warp"].limits
    assert (around.limit.seconds, around.limit.label) == (600.0, "task `build`")
    assert [step.function for step in around.path] == ["warp"]
    assert entries["measure"].budget is not None


def test_a_file_with_entries_knows_the_limits_around_its_functions(project: Project, tmp_path: Path) -> None:
    entries = entries_into(project, tmp_path, "flow", "warp")
    source = SourceFile.read(tmp_path / "tiles" / "warp.py")
    alone = Module(source, Settings())
    told = Module(source, Settings(), project, entries)
    run = next(call for call in told.calls if "gdalwarp" in source.segment(call))
    scope = told.walker.scope_of[run]
    (around,) = told.graph.around(run, scope)
    assert [step.function for step in around.path] == ["warp", "inner"]
    assert Path(around.limit.path).name == "flow.py"
    assert alone.graph.around(next(c for c in alone.calls if "gdalwarp" in source.segment(c)), alone.scope) == ()
    made = next(call for call in told.calls if source.segment(call) == "Budget.of(5)")
    function = told.walker.scope_of[made].enclosing_function()
    assert function is not None
    assert told.graph.caller_with_budget(function) is not None


def test_the_shortest_limits_are_kept() -> None:
    text = "from prefect import task\n" + "".join(
        f"@task(timeout_seconds={n})\ndef t{n}():\n    f()\n\n" for n in range(100, 120)
    )
    module = Module(SourceFile("m.py", text + "def f():\n    pass\n"), Settings())
    found = next(scope for scope in module.scope.functions if scope.name == "f")
    entry = Entry(module.graph.around_function(found)).joined(Entry())
    assert [a.limit.seconds for a in entry.limits] == [float(n) for n in range(100, 104)]


def test_within_one_file_the_rules_use_it() -> None:
    text = "from prefect import task\nimport requests\n@task(timeout_seconds=5)\ndef t():\n    f()\n"
    text += "def f():\n    requests.get('u', timeout=9)\n"
    codes = {f.code for f in check_source(SourceFile("m.py", text), Settings(), all_rules())}
    assert "DL401" in codes
