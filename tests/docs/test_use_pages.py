"""What the pages on notebooks, flake8 and packages of rules show is what happens."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest
import tomli
from deadlint import rule, site, testing

DOCS = Path(__file__).parents[2] / "docs"
EXAMPLE = DOCS.parent / "fixtures" / "plugin"


def page(name: str) -> str:
    return (DOCS / f"{name}.md").read_text(encoding="utf-8")


def blocks(name: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", page(name), re.MULTILINE | re.DOTALL)


def run(*command: str) -> str:
    return subprocess.run(
        [sys.executable, "-m", *command], capture_output=True, text=True, check=False, timeout=120
    ).stdout


def test_the_finding_on_the_page_on_notebooks_is_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    cells = [
        {"cell_type": "markdown", "source": ["# Harvest"]},
        {"cell_type": "code", "source": ["import requests"]},
        {"cell_type": "code", "source": ["%matplotlib inline\n", "answer = requests.get('u')"]},
    ]
    Path("harvest.ipynb").write_text(json.dumps({"cells": cells, "metadata": {}}), encoding="utf-8")
    (shown,) = blocks("notebooks", "text")
    assert run("deadlint", "check", "--output-format=concise", "--quiet") == shown


@pytest.mark.skipif(
    not any(point.name == "DL" for point in entry_points(group="flake8.extension")),
    reason="flake8 does not know the plugin: install anew with `pip install -e '.[test]'`",
)
def test_the_command_on_the_page_on_flake8_prints_what_it_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("pipelines").mkdir()
    text = "import requests\n" + "\n" * 11 + "def f():\n" + "    u = requests.get('u')\n"
    Path("pipelines/harvest.py").write_text(text, encoding="utf-8")
    (shown,) = blocks("flake8", "console")
    command, expected = shown.split("\n", 1)
    assert run(*command.removeprefix("$ ").split()) == expected


def test_the_page_on_rules_shows_the_example_package(tmp_path: Path) -> None:
    (shown,) = (tomli.loads(text)["project"] for text in blocks("plugins", "toml"))
    project = tomli.loads((EXAMPLE / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project | shown == project
    package, case, tests = blocks("plugins", "python")
    assert package.split("\n", 1)[1].strip() in (EXAMPLE / "src/deadlint_acme/__init__.py").read_text(encoding="utf-8")
    path = tmp_path / "case.py"
    path.write_text(case, encoding="utf-8")
    assert testing.Case.read(path).marks
    compile(tests, "plugins.md", "exec")
    assert all(hasattr(testing, name) for name in re.findall(r"import (.*)", tests)[0].split(", "))


def test_what_the_page_says_a_site_can_be_asked_is_there() -> None:
    asked = set(re.findall(r"`site\.(\w+)", page("plugins")))
    assert len(asked) > 6
    assert not [name for name in asked if name not in {*dir(site.Site), *site.Site.__dataclass_fields__}]
    told = set(re.findall(r"^\| `(\w+)(?:\([a-z]+\))?`", page("plugins"), re.MULTILINE)) - {"site"}
    known = {*dir(rule.Rule), *rule.Rule.__annotations__}
    assert told
    assert not told - known
