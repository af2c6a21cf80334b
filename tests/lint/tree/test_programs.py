"""Whole programs over several files: what a tree makes of them."""

from __future__ import annotations

from collections.abc import Callable

from tests.lint.tree.conftest import Found

Fixture = Callable[[str], Found]


def test_a_limit_that_is_passed_into_another_file_is_inverted_there(fixture: Fixture) -> None:
    tree = fixture("flood")
    ogr = next(n for n in tree if n["name"] == "ogr2ogr" and n["limit"]["seconds"] == 900)
    assert ogr["limit"]["known"] == "parameter"
    assert ogr["path"].endswith("src/flood/vectors.py")
    (mark,) = ogr["marks"]
    assert mark == {
        "kind": "inverted",
        "text": "may run 900 s inside task `vectorise`, which ends at 600 s",
    }


def test_a_flow_is_the_only_entry_though_its_tasks_and_its_script_are_entries_too(fixture: Fixture) -> None:
    assert [(root["layer"], root["name"]) for root in fixture("flood").roots] == [("flow", "map_flood")]


def test_attempts_and_their_pauses_are_in_the_worst_case(fixture: Fixture) -> None:
    node = fixture("flood").node("task", "fetch_scenes")
    assert (node["attempts"], node["pauses"], node["worst"]["seconds"]) == (4, 180, 660)


def test_what_waits_without_a_limit_is_unbounded_up_to_the_next_limit(fixture: Fixture) -> None:
    tree = fixture("flood")
    assert tree.worst("function", "union") is None
    assert tree.worst("task", "load") is None
    assert tree.worst("flow", "map_flood") == 3600


def test_limits_come_from_parameters_defaults_arithmetic_and_budgets(fixture: Fixture) -> None:
    tree = fixture("flood")
    known = {
        n["name"]: (n["limit"]["seconds"], n["limit"]["known"]) for n in tree if n["limit"] and n["layer"] == "process"
    }
    assert known["gdalbuildvrt"] == (300, "parameter")  # half of what the task passes
    assert known["gdal_calc.py"] == (240, "default")
    assert known["rsync"] == (400, "budget")


def test_the_attempts_of_a_budget_take_no_longer_than_the_budget(fixture: Fixture) -> None:
    tree = fixture("flood")
    assert tree.worst("function", "announce") == 600
    assert tree.marks("request", "http.post") == {"budget"}


def test_packages_need_no_init_file(fixture: Fixture) -> None:
    tree = fixture("namespace")
    assert tree.marks("process", "gdalwarp") == {"inverted"}
    assert tree.marks("operator", "build") == {"outlasts"}


def test_a_package_under_another_source_root_is_found(fixture: Fixture) -> None:
    tree = fixture("two_roots")
    assert tree.worst("function", "add_overviews") == 360
    assert tree.marks("task", "refresh") == {"overrun"}


def test_a_cycle_is_followed_once_and_is_unbounded(fixture: Fixture) -> None:
    tree = fixture("cycle")
    again = [n for n in tree if "again" in {m["kind"] for m in n["marks"]}]
    assert [n["name"] for n in again] == ["crawl"]
    assert tree.worst("flow", "harvest") == 1800
    outer = next(n for n in tree if n["name"] == "crawl" and n["children"])
    assert not outer["worst"]["bounded"]
