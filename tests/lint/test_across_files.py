"""Limits and budgets of callers in other files: what a run finds, whatever part of the project it is asked for."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
from deadlint.config import Overrides
from deadlint.model import Level, Safety
from deadlint.result import RunResult
from deadlint.run import Request, run, run_text

FLOW = """\
from prefect import task

from tiles.steps import build


@task(timeout_seconds=600)
def tile(name):
    build(name)
"""
STEPS = """\
from tiles.warp import warp


def build(name):
    warp(name)
"""
WARP = """\
import subprocess


def warp(name):
    subprocess.run(["gdalwarp", name, "out.tif"], check=True, timeout=900)
"""
SOURCES = {"flow": FLOW, "steps": STEPS, "warp": WARP}
ONLY = Overrides(select=("DL401", "DL402"))


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package of three files, one calling the next, whose files count as old."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("deadlint.cache._TICK_NS", -3_600_000_000_000)
    (tmp_path / ".git").mkdir()
    plant("tiles/__init__.py", "")
    for name, text in SOURCES.items():
        plant(f"tiles/{name}.py", text)
    return tmp_path


def plant(name: str, text: str) -> None:
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def check(*paths: str, **changes: object) -> RunResult:
    return run(replace(Request(processes=1, overrides=ONLY), paths=paths or (".",), **changes))  # type: ignore[arg-type]


def found(result: RunResult) -> list[str]:
    assert not result.problems
    return [f"{one.path}:{one.span.line} {one.code}" for one in result.open_findings]


INVERTED = ["tiles/warp.py:5 DL401"]


def test_a_limit_two_files_away_is_known(root: Path) -> None:
    result = check()
    assert found(result) == INVERTED
    (finding,) = result.findings
    assert [(one.path, one.span.line) for one in finding.related] == [
        ("tiles/flow.py", 6), ("tiles/flow.py", 8), ("tiles/steps.py", 5),
    ]  # fmt: skip
    assert "task `tile`" in finding.message


@pytest.mark.parametrize("processes", [1, 2])
@pytest.mark.parametrize("use_cache", [False, True])
def test_it_is_known_however_the_file_is_asked_for(root: Path, processes: int, use_cache: bool) -> None:
    for paths in [("tiles/warp.py",), ("tiles/warp.py", "tiles/steps.py"), ("tiles",), (".",)]:
        assert found(check(*paths, processes=processes, use_cache=use_cache)) == INVERTED, paths
    assert found(check("tiles/steps.py", "tiles/flow.py")) == []


def test_dependents_are_shown_where_asked_for(root: Path) -> None:
    plant("tiles/other.py", "import subprocess\nfrom prefect import task\n@task(timeout_seconds=5)\ndef t():\n    subprocess.run('x', timeout=9)\n")
    assert found(check("tiles/flow.py")) == []
    assert found(check("tiles/flow.py", with_dependents=True)) == INVERTED
    assert found(check("tiles/steps.py", with_dependents=True)) == INVERTED


def test_text_that_is_in_no_file_yet_is_judged_under_its_callers(root: Path) -> None:
    text = WARP.replace("timeout=900", "timeout=600")
    assert found(run_text(text.encode(), "tiles/warp.py", Request(overrides=ONLY))) == INVERTED
    text = WARP.replace("timeout=900", "timeout=60")
    assert found(run_text(text.encode(), "tiles/warp.py", Request(overrides=ONLY))) == []


def test_nothing_is_looked_at_around_files_that_are_in_no_project(root: Path) -> None:
    (root / ".git").rmdir()
    assert found(check("tiles/warp.py")) == []
    assert found(check("tiles")) == INVERTED


def test_a_change_two_files_away_is_seen(root: Path) -> None:
    assert found(check()) == INVERTED
    plant("tiles/flow.py", FLOW.replace("600", "6000"))
    assert found(check()) == []
    assert found(check()) == []
    plant("tiles/steps.py", STEPS.replace("    warp(name)", "    pass"))
    plant("tiles/flow.py", FLOW)
    assert found(check()) == []
    plant("tiles/steps.py", STEPS)
    assert found(check()) == INVERTED
    os.unlink("tiles/flow.py")
    assert found(check()) == []


def test_only_what_a_change_concerns_is_judged_again(root: Path) -> None:
    check()
    assert judged(check()) == 0
    plant("tiles/flow.py", FLOW + "\n\nLAST = 1\n")
    assert judged(check()) == 1
    plant("tiles/flow.py", FLOW.replace("600", "700"))
    assert judged(check()) == 3


def judged(result: RunResult) -> int:
    return result.files - result.cached


def test_what_a_hook_saw_of_some_files_is_right_for_all_later(root: Path) -> None:
    assert found(check("tiles/steps.py")) == []
    assert found(check()) == INVERTED
    plant("tiles/flow.py", FLOW.replace("600", "6000"))
    assert found(check("tiles/flow.py")) == []
    assert found(check("tiles/warp.py")) == []
    assert found(check()) == []
    plant("tiles/flow.py", FLOW)
    assert found(check("tiles/flow.py")) == []
    assert found(check("tiles/warp.py")) == INVERTED
    assert found(check()) == INVERTED


def test_paths_are_shown_as_from_where_one_stands(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check()
    monkeypatch.chdir(root / "tiles")
    (finding,) = check().findings
    assert (finding.path, [one.path for one in finding.related]) == ("warp.py", ["flow.py", "flow.py", "steps.py"])


def test_files_that_call_each_other_in_a_circle_come_to_an_end(root: Path) -> None:
    plant("tiles/steps.py", STEPS + "\n\ndef again(name):\n    build(name)\n")
    plant("tiles/warp.py", "from tiles.steps import again\n" + WARP + "    again(name)\n")
    result = check()
    assert found(result) == ["tiles/warp.py:6 DL401"]
    plant("tiles/flow.py", FLOW.replace("(timeout_seconds=600)", ""))
    assert found(check()) == []


def test_limits_in_tests_say_nothing_of_the_project(root: Path) -> None:
    plant("tests/test_flow.py", FLOW)
    plant("tiles/flow.py", "")
    assert found(check()) == []


def test_a_budget_of_a_caller_in_another_file_counts(root: Path) -> None:
    plant("tiles/flow.py", "from deadlint_budget import Budget\nfrom tiles.steps import build\n\n\ndef main(budget: Budget):\n    build('a')\n")
    plant("tiles/warp.py", "from deadlint_budget import Budget\n\n\ndef warp(name):\n    return Budget.of(60)\n")
    assert found(check()) == ["tiles/warp.py:5 DL402"]


@pytest.mark.parametrize(
    ("layout", "name", "where"),
    [
        ("src", "tiles", "src/tiles/"),
        ("pipelines/one", "tiles", "pipelines/one/tiles/"),
        ("", "area/tiles", "area/tiles/"),
        ("deep/down", "area/tiles", "deep/down/area/tiles/"),
    ],
    ids=["src", "several roots", "namespace package", "namespace package below"],
)
def test_layouts(root: Path, layout: str, name: str, where: str) -> None:
    for path in list(Path("tiles").iterdir()):
        path.unlink()
    package = name.replace("/", ".")
    for module, text in SOURCES.items():
        plant(f"{layout}/{name}/{module}.py".lstrip("/"), text.replace("from tiles.", f"from {package}."))
    if layout == "pipelines/one":
        plant("pipelines/two/tiles/warp.py", WARP)
    if "/" not in name:
        plant(f"{layout}/{name}/__init__.py", "")
    assert found(check()) == [f"{where}warp.py:5 DL401"]


def test_source_roots_are_configured(root: Path) -> None:
    os.rename("tiles/flow.py", "flow.py")
    os.makedirs("jobs/nightly")
    os.makedirs("libs")
    os.rename("flow.py", "jobs/nightly/flow.py")
    os.rename("tiles", "libs/tiles")
    assert found(check()) == []
    plant("deadlint.toml", 'src = ["libs"]\n')
    assert found(check()) == ["libs/tiles/warp.py:5 DL401"]


def test_re_exports_relative_imports_and_methods_are_followed(root: Path) -> None:
    plant("tiles/__init__.py", "from .warp import Warper\n__all__ = ['Warper']\n")
    plant("tiles/warp.py", "import subprocess\n\n\nclass Warper:\n    def run(self, name):\n        self._run(name)\n\n    def _run(self, name):\n        subprocess.run(['gdalwarp', name], timeout=900)\n")
    plant("tiles/steps.py", "from . import Warper\n\n\ndef build(name):\n    warper = Warper()\n    warper.run(name)\n")
    assert found(check()) == ["tiles/warp.py:9 DL401"]


OPERATOR = """\
from datetime import timedelta

