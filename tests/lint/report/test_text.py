"""The text report: what a person sees at a terminal, in a pipe, and where the source is hostile."""

from __future__ import annotations

import io
import os
import re
import time
from dataclasses import replace

import pytest
from deadlint.model import Constant, Edit, Finding, Fix, Import, Level, Related, Safety, Span, Suppression
from deadlint.report import Options, printer
from deadlint.result import RunResult
from rich.cells import cell_len

from tests.lint.report.made_by_hand import FLOWS, Terminal, finding, locate, result_of, shown

ESCAPE = "\x1b["


def block(source: str, first: str, last: str | None = None, **changes: object) -> list[str]:
    """The lines of one finding, without its heading and the closing line."""
    made = finding("a.py", locate(source, first, last), **changes)
    return shown(result_of({"a.py": source}, made), "text", Options(quiet=True)).splitlines()[1:]


def on_terminal(result: RunResult) -> str:
    """What is printed on a terminal."""
    out = Terminal()
    printer("text")(result, out)
    return out.getvalue()


def test_the_whole_of_a_report(result: RunResult) -> None:
    assert shown(result, "text") == (
        """\
flows.py:5:14: DL201 `requests.get` has no timeout, so a silent server holds it for ever.
 5 │     names = [requests.get(url) for url in urls]
   │              ^^^^^^^^^^^^^^^^^
    remedy: Pass `timeout=`.
    fix (safe, --fix): pass the time that is left
 5 -     names = [requests.get(url) for url in urls]
   +     names = [requests.get(url, timeout=30) for url in urls]

tiles.py:8:14: DL401 `gdalwarp` may run 900 s inside task `build_tile`, which ends at 600 s.
  5 │   @task(timeout_seconds=600)
    │   -------------------------- the outer limit: 600 s
    ┆
  8 │       result = subprocess.run(
    │ ╭──────────────^
  9 │ │         ["gdalwarp", source, f"/data/{tile}.tif"],
 10 │ │         check=True,
 11 │ │         timeout=900,
    │ │         ----------- the inner limit: 900 s
 12 │ │     )
    │ ╰─────^
    ├ flows.py:4:1
  4 │ def mosaic(urls):
    │ ----------------- the flow
     remedy: Give the call less than the 600 s of its task.
     fix (unsafe, --unsafe-fixes): end before the task does
 11 -         timeout=900,
    +         timeout=540,

Found 2 findings in 2 files, 1 fixable with --fix, 1 more with --unsafe-fixes.
"""
    )


def test_quiet_leaves_the_findings_alone(result: RunResult) -> None:
    assert "Found" not in shown(result, "text", Options(quiet=True))
    assert "DL401" in shown(result, "text", Options(quiet=True))


def test_nothing_found() -> None:
    assert shown(result_of({"a.py": "", "b.py": ""}), "text") == "No findings in 2 files.\n"


def test_a_suppressed_finding_is_not_shown(untimed: Finding) -> None:
    hidden = replace(untimed, suppressed=Suppression(5, "# noqa: DL201"))
    assert shown(result_of({"flows.py": FLOWS}, hidden), "text") == "No findings in 1 file, 1 suppressed.\n"


def test_tabs_are_laid_out_under_the_mark() -> None:
    line, mark = block("if x:\n\tif y:\tget(u)\n", "get(u)")[:2]
    assert line == " 2 │     if y:   get(u)"
    assert mark.index("^") == line.index("get")


def test_wide_characters_take_two_cells() -> None:
    line, mark = block('title = "日本"; get(u)\n', "get(u)")[:2]
    assert cell_len(mark.partition("^")[0]) == cell_len(line.partition("get")[0])


def test_combining_characters_take_none() -> None:
    line, mark = block('e\u0301 = "e\u0301"; get(u)\n', "get(u)")[:2]
    assert cell_len(mark.partition("^")[0]) == cell_len(line.partition("get")[0])


@pytest.mark.parametrize("needle", ["first(u)", "middle(u)", "last(u)"])
@pytest.mark.parametrize("filler", ["x + ", "日 + "])
def test_a_long_line_is_cut_around_the_mark(needle: str, filler: str) -> None:
    source = f"a = first(u) + {filler * 60}middle(u) + {filler * 60}last(u)\n"
    line, mark = block(source, needle)[:2]
    assert cell_len(line) <= 100
    assert cell_len(mark.partition("^")[0]) == cell_len(line.partition(needle)[0])
    assert mark.count("^") == len(needle)
    assert "…" in line


@pytest.mark.parametrize("before", ["", "    ", "x = 1; " * 20, "日 = 1; " * 20])
@pytest.mark.parametrize("after", ["", "  # why", "; y = 2" * 20])
def test_a_mark_longer_than_the_room_keeps_both_its_ends(before: str, after: str) -> None:
    call = f"get({'u, ' * 100}timeout=900)"
    line, mark = block(f"{before}{call}{after}\n", call)[:2]
    assert "get(u, u" in line
    assert "u, timeout=900)" in line
    assert cell_len(line) <= 100
    start, end = cell_len(line.partition("get(")[0]), cell_len(line.partition("900)")[0]) + 4
    assert mark == "   │" + " " * (start - 4) + "^" * (end - start)


