"""Rules of other packages: the example package as installed, its own tests, the skeleton of a rule, what goes wrong.

And what never happens: that code of the repository that is checked runs.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import tomli

EXAMPLE = Path(__file__).parents[2] / "fixtures" / "plugin"
FARM = "from acme_farm import Farm\n\nfarm = Farm('north')\nfarm.submit('render')\n"


def install(package: Path, site: Path) -> None:
    """Make what a `pip install -e` of a package leaves: its metadata, and a path to its sources."""
    project = tomli.loads((package / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    info = site / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    info.mkdir(parents=True)
    info.joinpath("METADATA").write_text(f"Name: {project['name']}\nVersion: {project['version']}\n", encoding="utf-8")
    points = project["entry-points"]["deadlint.rules"]
    lines = ["[deadlint.rules]", *(f"{name} = {value}" for name, value in points.items())]
    info.joinpath("entry_points.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the example package, installed, with an empty project as working directory."""
    copy = tmp_path / "package"
    shutil.copytree(EXAMPLE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    install(copy, tmp_path / "site")
    search = (tmp_path / "site", copy / "src", os.environ.get("PYTHONPATH", ""))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(map(str, search)))
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    return copy


def run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *command], capture_output=True, text=True, check=False, timeout=120)


def deadlint(*arguments: str) -> subprocess.CompletedProcess[str]:
    return run("-m", "deadlint", *arguments)


def own_tests(package: Path) -> subprocess.CompletedProcess[str]:
    return run("-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", os.devnull, f"--rootdir={package}", str(package))


def test_a_rule_of_another_package_is_like_any_other(package: Path) -> None:
    Path("a.py").write_text(FARM, encoding="utf-8")
    found = deadlint("check", "--output-format=concise", "--quiet")
    assert found.stdout == "a.py:4:1: ACM101 nothing bounds this job: the farm keeps it until it ends by itself\n"
    assert "ACM101  job-without-limit" in deadlint("rules").stdout
    assert "## Fix safety" in deadlint("rule", "job-without-limit").stdout
    Path("deadlint.toml").write_text('ignore = ["ACM"]\n', encoding="utf-8")
    assert deadlint("check").returncode == 0
    Path("deadlint.toml").unlink()
    assert deadlint("check", "--unsafe-fixes").returncode == 0
    assert "farm.submit('render', limit=JOB_LIMIT_S)" in Path("a.py").read_text(encoding="utf-8")


def test_the_example_passes_its_own_tests(package: Path) -> None:
    done = own_tests(package)
    assert done.returncode == 0, done.stdout
    assert "3 passed" in done.stdout


def test_its_tests_notice_a_false_alarm_a_missed_one_and_an_example_that_is_none(package: Path) -> None:
    case = package / "tests/cases/ACM101/submits.py"
    text = case.read_text(encoding="utf-8")
    case.write_text(text + 'farm.submit("b")\n' + 'farm.submit("c", limit=1)  # error: ACM101\n', encoding="utf-8")
    rule = package / "src/deadlint_acme/job_without_limit.py"
    rule.write_text(rule.read_text(encoding="utf-8").replace("tile=7, limit=3600", "tile=7"), encoding="utf-8")
    said = own_tests(package).stdout
    assert "ACM101 is a false alarm" in said
    assert "ACM101 is missed" in said
    assert "what to use instead is found too" in said


def test_what_new_rule_writes_passes_as_it_is(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(package / "tests")
    made = deadlint("new-rule", "ACM102", "queue-without-limit")
    assert (
        made.stdout == "Wrote ../src/deadlint_acme/queue_without_limit.py\nWrote cases/ACM102/queue_without_limit.py\n"
    )
    assert "5 passed" in own_tests(package).stdout
    assert "ACM102  queue-without-limit" in deadlint("rules").stdout
    again = deadlint("new-rule", "ACM102", "queue-without-limits")
    assert (again.returncode, again.stderr.split("; ")[0]) == (
        2, "error: there is a rule ACM102 queue-without-limit already",
    )  # fmt: skip


def test_new_rule_writes_over_nothing_and_takes_no_odd_names(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(package)
    there = Path("tests/cases/ACM102/a_b.py")
    there.parent.mkdir()
    there.touch()
    for arguments, said in (
        (("ACM102", "a-b"), "is there already"),
        (("acm102", "a-b"), "'acm102' is no code"),
        (("ACM102", "../a"), "'../a' is no name"),
        (("DL101", "a-b"), "there is a rule DL101 subprocess-timeout-leaves-tree already"),
        (("ACM102", "b", "--package", "tests"), "is no package"),
    ):
        done = deadlint("new-rule", *arguments)
        assert done.returncode == 2
        assert said in done.stderr, done.stderr
    assert not Path("src/deadlint_acme/a_b.py").exists()
    assert there.read_bytes() == b""


def test_new_rule_needs_a_package_of_rules(package: Path) -> None:
    done = deadlint("new-rule", "ACM102", "a-b")
    assert done.returncode == 2
    assert 'names no package of rules under [project.entry-points."deadlint.rules"]' in done.stderr


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("import nowhere", "ModuleNotFoundError: No module named 'nowhere'"),
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("", "AttributeError: module 'deadlint_acme' has no attribute 'RULES'"),
        ("RULES = [3]", "3 in deadlint_acme.RULES is no rule"),
    ],
)
def test_a_package_that_is_broken_is_named(package: Path, text: str, said: str) -> None:
    (package / "src/deadlint_acme/__init__.py").write_text(text, encoding="utf-8")
    Path("a.py").touch()
    done = deadlint("check")
    assert done.returncode == 2
    assert done.stderr.startswith("error: ")
    assert "deadlint-acme 1.0.0" in done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr


