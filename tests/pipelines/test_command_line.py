"""`deadlint check` on the pipelines: what it finds, what it offers, what it changes."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

import pytest

from tests.pipelines.project import CODES, Checked, Project


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A copy that the test may change."""
    return Project(tmp_path / "basemap")


@pytest.fixture(scope="module")
def found(before: Project) -> Checked:
    """What is found in the pipelines as they are."""
    return before.check()


@pytest.fixture(scope="module")
def left(after: Project) -> Checked:
    """What is left of it after the fixes."""
    return after.check()


def fixable(checked: Checked) -> Counter[str]:
    """How many findings of each code have a fix that is applied."""
    return Counter(f["code"] for f in checked.findings if f["fix"] and f["fix"]["safety"] in ("safe", "unsafe"))


def test_all_families_are_found(found: Checked) -> None:
    assert found.status == 1
    assert set(found.count) == set(CODES.split(","))
    assert 20 <= len(found.findings) <= 40


def test_nothing_is_written_without_being_asked(project: Project) -> None:
    was = project.files()
    project.check()
    assert project.files() == was
    assert project.check("--fix", "--unsafe-fixes", "--diff", output="text").status == 1
    assert project.files() == was


def test_what_has_a_fix_is_gone_and_nothing_is_born(found: Checked, left: Checked) -> None:
    assert not fixable(left)
    assert left.count == found.count - fixable(found)
    assert left.status == 1  # limits that contradict each other are for a person to settle


def test_fixed_files_parse_and_others_are_untouched(before: Project, after: Project, found: Checked) -> None:
    was, now = before.files(), after.files()
    assert was.keys() == now.keys()
    changed = {path for path in was if was[path] != now[path]}
    assert changed
    assert changed <= {finding["path"] for finding in found.findings if finding["fix"]}
    for path in changed:
        ast.parse(now[path])


def test_fixing_again_changes_nothing(after: Project) -> None:
    once = after.files()
    assert after.check("--fix", "--unsafe-fixes").report["fixed"] == []
    assert after.files() == once


def test_strict_finds_no_more_faults_afterwards(before: Project, after: Project) -> None:
    was, now = before.check("--level", "strict"), after.check("--level", "strict")
    assert all(count <= was.count[code] for code, count in now.count.items())
