"""DL403: attempts and the pauses between them that take longer than the limit around them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from deadlint.graph import Around
from deadlint.index import airflow, limits, retries
from deadlint.index.flow import is_decorated
from deadlint.index.retries import Retries
from deadlint.index.scopes import Scope
from deadlint.index.values import Const, Function, number
from deadlint.rule import Rule
from deadlint.site import PROJECT, Report, Site, Target

from deadlint_rules._limits import amount, places, route, seconds, tightest

if TYPE_CHECKING:
    from deadlint.index.module import Module

_CONFIG = "botocore.config.Config"
_BOTOCORE_READ = 60.0  # what botocore takes where `read_timeout` is not given


class RetriesOutlastLimit(Rule):
    """The attempts of a retry, with the pauses between them, take longer than the limit around them.

    ## What it does
    Multiplies the limit of one attempt by the number of attempts, adds the pauses, and compares the result with the
    limit around it. It knows the retry options of Prefect tasks, of Airflow tasks (with the `default_args` of a DAG)
    and of Dagster's `RetryPolicy`, the decorators of tenacity, backoff, stamina and retrying, urllib3's `Retry` on a
    session, the `retries` of botocore's `Config`, and loops such as `for attempt in range(5)`. Where nothing bounds one
    attempt, only the pauses count. An attempt that is too long on its own is DL401's.

    ## Why it is bad
    The limit was chosen for one attempt, so it fires in the middle of a later one: the last retries never run to
    their end, and the failure that is reported is the outer limit's, not the one that was being retried. Measured
    with Prefect 3.9: `timeout_seconds` holds per attempt, so a limit of 1 s with two retries and a delay of 1 s takes
    5.1 s. A limit on the whole does not shorten an attempt either: tenacity's `stop_after_delay(2)` came back after
    3.0 s, since it asks the clock only between attempts.

    ## Example
    ```python
    from prefect import flow, task


    @task(retries=3, retry_delay_seconds=60, timeout_seconds=600)
    def build_tile(tile):
        return tile


    @flow(timeout_seconds=1200)
    def build_mosaic(tile):
        return build_tile(tile)
    ```

    ## Use instead
    ```python
    from prefect import flow, task


    @task(retries=1, retry_delay_seconds=60, timeout_seconds=480)
    def build_tile(tile):
        return tile


    @flow(timeout_seconds=1200)
    def build_mosaic(tile):
        return build_tile(tile)
    ```
    Better still, let one budget bound all attempts: `for attempt in budget.attempts(…)`.

    ## Fix safety
    There is no fix: whether fewer attempts, shorter ones or a longer limit is right is for a person to say.

    ## Options
    None.

    ## References
    - [Prefect: retries](https://docs.prefect.io/v3/how-to-guides/workflows/retries)
    - [Airflow: tasks](https://airflow.apache.org/docs/apache-airflow/stable/core-concepts/tasks.html)
    - [tenacity](https://tenacity.readthedocs.io/)
    """

    code = "DL403"
    name = "retries-outlast-limit"
    since = "0.1.0"
    calls = frozenset(limits.INNER) | retries.LIBRARIES | {PROJECT, "airflow.**", _CONFIG}
    words = tuple(
        (retry, limit)
        for retry in (
            "retries", "retry_policy", "tenacity", "backoff", "stamina", "retrying", "attempt", "in range(", "Retry(",
        )
        for limit in (
            "asyncio.timeout", "wait_for(", "async_timeout", "fail_after", "move_on_after", "timeout_seconds",
            "time_limit", "max_runtime", "dagrun_timeout", "execution_timeout", "timeout_decorator", "func_set_timeout",
        )
    )  # fmt: skip

    def concerns(self, function: Scope) -> bool:
        """It is tried again by its decorators."""
        return is_decorated(function)

    def check(self, site: Site) -> Iterator[Report]:
        if site.name == PROJECT:
            for target in site.targets:
                match target.receiver:
                    case Function(scope=scope):
                        yield from _inside(site, _of_function(scope, site), site.around)
        elif limits.is_operator(site.name):
            yield from _operator(site)
        elif site.name in retries.LIBRARIES:
            yield from _decorator(site)
        elif site.name == _CONFIG:
            yield from _config(site)
        elif site.name in limits.INNER:
            yield from _loop(site)
            yield from _session(site)


@dataclass(frozen=True, slots=True)
class _Course:
    """The longest course of something that is tried again: of one attempt, how many, and all in all."""

    label: str
    attempt: float
    retries: Retries
    total: float
    default: str = ""  # whose default the limit of an attempt is

    def sum(self) -> str:
        """`4 × 600 s + 180 s of pauses = 2,580 s`."""
        total = seconds(self.total)
        counted = self.retries.attempts
        if counted is None or self.total != counted * self.attempt + self.retries.pauses:
            begins = seconds(self.retries.begins_until or 0.0)
            return f"{begins} + a last attempt of {seconds(self.attempt)} = {total}"
        if not self.attempt:
            return f"{total} of pauses between {counted} attempts"
        pauses = f" + {seconds(self.retries.pauses)} of pauses" if self.retries.pauses else ""
        default = f" (default of {self.default})" if self.default else ""
        return f"{counted} attempts × {seconds(self.attempt)}{default}{pauses} = {total}"


def _course(label: str, attempt: float, tried: Retries, default: str = "") -> _Course | None:
    total = tried.lasting(attempt)
    return None if total is None else _Course(label, attempt, tried, total, default)


def _of_function(scope: Scope, site: Site, above: ast.Call | None = None) -> _Course | None:
    """The longest course of a function under its decorators; of those up to `above` where that is given."""
    decorators = list(retries.decorator_sites(scope, site.module))
    if not any(retries.of_decorator(_options(one, site, "retries")) is not None for one in decorators):
        return None  # most functions; to look at their bodies costs a parse
    longest, default = _body(scope, limits.home_of(scope, site.module))
    found: _Course | None = None
    for decorator in reversed(decorators):
        limit = _options(decorator, site, "timeout_seconds")
        ends = limits.decorator_limit(limit, scope.name)
        tried = retries.of_decorator(_options(decorator, site, "retries"))
        if ends is not None and ends.seconds and ends.seconds > 0 and (found is None or ends.seconds < found.total):
            longest, default, found = ends.seconds, ends.default, None
        if tried is not None:
            found = _course(f"`{scope.name}`", longest, tried, default) or found
            longest = found.total if found is not None else longest
        if decorator.call is above:
            break
    return found


def _options(decorator: Site, site: Site, keyword: str) -> Site:
    """What gives an option of a Prefect task: its decorator, or the `with_options` of this very call."""
    func = site.call.func
    changed = func.value if isinstance(func, ast.Attribute) else func
    match changed:
        case ast.Call(func=ast.Attribute(attr="with_options")) if decorator.name in ("prefect.task", "prefect.flow"):
            if any(given.arg == keyword for given in changed.keywords):
                return Site(site.module, changed, site.scope, (Target(decorator.name),), decorator.name)
    return decorator


def _body(scope: Scope, module: Module) -> tuple[float, str]:
    """The longest limit of a call in a body that is no budget's, and whose default it is; 0 where none is known."""
    longest, default = 0.0, ""
    for call in module.walker.walk(scope).calls:
        for target in module.targets(call):
            if target.name in limits.INNER and not target.name.startswith("deadlint_budget."):
                limit = limits.of_call(Site(module, call, scope, (target,), target.name))
                if limit is not None and limit.seconds is not None and limit.seconds > longest:
                    longest, default = limit.seconds, limit.default
    return longest, default


def _inside(site: Site, course: _Course | None, around: tuple[Around, ...]) -> Iterator[Report]:
    """The finding about a course that is longer than the tightest limit around it, though one attempt is not."""
    outer = tightest(around)
    if course is None or outer is None or outer.limit.seconds is None:
        return
    if course.attempt < outer.limit.seconds < course.total:
        short = seconds(outer.limit.seconds)
        yield site.report(
            f"{course.label} may take {course.sum()} inside {outer.limit.label}, which ends at"
            f" {amount(outer.limit)}{route(outer)}; the limit fires in the middle of the retries and hides their cause",
            f"allow fewer or shorter attempts, so that all of them fit into {short}, or let one budget bound them:"
            " `budget.attempts(…)`",
            related=places(outer),
        )


def _decorator(site: Site) -> Iterator[Report]:
    """A retry decorator under the limit of another decorator on the same function."""
    function = site.parent
    if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
        return
    scope = site.module.walker.scope_of[function]
    above = [
        Around(limit)
        for other in limits.decorator_sites(scope, site.module)
        if other.call.lineno < site.call.lineno and (limit := limits.decorator_limit(other, function.name))
    ]
    yield from _inside(site, _of_function(scope, site, site.call), tuple(above))


def _operator(site: Site) -> Iterator[Report]:
    """The attempts of an Airflow operator under the `dagrun_timeout` of its DAG."""
    tried = retries.of_operator(site)
    if tried is None:
        return
    one = [number(value) for value in airflow.option(site, "execution_timeout")]
    attempt = min((n for n in one if n is not None), default=0.0) if None not in one else 0.0
    dag = limits.dag_limit(site)
    match site.argument("task_id").constant:
        case Const(str() as name):
            label = f"operator `{name}`"
        case _:
            label = "the operator"
    around = (*site.around, *([Around(dag)] if dag is not None else ()))
    yield from _inside(site, _course(label, attempt, tried), around)


def _session(site: Site) -> Iterator[Report]:
    """A request on a session with urllib3's `Retry`, under a limit around it."""
    limit = limits.of_call(site)
    tried = retries.of_session(site) if limit is not None and site.name.startswith("requests.Session.") else None
    if tried is not None and limit is not None and limit.seconds is not None:
        yield from _inside(site, _course(limit.label, limit.seconds, tried, limit.default), site.around)


def _config(site: Site) -> Iterator[Report]:
    """botocore's options for requests that are sent again, under a limit around them."""
    tried, limit = retries.of_config(site), limits.of_call(site)
    attempt = _BOTOCORE_READ if limit is None else limit.seconds
    if tried is not None and attempt is not None:
        yield from _inside(site, _course("a request of this client", attempt, tried), site.around)


# --- loops ---------------------------------------------------------------------------------------------------


def _loop(site: Site) -> Iterator[Report]:
    """A call with a limit of its own in a loop that tries it again, under a limit around the loop."""
    limit = limits.of_call(site)
    if limit is None or limit.seconds is None or site.name.startswith("deadlint_budget."):
        return
    loop = _retry_loop(site)
    attempts = _turns(loop, site) if loop is not None else None
    if loop is None or attempts is None:
        return
    tried = Retries(attempts, (attempts - 1) * _pause(loop, site))
    course = _course(limit.label, limit.seconds, tried, limit.default)
    yield from _inside(site, course, site.module.graph.around(loop, site.scope))


def _retry_loop(site: Site) -> ast.For | ast.AsyncFor | None:
    """The loop that tries the call again when it fails and is left when it does not."""
    inner: ast.AST = site.call
    tried = False
    for node in site.ancestors():
        match node:
            case ast.Try(body=body, handlers=handlers) if inner in body:
                tried = any(not _leaves(handler.body) for handler in handlers)
                left = any(_leaves(block) for block in (node.body, node.orelse))
                if tried and not left:
                    tried = False
            case ast.For() | ast.AsyncFor() if inner in node.body:
                return node if tried or (_is_try(inner) and _leaves_after(inner, node)) else None
            case ast.While():
                return None
        inner = node
    return None


def _is_try(node: ast.AST) -> bool:
    return isinstance(node, ast.Try) and any(not _leaves(handler.body) for handler in node.handlers)


def _leaves_after(statement: ast.AST, loop: ast.For | ast.AsyncFor) -> bool:
    """Whether the loop is left once the statement has gone well."""
    place = next((i for i, s in enumerate(loop.body) if s is statement), len(loop.body))
    return _leaves(loop.body[place + 1 :])


def _leaves(body: list[ast.stmt]) -> bool:
    """Whether the block always ends in leaving the loop."""
    return bool(body) and isinstance(body[-1], ast.Return | ast.Raise | ast.Break)


def _turns(loop: ast.For | ast.AsyncFor, site: Site) -> int | None:
    """How often `for … in range(…)` goes round; None where that is not known."""
    match loop.iter:
        case ast.Call(func=ast.Name(id="range"), args=[*args], keywords=[]):
            numbers = [site.values(arg) for arg in args]
            plain = [v[0].value for v in numbers if len(v) == 1 and isinstance(v[0], Const)]
            whole = [n for n in plain if isinstance(n, int)]
            if len(whole) == len(args) and 1 <= len(whole) <= 2:
                return max(0, len(range(*whole)))
    return None


def _pause(loop: ast.For | ast.AsyncFor, site: Site) -> float:
    """What a turn of the loop sleeps, as far as that is a constant."""
    total = 0.0
    for node in ast.walk(loop):
        if isinstance(node, ast.Call):
            for target in site.module.targets(node):
                if target.name in ("time.sleep", "asyncio.sleep"):
                    pause = limits.seconds_of(Site(site.module, node, site.scope, (Target(""),)).argument("secs", 0))
                    total = max(total, pause or 0.0)
    return total
