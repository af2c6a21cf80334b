"""The formats of CI services: what each says of a finding, and that nothing in one can break out of it."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import jsonschema
import pytest
from deadlint.model import Edit, FileProblem, Finding, Fix, Import, Safety, Suppression
from deadlint.report import Options
from deadlint.result import RunResult

from tests.lint.report.made_by_hand import FLOWS, finding, locate, result_of, shown

QUIET = Options(quiet=True)
BROKEN = RunResult(problems=(FileProblem("gone.py", "no such file, or a broken link"),))
# What each format could take for its own: per cent escapes, ends of commands and properties, markup.
HOSTILE = "a%0A::error::x%,b:c;d]e\n##vso[task.complete result=Failed;]<&\"'>\x1b[31m]]>\ufffe"


def hostile() -> RunResult:
    """A finding whose every text is hostile."""
    return result_of({HOSTILE: FLOWS}, finding(HOSTILE, locate(FLOWS, "get"), message=HOSTILE, remedy=HOSTILE))


def test_github(result: RunResult) -> None:
    assert shown(result, "github", QUIET).splitlines() == [
        "::warning title=DL201 request-without-timeout,file=flows.py,line=5,endLine=5,col=14,endColumn=31::"
        "flows.py:5:14: DL201 `requests.get` has no timeout, so a silent server holds it for ever."
        " Pass `timeout=`.",
        "::error title=DL401 inverted-limits,file=tiles.py,line=8,endLine=12::"
        "tiles.py:8:14: DL401 `gdalwarp` may run 900 s inside task `build_tile`, which ends at 600 s."
        " Give the call less than the 600 s of its task.",
    ]


def test_github_tells_of_problems() -> None:
    assert shown(BROKEN, "github", QUIET) == "::error title=deadlint,file=gone.py::no such file, or a broken link\n"


def test_github_commands_cannot_be_forged() -> None:
    lines = shown(hostile(), "github", QUIET).splitlines()
    assert len(lines) == 1
    properties, _, data = lines[0].removeprefix("::error ").partition("::")
    assert [part.partition("=")[0] for part in properties.split(",")] == [
        "title", "file", "line", "endLine", "col", "endColumn",
    ]  # fmt: skip
    assert "%0A" not in data.replace("%25", "")


def test_azure(result: RunResult) -> None:
    assert shown(result, "azure").splitlines()[1] == (
        "##vso[task.logissue type=error;sourcepath=tiles.py;linenumber=8;columnnumber=14;code=DL401;]"
        "`gdalwarp` may run 900 s inside task `build_tile`, which ends at 600 s."
        " Give the call less than the 600 s of its task."
    )


def test_azure_commands_cannot_be_forged() -> None:
    (line,) = shown(hostile(), "azure").splitlines()
    found = re.fullmatch(r"##vso\[task\.logissue ((?:\w+=[^;\]]*;)+)\](.*)", line)
    assert found
    assert [part.partition("=")[0] for part in found[1].split(";")[:-1]] == [
        "type", "sourcepath", "linenumber", "columnnumber", "code",
    ]  # fmt: skip


def test_gitlab(result: RunResult) -> None:
    entries = json.loads(shown(result, "gitlab"))
    assert [entry["check_name"] for entry in entries] == [
        "DL201 request-without-timeout",
        "DL401 inverted-limits",
    ]
    assert [entry["severity"] for entry in entries] == ["minor", "major"]
    assert entries[1]["location"] == {"path": "tiles.py", "lines": {"begin": 8, "end": 12}}
    assert len({entry["fingerprint"] for entry in entries}) == 2


def test_gitlab_without_findings_is_an_empty_list() -> None:
    assert json.loads(shown(RunResult(), "gitlab")) == []


def test_a_suppressed_finding_is_no_annotation(untimed: Finding) -> None:
    hidden = result_of({"flows.py": FLOWS}, replace(untimed, suppressed=Suppression(5, "# noqa")))
    assert shown(hidden, "github", QUIET) == shown(hidden, "azure") == ""
    assert json.loads(shown(hidden, "gitlab")) == []
    assert json.loads(shown(hidden, "rdjson"))["diagnostics"] == []


@pytest.mark.parametrize("format_name", ["github", "azure", "gitlab", "rdjson"])
def test_paths_count_from_the_root_of_the_checkout(
    untimed: Finding, format_name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "services" / "tiler").mkdir(parents=True)
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path / "services" / "tiler")
    printed = shown(result_of({"flows.py": FLOWS}, untimed), format_name, QUIET)
    assert "services/tiler/flows.py" in printed
    absolute = str(tmp_path / "services" / "flows.py")
    assert f"{absolute}:" not in shown(result_of({absolute: FLOWS}, replace(untimed, path=absolute)), "gitlab")


def junit(result: RunResult) -> ElementTree.Element:
    return ElementTree.fromstring(shown(result, "junit"))


def test_junit(result: RunResult) -> None:
    root = junit(replace(result, seconds=1.5))
    assert root.attrib == {
        "name": "deadlint", "tests": "2", "failures": "2", "errors": "0", "skipped": "0", "time": "1.500",
    }  # fmt: skip
    case = root.findall("testsuite/testcase")[1]
    assert case.attrib == {
        "name": "DL401 inverted-limits (line 8, column 14)",
        "classname": "tiles",
        "file": "tiles.py",
        "line": "8",
    }
    failure = case.find("failure")
    assert failure is not None
    assert (failure.text or "").splitlines()[2] == "tiles.py:5:1: the outer limit: 600 s"


def test_junit_skips_what_is_suppressed(untimed: Finding) -> None:
    hidden = replace(untimed, suppressed=Suppression(5, "# noqa: DL201", "the server is ours"))
    root = junit(result_of({"flows.py": FLOWS}, hidden))
    assert (root.get("tests"), root.get("failures"), root.get("skipped")) == ("1", "0", "1")
    skipped = root.find("testsuite/testcase/skipped")
    assert skipped is not None
    assert skipped.get("message") == "the server is ours"


def test_junit_errors_and_clean_runs() -> None:
    assert junit(BROKEN).get("errors") == "1"
    clean = junit(result_of({"a.py": ""}))
    assert (clean.get("tests"), clean.get("failures")) == ("1", "0")


def test_junit_is_xml_whatever_is_in_it() -> None:
    root = junit(hostile())
    failure = root.find("testsuite/testcase/failure")
    assert failure is not None
    assert "<&\"'>\\x1b[31m]]>" in (failure.get("message") or "")


# The message definitions of reviewdog.proto, version 0.21, as far as a report uses them.
POSITION = {"type": "object", "properties": {"line": {"type": "integer"}, "column": {"type": "integer"}}}
RANGE = {"type": "object", "properties": {"start": POSITION, "end": POSITION}, "required": ["start"]}
RDJSON = {
    "type": "object",
    "required": ["diagnostics"],
    "properties": {
        "source": {"type": "object", "required": ["name"]},
        "diagnostics": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["message", "location"],
                "additionalProperties": False,
                "properties": {
                    "message": {"type": "string"},
                    "location": {
                        "type": "object",
                        "properties": {"path": {"type": "string"}, "range": RANGE},
                    },
                    "severity": {"enum": ["ERROR", "WARNING", "INFO"]},
                    "code": {"type": "object", "required": ["value"]},
                    "suggestions": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "required": ["range", "text"],
                            "properties": {"range": RANGE},
                        },
                    },
                },
            },
        },
    },
}


def diagnostics(result: RunResult) -> Any:
    value = json.loads(shown(result, "rdjson"))
    jsonschema.validate(value, RDJSON)
    return value["diagnostics"]


def test_rdjson(result: RunResult) -> None:
    first = diagnostics(result)[0]
    assert first["severity"] == "WARNING"
    assert first["suggestions"] == [
        {
            "range": {"start": {"line": 5, "column": 30}, "end": {"line": 5, "column": 30}},
            "text": ", timeout=30",
        }
    ]


def test_rdjson_counts_bytes() -> None:
    source = 'x = "日本"; get(u)\n'
    (entry,) = diagnostics(result_of({"a.py": source}, finding("a.py", locate(source, "get(u)"))))
    assert entry["location"]["range"]["start"] == {"line": 1, "column": len('x = "日本"; '.encode()) + 1}


def test_rdjson_joins_the_edits_of_a_fix() -> None:
    place = locate(FLOWS, "requests.get(url)")
    edits = (Edit(place.start, place.start + 8, "client"), Edit(place.end - 1, place.end - 1, ", timeout=30"))
    made = finding("flows.py", place, fix=Fix("use the client", Safety.UNSAFE, edits))
    (entry,) = diagnostics(result_of({"flows.py": FLOWS}, made))
    assert [suggestion["text"] for suggestion in entry["suggestions"]] == ["client.get(url, timeout=30"]


def test_rdjson_suggests_no_half_of_a_fix(untimed: Finding) -> None:
    assert untimed.fix is not None
    needy = replace(untimed, fix=replace(untimed.fix, imports=(Import("deadlint_budget", "run"),)))
    shy = replace(untimed, fix=replace(untimed.fix, safety=Safety.DISPLAY))
    assert all("suggestions" not in entry for entry in diagnostics(result_of({"flows.py": FLOWS}, needy, shy)))


@pytest.mark.parametrize("format_name", ["json", "sarif", "gitlab", "junit", "rdjson"])
def test_documents_are_ascii_so_that_any_output_can_hold_them(format_name: str) -> None:
    assert shown(hostile(), format_name).isascii()
