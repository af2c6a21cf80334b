"""What is found in a file is the same whether all of it is parsed or only the functions that matter."""

from __future__ import annotations

import dataclasses
import sysconfig
from pathlib import Path

import pytest
from deadlint.check import check_source
from deadlint.index import outline
from deadlint.index.module import Module
from deadlint.model import Finding
from deadlint.project import Project
from deadlint.rule import all_rules
from deadlint.screen import Screen
from deadlint.settings import Settings
from deadlint.source import SourceFile, UnreadableSource

CASES = Path(__file__).parents[3] / "fixtures" / "cases"
FILLER = "\n".join(f"def unrelated_{number}(value):\n    return value + {number}\n" for number in range(200))


def found(source: SourceFile, *, whole: bool) -> list[Finding]:
    settings = Settings()
    findings = check_source(
        source, settings, all_rules(), with_fixes=False, project=Project(settings), whole=whole
    )  # fmt: skip
    return [dataclasses.replace(one, fix=None) for one in findings]


@pytest.mark.parametrize("rule", sorted(path.name for path in CASES.iterdir() if path.is_dir()))
def test_the_cases_of_a_rule_are_found_in_parts(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outline, "_WORTH_IT", 0)  # or these small files are parsed whole
    for path in sorted((CASES / rule).rglob("*.py")):
        source = SourceFile.decode(str(path), path.read_bytes())
        assert found(source, whole=False) == found(source, whole=True), path


def test_real_modules_are_found_in_parts() -> None:
    """Of the standard library those that hold words of rules."""
    screen = Screen(all_rules())
    checked = 0
    for path in sorted(Path(sysconfig.get_paths()["stdlib"]).glob("*.py")):
        data = path.read_bytes()
        if not screen.wants(data):
            continue
        try:
            source = SourceFile.decode(str(path), data)
        except UnreadableSource:
            continue
        assert found(source, whole=False) == found(source, whole=True), path
        checked += 1
    assert checked > 20


def functions_parsed(text: str) -> set[str]:
    module = Module(SourceFile("a.py", text), Settings(), whole=False)
    from deadlint.interest import interest_of  # noqa: PLC0415 - loads the rules

    module.sites_of(interest_of(all_rules()).wanted(text))
    return {scope.name for scope in module.walker.filled if scope.kind == "function"}


def test_a_function_without_a_wanted_name_is_not_parsed() -> None:
    parsed = functions_parsed(FILLER + "\nimport requests\n\n\ndef fetch(url):\n    return requests.get(url)\n")
    assert parsed == {"fetch"}


def test_a_function_that_calls_another_name_of_a_wanted_one_is_parsed() -> None:
    text = "import requests\n\nload = requests.get\n\n\ndef fetch(url):\n    return load(url)\n"
    assert functions_parsed(FILLER + "\n" + text) == {"fetch"}


def test_a_global_that_a_function_sets_is_known_elsewhere() -> None:
    text = (
        "import requests\n\nclient = None\n\n\ndef start():\n    global client\n    client = requests.Session()\n\n\n"
        "def fetch(url):\n    return client.get(url)\n"
    )
    source = SourceFile("a.py", FILLER + "\n" + text)
    assert [one.code for one in found(source, whole=False)] == ["DL201"]


def test_a_body_that_is_no_python_is_told_when_it_is_looked_at() -> None:
    source = SourceFile("a.py", FILLER + "\nimport requests\n\n\ndef fetch(url):\n    return requests.get(url url)\n")
    assert [one.code for one in found(source, whole=False)] == ["DL001"]
