"""The JSON report keeps to its published schema, and an editor can apply what it says."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from deadlint.model import Constant, FileProblem, Finding, Import, Safety, Suppression
from deadlint.report import PLAIN, Options
from deadlint.result import Change, RunResult, Step

from tests.lint.report.made_by_hand import FLOWS, finding, locate, result_of, shown

SCHEMA = json.loads((Path(__file__).parents[3] / "docs" / "findings.schema.json").read_text(encoding="utf-8"))


def document(result: RunResult, options: Options = PLAIN) -> Any:
    value = json.loads(shown(result, "json", options))
    jsonschema.Draft202012Validator(closed(SCHEMA)).validate(value)
    return value


def closed(schema: Any) -> Any:
    """The schema with nothing allowed that it does not name: a key that is not documented is a fault here."""
    if isinstance(schema, list):
        return [closed(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    inner = {key: closed(value) for key, value in schema.items()}
    return {"additionalProperties": False, **inner} if "properties" in schema and "$ref" not in schema else inner


def everything(finding: Finding) -> RunResult:
    """A result with something in every part."""
    fix = finding.fix
    assert fix is not None
    hidden = replace(finding, fix=None, suppressed=Suppression(5, "# noqa: DL201", "it is ours"))
    rich = replace(finding, fix=replace(fix, constants=(Constant("LIMIT_S", "30"),)))
    shy = replace(finding, fix=replace(fix, safety=Safety.DISPLAY))
    return result_of(
        {"flows.py": FLOWS},
        hidden,
        rich,
        shy,
        problems=(FileProblem("gone.py", "no such file"),),
        warnings=(FileProblem("empty", "holds no Python"),),
        fixed=(finding,),
        changes=(Change("flows.py", "a", "b"),),
        steps=(Step("index", 0.25, 3),),
        seconds=0.5,
    )


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


def test_output_keeps_to_the_schema(result: RunResult, untimed: Finding) -> None:
    for options in (Options(), Options(statistics=True, quiet=True)):
        document(RunResult(), options)
        document(result, options)
        document(everything(untimed), options)


def test_a_finding(result: RunResult) -> None:
    first = document(result)["findings"][0]
    assert first["code"] == "DL201"
    assert first["level"] == "strict"
    assert first["span"] == {"start": {"line": 5, "column": 14}, "end": {"line": 5, "column": 31}}
    assert first["suppressed"] is None
    assert first["fix"]["applied_by"] == "--fix"


def test_suppressed_findings_are_there_and_marked(untimed: Finding) -> None:
    value = document(everything(untimed))
    assert value["findings"][0]["suppressed"] == {"by": "comment", "line": 5, "text": "# noqa: DL201", "reason": "it is ours"}
    assert value["statistics"]["findings"] == 2
    assert value["statistics"]["suppressed"] == 1
    assert value["statistics"]["rules"] == {"DL201": 2}


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_applying_the_edits_makes_a_file_that_parses(untimed: Finding, newline: str) -> None:
    source = FLOWS.replace("\n", newline)
    place = locate(source, "requests.get(url)")
    fix = untimed.fix
    assert fix is not None
    edit = replace(fix.edits[0], start=place.end - 1, end=place.end - 1, text=", timeout=LIMIT_S")
    fix = replace(
        fix,
        edits=(edit,),
        imports=(Import("deadlint_budget", "current_budget"),),
        constants=(Constant("LIMIT_S", "30"),),
    )
    value = document(result_of({"flows.py": source}, replace(untimed, fix=fix)))
    text = source
    lines = source.split(newline)
    for edit_ in reversed(value["findings"][0]["fix"]["edits"]):
        start, end = edit_["start"], edit_["end"]
        for place_ in (start, end):
            before = "".join(line + newline for line in lines[: place_["line"] - 1])
            assert len(before) + place_["column"] - 1 == place_["offset"]
        text = text[: start["offset"]] + edit_["text"] + text[end["offset"] :]
    compile(text, "flows.py", "exec")
    assert "from deadlint_budget import current_budget" in text
    assert "LIMIT_S = 30" in text
    assert "timeout=LIMIT_S" in text


def test_a_path_that_is_no_text_stays_valid_json() -> None:
    path = os.fsdecode(b"caf\xe9\n.py")
    value = document(result_of({path: FLOWS}, finding(path, locate(FLOWS, "get"))))
    assert value["findings"][0]["path"] == "caf\\xe9\n.py"


def test_what_is_not_ascii_survives_any_output(untimed: Finding) -> None:
    printed = shown(result_of({"flows.py": FLOWS}, replace(untimed, message="日本 ≤ 5 s")), "json")
    assert printed.isascii()
    assert json.loads(printed)["findings"][0]["message"] == "日本 ≤ 5 s"


def test_times_are_there_only_when_asked_for(untimed: Finding) -> None:
    assert "steps" not in document(everything(untimed))["statistics"]
    timed = document(everything(untimed), Options(statistics=True))["statistics"]
    assert timed["seconds"] == 0.5
    assert timed["steps"] == [{"name": "index", "seconds": 0.25, "files": 3}]


def test_fingerprints_differ_within_a_report(untimed: Finding) -> None:
    names = [entry["fingerprint"] for entry in document(everything(untimed))["findings"]]
    assert len(set(names)) == len(names) == 3
