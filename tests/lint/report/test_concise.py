"""The concise report: one line a finding, whatever is in it, without the weight of the others."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from deadlint.errors import UserError
from deadlint.model import Finding
from deadlint.report import FORMATS, Options, printer
from deadlint.result import RunResult

from tests.lint.report.made_by_hand import FLOWS, finding, locate, result_of, shown

LINE = re.compile(r".+:\d+:\d+: DL\d{3} .+")


def test_one_line_a_finding_and_a_closing_one(result: RunResult) -> None:
    assert shown(result, "concise").splitlines() == [
        "flows.py:5:14: DL201 `requests.get` has no timeout, so a silent server holds it for ever.",
        "tiles.py:8:14: DL401 `gdalwarp` may run 900 s inside task `build_tile`, which ends at 600 s.",
        "Found 2 findings in 2 files, 1 fixable with --fix, 1 more with --unsafe-fixes.",
    ]


@pytest.mark.parametrize("path", ["a\nb.py", "a\r\nb.py", "a\u2028b.py", "a\x85b.py", "a\x0bb.py", "{x}.py", "a b.py"])
def test_one_line_whatever_the_path_holds(path: str) -> None:
    made = finding(path, locate(FLOWS, "get"), message="first\nsecond")
    lines = shown(result_of({path: FLOWS}, made), "concise", Options(quiet=True)).splitlines()
    assert len(lines) == 1
    assert LINE.fullmatch(lines[0])


def test_columns_count_characters_from_1(untimed: Finding) -> None:
    source = "日本 = get(u)\n"
    made = finding("a.py", locate(source, "get"))
    assert shown(result_of({"a.py": source}, made), "concise").startswith("a.py:1:6: ")


@pytest.mark.parametrize("format_name", [name for name in FORMATS if name != "text"])
def test_rich_is_not_loaded_for_machines(format_name: str) -> None:
    code = (
        "import sys; from deadlint.report import printer; from deadlint.result import RunResult;"
        f"printer({format_name!r})(RunResult(), sys.stdout); sys.exit('rich' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, timeout=60)


def test_an_unknown_format_is_refused() -> None:
    with pytest.raises(UserError, match="no output format 'xml'; one of text, concise, json"):
        printer("xml")
