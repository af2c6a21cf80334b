"""`deadlint tree` as a user runs it: entries, depth, formats, errors."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest
from deadlint.tree.model import Kind, Known, Order

from tests.lint.tree.conftest import FIXTURES, Grow, grown, run


@pytest.fixture
def flood(monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(FIXTURES / "flood")
    return FIXTURES / "flood"


def test_an_entry_is_named_by_module_or_by_file(flood: Path) -> None:
    for name in ("flood.vectors:polygons", "src/flood/vectors.py:polygons", "vectors:polygons"):
        (root,) = grown("--entry", name).roots
        assert (root["layer"], root["name"]) == ("function", "polygons")


def test_a_method_is_an_entry_by_its_qualified_name(flood: Path) -> None:
    (root,) = grown("--entry", "flood.portal:Portal.download").roots
    assert root["name"] == "Portal.download"


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ("flood.vectors:polygon", "`flood.vectors` has no function `polygon`; did you mean `polygons`?"),
        ("flood.vector:polygons", "no module `flood.vector` below the paths; did you mean `flood.vectors`"),
        ("flood.vectors", "write it as package.module:function"),
    ],
)
def test_an_entry_that_is_not_there_is_an_error_that_says_what_is(entry: str, said: str, flood: Path) -> None:
    command = [sys.executable, "-m", "deadlint", "tree", "--entry", entry]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 2
    assert said in done.stderr


def test_depth_cuts_off_and_says_so(flood: Path) -> None:
    tree = grown("--depth", "1")
    assert {n["layer"] for n in tree} == {"flow", "budget", "task", "function"}
    assert tree.node("task", "load")["left_out"] == 2
    assert "load …" in run("--depth", "1").stdout


def test_a_program_without_entries_says_how_to_name_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "app.py").write_text("def helper():\n    pass\n")
    result = run()
    assert result.exit_code == 0
    assert "--entry" in result.stderr


def test_tests_are_no_entries_unless_they_are_named(grow: Grow) -> None:
    source = "import time\ndef main():\n    time.sleep(1)\n"
    assert grow("", tests__test_app=source).roots == []
    assert len(grow("", "tests/test_app.py", tests__test_app=source).roots) == 1


def test_text_fits_into_80_columns_and_keeps_the_line_of_each_place(flood: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = run().stdout.splitlines()
    assert max(map(len, lines)) <= 80
    rows = [line for line in lines if "├" in line or "└" in line]
    assert rows
    assert all(line.rsplit(":", 1)[1].isdigit() for line in rows)


def test_text_without_unicode_has_a_mark_for_each(flood: Path) -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "COLUMNS": "100"}
    command = [sys.executable, "-m", "deadlint", "tree"]
    done = subprocess.run(command, capture_output=True, check=True, timeout=60, env=environment)
    text = done.stdout.decode("ascii")
    assert "\\u" not in text
    assert "U nothing bounds it" in text


def test_mermaid_has_a_node_for_each_and_escapes_what_it_would_read(flood: Path) -> None:
    text = run("--output-format", "mermaid").stdout
    nodes = [line for line in text.splitlines() if '["' in line]
    assert len(nodes) == sum(1 for _ in grown())
    assert sum(":::fault" in line for line in nodes) == 1
    assert "for attempt in budget.attempts(3" in text
    assert all(line.count('"') == 2 for line in nodes)


@pytest.mark.parametrize(
    ("given", "link"),
    [
        ("file", 'href="file://{root}/src/flood/flow.py"'),
        ("vscode", 'href="vscode://file{root}/src/flood/flow.py:16:2"'),
        ("https://host/r/{relative}#L{line}", 'href="https://host/r/src/flood/flow.py#L16"'),
    ],
)
def test_places_lead_to_a_file_an_editor_or_a_code_host(given: str, link: str, flood: Path) -> None:
    text = run("--output-format", "html", "--source-url", given).stdout
    assert link.format(root=flood) in text


@pytest.mark.parametrize("given", ["javascript:alert(1)", "nowhere", "https://host/{file}"])
def test_a_source_url_that_is_none_is_an_error(given: str, flood: Path) -> None:
    command = [sys.executable, "-m", "deadlint", "tree", "--source-url", given]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, given in done.stderr) == (2, True)


@pytest.mark.parametrize("folder", ["flood", "namespace", "two_roots", "cycle", "../pipelines"])
@pytest.mark.parametrize("depth", [(), ("--depth", "1")])
def test_json_follows_its_schema(folder: str, depth: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    schema = json.loads((FIXTURES.parents[1] / "docs" / "tree.schema.json").read_text())
    monkeypatch.chdir(FIXTURES / folder)
    jsonschema.validate(grown(*depth).record, schema)


def test_the_schema_knows_every_mark_and_every_way_to_know_a_limit() -> None:
    schema = json.loads((FIXTURES.parents[1] / "docs" / "tree.schema.json").read_text())
    node = schema["$defs"]["node"]["properties"]
    assert set(node["marks"]["items"]["properties"]["kind"]["enum"]) == set(Kind)
    assert set(node["limit"]["oneOf"][1]["properties"]["known"]["enum"]) == set(Known)
    assert set(node["order"]["enum"]) == set(Order)


def test_a_page_is_utf8_whatever_the_output_is(flood: Path) -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    for output in ("html", "mermaid"):
        command = [sys.executable, "-m", "deadlint", "tree", "--output-format", output]
        done = subprocess.run(command, capture_output=True, check=True, timeout=60, env=environment)
        assert "∞" in done.stdout.decode("utf-8")


def test_names_that_are_no_text_do_not_stop_a_tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path(os.fsdecode(b"caf\xe9.py")).write_text("import time\n\ndef main():\n    time.sleep(1)\n")
    for output in ("text", "json", "mermaid", "html"):
        command = [sys.executable, "-m", "deadlint", "tree", "--isolated", "--output-format", output]
        done = subprocess.run(command, capture_output=True, check=True, timeout=60)
        assert b"main" in done.stdout


def test_a_file_that_cannot_be_parsed_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "broken.py").write_text("def main(:\n    pass\n")
    result = run("--isolated")
    assert "broken.py: cannot be parsed; `deadlint check` says why" in result.stderr


def test_a_path_that_does_not_exist_is_an_error() -> None:
    command = [sys.executable, "-m", "deadlint", "tree", "nowhere"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, "nowhere: does not exist" in done.stderr) == (2, True)