def test_a_mark_without_an_end_in_sight() -> None:
    line, mark = block(f"get({'u, ' * 4000})\n", "get(", ")")[:2]
    assert line.startswith(" 1 │ get(u, u")
    assert cell_len(mark) <= cell_len(line) <= 100


def test_a_line_of_megabytes_takes_no_time() -> None:
    source = f"a = [{'1, ' * 2_000_000}get(u)]\n"
    began = time.perf_counter()
    line, mark = block(source, "get(u)")[:2]
    assert time.perf_counter() - began < 2
    assert mark.index("^") == line.index("get(u)")


def test_a_long_span_shows_its_head_and_its_end() -> None:
    source = "with a:\n" + "".join(f"    step({i})\n" for i in range(40)) + "end()\n"
    lines = block(source, "with a:", "step(39)")
    assert lines[0] == "  1 │ ╭ with a:"
    assert "    ┆ │" in lines
    assert " 41 │ │     step(39)" in lines
    assert len(lines) < 12


def test_a_span_that_begins_in_a_line_and_ends_in_another() -> None:
    assert block("a = get(\n    u,\n)  # last\n", "get(", ")")[:5] == [
        " 1 │   a = get(",
        "   │ ╭─────^",
        " 2 │ │     u,",
        " 3 │ │ )  # last",
        "   │ ╰─^",
    ]


def test_the_finding_comes_before_what_is_related_on_its_line() -> None:
    source = "await wait_for(get(u, timeout=30), 10)\n"
    outer = Related("a.py", locate(source, "wait_for(", "10)").span, "the outer limit: 10 s")
    assert block(source, "get(", "30)", related=(outer,))[:3] == [
        " 1 │ await wait_for(get(u, timeout=30), 10)",
        "   │                ^^^^^^^^^^^^^^^^^^",
        "   │       -------------------------------- the outer limit: 10 s",
    ]


def test_a_long_line_in_a_long_span_keeps_both_its_ends() -> None:
    line = block(f"a = get(\n    {'u, ' * 50}timeout=900,\n)\n", "get(", ")")[2]
    assert line.startswith(" 2 │ │     u, u, ")
    assert line.endswith("u, timeout=900,")


@pytest.mark.parametrize("text", ["[bold red]x[/]", "[/]", "[link=file:///etc]", ":warning:", "\\[a]"])
def test_markup_in_paths_messages_and_source_is_text(text: str) -> None:
    source = f"get({text!r})\n"
    made = finding(f"{text}.py", locate(source, "get"), message=text, remedy=text)
    printed = shown(result_of({f"{text}.py": source}, made), "text")
    assert printed.count(text) >= 3
    assert source.strip() in printed


@pytest.mark.parametrize("text", ["\x1b[31m", "\x07", "\r", "\u202e", "\u2028", "\ud800", "\x9b31m", "\x0c", "\x7f"])
def test_nothing_reaches_the_terminal_that_it_would_act_on(text: str) -> None:
    source = f"get('{text}')\n" if text != "\r" else "get('')\n"
    related = Related(f"b{text}.py", Span(1, 1, 1, 4), f"label {text}")
    made = finding(f"a{text}.py", locate(source, "get"), message=text, remedy=text, related=(related,))
    result = result_of({f"a{text}.py": source, f"b{text}.py": source}, made)
    for format_name in ("text", "concise"):
        printed = shown(result, format_name)
        assert text not in printed
        assert f"a{text.encode('unicode_escape', 'surrogatepass').decode()}.py:1:1:" in printed


def test_a_byte_of_a_path_that_is_no_text() -> None:
    path = os.fsdecode(b"caf\xe9.py")
    made = finding(path, locate(FLOWS, "requests"))
    assert "caf\\xe9.py:1:8: DL201" in shown(result_of({path: FLOWS}, made), "text")


def test_a_source_that_is_gone_or_shorter_now(inverted: Finding) -> None:
    printed = shown(result_of({}, inverted), "text")
    assert "DL401" in printed
    assert "flows.py:4:1: the flow" in printed
    assert "remedy" in shown(result_of({"tiles.py": "x = 1\n"}, inverted), "text")


def test_a_number_stays_with_its_unit() -> None:
    message = " ".join(["word"] * 17) + " 600 s and more"
    heading = shown(result_of({"a.py": FLOWS}, finding("a.py", locate(FLOWS, "get"), message=message)), "text")
    assert re.search(r"\d+$", heading.splitlines()[0]) is None
    assert "600 s and more" in heading


def test_short_code_stays_in_one_piece() -> None:
    message = " ".join(["word"] * 15) + " `run(…, want=LIMIT_S)` and more"
    printed = shown(result_of({"a.py": FLOWS}, finding("a.py", locate(FLOWS, "get"), message=message)), "text")
    assert "`run(…, want=LIMIT_S)`" in printed


