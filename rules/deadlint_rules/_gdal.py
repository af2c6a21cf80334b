"""GDAL in process: which calls take a progress callback, and whether that callback can stop them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from deadlint.index.blocking import GDAL, GDAL_ALGORITHMS, GDAL_MODULES, GDAL_UTILITIES
from deadlint.index.scopes import Scope
from deadlint.index.values import (
    NONE,
    Const,
    External,
    Function,
    Object,
    Partial,
    Result,
    Sequence,
    Template,
    Value,
    Values,
)
from deadlint.site import Argument, Site

from deadlint_rules._processes import site_at

UTILITIES = GDAL_UTILITIES
POSITIONS = GDAL
ALGORITHMS = GDAL_ALGORITHMS


def keyword_of(site: Site) -> str:
    """The keyword under which a call takes its callback."""
    return "progress" if site.name in ALGORITHMS else "callback"


def algorithm(site: Site) -> tuple[str, ...]:
    """The words of the algorithm that `gdal.Run` or `Algorithm.Run` runs: `("raster", "convert")`; empty if unknown."""
    call = site.call
    if site.name.endswith("Algorithm.Run"):
        made = site.target.receiver
        if not isinstance(made, Result) or made.call is None:
            return ()
        call = made.call
    words: list[str] = []
    for argument in call.args:
        for value in site.values(argument)[:1]:
            match value:
                case Const(value=str() as text):
                    words += text.split()
                case Sequence(items=items):
                    found = (v.value for item in items for v in item if isinstance(v, Const))
                    words += [text for text in found if isinstance(text, str)]
    return tuple(word for word in words if word.isidentifier() or "-" in word)


def algorithm_argument(site: Site, name: str) -> Argument:
    """What `gdal.Run` gives its algorithm as `name`: by keyword, or in the dict behind the words."""
    given = site.argument(name)
    if not given.absent or site.name.endswith("Algorithm.Run"):
        return given
    for node in (*site.call.args, *(k.value for k in site.call.keywords if k.arg == "arguments")):
        if isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                if isinstance(key, ast.Constant) and key.value == name:
                    return Argument(site.values(value), value)
    return given


def short_work(site: Site) -> bool:
    """Whether an algorithm only looks, or writes a text."""
    words = algorithm(site)
    return not words or words[-1] in ("info", "identify", "list") or words[0] in ("vsi", "driver")


def short(name: str) -> str:
    """How messages call a function of GDAL: `gdal.Warp`, `BuildOverviews`."""
    tail = name.rpartition(".")[2]
    if name.endswith("Algorithm.Run"):
        return "Algorithm.Run"
    return f"gdal.{tail}" if name.removeprefix("osgeo.") == f"gdal.{tail}" else tail


@dataclass(frozen=True, slots=True)
class Callback:
    """The callback of a call. `holder` is the call that takes it: the site's own, or that of its options object."""

    argument: Argument
    holder: ast.Call | None
    ignored: bool = False  # given beside an options object, which makes GDAL ignore every keyword


def callback_of(site: Site) -> Callback | None:
    """The callback that a call has, absent where it has none; None where that is not known."""
    own = site.argument(keyword_of(site), POSITIONS[site.name])
    if site.name not in UTILITIES:
        return Callback(own, site.call)
    options = site.argument("options")
    if options.absent or all(_is_text(v) for v in options.values):
        return Callback(own, site.call)
    made = [v for v in options.values if isinstance(v, Result) and v.name.endswith("Options")]
    if len(options.values) != 1 or not made or made[0].call is None:
        return None
    call = made[0].call
    inner = site_at(site.module, call, made[0].scope or site.scope, made[0].name).argument("callback")
    if inner.absent and not own.absent:
        return Callback(own, None, ignored=True)
    return Callback(inner, call if call is options.node else None)


def _is_text(value: Value) -> bool:
    """Whether options are a list or a text: then the keywords of the call count as well."""
    match value:
        case Const(value=str() | None):
            return True
        case Result() | External() | Object():
            return False
    return type(value).__name__ in ("Sequence", "Template")


class Stops(Enum):
    """Whether a callback can stop the call."""

    NEVER = "never"
    PERHAPS = "perhaps"
    NONE = "none"  # there is no callback


def stops(argument: Argument, site: Site) -> Stops:
    """Whether the callback that is given ever returns 0 or False."""
    values = tuple(v for v in argument.values if v != NONE and v != Const(0))
    if not values:
        return Stops.NONE
    return Stops.NEVER if all(_goes_on(v, site) for v in values) else Stops.PERHAPS


_BARS = frozenset(f"{m}.TermProgress{s}" for m in GDAL_MODULES for s in ("", "_nocb"))


def _goes_on(value: Value, site: Site) -> bool:
    match value:
        case External(name=name):
            return name in _BARS
        case Partial(function=function):
            return _goes_on(function, site)
        case Function(scope=scope):
            return _always_on(scope, site)
        case Object(cls=cls):
            method = site.module.resolver.method(cls, "__call__")
            return method is not None and _always_on(method, site)
    return False


def _always_on(function: Scope, site: Site) -> bool:
    """Whether a function of the project returns nothing, or only what tells GDAL to go on."""
    inner = site.module.resolver.walked(function)
    if inner.yields:
        return False
    results: Iterator[Values] = (site.module.resolver.evaluate(result, inner) for result in inner.returns)
    return all(_true_or_none(values) for values in results)


def _true_or_none(values: Values) -> bool:
    return bool(values) and all(_true(v) for v in values)


def _true(value: Value) -> bool:
    match value:
        case Const(value=None) | Result(name="builtins.print"):
            return True
        case Const(value=int() as number):
            return number != 0
    return False


def is_virtual(site: Site) -> bool:
    """Whether the call writes no pixels: a VRT is a text that says where they are."""
    name = short(site.name)
    if name == "gdal.BuildVRT":
        return True
    if site.name in ALGORITHMS:
        return short_work(site)
    if name == "CreateCopy":
        match site.target.receiver:
            case Result(call=ast.Call(args=[ast.Constant(value="VRT")])):
                return True
    formats = [site.argument("format").constant]
    for value in site.argument("options").values:
        match value:
            case Result(call=ast.Call() as call, scope=Scope() as scope):
                formats.append(site_at(site.module, call, scope, value.name).argument("format").constant)
    return Const("VRT") in formats or any(_ends_in_vrt(v) for v in site.argument("destName", 0).values)


def _ends_in_vrt(value: Value) -> bool:
    match value:
        case Const(value=str() as text):
            return text.endswith(".vrt")
        case Template(parts=(*_, str() as last)):
            return last.endswith(".vrt")
    return False
