"""`docs/output.md` shows what is printed."""

from __future__ import annotations

import re
from pathlib import Path

from deadlint.model import Finding
from deadlint.report import FORMATS, Options

from tests.lint.report.made_by_hand import FLOWS, TILES, result_of, shown

PAGE = (Path(__file__).parents[3] / "docs" / "output.md").read_text(encoding="utf-8")


def example(heading: str) -> str:
    found = re.search(rf"^## {heading}\n\n```text\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert found
    return found[1]


def test_the_examples_are_what_is_printed(inverted: Finding) -> None:
    result = result_of({"tiles.py": TILES, "flows.py": FLOWS}, inverted)
    quiet = Options(quiet=True)
    assert example("text") == shown(result, "text", quiet)
    assert example("concise") == shown(result, "concise", quiet)


def test_every_format_is_in_the_table() -> None:
    assert tuple(re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE)) == FORMATS
