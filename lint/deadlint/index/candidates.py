"""Which calls of a module may be some that rules look at, found without parsing or following the others.

A function whose source holds neither the last part of a wanted name nor a name by which the file itself calls one is
not parsed: nothing in it can be a site.
"""

from __future__ import annotations

import ast
import builtins
import sys
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from deadlint.index.known import LIBRARIES, canonical
from deadlint.index.scopes import Binding, Scope, Walker, dotted

if TYPE_CHECKING:
    from deadlint.index.module import Module

# What a task's decorator adds that runs the function while the caller waits or holds its future.
RUNNING = frozenset({"submit", "map", "fn", "run", "__wrapped__"})
# Calls that run the function at this position of their arguments.
HANDED_OVER = {
    "asyncio.to_thread": 0,
    "asyncio.AbstractEventLoop.run_in_executor": 1,
    "anyio.to_thread.run_sync": 0,
    "trio.to_thread.run_sync": 0,
    "starlette.concurrency.run_in_threadpool": 0,
    "fastapi.concurrency.run_in_threadpool": 0,
    "homeassistant.core.HomeAssistant.async_add_executor_job": 0,
    "concurrent.futures.Executor.submit": 0,
    "concurrent.futures.ThreadPoolExecutor.submit": 0,
    "concurrent.futures.ProcessPoolExecutor.submit": 0,
    "concurrent.futures.ThreadPoolExecutor.map": 0,
    "concurrent.futures.ProcessPoolExecutor.map": 0,
}
_HANDING_OVER = frozenset(name.rpartition(".")[2] for name in HANDED_OVER)
# A call of what is no name: of what a call returns, or an item. Nothing in its text says what it is.
_NAMELESS = (")(", "](")
_BUILTINS = frozenset(dir(builtins))
_LIBRARIES = sys.stdlib_module_names | LIBRARIES
_PLAIN = (
    ast.Constant, ast.Dict, ast.List, ast.Tuple, ast.Set, ast.JoinedStr, ast.BinOp, ast.Compare, ast.UnaryOp,
    ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Wanted:
    """The calls that rules look at: by the last parts of their names, None for all calls, and which run a function.

    `runs` says of a function of the project, by its header, whether calls that run it matter; None where none do.
    """

    tails: frozenset[str] | None
    runs: Callable[[Scope], bool] | None = None


def candidates(module: Module, wanted: Wanted) -> tuple[ast.Call, ...]:
    """The calls that may be wanted, in the order of the source."""
    if wanted.tails is None:
        return module.calls
    return _Search(module, wanted.tails, wanted.runs).calls()


class _Search:
    """Widens what is parsed until no more of it could hold a wanted call."""

    def __init__(self, module: Module, tails: frozenset[str], runs: Callable[[Scope], bool] | None) -> None:
        self._text = module.source.text
        self._walker = module.walker
        self._tails = tails
        self._runs = runs
        also = RUNNING | _HANDING_OVER if runs is not None else frozenset()
        self._attributes = set(tails | also)  # last parts of calls of attributes
        # Of calls of names, whatever the scope; of a star import or a builtin nothing else tells.
        star = module.scope.bindings.get("*")
        self._names = set(tails | also if star else tails & _BUILTINS)
        self._abroad = set(self._names)  # those that other functions see, and attributes

    def calls(self) -> tuple[ast.Call, ...]:
        """The calls that may be wanted."""
        bodies = _Bodies(self._walker)
        bodies.walk(_attributes_in(self._text, frozenset(self._attributes)))
        sought: set[str] = set()
        while True:
            self._walker.walk_parsed()
            self._learn()
            names = self._abroad - sought
            sought |= names
            if not names or not bodies.walk(_names_in(self._text, names)):
                break
        found = [call for scope in self._walker.filled for call in scope.calls if self._matters(call)]
        return tuple(sorted(found, key=end_of))

    def _matters(self, call: ast.Call) -> bool:
        match call.func:
            case ast.Attribute(attr=name):
                return name in self._attributes
            case ast.Name(id=name):
                return name in self._names
        return True

    # --- names by which the file itself calls something ------------------------------------------------------

    def _learn(self) -> None:
        before = -1
        while before != len(self._names) + len(self._attributes):
            before = len(self._names) + len(self._attributes)
            for scope in self._walker.filled:
                self._learn_from(scope)

    def _learn_from(self, scope: Scope) -> None:
        local = scope.kind in ("function", "lambda")
        for name, bindings in scope.bindings.items():
            if name not in self._names and any(self._may_be_wanted(b) for b in bindings):
                self._names.add(name)
                self._attributes.add(name)
                if not local:
                    self._abroad.add(name)
        for (_, name), assigned in scope.attributes.items():
            if name not in self._abroad and any(self._may_be_wanted(b) for b, _ in assigned):
                self._attributes.add(name)
                self._abroad.add(name)
        if self._runs is not None:
            for function in scope.functions:
                if function.name not in self._abroad and function.kind == "function" and self._runs(function):
                    self._names.add(function.name)
                    self._attributes.add(function.name)
                    self._abroad.add(function.name)

    def _may_be_wanted(self, binding: Binding) -> bool:
        match binding.kind:
            case "import":
                return self._import_may_be(binding.target)
            case "assign" | "iterate" | "enter":
                return self._value_may_be(binding.value, unpacked=binding.index is not None or binding.kind != "assign")
        return False

    def _import_may_be(self, target: str) -> bool:
        if canonical(target).rpartition(".")[2] in self._tails:
            return True
        return self._runs is not None and not is_library(target)

    def _value_may_be(self, value: ast.expr | None, *, unpacked: bool = False) -> bool:
        """Whether an assigned value may be a wanted function, or a partial of one."""
        match value:
            case None:
                return False
            case ast.Attribute(attr=name) | ast.Name(id=name):
                return unpacked or name in self._attributes or name in self._names
            case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name)):
                return name in _MAKING
            case ast.Lambda():
                return self._runs is not None
            case ast.IfExp(body=body, orelse=orelse):
                return self._value_may_be(body) or self._value_may_be(orelse)
            case ast.BoolOp(values=parts):
                return any(self._value_may_be(part) for part in parts)
            case ast.Await(value=inner) | ast.NamedExpr(value=inner):
                return self._value_may_be(inner)
        return unpacked or not isinstance(value, _PLAIN)


