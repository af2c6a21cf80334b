"""Notebooks: found, checked as one module, reported by cell and by line of the file, fixed without touching the rest."""

from __future__ import annotations

import json
import subprocess
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from deadlint.check import check_source
from deadlint.rule import all_rules
from deadlint.settings import Settings
from deadlint.source import SourceFile

from tests.lint.conftest import Deadlint

FETCH = "slowlib.fetch()"


def cell(source: str | list[str], kind: str = "code", **more: Any) -> dict[str, Any]:
    outputs = {"execution_count": 1, "outputs": []} if kind == "code" else {}
    return {"cell_type": kind, **outputs, "metadata": {}, "source": source} | more


def lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def notebook(*cells: str | dict[str, Any], **metadata: Any) -> dict[str, Any]:
    made = [cell(lines(one)) if isinstance(one, str) else one for one in cells]
    return {"cells": made, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}


def plant(content: dict[str, Any], name: str = "a.ipynb", **style: Any) -> Path:
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(content, **({"indent": 1, "ensure_ascii": False} | style)) + "\n"
    path.write_text(text, encoding="utf-8", newline="")
    return path


def found(deadlint: Deadlint, *arguments: str) -> list[str]:
    done = deadlint("check", "--output-format=concise", "--quiet", *arguments)
    assert done.stderr == b"", done.stderr.decode()
    return [line.split(" ")[0] + " " + line.split(" ")[1] for line in done.stdout.decode().splitlines()]


# --- what is found, and where --------------------------------------------------------------------------------


def test_findings_are_by_cell_counted_over_all_cells(deadlint: Deadlint) -> None:
    plant(notebook(cell("# Title", "markdown"), "import slowlib", f"x = 1\nif x:\n    {FETCH}"))
    assert found(deadlint) == ["a.ipynb:3:3:5: ZZ101"]


def test_the_cells_are_one_module(deadlint: Deadlint) -> None:
    plant(notebook("from slowlib import wait\nLIMIT = 500", "def slow():\n    return LIMIT", "wait(slow())"))
    assert found(deadlint) == ["a.ipynb:3:1:1: ZZ201"]


def test_a_source_may_be_one_string_and_a_notebook_of_format_3(deadlint: Deadlint) -> None:
    plant(notebook(cell(f"import slowlib\n{FETCH}")))
    old = {"cell_type": "code", "language": "python", "input": ["import slowlib\n", FETCH]}
    plant({"worksheets": [{"cells": [old]}], "metadata": {}, "nbformat": 3}, "old.ipynb")
    assert found(deadlint) == ["a.ipynb:1:2:1: ZZ101", "old.ipynb:1:2:1: ZZ101"]


IPYTHON = [
    "%matplotlib inline",
    "%config x = 'it''s (",
    "!ls \"it's here",
    "!!ls",
    "files = !ls '",
    "files['a'] = !ls '",
    "files: list = !ls",
    "a, b = %sql SELECT '",
    "slowlib.fetch?",
    "?slowlib",
    "slowlib??",
    "%psearch a*?",
    "!echo a \\\n    'b",
    "/fetch 1 2",
    ",fetch a b",
    "%timeit -n 10 -r3 1 +",
    "if x:\n    !gdalwarp a b\nelse:\n    %cd ..",
    "with x:\n    y = !ls",
    "await x",
    "cd data",
    "pip install slowlib",
    "x = 1;",
    "'''\n%time is no magic here\n'''",
    "x = (7\n% 2)",
    "x = 'a = !b?'  # really?",
]


def test_ipython_is_no_syntax_error_and_moves_nothing(deadlint: Deadlint) -> None:
    expected = []
    for number, line in enumerate(IPYTHON, 10):
        plant(notebook("import slowlib", f"x = 1\n{line}\n    \nif x:\n  é = 'é'; {FETCH}"), f"{number}.ipynb")
        expected.append(f"{number}.ipynb:2:{5 + line.count(chr(10))}:12: ZZ101")
    assert found(deadlint) == expected


def test_a_statement_behind_a_timing_magic_is_checked_in_its_column(deadlint: Deadlint) -> None:
    plant(notebook("import slowlib", f"%time r = {FETCH}", f"%timeit -n 10 -r3 {FETCH}", f"%%time\n{FETCH}"))
    assert found(deadlint) == ["a.ipynb:2:1:11: ZZ101", "a.ipynb:3:1:19: ZZ101", "a.ipynb:4:2:1: ZZ101"]