# --- what is checked is never run ----------------------------------------------------------------------------

SHADOWS = (
    "ast", "click", "dataclasses", "deadlint_budget", "deadlint_rules", "json", "libcst", "pathspec", "rich",
    "tomli", "tokenize", "ahocorasick_rs", "sitecustomize", "usercustomize", "conftest", "setup", "evil",
)  # fmt: skip
PYPROJECT = """\
[build-system]
requires = ["evil"]
build-backend = "evil"
backend-path = ["."]

[project.entry-points."deadlint.rules"]
evil = "evil"

[tool.deadlint]
exclude = ["$(touch ran)", "`touch ran`"]
long-running = ["$(touch ran)"]
helpers = "evil.helpers"

[tool.deadlint.wrappers]
requests = ["evil.get"]
"""


@pytest.fixture
def hostile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository that would leave a mark wherever any of its code ran; the mark."""
    mark = tmp_path / "ran"
    root = tmp_path / "hostile"
    (root / "evil-1.0.dist-info").mkdir(parents=True)
    (root / "evil.egg-info").mkdir()
    for info in ("evil-1.0.dist-info", "evil.egg-info"):
        (root / info / "entry_points.txt").write_text("[deadlint.rules]\nevil = evil\n", encoding="utf-8")
        (root / info / "METADATA").write_text("Name: evil\nVersion: 1.0\n", encoding="utf-8")
    harm = f"open({str(mark)!r}, 'a').write(__name__)\nRULES = ()\n"
    for name in SHADOWS:
        (root / f"{name}.py").write_text(harm, encoding="utf-8")
    (root / "deadlint").mkdir()
    (root / "deadlint_plugins").mkdir()
    for name in ("deadlint/__init__.py", "deadlint/cli.py", "deadlint_plugins/__init__.py"):
        (root / name).write_text(harm, encoding="utf-8")
    (root / "pyproject.toml").write_text(PYPROJECT, encoding="utf-8")
    (root / "a.py").write_text(
        "import evil\nimport requests\nfrom evil import get\n\nrequests.get('u')\nget('u')\nevil.get(timeout=2)\n",
        encoding="utf-8",
    )
    monkeypatch.chdir(root)
    return mark


COMMANDS = (
    ("check", "--level=strict"),
    ("check", "--unsafe-fixes", "--output-format=sarif"),
    ("rules",),
    ("rule", "DL201"),
    ("--version",),
)


@pytest.mark.parametrize("way", ["script", "module"])
def test_code_of_the_repository_is_never_run(hostile: Path, way: str) -> None:
    script = Path(sys.executable).with_name("deadlint")
    start = [str(script)] if way == "script" else [sys.executable, "-m", "deadlint"]
    if way == "module":
        # Python itself looks for the package there, before any of ours runs; `python -P -m deadlint` does not.
        shutil.rmtree("deadlint")
    elif not script.exists():
        pytest.skip("the command `deadlint` is not installed beside this Python")
    for command in COMMANDS:
        done = subprocess.run([*start, *command], capture_output=True, text=True, check=False, timeout=120)
        assert done.returncode in (0, 1), done.stderr
        assert not hostile.exists(), f"{command} ran {hostile.read_text(encoding='utf-8')}"
    assert "evil.helpers" in Path("a.py").read_text(encoding="utf-8"), "the fixes were made all the same"


def test_a_program_that_the_configuration_of_git_names_is_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`migrate --write` asks git for changes, and git would start a monitor that the repository's `.git/config` names."""
    mark = tmp_path / "ran"
    (tmp_path / "repository").mkdir()
    monkeypatch.chdir(tmp_path / "repository")
    Path("flow.py").write_text("import requests\n\n\ndef build(u):\n    return requests.get(u, timeout=3)\n")
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b"]
    for command in (["init", "-q"], ["add", "flow.py"], ["commit", "-qm", "x"]):
        subprocess.run([*git, *command], check=True, timeout=60)
    subprocess.run(["git", "config", "core.fsmonitor", f"touch {mark}; false"], check=True, timeout=60)
    done = deadlint("migrate", "--entry=flow:build", "--deadline=60", "--write")
    assert "Budget" in Path("flow.py").read_text(encoding="utf-8"), done.stderr
    assert not mark.exists()


@pytest.mark.parametrize(
    "line",
    [
        "plugins = ['evil']",
        "helpers = 'evil; import os'",
        "helpers = \"__import__('evil')\"",
        "constants.http.name = \"X = __import__('evil')\"",
        "constants.http.value = \"__import__('evil')\"",
        "wrappers.requests = [\"__import__('evil').get\"]",
        "select = [\"__import__('evil')\"]",
    ],
)
def test_configuration_that_would_be_code_is_refused(hostile: Path, line: str) -> None:
    Path("deadlint.toml").write_text(line + "\n", encoding="utf-8")
    done = deadlint_without_shadow("check", "--unsafe-fixes")
    assert done.returncode == 2
    assert "deadlint.toml: " in done.stderr
    assert not hostile.exists()


def deadlint_without_shadow(*arguments: str) -> subprocess.CompletedProcess[str]:
    return run("-P", "-m", "deadlint", *arguments)
