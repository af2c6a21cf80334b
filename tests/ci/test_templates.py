"""What `docs/ci` offers to copy keeps to the services' schemas, and its shell steps do what they are for."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.ci.conftest import ROOT, Runner

pytest.importorskip("check_jsonschema", reason="no check-jsonschema, which carries the schemas: pip install '.[test]'")
yaml = pytest.importorskip("yaml", reason="no PyYAML: pip install pre-commit")
HERE = ROOT / "docs" / "ci"
PAGE = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")


def is_valid(path: Path, *options: str) -> bool:
    command = [sys.executable, "-m", "check_jsonschema", *options, str(path)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    return done.returncode == 0


@pytest.mark.parametrize(
    ("path", "options"),
    [
        (ROOT / "action.yml", ["--builtin-schema=vendor.github-actions"]),
        (HERE / "github.yml", ["--builtin-schema=vendor.github-workflows"]),
        (HERE / "gitlab-ci.yml", ["--builtin-schema=vendor.gitlab-ci", "--data-transform=gitlab-ci"]),
        (
            HERE / "azure-pipelines.yml",
            # Its patterns are not all ECMAScript.
            ["--builtin-schema=vendor.azure-pipelines", "--data-transform=azure-pipelines", "--regex-variant=python"],
        ),
    ],
    ids=["action", "GitHub", "GitLab", "Azure"],
)
def test_it_keeps_to_the_schema(path: Path, options: list[str], tmp_path: Path) -> None:
    assert is_valid(path, *options)
    broken = tmp_path / path.name
    broken.write_text(re.sub(r"(?m)^(runs|jobs|  script):", r"\1_:", path.read_text(encoding="utf-8")))
    assert not is_valid(broken, *options), "the schema would take anything"


def test_the_workflow_gives_the_action_what_it_takes() -> None:
    action = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
    job = yaml.safe_load((HERE / "github.yml").read_text(encoding="utf-8"))["jobs"]["deadlint"]
    (step,) = (step for step in job["steps"] if "deadlint@" in step["uses"])
    assert set(step["with"]) <= set(action["inputs"])
    used = re.findall(r"steps\.deadlint\.outputs\.([\w-]+)", (HERE / "github.yml").read_text(encoding="utf-8"))
    assert set(used) == {"sarif-file"} == set(action["outputs"])


def run_all(runner: Runner, scripts: Iterator[str], **environment: str) -> subprocess.CompletedProcess[str]:
    """Run steps until one fails; the last one that ran."""
    done = None
    for script in scripts:
        done = runner(script, **environment)
        if done.returncode:
            break
    assert done is not None
    return done


def test_gitlab(runner: Runner) -> None:
    job = yaml.safe_load((HERE / "gitlab-ci.yml").read_text(encoding="utf-8"))["deadlint"]
    script = "\n".join((*job["before_script"], *job["script"]))  # GitLab runs both in one shell
    done = run_all(runner, iter([script]), CI_BUILDS_DIR=str(runner.temporary), **job["variables"])
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.startswith("services/tiler/fetch.py:5:12: DL201")
    assert runner.installed[0].endswith(" deadlint")
    reports = job["artifacts"]["reports"]
    (entry,) = json.loads((runner.checkout / reports["codequality"]).read_text())
    assert entry["location"] == {"path": "services/tiler/fetch.py", "lines": {"begin": 5, "end": 5}}
    assert ElementTree.parse(runner.checkout / reports["junit"]).getroot().get("failures") == "1"


def test_azure(runner: Runner) -> None:
    pipeline = yaml.safe_load((HERE / "azure-pipelines.yml").read_text(encoding="utf-8"))
    (job,) = pipeline["jobs"]
    variables = {name.upper(): value for name, value in pipeline["variables"].items()}  # as the agent gives them
    scripts = (step["script"] for step in job["steps"] if "script" in step)
    done = run_all(runner, scripts, AGENT_TEMPDIRECTORY=str(runner.temporary), **variables)
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.startswith("##vso[task.logissue type=error;sourcepath=services/tiler/fetch.py;linenumber=5;")
    (results,) = (step["inputs"]["testResultsFiles"] for step in job["steps"] if step.get("task", "").startswith("Pub"))
    assert (runner.checkout / results).exists()


def shell_steps(jenkinsfile: str) -> Iterator[str]:
    """The scripts of `sh` steps, as Groovy reads them: in single quotes nothing but backslashes is special."""
    for found in re.finditer(r"(?m)^\s*sh ('''|')(.*?)\1$", jenkinsfile, re.DOTALL):
        assert "\\" not in found[2]
        yield textwrap.dedent(found[2])


def test_jenkins(runner: Runner) -> None:
    text = (HERE / "Jenkinsfile").read_text(encoding="utf-8")
    assert len(list(shell_steps(text))) == text.count("sh '") == 2
    assert text.count("{") == text.count("}")
    done = run_all(runner, shell_steps(text), WORKSPACE_TMP=str(runner.temporary), DEADLINT="deadlint==0.1.0")
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.startswith("services/tiler/fetch.py:5:12: DL201")
    assert runner.installed[0].endswith(" deadlint==0.1.0")
    (results,) = re.findall(r"junit testResults: '([^']+)'", text)
    assert ElementTree.parse(runner.checkout / results).getroot().get("failures") == "1"


def test_the_page_names_every_template() -> None:
    assert set(re.findall(r"\((ci/[\w.-]+)\)", PAGE)) == {f"ci/{path.name}" for path in HERE.iterdir()}


@pytest.mark.parametrize("block", re.findall(r"(?m)^```sh\n(.*?)^```$", PAGE, re.DOTALL))
def test_the_commands_of_the_page_run(runner: Runner, block: str) -> None:
    """Each ends as in a project with one finding, but for what other tools do with the output."""
    (runner.checkout / "pyproject.toml").write_text('[tool.deadlint]\nbaseline = "deadlint-baseline.txt"\n')
    (runner.checkout / "deadlint-baseline.txt").write_text("# deadlint baseline 1\n")
    reviewdog = runner.temporary / "reviewdog"
    reviewdog.write_text("#!/bin/sh\ncat\n")
    reviewdog.chmod(0o755)
    path = f"{runner.temporary}:{Path(sys.executable).parent}:{runner.environment['PATH']}"
    done = runner(block, PATH=path)
    assert done.returncode in (0, 1), done.stderr
    assert "DL201" in done.stdout
