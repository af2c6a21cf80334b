"""Where a program is entered: flows, jobs, DAGs, tasks, commands, `main`, and what `if __name__ == "__main__"` runs."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from deadlint.index.flow import decorators_of
from deadlint.index.scopes import dotted
from deadlint.index.values import Attached, Result
from deadlint.site import targets_of

if TYPE_CHECKING:
    from deadlint.index.module import Module
    from deadlint.index.scopes import Scope

# By canonical name; a prefix where the name ends in a dot.
_DECORATORS = {
    "prefect.flow": "flow", "prefect.task": "task", "airflow.decorators.dag": "dag",
    "airflow.decorators.task": "task", "airflow.decorators.task.": "task", "celery.shared_task": "task",
    "celery.Celery.task": "task", "dagster.job": "job", "dagster.op": "op", "dagster.asset": "asset",
    "dagster.graph": "graph", "dagster.multi_asset": "asset", "dagster.graph_asset": "asset",
    "dagster.sensor": "sensor", "dramatiq.actor": "actor", "rq.decorators.job": "job", "rq.job": "job",
    "django_rq.job": "job", "huey.Huey.task": "task", "huey.RedisHuey.task": "task", "click.command": "command",
    "typer.Typer.command": "command", "huey.SqliteHuey.task": "task", "huey.Huey.periodic_task": "task",
    "huey.RedisHuey.periodic_task": "task",
}  # fmt: skip
_BASES = {"luigi.Task": "run", "luigi.ExternalTask": "run", "celery.Task": "run"}
# Which entry is shown as a root where several lead to each other.
RANKS = (
    "flow", "dag", "job", "graph", "script", "main", "command", "asset", "sensor", "task", "op", "actor", "function",
)  # fmt: skip
# What a file holds that has an entry of any kind; most files of a library have none and are not parsed.
_WORDS = re.compile(
    rb"prefect|airflow|celery|dagster|dramatiq|luigi|huey|\brq\b|click|typer|__main__|^(?:async )?def main\(",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """A function, or a block of statements, that something outside of the program starts."""

    layer: str
    name: str
    module: Module
    scope: Scope
    block: ast.With | ast.If | None = None  # where it is no function

    @property
    def rank(self) -> int:
        """How far out its layer is: a flow is not shown below the script that starts it."""
        return RANKS.index(self.layer)

    @property
    def sort_key(self) -> tuple[int, str, int]:
        """The outermost layers first, each in the order of the source."""
        line = getattr(self.block or self.scope.definition, "lineno", 0)
        return self.rank, self.module.source.path, line


def may_have_entries(data: bytes) -> bool:
    """Whether a file is worth parsing for its entries."""
    return _WORDS.search(data) is not None


def entries_of(module: Module) -> Iterator[Entry]:
    """The entries of a module."""
    pending = [module.scope]
    while pending:
        scope = pending.pop()
        for function in scope.functions:
            layer = _layer(function, module)
            if layer is not None:
                yield Entry(layer, _shown(function), module, function)
        pending.extend(scope.classes)
    yield from _blocks(module)


def layer_of(function: Scope, module: Module) -> str | None:
    """The layer that the decorators of a function put it in; None where they put it in none."""
    definition = function.definition
    if not isinstance(definition, ast.FunctionDef | ast.AsyncFunctionDef):
        return None
    for decorator in definition.decorator_list:
        called = decorator.func if isinstance(decorator, ast.Call) else decorator
        if not dotted(called):
            continue
        values = module.resolver.evaluate(called, function.parent or function)
        for target in targets_of(values):
            layer = layer_named(target.name)
            if layer is not None:
                return layer
        for value in values:
            match value:
                case Attached(function=group, name="command") if "group" in decorators_of(group.scope):
                    return "command"  # of click's
    return None


def layer_named(decorator: str) -> str | None:
    """The layer that a decorator of this canonical name puts its function in."""
    above = f"{decorator.rpartition('.')[0]}."
    return _DECORATORS.get(decorator) or _DECORATORS.get(above)


def _layer(function: Scope, module: Module) -> str | None:
    if function.name == "main" and function.parent is module.scope:
        return layer_of(function, module) or "main"
    if function.owner is not None and function.name in _BASES.values():
        for base in module.resolver.mro(function.owner):
            if _BASES.get(getattr(base, "name", "")) == function.name:
                return "task"
    return layer_of(function, module)


def _shown(function: Scope) -> str:
    return function.qualified_name if function.owner is not None else function.name


def _blocks(module: Module) -> Iterator[Entry]:
    """`with DAG(…)` and `if __name__ == "__main__"` at the top of a module."""
    for statement in getattr(module.tree, "body", ()):
        match statement:
            case ast.If(test=ast.Compare(left=ast.Name(id="__name__"))):
                name = module.source.path.replace("\\", "/").rpartition("/")[2]
                yield Entry("script", name, module, module.scope, statement)
            case ast.With(items=items):
                for item in items:
                    for value in module.resolver.evaluate(item.context_expr, module.scope):
                        match value:
                            case Result(name="airflow.DAG"):
                                yield Entry("dag", "", module, module.scope, statement)