def test_a_suggestion_is_said_to_be_one(untimed: Finding) -> None:
    assert untimed.fix is not None
    shy = replace(untimed, fix=replace(untimed.fix, safety=Safety.DISPLAY))
    assert "suggestion (not applied): pass the time that is left" in shown(result_of({"flows.py": FLOWS}, shy), "text")


def test_a_fix_shows_what_it_needs_at_the_top_of_the_file(untimed: Finding) -> None:
    assert untimed.fix is not None
    fix = replace(
        untimed.fix,
        imports=(Import("deadlint_budget", "current_budget"),),
        constants=(Constant("HTTP_LIMIT_S", "30"),),
    )
    printed = shown(result_of({"flows.py": FLOWS}, replace(untimed, fix=fix)), "text")
    assert "   + from deadlint_budget import current_budget\n" in printed
    assert "   + HTTP_LIMIT_S = 30\n" in printed
    assert printed.index("HTTP_LIMIT_S") < printed.index("+     names")


def test_a_long_fix_is_cut_short() -> None:
    place = locate(FLOWS, "return names")
    fix = Fix("rewrite", Safety.SAFE, (Edit(place.start, place.end, "\n".join("x = 1" for _ in range(40))),))
    printed = shown(result_of({"a.py": FLOWS}, finding("a.py", place, fix=fix)), "text")
    assert "… 29 more lines; --diff shows them" in printed


def test_a_long_line_of_a_fix_is_folded_at_a_space(untimed: Finding) -> None:
    call = f"get({', '.join(f'layer_{number}' for number in range(12))})"
    source = f"if x:\n    a = {call}\n"
    place = locate(source, call)
    fix = Fix("bound it", Safety.SAFE, (Edit(place.end - 1, place.end - 1, ", timeout=30"),))
    printed = block(source, call, fix=fix)[4:]
    assert printed == [
        " 2 -     a = get(layer_0, layer_1, layer_2, layer_3, layer_4, layer_5, layer_6, layer_7, layer_8,",
        "             layer_9, layer_10, layer_11)",
        "   +     a = get(layer_0, layer_1, layer_2, layer_3, layer_4, layer_5, layer_6, layer_7, layer_8,",
        "             layer_9, layer_10, layer_11, timeout=30)",
    ]


def test_no_colours_where_there_is_no_terminal(result: RunResult) -> None:
    assert ESCAPE not in shown(result, "text")


def test_colours_on_a_terminal(result: RunResult, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    assert ESCAPE in on_terminal(result)


def test_no_color_counts_on_a_terminal(result: RunResult, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("NO_COLOR", "1")
    assert not re.search(r"\x1b\[[0-9;]*3[0-9]", on_terminal(result))


def test_force_color_counts_in_a_pipe(result: RunResult, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert ESCAPE in shown(result, "text")


def test_colours_add_nothing_that_is_not_there_without(result: RunResult, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "100")
    plain = shown(result, "text")
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert re.sub(r"\x1b\[[0-9;]*m", "", shown(result, "text")) == plain


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_no_line_is_wider_than_the_terminal(result: RunResult, columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", str(columns))
    lines = re.sub(r"\x1b\[[0-9;]*m", "", on_terminal(result)).splitlines()
    assert max(cell_len(line) for line in lines) <= min(columns, 110)


def test_an_encoding_without_the_frame_s_characters(result: RunResult) -> None:
    raw = io.BytesIO()
    out = io.TextIOWrapper(raw, encoding="ascii")
    printer("text")(result, out)
    out.flush()
    assert b"  8 |       result = subprocess.run(\n    | /--------------^\n" in raw.getvalue()


def test_a_source_that_the_output_cannot_encode() -> None:
    source = 'get("日本", "ü")\n'
    raw = io.BytesIO()
    out = io.TextIOWrapper(raw, encoding="latin-1")
    printer("text")(result_of({"ü.py": source}, finding("ü.py", locate(source, "get"))), out)
    out.flush()
    assert 'get("\\u65e5\\u672c", "ü")'.encode("latin-1") in raw.getvalue()


def test_strict_findings_stand_back(untimed: Finding, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("FORCE_COLOR", "1")
    loud = shown(result_of({"flows.py": FLOWS}, untimed), "text")
    calm = shown(result_of({"flows.py": FLOWS}, replace(untimed, level=Level.STRICT)), "text")
    assert loud != calm


def test_statistics(result: RunResult) -> None:
    assert shown(result, "text", Options(statistics=True)).splitlines()[-5:] == [
        "",
        "    1  DL201  request-without-timeout  1 with --fix",
        "    1  DL401  inverted-limits          1 with --unsafe-fixes",
        "",
        "Found 2 findings in 2 files, 1 fixable with --fix, 1 more with --unsafe-fixes.",
    ]
