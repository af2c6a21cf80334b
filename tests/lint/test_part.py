"""Checking the function that is typed in alone gives what a check of the whole gives, unless others feel the change."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from deadlint.judge import Judge
from deadlint.outcome import Order, Outcome, Target
from deadlint.part import Before
from deadlint.rule import all_rules
from deadlint.settings import Settings
from deadlint.source import SourceFile

PIPELINES = Path(__file__).parents[2] / "fixtures" / "pipelines"
FILES = sorted(path for path in PIPELINES.rglob("*.py") if path.stat().st_size)


class Editor:
    """A file that is edited, and what is found in it."""

    def __init__(self, path: Path, text: str) -> None:
        self._judge = Judge(all_rules(), Order())
        self._target = Target(str(path.parent), str(path), path.name, Settings(root=str(PIPELINES)), named=True)
        self._path = str(path)
        self.text = text
        self.before = Before(text, self.whole(text).findings)

    def whole(self, text: str) -> Outcome:
        return self._judge.judge_text(self._target, SourceFile(self._path, text), with_fixes=False)

    def part(self, text: str) -> Outcome:
        source = SourceFile(self._path, text)
        return self._judge.judge_text(self._target, source, with_fixes=False, before=self.before)


def with_line(text: str, line: int, new: str) -> str:
    """The text with a line before the one of that number, counted from 1."""
    lines = text.split("\n")
    return "\n".join([*lines[: line - 1], new, *lines[line - 1 :]])


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_a_line_in_any_function_changes_nothing_but_places(path: Path) -> None:
    editor = Editor(path, path.read_text(encoding="utf-8"))
    for node in ast.walk(ast.parse(editor.text)):
        if isinstance(node, ast.FunctionDef) and len(node.body) > 1:
            second = node.body[1]
            text = with_line(editor.text, second.lineno, f"{' ' * second.col_offset}typed = 1")
            part = editor.part(text)
            assert part.partial
            assert part.findings == editor.whole(text).findings


TEXT = """\
import requests


def fetch(url):
    first = 1
    return requests.get(url)


def send(url):
    first = 1
    return requests.put(url)
"""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("    return requests.get(url)\n", ""),
        ("    first = 1\n    return requests.get(url)", "    return requests.get(url, timeout=(1, 1), stream=False)"),
        ("    first = 1\n    return requests.get", "    first = 1\n    second = 2\n\n    return requests.get"),
        ("requests.get(url)", "requests.get(url)  # deadlint: ignore[DL201] fine"),
        ("requests.get(url)", '(\n        """\n\n        """,\n        requests.get(url),\n    )'),
    ],
)
def test_the_body_of_one_function_is_looked_at_alone(tmp_path: Path, old: str, new: str) -> None:
    editor = Editor(tmp_path / "fetch.py", TEXT)
    text = TEXT.replace(old, new, 1)
    part = editor.part(text)
    assert part.partial
    assert part.findings == editor.whole(text).findings


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("import requests\n", "import requests  # once\n"),
        ("def fetch(url):", "def fetch(url, timeout=9):"),
        ("def send(url):", "@task\ndef send(url):"),
        ("    return requests.get(url)\n\n\ndef send(url):\n", ""),
        ("\n\ndef send", "\n\nLIMIT = 9\n\n\ndef send"),
        ("first = 1\n    return requests.get(url)\n\n\ndef send(url):\n    first = 1", "first = 2"),
    ],
)
def test_a_change_that_others_may_feel_is_looked_at_as_a_whole(tmp_path: Path, old: str, new: str) -> None:
    editor = Editor(tmp_path / "fetch.py", TEXT)
    text = TEXT.replace(old, new, 1)
    assert text != TEXT
    part = editor.part(text)
    assert part.partial is False or part.findings == editor.whole(text).findings


def test_a_file_that_does_not_parse_says_only_that(tmp_path: Path) -> None:
    editor = Editor(tmp_path / "fetch.py", TEXT)
    part = editor.part(TEXT.replace("requests.get(url)", "requests.get(url"))
    assert [finding.code for finding in part.findings] == ["DL001"]
    assert not part.partial
