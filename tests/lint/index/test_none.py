"""Where None is excluded: guards, and functions that put a default in its place."""

from __future__ import annotations

import ast

import pytest
from deadlint.index.module import Module
from deadlint.index.values import NONE, Parameter, Result, Values
from deadlint.settings import Settings
from deadlint.source import SourceFile


def values_of(text: str) -> Values:
    """What the argument of the call of `use` may be."""
    module = Module(SourceFile("x.py", text), Settings())
    call = next(c for c in module.calls if isinstance(c.func, ast.Name) and c.func.id == "use")
    return module.resolver.evaluate(call.args[0], module.walker.scope_of[call])


def may_be_none(values: Values) -> bool:
    return any(v == NONE or (isinstance(v, Parameter) and NONE in v.default) for v in values)


@pytest.mark.parametrize(
    "body",
    [
        "    if value is None:\n        return fallback\n    return value",
        "    if not value:\n        return fallback\n    return value",
        "    return fallback if value is None else value",
        "    return value if value is not None else fallback",
        "    return value or fallback",
    ],
)
def test_a_function_that_replaces_none_gives_none_no_more(body: str) -> None:
    caller = "\ndef caller(limit=None):\n    use(either(limit, 10))\n"
    assert not may_be_none(values_of(f"def either(value, fallback):\n{body}\n{caller}"))


@pytest.mark.parametrize("body", ["    return value", "    return value if flag else fallback"])
def test_a_function_that_hands_none_on_keeps_it(body: str) -> None:
    caller = "\ndef caller(limit=None):\n    use(either(limit, 10))\n"
    assert may_be_none(values_of(f"def either(value, fallback):\n{body}\n{caller}"))


@pytest.mark.parametrize(
    "field",
    ["attr.ib(init=False)", "attrs.field()", "dataclasses.field(default=None)", "pydantic.Field()"],
)
def test_a_declared_field_is_what_its_annotation_says(field: str) -> None:
    text = (
        "import attr, attrs, dataclasses, pydantic, requests\n"
        f"class C:\n    session: requests.Session = {field}\n    def f(self):\n        use(self.session)\n"
    )
    assert Result("requests.Session") in values_of(text)


def test_a_field_that_is_named_like_its_type_is_of_that_type() -> None:
    text = (
        "import dataclasses\nfrom requests import Session as session\n"
        "class C:\n    session: session = dataclasses.field()\n    def f(self):\n        use(self.session)\n"
    )
    assert Result("requests.Session") in values_of(text)


def test_fields_that_name_each_other_as_types_come_to_an_end() -> None:
    text = (
        "import dataclasses\n"
        "class C:\n    a: b = dataclasses.field()\n    b: a = dataclasses.field()\n"
        "    def f(self):\n        use(self.a)\n"
    )
    assert values_of(text)
