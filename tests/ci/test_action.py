"""The GitHub action: its steps, run as a runner runs them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.ci.conftest import BIN, ROOT, Runner
from tests.hooks.test_pre_commit import UNREACHABLE

yaml = pytest.importorskip("yaml", reason="no PyYAML: pip install pre-commit")
ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
_INPUT = re.compile(r"\$\{\{ inputs\.([\w-]+) \}\}")


def act(runner: Runner, **inputs: str) -> tuple[list[subprocess.CompletedProcess[str]], dict[str, str]]:
    """Run the steps until one fails; how each ended, and the outputs of the action."""
    values = {name: str(said["default"]) for name, said in ACTION["inputs"].items()}
    given = {name.replace("_", "-"): value for name, value in inputs.items()}
    assert set(given) <= set(values)
    values |= given
    output = runner.temporary / "output"
    output.touch()
    around = {"RUNNER_TEMP": str(runner.temporary), "GITHUB_OUTPUT": str(output), "GITHUB_ACTION_PATH": str(ROOT)}
    done = []
    for step in ACTION["runs"]["steps"]:
        assert "${{" not in step["run"], "an input in a script is a script of whoever gives it"
        said = {name: _INPUT.sub(lambda found: values[found[1]], text) for name, text in step["env"].items()}
        directory = _INPUT.sub(lambda found: values[found[1]], step.get("working-directory", "."))
        done.append(runner(step["run"], directory=directory, **around, **said))
        if done[-1].returncode:
            break
    return done, dict(line.split("=", 1) for line in output.read_text().splitlines())


def test_findings_are_annotations_and_fail_the_job(runner: Runner) -> None:
    (installed, checked), outputs = act(runner)
    assert installed.returncode == 0
    assert checked.returncode == 1
    assert checked.stdout.startswith(
        "::error title=DL201 request-without-timeout,file=services/tiler/fetch.py,line=5,endLine=5,col=12,"
    )
    assert outputs == {}


def test_it_installs_itself_or_the_version_that_is_wanted(runner: Runner) -> None:
    act(runner)
    act(runner, version="0.1.0")
    assert [line.split()[-1] for line in runner.installed] == [str(ROOT), "deadlint==0.1.0"]


def test_sarif_is_written_where_the_next_step_finds_it(runner: Runner) -> None:
    _, outputs = act(runner, sarif_file="out/scan.sarif", working_directory="services/tiler")
    path = Path(outputs["sarif-file"])
    assert path == runner.checkout / "services" / "tiler" / "out" / "scan.sarif"
    (run,) = json.loads(path.read_text())["runs"]
    (result,) = run["results"]
    # GitHub knows paths from the root of the checkout.
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "services/tiler/fetch.py"


def test_paths_and_options_are_lists(runner: Runner) -> None:
    (runner.checkout / "sound.py").write_text("")
    (_, checked), _ = act(runner, paths="sound.py\n  services\n", options="--select DL3\n--level=strict")
    assert (checked.returncode, checked.stdout) == (0, "No findings in 2 files.\n")


@pytest.mark.parametrize("hostile", ["$(touch owned)", "`touch owned`", "; touch owned", "--help", '"; touch owned; "'])
def test_what_a_workflow_gives_is_no_script(runner: Runner, hostile: str) -> None:
    (*_, checked), _ = act(runner, paths=hostile)
    assert checked.returncode == 2
    assert "does not exist" in checked.stderr
    assert not list(runner.checkout.rglob("owned"))


def test_the_baseline_of_the_project_counts(runner: Runner) -> None:
    config = runner.checkout / "pyproject.toml"
    config.write_text('[tool.deadlint]\nbaseline = "known.txt"\n')
    subprocess.run([BIN / "deadlint", "baseline", "create", "-q"], cwd=runner.checkout, check=True)
    (_, checked), _ = act(runner)
    assert (checked.returncode, checked.stdout) == (0, "No findings in 1 file, 1 in the baseline.\n")


def test_the_real_installation(runner: Runner) -> None:
    environment = {**os.environ, **runner.environment, "PATH": os.environ["PATH"]}
    real = Runner(runner.checkout, runner.temporary, runner.log, environment)
    (installed, *rest), _ = act(real, python=sys.executable)
    if installed.returncode and any(words in installed.stderr for words in UNREACHABLE):
        pytest.skip("pip reaches no package index for what deadlint depends on")
    assert installed.returncode == 0, installed.stderr
    assert "DL201" in rest[0].stdout