def test_a_cell_that_is_indented_as_a_whole_is_checked_and_fixed(deadlint: Deadlint) -> None:
    path = plant(notebook("  import slowlib\n  x = 1", f"\n    {FETCH}\n    y = 2", FETCH))
    before = path.read_bytes()
    assert found(deadlint) == ["a.ipynb:2:2:5: ZZ101", "a.ipynb:3:1:1: ZZ101"]
    assert deadlint("check", "--fix").returncode == 0
    assert path.read_bytes() == before.replace(b"fetch()", b"fetch(limit=9)")


def test_a_cell_in_another_language_is_left_out(deadlint: Deadlint) -> None:
    magics = ["%%bash", "%%sql db", "%%writefile x.py", "# form\n%%html", "%%capture\n%%bash"]
    for number, magic in enumerate(magics):
        plant(notebook(f"{magic}\nimport slowlib\nfor (it's", f"import slowlib\n{FETCH}"), f"{number}.ipynb")
    assert found(deadlint) == [f"{number}.ipynb:2:2:1: ZZ101" for number in range(len(magics))]


def test_cells_that_say_otherwise_are_left_out(deadlint: Deadlint) -> None:
    other = cell([FETCH], metadata={"vscode": {"languageId": "javascript"}})
    databricks = "%sql\nSELECT 'it''s' FROM slowlib"
    plant(notebook("import slowlib", other, cell(FETCH, "raw"), cell(FETCH, "markdown"), databricks))
    assert found(deadlint) == []


def test_a_notebook_in_another_language_is_left_alone(deadlint: Deadlint) -> None:
    before = {}
    for language in ("R", "julia", "scala"):
        told = {"kernelspec": {"language": language}, "language_info": {"name": language}}
        path = plant(notebook("x <- 'it", FETCH, **told), f"{language}.ipynb")
        before[path] = path.read_bytes()
    assert found(deadlint, "--unsafe-fixes") == []
    assert {path: path.read_bytes() for path in before} == before


def test_one_broken_cell_is_reported_and_the_others_are_checked(deadlint: Deadlint) -> None:
    plant(notebook("import slowlib", "x = 1\nprint 'a'", FETCH))
    done = deadlint("check", "--output-format=concise")
    assert b"a.ipynb:2:2:1: DL001" in done.stdout
    assert b"cannot parse cell 2" in done.stdout
    assert b"a.ipynb:3:1:1: ZZ101" in done.stdout


NO_NOTEBOOKS = [
    (b'{"cells": [', "is no valid JSON, so no notebook: Expecting value in line 1, column 12"),
    (b'{"cells": [\n<<<<<<< HEAD\n', "line 2 holds the mark of a merge conflict; resolve it"),
    (b"[1, 2]", "is JSON, but no notebook: it has no `cells`"),
    (b'{"a": 1}', "is JSON, but no notebook: it has no `cells`"),
    (b'{"cells": {}}', "its `cells` are no list"),
    (b'{"cells": [{"cell_type": "code", "source": 1}]}', "cell 1 has a source that is no text"),
    (b'{"cells": [1]}', "cell 1 is no JSON object"),
    (b'{"cells": []} x', "Extra data"),
    (b'{"cells": ["\xff"]}', "line 1 is not UTF-8"),
    (b'{"a": ' + b"[" * 100_000, "nested too deeply"),
]


def test_what_is_no_notebook_is_a_problem_in_one_line(deadlint: Deadlint) -> None:
    for number, (data, _) in enumerate(NO_NOTEBOOKS, 10):
        Path(f"{number}.ipynb").write_bytes(data)
    done = deadlint("check")
    assert done.returncode == 2
    told = done.stderr.decode().splitlines()
    for number, ((_, said), line) in enumerate(zip(NO_NOTEBOOKS, told, strict=True), 10):
        assert line.startswith(f"error: {number}.ipynb: ")
        assert said in line


def test_an_empty_file_is_a_new_notebook(deadlint: Deadlint) -> None:
    Path("a.ipynb").touch()
    assert deadlint("check").returncode == 0