# Calls whose result is called in turn: `partial(requests.get, …)`.
_MAKING = frozenset({"partial", "getattr", "partialmethod"})


class _Bodies:
    """The functions whose bodies are not parsed yet, by where they stand in the text."""

    def __init__(self, walker: Walker) -> None:
        self._walker = walker
        placed = sorted(
            ((span, scope) for scope in walker.deferred if (span := scope.span) is not None), key=lambda one: one[0]
        )
        self._starts = [span[0] for span, _ in placed]
        self._ends = [span[1] for span, _ in placed]
        self._scopes = [scope for _, scope in placed]

    def walk(self, places: Iterable[int]) -> bool:
        """Parse those in which one of the places lies; whether there were any."""
        if not self._starts:
            return False
        found: set[int] = set()
        for place in places:
            number = bisect_right(self._starts, place) - 1
            if number >= 0 and place < self._ends[number]:
                found.add(number)
        new = [self._scopes[number] for number in sorted(found) if self._scopes[number].outline is not None]
        for scope in new:
            self._walker.walk_all(scope)
        return bool(new)


def parse_where(walker: Walker, text: str, words: frozenset[str]) -> None:
    """Parse the functions whose source holds one of the words."""
    bodies = _Bodies(walker)
    bodies.walk(start for _, start, _ in _word_finder(words).find_matches_as_indexes(text, overlapping=True))


@lru_cache(maxsize=64)
def _word_finder(words: frozenset[str]) -> Any:
    import ahocorasick_rs  # noqa: PLC0415 - a warm run looks for nothing

    return ahocorasick_rs.AhoCorasick(sorted(words))


def _attributes_in(text: str, names: frozenset[str]) -> Iterator[int]:
    """Where one of the names is taken from something, or something without a name is called."""
    for _, start, end in _finder(names).find_matches_as_indexes(text, overlapping=True):
        if text[start] != "." or not _continues(text[end : end + 1]):
            yield start


@lru_cache(maxsize=512)
def _finder(names: frozenset[str]) -> Any:
    import ahocorasick_rs  # noqa: PLC0415 - a warm run looks for nothing

    return ahocorasick_rs.AhoCorasick([*(f".{name}" for name in sorted(names)), *_NAMELESS, "getattr("])


def _names_in(text: str, names: Iterable[str]) -> Iterator[int]:
    """Where one of the names stands as a word."""
    import ahocorasick_rs  # noqa: PLC0415 - a warm run looks for nothing

    for _, start, end in ahocorasick_rs.AhoCorasick([*names]).find_matches_as_indexes(text, overlapping=True):
        if _continues(text[start - 1 : start]) or _continues(text[end : end + 1]):
            continue
        if text[start - 4 : start] != "def ":  # a function is no call of itself
            yield start


def _continues(character: str) -> bool:
    """Whether a name goes on with a character."""
    return character == "_" or character.isalnum()


@dataclass(eq=False)
class Mentions:
    """Calls by each name that they call or hand over, so that the callers of a function are found quickly."""

    module: Module
    _calls: dict[str, list[ast.Call]] = field(default_factory=lambda: defaultdict(list))
    _noted: int = 0  # how many of the filled scopes

    def of(self, name: str) -> list[ast.Call]:
        """The calls that mention `name`, in the order of the source."""
        walker = self.module.walker
        walker.walk_where(name)
        walker.walk_parsed()
        for scope in walker.filled[self._noted :]:
            for call in scope.calls:
                self._note(call)
        self._noted = len(walker.filled)
        return sorted(self._calls.get(name, ()), key=end_of)

    def _note(self, call: ast.Call) -> None:
        names = {dotted(call.func).rpartition(".")[2] or getattr(call.func, "attr", "")}
        if isinstance(call.func, ast.Attribute):
            names.add(dotted(call.func.value).rpartition(".")[2])
            if isinstance(call.func.value, ast.Call):
                names.add(dotted(call.func.value.func).rpartition(".")[2])
        handed = call.func.args if isinstance(call.func, ast.Call) else []  # `partial(f, …)()`
        for argument in (*call.args, *handed, *(k.value for k in call.keywords)):
            made = argument.args[0] if isinstance(argument, ast.Call) and argument.args else argument
            names.update(dotted(part).rpartition(".")[2] for part in (argument, made))  # `partial(f, …)`
        for name in names - {""}:
            self._calls[name].append(call)


def end_of(node: ast.expr) -> tuple[int, int]:
    """The place behind a node, by which calls are ordered: an argument comes before the call that it is given to."""
    return (node.end_lineno or 0, node.end_col_offset or 0)


def is_library(target: str) -> bool:
    """Whether a dotted name certainly leads to no module of the project."""
    return target.startswith(".") or target.partition(".")[0] in _LIBRARIES
