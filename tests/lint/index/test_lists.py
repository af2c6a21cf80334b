"""Lists that are joined, extended or made of paths: what a command line may be."""

from __future__ import annotations

import ast

import pytest
from deadlint.index.module import Module
from deadlint.index.values import UNKNOWN, Const, Result, Sequence, Template, Values
from deadlint.settings import Settings
from deadlint.source import SourceFile


def last_value(text: str) -> Values:
    """What the last expression of a module may be."""
    module = Module(SourceFile("x.py", text), Settings())
    statement = module.tree.body[-1]
    assert isinstance(statement, ast.Expr)
    return module.resolver.evaluate(statement.value, module.scope)


def words(*texts: str) -> tuple[Values, ...]:
    return tuple((Const(text),) for text in texts)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('["gdalwarp"] + ["a", "b"]', Sequence(words("gdalwarp", "a", "b"))),
        ('["gdalwarp"] + anything', Sequence(words("gdalwarp"), open=True)),
        ('x = ["psql"]\nx += ["-c"]\nx', Sequence(words("psql", "-c"))),
        ("x = [1]\nx += other()\nx", Sequence(((Const(1),),), open=True)),
        ('"gdal" + "warp"', Const("gdalwarp")),
        ('x = "gdal"\nx += "warp"\nx', Const("gdalwarp")),
        ("x = 5\nx += 3\nx", Const(8)),
        ('" ".join(["gdalwarp", "a"])', Const("gdalwarp a")),
        ('" ".join(["gdalwarp", a])', Template(("gdalwarp", " ", None))),
        ('" ".join(["gdalwarp", *a])', Template(("gdalwarp", " ", None))),
        ('"gdalwarp a".split()', Sequence(words("gdalwarp", "a"))),
        ('f"gdalwarp {a}".split()', Sequence((*words("gdalwarp"), (Template((None,)),)), open=True)),
    ],
)
def test_sums_are_followed(text: str, expected: object) -> None:
    assert last_value(text) == (expected,)


def test_the_right_side_of_a_path_is_known() -> None:
    assert last_value('import pathlib\npathlib.Path(anything) / "gdalwarp"') == (Template((None, "/gdalwarp")),)


def test_the_text_of_an_object_keeps_the_object() -> None:
    value, unknown = last_value('import shutil\nstr(shutil.which("gdalwarp"))')
    assert unknown == UNKNOWN
    assert isinstance(value, Result)
    assert value.name == "builtins.str"
    assert value.call is not None


def test_a_sum_in_a_loop_ends() -> None:
    values = last_value("x = 0\nfor _ in y:\n    x += 1\nx")
    assert Const(8) not in values
    assert len(values) > 1


@pytest.mark.parametrize(
    "made",
    [
        "xs = [f(y) for y in ys]",
        "xs = []\nfor y in ys:\n    xs.append(f(y))",
        "xs = set()\nxs.add(f(1))",
    ],
)
def test_a_loop_gives_what_was_put_into_its_list(made: str) -> None:
    values = last_value(f"from subprocess import Popen as f\n{made}\nfor x in xs:\n    pass\nx")
    assert "subprocess.Popen" in {v.name for v in values if isinstance(v, Result)}
    assert UNKNOWN in values


def test_each_of_a_known_list_is_all_that_a_loop_gives() -> None:
    assert last_value("for x in [1, 2]:\n    pass\nx") == (Const(1), Const(2))