def test_comments_suppress_in_their_cell(deadlint: Deadlint) -> None:
    plant(
        notebook(
            "import slowlib",
            f"{FETCH}  # noqa: ZZ101",
            f"{FETCH}  # deadlint: ignore[ZZ101] it is a demo",
            FETCH,
            "x = 1  # noqa: ZZ101",
        )
    )
    assert found(deadlint) == ["a.ipynb:4:1:1: ZZ101", "a.ipynb:5:1:8: DL002"]
    document = json.loads(deadlint("check", "--output-format=json").stdout)
    suppressed = [one for one in document["findings"] if one["suppressed"]]
    assert [(one["cell"], one["suppressed"]["line"]) for one in suppressed] == [(2, 1), (3, 1)]


# --- which are looked at -------------------------------------------------------------------------------------


def test_configuration_turns_notebooks_off_but_not_named_ones(deadlint: Deadlint) -> None:
    plant(notebook(f"import slowlib\n{FETCH}"), "sub/a.ipynb")
    plant(notebook(f"import slowlib\n{FETCH}"), ".ipynb_checkpoints/a-checkpoint.ipynb")
    assert found(deadlint) == ["sub/a.ipynb:1:2:1: ZZ101"]
    Path("deadlint.toml").write_text("notebooks = false\n", encoding="utf-8")
    assert deadlint("check", "--show-files").stdout == b""
    assert found(deadlint, "sub/a.ipynb") == ["sub/a.ipynb:1:2:1: ZZ101"]


def test_no_report_is_written_over_a_notebook(deadlint: Deadlint) -> None:
    path = plant(notebook("x = 1"))
    before = path.read_bytes()
    done = deadlint("check", "--output-file=a.ipynb")
    assert done.returncode == 2
    assert b"a.ipynb: is a notebook, which the text report would replace" in done.stderr
    assert path.read_bytes() == before


def test_standard_input_may_be_a_notebook(deadlint: Deadlint) -> None:
    data = plant(notebook(f"import slowlib\n{FETCH}")).read_bytes()
    arguments = ("check", "-", "--stdin-filename=x.ipynb")
    assert b"x.ipynb:1:2:1: ZZ101" in deadlint(*arguments, "--output-format=concise", stdin=data).stdout
    assert deadlint(*arguments, "--fix", stdin=data).stdout == data.replace(b"fetch()", b"fetch(limit=9)")


def test_the_cache_answers_for_notebooks(deadlint: Deadlint) -> None:
    path = plant(notebook("import slowlib", FETCH))
    first = deadlint("check", "--debug-timings")
    again = deadlint("check", "--debug-timings")
    assert first.stdout == again.stdout
    assert b" check\n" in first.stderr
    assert b" check\n" not in again.stderr
    plant(notebook("import slowlib", "x = 1", FETCH))
    assert found(deadlint) == [f"{path}:3:1:1: ZZ101"]


# --- reports -------------------------------------------------------------------------------------------------


def test_the_text_shows_the_cell_as_it_is(deadlint: Deadlint) -> None:
    plant(notebook("import slowlib", f"%time {FETCH}"))
    text = deadlint("check").stdout.decode()
    assert "a.ipynb:2:1:7: ZZ101" in text
    assert "1 │ %time slowlib.fetch()" in text
    assert "+ %time slowlib.fetch(limit=9)" in text
    assert "in 1 file" in text


def test_json_counts_in_the_cell(deadlint: Deadlint) -> None:
    plant(notebook("import slowlib", f"%time {FETCH}"))
    (one,) = json.loads(deadlint("check", "--output-format=json").stdout)["findings"]
    assert (one["path"], one["cell"], one["span"]["start"]) == ("a.ipynb", 2, {"line": 1, "column": 7})
    (edit,) = one["fix"]["edits"]
    assert edit == {"cell": 2, "text": "limit=9"} | {
        end: {"offset": 20, "line": 1, "column": 21} for end in ("start", "end")
    }


@pytest.mark.parametrize("style", [{}, {"indent": None}, {"ensure_ascii": True}], ids=["usual", "one line", "ascii"])
def test_services_are_told_the_line_of_the_file(deadlint: Deadlint, style: dict[str, Any]) -> None:
    path = plant(notebook("import slowlib", f'ü = "\\""; {FETCH}'), **style)
    text = path.read_text(encoding="utf-8")
    offset = text.index("slowlib.fetch")
    line, column = text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)
    sarif = json.loads(deadlint("check", "--output-format=sarif").stdout)["runs"][0]["results"][0]
    region = sarif["locations"][0]["physicalLocation"]["region"]
    assert region == {"startLine": line, "startColumn": column, "endLine": line, "endColumn": column + len(FETCH)}
    assert sarif["message"]["text"].startswith("Cell 2, line 1: nothing limits this fetch")
    change = sarif["fixes"][0]["artifactChanges"][0]["replacements"]
    assert _replaced(text, change) == text.replace("fetch()", "fetch(limit=9)")
    for name, said in (
        ("github", f"line={line},endLine={line},col={column}"),
        ("azure", f"linenumber={line};columnnumber={column}"),
        ("junit", f'line="{line}"'),
        ("gitlab", f'"begin": {line}'),
        ("rdjson", f'"line": {line}'),
    ):
        report = deadlint("check", f"--output-format={name}").stdout.decode()
        assert said in report, name
        assert "Cell 2, line 1" in report, name


