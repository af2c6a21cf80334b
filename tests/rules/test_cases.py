"""Each case file: exactly the marked lines are found, and every fix mends what it says and nothing else."""

from __future__ import annotations

import ast
from collections import Counter

import pytest
from deadlint.fix import all_edits, apply_edits, fix_file
from deadlint.model import Finding, Safety
from deadlint.rule import all_rules

from tests.rules.cases import Case, all_cases, find

CASES = all_cases()
EVERY_SAFETY = (Safety.SAFE, Safety.UNSAFE)


@pytest.fixture(params=CASES, ids=lambda case: f"{case.path.parent.name}/{case.path.stem}")
def case(request: pytest.FixtureRequest) -> Case:
    assert isinstance(request.param, Case)
    return request.param


def test_finds_exactly_the_marked_lines(case: Case) -> None:
    found = {(f.span.line, f.code, f.level) for f in find(case)}
    assert found == case.marks


def test_fixed_findings_are_gone_and_no_other_is_born(case: Case) -> None:
    before = find(case, rules=all_rules())
    result = fix_file(case.source, lambda source: find(case, source, rules=all_rules()), EVERY_SAFETY)
    fixable = [f for f in before if f.fix and f.fix.safety in EVERY_SAFETY]
    after = Counter(f.code for f in result.remaining)
    assert len(result.applied) >= len(fixable)
    assert not [f for f in result.remaining if f.fix and f.fix.safety in EVERY_SAFETY]
    expected = Counter(f.code for f in before) - Counter(f.code for f in fixable)
    assert after <= expected, "a fix gave birth to a finding"


def test_fixed_text_parses_and_is_stable(case: Case) -> None:
    def check(source: object) -> list[Finding]:
        return find(case, source)  # type: ignore[arg-type]

    once = fix_file(case.source, check, EVERY_SAFETY)
    ast.parse(once.source.text)
    twice = fix_file(once.source, check, EVERY_SAFETY)
    assert twice.source.text == once.source.text
    assert not twice.applied


def test_each_fix_alone_mends_its_finding_and_keeps_the_rest(case: Case) -> None:
    source = case.source
    before = find(case)
    for finding in before:
        if finding.fix is None or finding.fix.safety is Safety.DISPLAY:
            continue
        edits = all_edits(source, finding)
        text = apply_edits(source.text, edits)
        ast.parse(text)
        assert _untouched(source.text, text, edits), finding
        after = Counter(f.code for f in find(case, source.with_text(text)))
        assert after[finding.code] < Counter(f.code for f in before)[finding.code], finding


def _untouched(before: str, after: str, edits: tuple[object, ...]) -> bool:
    """Whether what lies outside of the edits is the same, piece by piece."""
    position, pieces = 0, []
    for edit in sorted(dict.fromkeys(edits), key=lambda e: (e.start, e.end)):  # type: ignore[attr-defined]
        pieces.append(before[position : edit.start])  # type: ignore[attr-defined]
        position = edit.end  # type: ignore[attr-defined]
    pieces.append(before[position:])
    place = 0
    for piece in pieces:
        found = after.find(piece, place)
        if found < 0:
            return False
        place = found + len(piece)
    return True


@pytest.mark.parametrize("newline", ["\n", "\r\n"], ids=["LF", "CRLF"])
def test_fixes_keep_newlines_and_encoding(case: Case, newline: str) -> None:
    text = case.source.text.replace("\n", newline)
    source = case.source.with_text(text)
    fixed = fix_file(source, lambda s: find(case, s), EVERY_SAFETY).source.text
    assert fixed.count("\r\n") == (fixed.count("\n") if newline == "\r\n" else 0)
