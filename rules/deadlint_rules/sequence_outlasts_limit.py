"""DL410: limits in sequence that add up to more than the one around them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from deadlint.graph import Around
from deadlint.index import limits
from deadlint.index.scopes import Scope
from deadlint.model import Level, Related
from deadlint.rule import Rule
from deadlint.site import Report, Site

from deadlint_rules._courses import Course, Courses, Part, total
from deadlint_rules._limits import amount, every_scope, places, route, seconds, tightest

if TYPE_CHECKING:
    from deadlint.index.module import Module


class SequenceOutlastsLimit(Rule):
    """Limits one after the other that add up to more than the limit around them.

    ## What it does
    Adds up the limits of what certainly runs in sequence in a function under a limit: requests, child processes,
    scopes, tasks that are called (not submitted), functions of the project with what they call in turn. A loop over a
    known number of items counts as often. Of branches only the shorter counts, and of work that runs at the same time,
    none.
    A limit that is too long on its own is DL401's, and attempts at the same thing are DL403's.

    Default where the limit around is that of a task, flow, job, DAG or operator; strict where it is a scope in the code
    (`asyncio.timeout`), which may well be meant as what bounds the whole.

    ## Why it is bad
    Each limit was chosen on its own. When upstream is slow the first steps use up the time, and the limit around fires
    in a later one that did nothing wrong: the failure names the wrong step, and its work is lost.

    ## Example
    ```python
    import subprocess

    from prefect import task


    @task(timeout_seconds=900)
    def build_tile(tile):
        subprocess.run(["gdalwarp", tile, "a.tif"], check=True, timeout=600)
        subprocess.run(["gdaladdo", "a.tif"], check=True, timeout=600)
    ```

    ## Use instead
    ```python
    from deadlint_budget import Budget, run
    from prefect import task

    BUILD_TILE_RESERVE_S = 90


    @task(timeout_seconds=900)
    def build_tile(tile):
        budget = Budget.of(900, reserve=BUILD_TILE_RESERVE_S)
        run(["gdalwarp", tile, "a.tif"], check=True, budget=budget, want=600)
        run(["gdaladdo", "a.tif"], check=True, budget=budget, want=600)
    ```
    Each step then gets what is left, up to its own limit.

    ## Fix safety
    There is no fix: which of the numbers is the wrong one is for a person to say.

    ## Options
    None.

    ## References
    - [The deadlint_budget guide](../budget.md)
    """

    code = "DL410"
    name = "sequence-outlasts-limit"
    since = "0.1.0"
    calls = frozenset[str]()
    words = (*limits.WORDS, ("job_timeout",))

    def check(self, site: Site) -> Iterator[Report]:
        return iter(())

    def check_module(self, module: Module) -> Iterator[Report]:
        courses = Courses(module)
        for scope in every_scope(module):
            if scope.kind == "function":
                yield from _function(scope, courses, module)
            yield from _scopes(scope, courses, module)


def _function(scope: Scope, courses: Courses, module: Module) -> Iterator[Report]:
    """A function as a whole, under the tightest limit on or around it."""
    outer = tightest(a for a in module.graph.around_function(scope) if all(step.direct for step in a.path))
    if outer is not None:
        yield from _outlasting(courses.of_function(scope), outer, module)


def _scopes(scope: Scope, courses: Courses, module: Module) -> Iterator[Report]:
    """What stands in the `with` of a limit."""
    for statement in scope.blocks:
        if not isinstance(statement, ast.With | ast.AsyncWith):
            continue
        inside = next(iter(statement.body))
        # What is around the body and not around the statement are the limits that it enters.
        outer = tightest(Around(one) for one in _entered(statement, inside, scope, module))
        if outer is not None:
            yield from _outlasting(courses.of_statements(statement.body, scope, module), outer, module)


def _entered(node: ast.With | ast.AsyncWith, inside: ast.stmt, scope: Scope, module: Module) -> Iterator[limits.Limit]:
    around = set(limits.lexical(node, scope, module))
    return (one for one in limits.lexical(inside, scope, module) if one not in around and one.layer != "wait")


def _outlasting(course: Course, outer: Around, module: Module) -> Iterator[Report]:
    """The finding at the part with which a course becomes longer than the limit around it."""
    ends = outer.limit.seconds or 0.0
    if len(course) < 2 and not any(part.times > 1 for part in course):
        return
    if any(part.seconds >= ends for part in course) or total(course) <= ends:
        return
    before: list[Part] = []
    for part in course:
        before.append(part)
        if total(tuple(before)) > ends:
            break
    node = before[-1].node
    if not isinstance(module.walker.scope_of.get(node), Scope):
        return
    earlier = tuple(
        Related(module.source.path, module.span(part.node), f"before it, {_shown(part)}") for part in before[:-1]
    )
    yield Report(
        node,
        f"{_added(course)} in sequence are {seconds(total(course))} inside {outer.limit.label}, which ends at"
        f" {amount(outer.limit)}{route(outer)}; it fires in a later step and hides which one was slow",
        "give each step what is left of one budget, up to a limit of its own: `budget.slice(…)`",
        Level.STRICT if outer.limit.layer == "scope" else Level.DEFAULT,
        (*places(outer), *earlier),
    )


def _added(course: Course) -> str:
    shown = [_shown(part) for part in course]
    return " + ".join(shown) if len(shown) <= 4 else f"{' + '.join(shown[:3])} + {len(shown) - 3} more"


def _shown(part: Part) -> str:
    times = f"{part.times} × " if part.times > 1 else ""
    default = f"default of {part.default}: " if part.default else ""
    return f"{part.label} ({default}{times}{seconds(part.seconds)})"