from airflow import DAG
from airflow.providers.standard.operators.python import PythonOperator
from tiles.steps import build

with DAG("nightly", dagrun_timeout=timedelta(hours=9)):
    PythonOperator(task_id="build", python_callable=build, execution_timeout=timedelta(minutes=10))
"""


def test_a_function_that_is_handed_to_an_operator_runs_under_its_limit(root: Path) -> None:
    plant("tiles/flow.py", OPERATOR)
    result = check()
    assert found(result) == INVERTED
    assert "operator `build`" in result.findings[0].message
    plant("tiles/flow.py", OPERATOR.replace("minutes=10", "minutes=20"))
    assert found(check()) == []


@pytest.mark.parametrize(
    "call",
    [
        "asyncio.run(main(name))\n\n\nasync def main(name):\n    async with asyncio.timeout(600):\n        await asyncio.to_thread(warp, name)\n",
        "build.submit(name)\n\n\n@task(timeout_seconds=600)\ndef build(name):\n    partial(warp, name)()\n",
        "Tile(name)\n\n\nclass Tile:\n    @task(timeout_seconds=600)\n    def __init__(self, name):\n        warp(name)\n",
    ],
    ids=["thread", "partial", "constructor"],
)
def test_ways_to_call(root: Path, call: str) -> None:
    head = "import asyncio\nfrom functools import partial\nfrom prefect import task\nfrom tiles.warp import warp\n\n\n"
    plant("tiles/flow.py", f"{head}def start(name):\n    {call}")
    assert found(check()) == INVERTED


def test_what_a_constructor_of_another_file_runs_counts(root: Path) -> None:
    plant("tiles/steps.py", "from tiles.warp import warp\n\n\nclass Build:\n    def __init__(self, name):\n        warp(name)\n")
    plant("tiles/flow.py", FLOW.replace("build", "Build"))
    assert found(check()) == INVERTED


def test_a_fix_is_made_under_what_callers_have(root: Path) -> None:
    fixing = {"fix": frozenset({Safety.UNSAFE, Safety.SAFE}), "write": True, "overrides": Overrides(select=("DL103", "DL401"), level=Level.DEFAULT)}
    plant("tiles/warp.py", WARP.replace(", timeout=900", "").replace("gdalwarp", "tool"))
    alone = check("tiles/warp.py", overrides=Overrides(select=("DL103",)))
    assert found(alone) == ["tiles/warp.py:5 DL103"], "default level only under a limit"
    result = check(**fixing)
    assert [one.code for one in result.fixed] == ["DL103"]
    assert found(check(**{**fixing, "fix": frozenset(), "write": False})) == found(result)


def test_a_limit_that_is_passed_from_file_to_file_is_the_one_that_counts(root: Path) -> None:
    plant("tiles/flow.py", FLOW.replace("build(name)", "build(name, 900)"))
    plant("tiles/steps.py", "from tiles.warp import warp\n\n\ndef build(name, seconds):\n    warp(name, limit=seconds)\n")
    plant("tiles/warp.py", "import subprocess\n\n\ndef warp(name, limit):\n    subprocess.run([name], timeout=limit)\n")
    result = check()
    assert found(result) == INVERTED
    assert "900 s" in result.findings[0].message
    plant("tiles/flow.py", FLOW.replace("build(name)", "build(name, 300)"))
    assert found(check()) == []


def test_the_default_of_a_setting_in_another_file_is_called_one(root: Path) -> None:
    plant("tiles/settings.py", 'import os\n\nLIMIT_S = int(os.environ.get("WARP_LIMIT_S", "900"))\n')
    plant("tiles/warp.py", WARP.replace("def", "from tiles.settings import LIMIT_S\n\n\ndef").replace("900", "LIMIT_S"))
    result = check()
    (finding,) = result.findings
    assert "default 900 s (of `WARP_LIMIT_S`)" in finding.message


def test_a_task_of_another_file_is_compared_with_the_flow_that_calls_it(root: Path) -> None:
    plant("tiles/flow.py", FLOW.replace("import task", "import flow").replace("@task", "@flow"))
    plant("tiles/steps.py", "from prefect import task\n\n\n@task(timeout_seconds=1200)\ndef build(name):\n    pass\n")
    assert found(check()) == ["tiles/flow.py:8 DL401"]


def test_a_budget_is_passed_on_to_a_function_of_another_file(root: Path) -> None:
    plant("tiles/warp.py", "def warp(name, budget=None):\n    print(name, budget)\n")
    plant(
        "tiles/steps.py",
        "from deadlint_budget import Budget\n\nfrom tiles.warp import warp\n\n\n"
        "def build(name, budget: Budget):\n    warp(name)\n",
    )
    result = check(overrides=Overrides(select=("DL405",)))
    assert found(result) == ["tiles/steps.py:7 DL405"]
    check(overrides=Overrides(select=("DL405",)), fix=frozenset({Safety.UNSAFE}), write=True)
    assert "warp(name, budget=budget)" in Path("tiles/steps.py").read_text(encoding="utf-8")
