"""Whatever a source holds and wherever a span lies, every printer prints something sound."""

from __future__ import annotations

import json
import re
from xml.etree import ElementTree

from deadlint.model import Edit, Finding, Fix, Related, Safety, Span
from deadlint.report import FORMATS
from deadlint.report.printable import printable
from deadlint.result import RunResult
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from tests.lint.report.made_by_hand import result_of, shown

SOURCES = st.text(st.one_of(st.sampled_from("ab \t\n\r\x0c日é́…│[]\x1b\u202e\ud800"), st.characters()), max_size=300)
LONG = st.tuples(SOURCES, st.integers(1, 60)).map(lambda pair: pair[0] * pair[1])
NUMBERS = st.integers(1, 400)
SPANS = st.tuples(NUMBERS, NUMBERS, NUMBERS, NUMBERS).map(lambda n: Span(min(n[0], n[1]), n[2], max(n[0], n[1]), n[3]))
OFFSETS = st.integers(0, 2000)
EDITS = st.lists(st.tuples(OFFSETS, OFFSETS, SOURCES).map(lambda e: Edit(min(e[:2]), max(e[:2]), e[2])), max_size=3)


@st.composite
def results(draw: st.DrawFn) -> RunResult:
    """A finding anywhere in anything."""
    path, other, words = draw(SOURCES), draw(SOURCES), draw(SOURCES)
    related = tuple(Related(draw(st.sampled_from([path, other])), draw(SPANS), words) for _ in range(2))
    fix = Fix(words, draw(st.sampled_from(Safety)), tuple(draw(EDITS)))
    finding = Finding("DL201", "name", path, draw(SPANS), words, words, related=related, fix=fix)
    return result_of({path: draw(LONG), other: draw(SOURCES)}, finding)


@settings(deadline=None)
@given(results())
def test_every_format_prints(result: RunResult) -> None:
    printed = {name: shown(result, name) for name in FORMATS}
    for name in ("json", "sarif", "gitlab", "rdjson"):
        json.loads(printed[name])
    ElementTree.fromstring(printed["junit"])
    for name in ("text", "concise", "github", "azure"):
        assert all(printable(line) == line for line in printed[name].split("\n"))


@settings(deadline=None)
@given(results())
def test_excerpts_keep_to_their_width(result: RunResult) -> None:
    excerpts = [line for line in shown(result, "text").split("\n") if re.match(r" +\d* [│┆+-] ", line)]
    assert all(cell_len(line) <= 100 for line in excerpts)
