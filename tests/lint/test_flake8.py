"""The plugin under the real flake8: codes, places, configuration, comments, other files, standard input."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(
    not [point for point in entry_points(group="flake8.extension") if point.value.startswith("deadlint.")],
    reason="flake8 does not know the plugin: install anew with `pip install -e '.[test]'`",
)
DL201 = "DL201 `requests.get` has no timeout: a server that stops answering holds it for ever"


@pytest.fixture(autouse=True)
def _project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path(".git").mkdir()


def plant(name: str, text: str) -> None:
    Path(name).parent.mkdir(parents=True, exist_ok=True)
    Path(name).write_text(text, encoding="utf-8")


def flake8(*arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "flake8", "--isolated", *arguments],
        input=stdin, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip


def found(*arguments: str, stdin: str = "") -> list[str]:
    done = flake8("--select=DL", *arguments, stdin=stdin)
    assert done.stderr == ""
    return done.stdout.splitlines()


def test_findings_are_among_those_of_flake8_without_being_asked_for() -> None:
    plant("a.py", "import os\nimport requests\n\né = requests.get('é')\n")
    lines = flake8().stdout.splitlines()
    assert [line.split(" ")[:2] for line in lines] == [["./a.py:1:1:", "F401"], ["./a.py:4:5:", "DL201"]]
    assert lines[1] == f"./a.py:4:5: {DL201}"
    assert "deadlint: " in flake8("--version").stdout


def test_comments_of_both_tools_count() -> None:
    plant(
        "a.py",
        "import requests\n\nrequests.get('a')  # noqa: DL201\nrequests.get('b')  # noqa\n"
        "requests.get(\n    'c',\n)  # noqa: DL201\n"
        "requests.get('d')  # deadlint: ignore[DL201] a demo\n"
        "x = 1  # noqa: DL201\n",
    )
    assert found() == ["./a.py:9:8: DL002 `# noqa: DL201` suppresses nothing"]
    assert [line.split(":")[1] for line in found("--disable-noqa")] == ["3", "4", "5", "9"]
    plant("a.py", "# flake8: noqa\nimport requests\nrequests.get('a')\n")
    assert found() == []


def test_the_configuration_of_deadlint_holds() -> None:
    plant("pyproject.toml", '[tool.deadlint]\nignore = ["DL201"]\nexclude = ["gen/"]\n')
    plant("a.py", "import requests\nrequests.get('a')\nrequests.get('a', timeout=3)\n")
    plant("gen/b.py", "import requests\nrequests.get('a', timeout=3)\n")
    assert [line.split(" ")[:2] for line in found()] == [["./a.py:3:1:", "DL202"]]


def test_a_wrong_configuration_is_said_without_a_traceback() -> None:
    plant("deadlint.toml", "leve = 3\n")
    plant("a.py", "")
    done = flake8()
    assert done.returncode == 1
    assert "deadlint: deadlint.toml: leve is no key that deadlint knows; did you mean 'level'?" in done.stdout
    assert "Traceback" not in done.stdout + done.stderr


def test_the_project_around_a_file_is_looked_at() -> None:
    """The limit is in a file that flake8 is not asked for."""
    plant(
        "flow.py",
        "from prefect import task\nfrom work import warp\n\n\n@task(timeout_seconds=5)\ndef f():\n    warp()\n",
    )
    plant("work.py", "import subprocess\n\n\ndef warp():\n    subprocess.run(['gdalwarp'], check=True, timeout=900)\n")
    assert [line.split(" ")[1] for line in found("work.py")] == ["DL101", "DL401"]


def test_several_processes_find_the_same() -> None:
    for number in range(6):
        plant(f"m{number}.py", "import requests\nrequests.get('a')\n")
    alone, together = found("--jobs=1"), found("--jobs=3")
    assert len(alone) == 6
    assert sorted(alone) == sorted(together)


def test_standard_input_is_read_as_the_file_that_it_is_said_to_be() -> None:
    plant("gen/pyproject.toml", '[tool.deadlint]\nignore = ["DL201"]\n')
    text = "import requests\nrequests.get('a')\n"
    assert found("-", stdin=text) == [f"stdin:2:1: {DL201}"]
    assert found("--stdin-display-name=b.py", "-", stdin=text) == [f"b.py:2:1: {DL201}"]
    assert found("--stdin-display-name=gen/b.py", "-", stdin=text) == []


def test_what_python_cannot_parse_is_left_to_flake8() -> None:
    plant("a.py", "def f(:\n")
    assert found() == []
    assert "E999" in flake8().stdout