def _replaced(text: str, replacements: list[dict[str, Any]]) -> str:
    """The text after the replacements of a SARIF fix."""
    starts = [0]
    for one in text.split("\n"):
        starts.append(starts[-1] + len(one) + 1)
    for one in reversed(replacements):
        region = one["deletedRegion"]
        start = starts[region["startLine"] - 1] + region["startColumn"] - 1
        end = starts[region["endLine"] - 1] + region["endColumn"] - 1
        text = text[:start] + one["insertedContent"]["text"] + text[end:]
    return text


def test_fingerprints_are_the_same_in_every_format_and_after_cells_moved(deadlint: Deadlint) -> None:
    def names() -> set[str]:
        document = json.loads(deadlint("check", "--output-format=json").stdout)
        violations = json.loads(deadlint("check", "--output-format=gitlab").stdout)
        return {document["findings"][0]["fingerprint"], violations[0]["fingerprint"]}

    plant(notebook("import slowlib", 'slowlib.fetch("a")'))
    before = names()
    assert len(before) == 1
    plant(notebook("import slowlib", "x = 1", 'slowlib.fetch("a")'))
    assert names() == before


def test_a_limit_in_a_notebook_is_told_by_cell_where_it_is_around_another_file(deadlint: Deadlint) -> None:
    task = "@task(timeout_seconds=5)\ndef f():\n    warp()"
    plant(notebook("from prefect import task", "from work import warp", task), "flow.ipynb")
    work = "import subprocess\n\n\ndef warp():\n    subprocess.run(['gdalwarp'], check=True, timeout=900)\n"
    Path("work.py").write_text(work, encoding="utf-8")
    Path("deadlint.toml").write_text("select = ['DL401']\n", encoding="utf-8")
    assert found(deadlint) == ["work.py:5:5: DL401"]
    assert "├ flow.ipynb:3:1:" in deadlint("check").stdout.decode()
    (one,) = json.loads(deadlint("check", "--output-format=json").stdout)["findings"]
    assert [place["cell"] for place in one["related"] if place["path"] == "flow.ipynb"][:1] == [3]
    sarif = json.loads(deadlint("check", "--output-format=sarif").stdout)["runs"][0]["results"][0]
    said = [place["message"]["text"] for place in sarif["relatedLocations"]]
    assert any(text.startswith("Cell 3, line 1: ") for text in said), said


def test_add_ignore_writes_into_the_cell(deadlint: Deadlint) -> None:
    path = plant(notebook("import slowlib", f"x = 1\n{FETCH}"))
    before = path.read_bytes()
    assert deadlint("add-ignore", "--reason=a demo").returncode == 0
    comment = b"slowlib.fetch()  # deadlint: ignore[ZZ101] a demo"
    assert path.read_bytes() == before.replace(b"slowlib.fetch()", comment)
    assert found(deadlint) == []


# --- fixes ---------------------------------------------------------------------------------------------------

STYLES: list[dict[str, Any]] = [
    {},
    {"indent": 4, "sort_keys": True},
    {"indent": None},
    {"indent": None, "separators": (",", ":")},
    {"ensure_ascii": True},
]


