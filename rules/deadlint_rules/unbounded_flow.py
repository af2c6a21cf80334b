"""DL411: an orchestrated flow or job that nothing ends."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from deadlint.index import limits
from deadlint.index.scopes import Scope
from deadlint.index.values import NONE, External, Mapping, Result
from deadlint.model import Level
from deadlint.rule import Rule
from deadlint.site import Report, Site

from deadlint_rules._limits import BUDGET_OF, scopes_where

if TYPE_CHECKING:
    from deadlint.index.module import Module

_RUNTIME = "dagster/max_runtime"
# What makes a function a flow or a job, with what would bound it; None where nothing on the decorator can.
_FLOWS = {
    "prefect.flow": ("flow", "timeout_seconds"),
    "airflow.decorators.dag": ("DAG", "dagrun_timeout"),
    "dagster.job": ("job", f'tags={{"{_RUNTIME}": …}}'),
    "celery.Celery.task": ("Celery task", "time_limit and soft_time_limit"),
}
_DAGS = frozenset({"airflow.DAG"})
_MADE = {"dagster.define_asset_job": ("asset job", f'tags={{"{_RUNTIME}": …}}')}
_WITHOUT_END = frozenset({"rq.Queue.enqueue", "rq.Queue.enqueue_in", "rq.Queue.enqueue_at", "rq.Queue.enqueue_call"})
_SCOPES = frozenset(limits.SCOPES) | {BUDGET_OF, "deadlint_budget.Budget.until", "signal.alarm", "signal.setitimer"}


class UnboundedFlow(Rule):
    """A flow, DAG or job of an orchestrator that nothing ends.

    ## What it does
    Strict: reports Prefect flows without `timeout_seconds`, Airflow DAGs without `dagrun_timeout`, Dagster jobs without
    the tag `dagster/max_runtime`, Celery tasks without a `time_limit` where the application is in sight and sets none,
    Luigi tasks without `worker_timeout`, and jobs that RQ is told never to end (`job_timeout=-1`).

    Clean: a flow that makes a budget or sets a limit in its own body, one that is called under a limit, a DAG whose
    `default_args` bound each of its tasks, and functions in which nothing is called.

    ## Why it is bad
    The worst case of the flow is the sum of its unbounded parts, and nobody learns it until an upstream hangs: the run
    then holds its worker slot, its locks and its memory, and the next run starts beside it or never does.

    ## Example
    ```python
    from prefect import flow


    @flow
    def nightly(tiles):
        for tile in tiles:
            print(tile)
    ```

    ## Use instead
    ```python
    from prefect import flow

    NIGHTLY_LIMIT_S = 4 * 3600


    @flow(timeout_seconds=NIGHTLY_LIMIT_S)
    def nightly(tiles):
        for tile in tiles:
            print(tile)
    ```
    Better still, make a budget of it that leaves time to finish: `Budget.of(NIGHTLY_LIMIT_S, reserve=…)`.

    ## Fix safety
    There is no fix: how long the flow may take is for a person to say.

    ## Options
    None.

    ## References
    - [Prefect: flows](https://docs.prefect.io/v3/how-to-guides/workflows/write-and-run)
    - [Airflow: DAGs](https://airflow.apache.org/docs/apache-airflow/stable/core-concepts/dags.html)
    - [Dagster: run monitoring](https://docs.dagster.io/deployment/execution/run-monitoring)
    """

    code = "DL411"
    name = "unbounded-flow"
    since = "0.1.0"
    calls = _DAGS | frozenset(_MADE) | _WITHOUT_END
    words = (
        ("prefect", "flow"),
        ("airflow", "dag"),
        ("airflow", "DAG"),
        ("dagster", "job"),
        ("celery", "task", "Celery("),
        ("luigi", "Task"),
        ("job_timeout=-1",),
        ("timeout=-1", "enqueue_call"),
    )

    def check(self, site: Site) -> Iterator[Report]:
        if site.name in _WITHOUT_END:
            keyword = "timeout" if site.name.endswith("enqueue_call") else "job_timeout"
            if limits.seconds_of(site.argument(keyword)) == -1:
                yield site.report(
                    f"`{keyword}=-1` lets this job run for ever: RQ never ends it",
                    "give it the seconds that it may take at most",
                    level=Level.STRICT,
                )
        elif site.name in _MADE and not site.spread:
            what, keyword = _MADE[site.name]
            if not _has_runtime(site):
                yield site.report(f"nothing ends this {what}", f"bound its runs: `{keyword}`", level=Level.STRICT)
        elif site.name in _DAGS and not site.spread and not _is_bounded_dag(site):
            yield site.report(
                "nothing ends a run of this DAG, nor, by its `default_args`, a task of it",
                "give it `dagrun_timeout`, and its tasks `execution_timeout`",
                level=Level.STRICT,
            )

    def check_module(self, module: Module) -> Iterator[Report]:
        for scope in scopes_where(module, _WITHIN):
            if scope.kind == "function":
                yield from _decorated(scope, module)
            elif scope.kind == "class":
                yield from _luigi(scope, module)


# What a function holds that decorates one within it, or has a class of its own.
_WITHIN = frozenset({"@", "class "})


def _decorated(scope: Scope, module: Module) -> Iterator[Report]:
    node = scope.definition
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return
    for decorator in node.decorator_list:
        name, site = _flow(decorator, scope, module)
        if not name:
            continue
        what, keyword = _FLOWS[name]
        if site is not None and (site.spread or _is_bounded(site, name)):
            return
        if name == "celery.Celery.task" and not _own_application(decorator, scope, module):
            return
        if not scope.calls or _bounds_itself(scope, module) or module.graph.around_function(scope):
            return
        yield Report(
            decorator,
            f"nothing ends the {what} `{scope.name}`: its worst case is the sum of all that it waits for",
            f"bound it: `{keyword}`, or a budget that it makes and hands down",
            Level.STRICT,
        )
        return


def _flow(decorator: ast.expr, scope: Scope, module: Module) -> tuple[str, Site | None]:
    """The name of the decorator that makes a function a flow, with its call where it has one."""
    outer = scope.parent or scope
    if isinstance(decorator, ast.Call):
        for target in module.targets(decorator):
            if target.name in _FLOWS:
                return target.name, Site(module, decorator, outer, (target,), target.name)
        return "", None
    for value in module.resolver.evaluate(decorator, outer):
        name = getattr(value, "name", "")
        if name in _FLOWS:
            return name, None
    return "", None


def _is_bounded(site: Site, name: str) -> bool:
    if name == "dagster.job":
        return _has_runtime(site)
    if name == "airflow.decorators.dag":
        return _is_bounded_dag(site)
    if name == "celery.Celery.task":
        return any(_is_given(site, keyword) for keyword in ("time_limit", "soft_time_limit"))
    return _is_given(site, "timeout_seconds")


def _is_given(site: Site, keyword: str) -> bool:
    argument = site.argument(keyword)
    return not argument.absent and argument.values != (NONE,)


def _has_runtime(site: Site) -> bool:
    """Whether the tags hold a limit, or may."""
    tags = site.argument("tags")
    return not tags.absent and (tags.node is None or not isinstance(tags.node, ast.Dict) or any(
        key is None or _RUNTIME in ast.unparse(key) or not isinstance(key, ast.Constant) for key in tags.node.keys
    ))  # fmt: skip


def _is_bounded_dag(site: Site) -> bool:
    if _is_given(site, "dagrun_timeout"):
        return True
    defaults = site.argument("default_args")
    if defaults.absent:
        return False

    return any(not isinstance(v, Mapping) or v.get("execution_timeout") for v in defaults.values)


def _own_application(decorator: ast.expr, scope: Scope, module: Module) -> bool:
    """Whether the Celery application is made in this file, and the file sets no limit for all of its tasks."""
    func = decorator.func if isinstance(decorator, ast.Call) else decorator
    if not isinstance(func, ast.Attribute) or "time_limit" in module.source.text.lower():
        return False
    if "config_from_object" in module.source.text or "config_from_envvar" in module.source.text:
        return False
    values = module.resolver.evaluate(func.value, scope.parent or scope)
    return all(isinstance(v, Result) and v.call is not None and v.scope is not None
               and v.scope.module is module.scope for v in values)  # fmt: skip


def _bounds_itself(scope: Scope, module: Module) -> bool:
    """Whether the body makes a budget, or takes one, or enters a limit."""
    if any("budget" in parameter.arg.lower() for parameter in scope.parameters()):
        return True
    return any(target.name in _SCOPES for call in scope.calls for target in module.targets(call))


def _luigi(cls: Scope, module: Module) -> Iterator[Report]:
    """A Luigi task whose `run` does something and that no `worker_timeout` ends."""
    node = cls.node
    runs = any(function.name == "run" and function.calls for function in cls.functions)
    if not isinstance(node, ast.ClassDef) or not runs:
        return
    order = module.resolver.mro(cls)
    if any(isinstance(base, External) and base.name == "luigi.Task" for base in order) and not any(
        isinstance(base, Scope) and base.bindings.get("worker_timeout") for base in order
    ):
        yield Report(
            node,
            f"nothing ends the Luigi task `{cls.name}`",
            "give it a `worker_timeout`, the seconds that it may take at most",
            Level.STRICT,
        )


