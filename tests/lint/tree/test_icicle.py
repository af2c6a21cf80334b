"""Where bars are drawn: to scale, none over another, what is too long after its limit."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import pytest
from deadlint.config import Configurations
from deadlint.index.retries import Retries
from deadlint.memory import Memory
from deadlint.tree import worst
from deadlint.tree.grow import tree_of
from deadlint.tree.icicle import Bar, Icicle, icicle_of
from deadlint.tree.model import Amount, Known, Node, Order, Place
from deadlint.tree.nodes import group, limited
from hypothesis import given
from hypothesis import strategies as st

from tests.lint.tree.conftest import FIXTURES

PIPELINES = FIXTURES.parent / "pipelines"


def icicles(folder: Path) -> list[Icicle]:
    tree = tree_of((str(folder),), None, Configurations(Memory(None).known_rules))
    return [icicle_of(root) for root in tree.roots]


def named(icicle: Icicle, layer: str, name: str) -> Bar:
    return next(bar for bar in icicle.bars if (bar.node.layer, bar.node.name) == (layer, name))


@pytest.mark.parametrize("folder", [*sorted(p for p in FIXTURES.iterdir() if p.is_dir()), PIPELINES], ids=lambda p: p.name)
def test_no_bar_covers_another_and_none_leaves_the_axis(folder: Path) -> None:
    for icicle in icicles(folder):
        for bar in icicle.bars:
            assert 0 <= bar.start <= bar.end <= icicle.seconds + 1e-6
            assert bar.over is None or bar.end <= bar.over[0] < bar.over[1] <= icicle.seconds + 1e-6
        for one, two in combinations(icicle.bars, 2):
            if one.row == two.row:
                assert min(one.end, two.end) - max(one.start, two.start) < 1e-6, (one.node.name, two.node.name)


def test_what_begins_after_the_limit_around_it_is_told_apart() -> None:
    mosaic = icicles(PIPELINES)[0]
    assert named(mosaic, "flow", "build_mosaic").end == 3600
    late = named(mosaic, "task", "optimise")
    assert late.after
    assert late.start >= 3600
    assert late.end - late.start == 5400


def test_what_is_cut_off_by_a_limit_keeps_its_rest_apart() -> None:
    (flood,) = icicles(FIXTURES / "flood")
    ogr = next(bar for bar in flood.bars if bar.node.name == "ogr2ogr" and bar.over)
    assert (ogr.end - ogr.start, ogr.over) == (600, (ogr.end, ogr.end + 300))


def test_what_nothing_bounds_takes_the_room_that_is_left() -> None:
    (flood,) = icicles(FIXTURES / "flood")
    load = named(flood, "task", "load")
    assert load.open == "unbounded"
    assert named(flood, "function", "announce").end == pytest.approx(3600)


def test_a_budget_is_drawn_from_where_it_is_made_and_what_draws_on_it_ends_with_it() -> None:
    (flood,) = icicles(FIXTURES / "flood")
    budget, upload = named(flood, "budget", "publish"), named(flood, "function", "upload")
    assert budget.start == upload.start
    assert named(flood, "function", "announce").end == pytest.approx(budget.end)


def test_further_attempts_begin_after_the_pauses() -> None:
    (flood,) = icicles(FIXTURES / "flood")
    assert named(flood, "task", "fetch_scenes").ticks == (180, 360, 540)


PLACE = Place("/x.py", 1, 1)
SECONDS = st.sampled_from([1.0, 5.0, 10.0, 60.0])


def nodes() -> st.SearchStrategy[Node]:
    leaves = st.one_of(
        SECONDS.map(lambda s: limited(Node("process", "p", PLACE), Amount(s, Known.CONSTANT))),
        st.just(Node("process", "u", PLACE, worst=worst.UNBOUNDED)),
        st.just(limited(Node("process", "q", PLACE), Amount(None, Known.UNKNOWN))),
        SECONDS.map(lambda s: Node("budget", "b", PLACE, limit=Amount(s, Known.CONSTANT))),
    )

    def around(inner: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
        groups = st.builds(
            lambda children, order: group("function", "f", PLACE, children, order),
            st.lists(inner, min_size=1, max_size=4),
            st.sampled_from(Order),
        )
        limits = st.builds(
            lambda node, s, tries: limited(node, Amount(s, Known.CONSTANT), Retries(tries, 2.0) if tries > 1 else None),
            groups, SECONDS, st.integers(1, 3),
        )  # fmt: skip
        return st.one_of(groups, limits)

    return st.recursive(leaves, around, max_leaves=14)


@given(nodes())
def test_no_bar_of_any_tree_covers_another(root: Node) -> None:
    icicle = icicle_of(root)
    assert icicle.bars[0].node is root
    assert len(icicle.bars) == sum(1 for _ in root.walk())
    for bar in icicle.bars:
        assert 0 <= bar.start <= bar.end <= icicle.seconds + 1e-6
        assert bar.parent is None or bar.row > icicle.bars[bar.parent].row
    for one, two in combinations(icicle.bars, 2):
        if one.row == two.row:
            assert min(one.end, two.end) - max(one.start, two.start) < 1e-6