def test_a_fix_changes_nothing_but_its_line(deadlint: Deadlint) -> None:
    outputs = [{"output_type": "stream", "name": "stdout", "text": ["slowlib.fetch()\n", "\u2028é \x1b[0m"]}]
    code = cell(lines(f"ü = 'é\\u00e9'\n{FETCH}\n%time {FETCH}\nx?"), outputs=outputs, id="b4")
    first, text = "# é\nimport slowlib\n%matplotlib inline", cell("text é", "markdown")
    content = notebook(first, code, text, zeta={"b": 1.50, "a": 1e3})
    planted = {}
    for style, ending in product(STYLES, ["\n", "", "\r\n", "\n\n"]):
        path = plant(content, f"{len(planted)}.ipynb", **style)
        planted[path] = path.read_bytes().rstrip(b"\n") + ending.encode()
        path.write_bytes(planted[path])
    assert deadlint("check", "--fix").returncode == 0
    for path, before in planted.items():
        after = path.read_bytes()
        assert json.loads(after)["cells"][1]["outputs"] == outputs
        assert after.count(b"slowlib.fetch(limit=9)") == 2
        assert after.replace(b"limit=9", b"") == before


def test_a_source_that_is_one_string_keeps_its_escapes(deadlint: Deadlint) -> None:
    path = Path("a.ipynb")
    text = '{"cells":[{"source":"import slowlib\\nx = \\"\\u00e9\\/\\"\\nslowlib.fetch()\\n\\ty","cell_type":"code"}]}'
    text = text.replace("\\n\\ty", "\\ny = '\\t'")
    path.write_text(text, encoding="utf-8")
    assert deadlint("check", "--fix").returncode == 0
    assert path.read_text(encoding="utf-8") == text.replace("fetch()", "fetch(limit=9)")


def test_a_byte_order_mark_stays(deadlint: Deadlint) -> None:
    path = plant(notebook("import slowlib", FETCH))
    data = b"\xef\xbb\xbf" + path.read_bytes()
    path.write_bytes(data)
    assert deadlint("check", "--fix").returncode == 0
    assert path.read_bytes() == data.replace(b"fetch()", b"fetch(limit=9)")


def test_a_fix_with_an_import_puts_it_with_the_others(deadlint: Deadlint) -> None:
    path = plant(notebook("%pip install requests", "import os\nimport requests", "%%time\nr = requests.get('u')\nr?"))
    assert deadlint("check", "--unsafe-fixes").returncode == 0
    sources = ["".join(one["source"]) for one in json.loads(path.read_bytes())["cells"]]
    assert sources == [
        "%pip install requests",
        "import os\nimport requests\n\nfrom deadlint_budget import http\n\nHTTP_LIMIT_S = 30",
        "%%time\nr = http.get('u', want=HTTP_LIMIT_S)\nr?",
    ] or sources[1].startswith("import os\nimport requests")
    assert "%%time" in sources[2]
    assert deadlint("check", "--unsafe-fixes", "--diff").stdout == b""


def test_the_diff_applies_to_the_file(deadlint: Deadlint) -> None:
    path = plant(notebook("import slowlib", f"x = 'é'\n{FETCH}"))
    before = path.read_bytes()
    diff = deadlint("check", "--diff").stdout
    assert path.read_bytes() == before
    subprocess.run(["patch", "-p0", "-s"], input=diff, check=True, timeout=30)
    assert path.read_bytes() == before.replace(b"fetch()", b"fetch(limit=9)")


def test_an_unused_comment_is_removed_from_its_cell(deadlint: Deadlint) -> None:
    path = plant(notebook("import slowlib", "x = 1  # noqa: ZZ101", "# deadlint: ignore[ZZ101]\ny = 2"))
    assert deadlint("check", "--fix").returncode == 0
    assert [one["source"] for one in json.loads(path.read_bytes())["cells"]] == [
        ["import slowlib"],
        ["x = 1"],
        ["y = 2"],
    ]


def test_a_fix_that_reaches_over_cells_is_not_offered() -> None:
    """The `with` that a fix would put around the writer and the rename cannot span two cells."""
    cells = (
        "import subprocess, os",
        "subprocess.run(['gdalwarp', 'a.tif', 'out.tif'], check=True, timeout=60)",
        "done = 'out.tif'",
    )
    data = json.dumps(notebook(*cells)).encode()
    source = SourceFile.decode("a.ipynb", data)
    for finding in check_source(source, Settings(), all_rules()):
        assert finding.fix is None or source.allows(finding.fix)


@pytest.mark.parametrize("text", ["", "\n", "x = 1\n", "x\r\ny", "a\n\n\n", "\ty", "%%bash\n", "é\u2028", "'\\"])
def test_what_is_not_edited_is_written_as_it_was(text: str) -> None:
    data = json.dumps(notebook(text, "import os", text)).encode()
    source = SourceFile.decode("a.ipynb", data)
    assert source.encode() == data
    assert source.with_text(source.text).encode() == data
