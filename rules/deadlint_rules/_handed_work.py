"""Work that is handed to a thread or pool: which function it is, and what bounds it by itself."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from enum import IntEnum
from typing import TYPE_CHECKING

from deadlint.index.blocking import SLEEP
from deadlint.index.scopes import Scope
from deadlint.index.values import External, Function, Member, Object, Partial, Result, Value
from deadlint.site import Site, targets_of

from deadlint_rules._blocking import BLOCKING, blocks, bounded, shown
from deadlint_rules._limits import HELPERS
from deadlint_rules._processes import site_at

if TYPE_CHECKING:
    from deadlint.index.module import Module

# Where calls that hand work over take the function.
HANDING = {
    "asyncio.to_thread": 0, "asyncio.AbstractEventLoop.run_in_executor": 1, "anyio.to_thread.run_sync": 0,
    "trio.to_thread.run_sync": 0, "starlette.concurrency.run_in_threadpool": 0,
    "fastapi.concurrency.run_in_threadpool": 0, "homeassistant.core.HomeAssistant.async_add_executor_job": 0,
    "concurrent.futures.ThreadPoolExecutor.submit": 0,
    "concurrent.futures.ProcessPoolExecutor.submit": 0, "multiprocessing.Pool.apply_async": 0,
    "multiprocessing.pool.ThreadPool.apply_async": 0,
}  # fmt: skip
THREAD = "threading.Thread"  # whose work is `target`
_DEEPEST = 3  # calls between the function that is handed over and what blocks
# Arguments by which the work learns how long it may take, or that it must stop.
_TELLING = re.compile(
    r"timeout|deadline|budget|limit|max_time|cancel|stop|abort|event|seconds|remaining", re.IGNORECASE
)


class Bound(IntEnum):
    """What is known of the end of a piece of work; the worst last."""

    OWN = 0  # what blocks in it has a limit, or it is told when to end
    UNKNOWN = 1
    NONE = 2  # something in it waits without a limit


class Work:
    """The function that a call hands over; `culprit` is what waits in it without a limit."""

    def __init__(self, site: Site, call: ast.Call, name: str, own: tuple[str, ...] = ()) -> None:
        """`own` names the keywords that the call takes for itself."""
        self.site = site
        self.call = call
        place = HANDING.get(name, 1)
        self.function = call.args[place] if len(call.args) > place else None
        if name == THREAD:
            self.function = next((k.value for k in call.keywords if k.arg == "target"), None)
        self.keywords = [k for k in call.keywords if k.arg not in own]
        self.passed = [*call.args[place + 1 :], *(k.value for k in self.keywords)]
        self.culprit = ""

    @property
    def local(self) -> bool:
        """Whether it is handed over in the function that has the limit, so that all that it is given is in sight."""
        return self.site.module.walker.scope_of.get(self.call) is self.site.scope

    @property
    def label(self) -> str:
        """How messages call the work."""
        text = ast.unparse(self.function) if self.function is not None else ""
        return f"`{text}`" if text.isprintable() and 0 < len(text) <= 40 and "lambda" not in text else "the work"

    @property
    def bound(self) -> Bound:
        """What is known of its end."""
        if self.function is None:
            return Bound.UNKNOWN
        names = {k.arg or "" for k in self.keywords}
        texts = [*names, *(ast.unparse(p) for p in self.passed if not isinstance(p, ast.Constant))]
        if any(_TELLING.search(text) for text in texts):
            return Bound.OWN
        scope = self.site.module.walker.scope_of.get(self.call, self.site.scope)
        values = self.site.module.resolver.evaluate(self.function, scope)
        return self._joined(self._of_value(value, scope) for value in values)

    def _of_value(self, value: Value, scope: Scope) -> Bound:
        match value:
            case Partial(function=function, call=call):
                if any(_TELLING.search(k.arg or "") for k in call.keywords):
                    return Bound.OWN
                return self._of_value(function, scope)
            case External(name=name) | Member(name=name) if name in BLOCKING and name != SLEEP:
                self.culprit = f"`{name}`"
                return Bound.NONE
            case Function(scope=inner):
                return self._of_function(inner, _DEEPEST)
        return Bound.UNKNOWN

    def _of_function(self, function: Scope, depth: int) -> Bound:
        module = self.site.module
        function = module.resolver.walked(function)
        if any(_TELLING.search(name) for name in _asked(function)):
            return Bound.OWN
        found: list[Bound] = []
        for call in function.calls:
            for value in module.resolver.evaluate(call.func, function):
                match value:
                    case Function(scope=inner) if depth and inner is not function:
                        found.append(self._of_function(inner, depth - 1))
                    case External() | Member():
                        found.extend(self._of_call(call, function, module, value))
        return self._joined(found) if found else Bound.UNKNOWN

    def _of_call(self, call: ast.Call, scope: Scope, module: Module, value: Value) -> Iterator[Bound]:
        for target in targets_of((value,)):
            if target.name in HELPERS:
                yield Bound.OWN  # they end with `want` or a budget
            if target.name not in BLOCKING or target.name == SLEEP:
                continue
            site = site_at(module, call, scope, target.name)
            if blocks(site) and not bounded(site):
                self.culprit = shown(site)
                yield Bound.NONE
            else:
                yield Bound.OWN

    def _joined(self, bounds: Iterator[Bound] | list[Bound]) -> Bound:
        """Of what blocks one after the other: what has no limit counts, then what has one."""
        every = set(bounds)
        return Bound.NONE if Bound.NONE in every else Bound.OWN if Bound.OWN in every else Bound.UNKNOWN


def _asked(function: Scope) -> Iterator[str]:
    """What a function asks to learn whether it must end: `stop.is_set()`, `time.monotonic()`."""
    for call in function.calls:
        name = ast.unparse(call.func)
        if name.rpartition(".")[2] in ("is_set", "check", "cancelled", "should_stop", "is_cancelled"):
            yield "stop"
        elif name in ("time.monotonic", "monotonic"):
            yield "deadline"


def executor_of(value: Value | None) -> Result | None:
    """The executor that a future comes from, or that a method belongs to."""
    match value:
        case Result(name="concurrent.futures.ThreadPoolExecutor" | "concurrent.futures.ProcessPoolExecutor"):
            return value
        case Result(receiver=receiver) | Member(receiver=receiver):
            return executor_of(receiver)
        case Object():
            return None
    return None
