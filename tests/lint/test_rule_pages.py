"""The pages of the rules are those that the docstrings make, and what the docstrings claim is so."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from deadlint import rule_pages
from deadlint.engine_rules import RULES as ENGINE_RULES
from deadlint.model import Finding
from deadlint.rule import HEADINGS, Rule, all_rules

from tests.rules.cases import all_cases

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "docs" / "rules"
CASES = ROOT / "fixtures" / "cases"

RULES = all_rules()
each_rule = pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)


def findings_in(code: str) -> list[Finding]:
    """What all rules find in a text, at any level."""
    return rule_pages.findings_in("example.py", code)


def test_the_pages_are_up_to_date() -> None:
    made = rule_pages.pages(RULES, rule_pages.evidence(CASES))
    there = {path.name: path.read_text(encoding="utf-8") for path in PAGES.glob("*.md")}
    stale = sorted(name for name in made.keys() | there.keys() if made.get(name) != there.get(name))
    assert not stale, "run `python -m deadlint.rule_pages docs/rules`"


@each_rule
def test_a_rule_has_the_headings_in_their_order(rule: Rule) -> None:
    assert tuple(rule_pages.sections(rule)) == HEADINGS
    assert all(rule_pages.sections(rule).values())
    assert rule.summary().endswith(".")


@each_rule
def test_the_example_fires_as_pasted(rule: Rule) -> None:
    codes = {finding.code for finding in findings_in(rule_pages.code_under(rule, "Example"))}
    assert rule.code in codes


@each_rule
def test_what_to_use_instead_is_clean(rule: Rule) -> None:
    codes = {finding.code for finding in findings_in(rule_pages.code_under(rule, "Use instead"))}
    assert rule.code not in codes


def test_the_codes_are_the_same_everywhere() -> None:
    codes = {rule.code for rule in RULES}
    assert {path.stem for path in PAGES.glob("DL*.md")} == codes
    assert set(re.findall(r"\bDL\d{3}\b", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"))) == codes
    # The engine's own codes are about files that do not parse, and about comments: their examples are their cases.
    own = {rule.code for rule in ENGINE_RULES}
    assert {code for case in all_cases() for _, code, _ in case.marks} == codes - own


def test_names_are_kebab_case() -> None:
    assert [rule.name for rule in RULES if not re.fullmatch(r"[a-z]+(-[a-z0-9]+)*", rule.name)] == []


def test_the_command_removes_the_page_of_a_rule_that_is_gone(tmp_path: Path) -> None:
    (tmp_path / "DL999.md").write_text("gone", encoding="utf-8")
    assert rule_pages.main([str(tmp_path), str(CASES)]) == 0
    assert {path.stem for path in tmp_path.glob("*.md")} == {"README", *(rule.code for rule in RULES)}
