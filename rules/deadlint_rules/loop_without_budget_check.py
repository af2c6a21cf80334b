"""DL408: a loop over units of slow work that never asks the budget."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from deadlint.index import limits
from deadlint.index.scopes import Scope
from deadlint.index.values import Function, Sequence
from deadlint.model import Edit, Fix, Level, Safety
from deadlint.rule import Rule
from deadlint.site import PROJECT, Report, Site, Target

from deadlint_rules._blocking import BLOCKING, SLEEP
from deadlint_rules._limits import HELPERS, every_scope, may_be_none

if TYPE_CHECKING:
    from deadlint.index.module import Module

_Loop = ast.For | ast.AsyncFor | ast.While
# What asks a clock, or an event that somebody sets when it is time to stop.
_ASKS = re.compile(
    r"(^|\.)(monotonic|time|perf_counter|now|utcnow|is_set|expired|remaining|check|cancelled|time_left)$"
)
_TIMEOUT = re.compile(r"(?:(?:total|overall|max|job|task)_)?(?:timeout|deadline|time_limit)(?:_s|_sec|_seconds)?")


class LoopWithoutBudgetCheck(Rule):
    """A loop over units of slow work that never asks the budget.

    ## What it does
    Looks at loops in a function that has a budget (a parameter, a local, `self.budget`): one whose turns wait for
    something outside (a request, a child process, a query, `time.sleep`), and in which the budget is not named: not
    checked, not sliced, not passed on. Loops over a few constants are clean, and calls of `deadlint_budget` inside
    `with budget:`, which ask by themselves. Strict: a loop that gives each turn the whole of a `timeout` that was meant
    for all of them, and never looks at a clock.

    ## Why it is bad
    A turn that is bounded is not a loop that is: a thousand tiles of 30 s each are eight hours, whatever the budget
    says. Long work stops cleanly only between its units, so that is the place to ask: what is done is then kept, and
    what is left can be named.

    ## Example
    ```python
    import subprocess

    from deadlint_budget import Budget

    TILE_LIMIT_S = 30


    def build(tiles, budget: Budget):
        for tile in tiles:
            subprocess.run(["gdalwarp", tile, "out.tif"], check=True, timeout=TILE_LIMIT_S)
    ```

    ## Use instead
    ```python
    from deadlint_budget import Budget, run

    TILE_LIMIT_S = 30


    def build(tiles, budget: Budget):
        for tile in budget.units(tiles, need=TILE_LIMIT_S):
            run(["gdalwarp", tile, "out.tif"], check=True, budget=budget, want=TILE_LIMIT_S)
    ```

    ## Fix safety
    Unsafe: `for x in items` becomes `for x in budget.units(items)`, which raises `UnitsLeft` where the budget ends
    before the items do. There is no fix for a `while`, for an asynchronous loop, and for a budget that may be None.

    ## Options
    None.

    ## References
    - [The deadlint_budget guide](../budget.md)
    """

    code = "DL408"
    name = "loop-without-budget-check"
    since = "0.1.0"
    calls = frozenset[str]()
    words = (
        *(("budget", loop) for loop in ("for ", "while ")),
        *(
            (parameter, "for ", "timeout=timeout", library)
            for parameter in (", timeout", "(timeout")
            for library in ("requests", "subprocess", "urlopen", "httpx")
        ),
    )

    def check(self, site: Site) -> Iterator[Report]:
        return iter(())

    def check_module(self, module: Module) -> Iterator[Report]:
        text = module.source.text
        if "budget" not in text and "timeout=timeout" not in text:
            return
        for scope in every_scope(module):
            if scope.kind == "function":
                for loop in _loops(scope):
                    yield from _check(loop, scope, module)


def _loops(scope: Scope) -> Iterator[_Loop]:
    """The outermost loops of a function: one check a turn of those is enough to begin with."""
    for statement, block in scope.blocks.items():
        if isinstance(statement, _Loop) and not any(b.kind == "loop" for b in block.chain()):
            yield statement


def _check(loop: _Loop, scope: Scope, module: Module) -> Iterator[Report]:
    if _is_short(loop, scope, module):
        return
    budget = module.budgets.in_scope(loop, scope)
    slow = _slow(loop, scope, module, within=budget is not None and _is_entered(loop, budget, module))
    if slow is None:
        return
    shown = f"`{ast.unparse(slow.func)}`" if len(ast.unparse(slow.func)) <= 40 else "slow work"
    if budget is not None:
        if _mentions(loop, scope, budget) or _asks(loop):
            return
        yield Report(
            loop,
            f"the turns of this loop wait for {shown}, and none of them asks the budget `{budget}`: the loop runs on"
            " after it is spent",
            f"iterate over `{budget}.units(…)`, or begin each turn with `{budget}.check()`",
            fix=partial(_fix, loop, budget, module) if not may_be_none(budget, scope) else None,
        )
    elif isinstance(loop, ast.For) and (name := _given_whole(slow, scope)) is not None and not _asks(loop):
        yield Report(
            loop,
            f"each turn of this loop may take the whole `{name}`, so all of them take as many times that",
            f"make one deadline of `{name}` before the loop, and give each turn what is left of it",
            Level.STRICT,
        )


def _is_short(loop: _Loop, scope: Scope, module: Module) -> bool:
    """Whether a loop runs over a few constants, or tries the same thing again."""
    match loop:
        case ast.For(iter=ast.Call(func=ast.Name(id="range"))):
            return not isinstance(loop.target, ast.Name) or not _uses(loop, loop.target.id)
        case ast.For(iter=ast.List() | ast.Tuple() | ast.Set()):
            return True
        case ast.For(iter=ast.Name() | ast.Attribute()):
            values = module.resolver.evaluate(loop.iter, scope)
            return all(isinstance(v, Sequence) and not v.open for v in values)
    return False


def _uses(loop: ast.For, name: str) -> bool:
    return any(isinstance(n, ast.Name) and n.id == name for s in loop.body for n in ast.walk(s))


def _slow(loop: _Loop, scope: Scope, module: Module, *, within: bool) -> ast.Call | None:
    """A call in the loop that waits for something outside; `within` an entered budget helpers ask by themselves."""
    for call in module.walker.walk(scope).calls:
        if loop not in module.ancestors(call) or _in_head(call, loop, module):
            continue
        site = module.site(call)
        if site is not None and any(_is_slow(target, loop, module, within=within) for target in site.targets):
            return call
    return None


def _is_slow(target: Target, loop: _Loop, module: Module, *, within: bool) -> bool:
    match target:
        case Target(name=name) if name.startswith("deadlint_budget."):
            return name in HELPERS and not within
        case Target(name=name) if name == SLEEP:
            return isinstance(loop, ast.While)
        case Target(name=name, receiver=Function(scope=scope)) if name == PROJECT:
            return _waits(scope, module)
        case Target(name=name):
            return name in BLOCKING or (name in limits.INNER and name not in limits.SCOPES)


def _in_head(call: ast.Call, loop: _Loop, module: Module) -> bool:
    """Whether a call stands in what the loop runs over, which is asked for once."""
    if isinstance(loop, ast.While):
        return False
    return call is loop.iter or loop.iter in module.ancestors(call)


def _waits(scope: Scope, module: Module) -> bool:
    """Whether a function of the file waits for something outside, itself."""
    if scope.module is not module.scope:
        return False
    for call in module.walker.walk(scope).calls:
        for target in module.targets(call):
            if target.name in BLOCKING and target.name != SLEEP:
                return True
    return False


def _is_entered(loop: _Loop, budget: str, module: Module) -> bool:
    withs = (n for n in module.ancestors(loop) if isinstance(n, ast.With | ast.AsyncWith))
    return any(budget in ast.unparse(item) for node in withs for item in node.items)


def _mentions(loop: _Loop, scope: Scope, budget: str) -> bool:
    """Whether the loop names the budget, or something that was made from it before."""
    derived = {budget, budget.rpartition(".")[2]}
    for name, bindings in scope.bindings.items():
        if any(b.value is not None and _names(b.value) & derived for b in bindings):
            derived.add(name)
    return bool(_names(loop) & derived) or "budget" in {n.lower() for n in _names(loop)}


def _names(node: ast.AST) -> set[str]:
    """The names and the last parts of the attributes in a node."""
    found = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
    return found | {n.attr for n in ast.walk(node) if isinstance(n, ast.Attribute)}


def _asks(loop: _Loop) -> bool:
    """Whether a turn looks at a clock, or asks somebody whether to stop."""
    return any(isinstance(n, ast.Call) and _ASKS.search(ast.unparse(n.func)) for n in ast.walk(loop))


def _given_whole(call: ast.Call, scope: Scope) -> str | None:
    """The parameter that a call is given as its `timeout`, as it came in."""
    for keyword in call.keywords:
        match keyword:
            case ast.keyword(arg="timeout", value=ast.Name(id=name)) if _TIMEOUT.fullmatch(name):
                bindings = scope.bindings.get(name, ())
                if bindings and all(b.kind == "parameter" for b in bindings):
                    return name
    return None


def _fix(loop: _Loop, budget: str, module: Module) -> Fix | None:
    """`for tile in tiles:` → `for tile in budget.units(tiles):`."""
    if not isinstance(loop, ast.For) or isinstance(loop.iter, ast.Tuple | ast.GeneratorExp | ast.Starred):
        return None
    start, end = module.source.extent(loop.iter)
    edits = (Edit(start, start, f"{budget}.units("), Edit(end, end, ")"))
    return Fix("stop between two units when the budget is spent", Safety.UNSAFE, edits)
