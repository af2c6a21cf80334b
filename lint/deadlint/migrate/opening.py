"""The budget at the entry point: made there, and under the limit of whoever runs it."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from deadlint import header
from deadlint.errors import UserError
from deadlint.index import limits
from deadlint.index.scopes import FunctionNode, Scope
from deadlint.index.values import External, Member, Result, number
from deadlint.migrate.signature import free_name
from deadlint.model import Constant, Edit, Import
from deadlint.region import parse_call, replace_call, rewritten
from deadlint.site import Site

if TYPE_CHECKING:
    from deadlint.index.module import Module

BUDGET_OF = "deadlint_budget.Budget.of"
# The keywords by which a scheduler takes the limit of what it runs, and what a number of seconds is multiplied by.
_KEYWORDS: dict[str, tuple[str, str]] = {
    "prefect.flow": ("timeout_seconds", "{}"),
    "prefect.task": ("timeout_seconds", "{}"),
    "celery.shared_task": ("time_limit", "{}"),
    "celery.Celery.task": ("time_limit", "{}"),
    "airflow.decorators.task": ("execution_timeout", "{delta}(seconds={})"),
    "dramatiq.actor": ("time_limit", "{} * 1000"),
    "rq.decorators.job": ("timeout", "{}"),
}
_DAGS = frozenset({"airflow.decorators.dag"})


@dataclass(frozen=True, slots=True)
class Order:
    """The deadline of an entry and its reserve, in seconds; None: the limit of its scheduler, and a tenth."""

    deadline: float | None
    reserve: float | None


@dataclass(frozen=True, slots=True)
class Opening:
    """What the entry needs: the name of its budget there, edits, and what goes to the top of the file."""

    budget: str
    edits: tuple[Edit, ...] = ()
    imports: tuple[Import, ...] = ()
    constants: tuple[Constant, ...] = ()
    said: tuple[str, ...] = ()  # what is done, for the plan
    is_new: bool = False  # whether the entry made none before


@dataclass(frozen=True, slots=True)
class _Made:
    """A budget that the entry makes already."""

    name: str
    call: ast.Call


def opening(function: Scope, module: Module, order: Order, helpers: str) -> Opening:
    """How `function` makes its budget. Raises `UserError` where it cannot, or where its limit would come first."""
    node = function.definition
    assert isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    _refuse_dag(function, module)
    made = _made(function, module)
    owned = _owned(function, module, made) if made is not None else None
    limit = None if owned is not None and order.deadline is not None and owned.limits else _limit(function, module)
    deadline, reserve = _amounts(function, order, limit)
    if made is not None and owned is not None:
        return _renumbered(module, made, owned, deadline, reserve)
    names = _constants(module, function, deadline, reserve)
    if made is not None:
        return _adapted(function, module, made, deadline, reserve, names)
    name = free_name(node)
    budget = header.free_import(module.tree, module.bound_names, helpers, "Budget")
    text = f'{name} = {budget.alias or budget.name}.of({names[0].name}, "{function.name}", reserve={names[1].name})'
    edits, imports, said = ((), (), ()) if _sets_limit(function, module) else _limit_edits(function, module, names)
    return Opening(
        name,
        (_first(module, node, text), *edits),
        (budget, *imports),
        names,
        (f'makes `Budget.of({deadline:g} s, "{function.name}")`, {reserve:g} s of it in reserve', *said),
        is_new=True,
    )


def _refuse_dag(function: Scope, module: Module) -> None:
    node = function.definition
    assert isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    for decorator in node.decorator_list:
        if _decorator_name(decorator, function, module) in _DAGS:
            raise UserError(
                f"`{function.name}` is a DAG: its body runs when the file is read, not when its tasks run; name a task"
            )


def _decorator_name(decorator: ast.expr, function: Scope, module: Module) -> str:
    inner = decorator.func if isinstance(decorator, ast.Call) else decorator
    for value in module.resolver.evaluate(inner, function.parent or function):
        match value:
            case External(name=name) | Member(name=name) | Result(name=name):
                return "airflow.decorators.task" if name.startswith("airflow.decorators.task.") else name
    return ""


def _limit(function: Scope, module: Module) -> float | None:
    """The tightest limit that decorators put on the entry; None where they set none, or none that is known."""
    return min((one.seconds for one in limits.on_function(function, module) if one.seconds is not None), default=None)


def _amounts(function: Scope, order: Order, limit: float | None) -> tuple[float, float]:
    """The deadline and the reserve; refused where the decorator's limit would come first."""
    deadline = order.deadline if order.deadline is not None else limit
    if deadline is None:
        raise UserError(f"`{function.name}` has no limit of its own to take the deadline from; give --deadline SECONDS")
    reserve = order.reserve if order.reserve is not None else round(deadline / 10, 3)
    if reserve >= deadline:
        raise UserError(f"a reserve of {reserve:g} s leaves nothing of the deadline of {deadline:g} s; give less")
    if limit is not None and limit < deadline:
        raise UserError(
            f"`{function.name}` is ended after {limit:g} s by its decorator, so a deadline of {deadline:g} s would"
            f" never be reached; give --deadline {limit:g}, or raise that limit first"
        )
    return deadline, reserve


def _constants(module: Module, function: Scope, deadline: float, reserve: float) -> tuple[Constant, Constant]:
    prefix = f"{function.name.strip('_').upper()}_"
    wanted = (("DEADLINE_S", deadline), ("RESERVE_S", reserve))
    for start in ("", prefix):
        found = tuple(Constant(f"{start}{name}", f"{value:g}") for name, value in wanted)
        if all(_is_free(module, constant) for constant in found):
            return found[0], found[1]
    raise UserError(
        f"{module.source.path}: `{prefix}DEADLINE_S` or `{prefix}RESERVE_S` is something else there; rename it first"
    )


def _is_free(module: Module, constant: Constant) -> bool:
    """Whether the file has no such name, or has it with this value."""
    if constant.name not in module.bound_names:
        return True
    values = module.resolver.exported(constant.name)
    return len(values) == 1 and number(values[0]) == float(constant.value)


def _made(function: Scope, module: Module) -> _Made | None:
    """The budget that the entry makes in its first level, or in a `with` there."""
    module.walker.walk(function)
    for name, bindings in function.bindings.items():
        for binding in bindings:
            plain = binding.kind in ("assign", "enter") and binding.index is None
            value = binding.value
            if plain and isinstance(value, ast.Call) and any(t.name == BUDGET_OF for t in module.targets(value)):
                return _Made(name, value)
    return None


@dataclass(frozen=True, slots=True)
class _Owned:
    """The numbers of a budget that constants of the module hold, and whether its decorator goes by them too."""

    deadline: ast.Constant
    reserve: ast.Constant
    limits: bool


def _owned(function: Scope, module: Module, made: _Made) -> _Owned | None:
    """The constants of a budget `Budget.of(DEADLINE_S, "name", reserve=RESERVE_S)`, as a migration writes it."""
    match made.call:
        case ast.Call(args=[ast.Name(id=first), *_], keywords=[ast.keyword(arg="reserve", value=ast.Name(id=kept))]):
            deadline, reserve = _number_of(module, first), _number_of(module, kept)
        case _:
            return None
    if deadline is None or reserve is None:
        return None
    decorators = getattr(function.definition, "decorator_list", [])
    names = {n.id for d in decorators for n in ast.walk(d) if isinstance(n, ast.Name)}
    return _Owned(deadline, reserve, first in names)


def _number_of(module: Module, name: str) -> ast.Constant | None:
    """The number that a module gives to a name, once and plainly."""
    found = [
        s.value
        for s in module.tree.body
        if isinstance(s, ast.Assign) and any(isinstance(t, ast.Name) and t.id == name for t in s.targets)
    ]
    plain = len(found) == 1 and len(module.scope.bindings.get(name, ())) == 1
    match found:
        case [ast.Constant(value=int() | float()) as value] if plain:
            return value
    return None


def _renumbered(module: Module, made: _Made, owned: _Owned, deadline: float, reserve: float) -> Opening:
    """The same constants with the numbers that are asked for."""
    wanted = ((owned.deadline, deadline), (owned.reserve, reserve))
    edits = tuple(Edit(*module.source.extent(node), f"{value:g}") for node, value in wanted if node.value != value)
    said = (f"its budget `{made.name}` gets {deadline:g} s, {reserve:g} s of it in reserve",) if edits else ()
    return Opening(made.name, edits, said=said)


def _adapted(
    function: Scope, module: Module, made: _Made, deadline: float, reserve: float, names: tuple[Constant, Constant]
) -> Opening:
    """The budget that is there, with the deadline and the reserve that are asked for."""
    site = Site(module, made.call, function, module.targets(made.call), BUDGET_OF)
    now = limits.seconds_of(site.argument("seconds", 0))
    kept = site.argument("reserve")
    kept_now = 0.0 if kept.absent else limits.seconds_of(kept)
    if (now, kept_now) == (deadline, reserve) or not made.call.args or isinstance(made.call.args[0], ast.Starred):
        return Opening(made.name)
    source = module.source
    start, end = source.extent(made.call.args[0])
    call = rewritten(
        parse_call(source, made.call), rename={"reserve": ("reserve", names[1].name)}, add=[("reserve", names[1].name)]
    )
    # The keyword first: it stands behind the number, so that both edits stay apart.
    edits = (replace_call(source, made.call, call), Edit(start, end, names[0].name))
    return Opening(
        made.name,
        edits,
        (),
        names,
        (f"its budget `{made.name}` gets {deadline:g} s, {reserve:g} s of it in reserve",),
    )


def _first(module: Module, node: FunctionNode, text: str) -> Edit:
    """`text` as the first statement, behind the docstring."""
    source = module.source
    body = node.body
    documented = isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant)
    documented = documented and isinstance(getattr(body[0], "value").value, str)  # noqa: B009 - narrowed above
    first = body[1] if documented and len(body) > 1 else body[0]
    if documented and len(body) == 1:
        raise UserError(f"`{node.name}` does nothing: it has only a docstring")
    decorators = getattr(first, "decorator_list", [])
    line = min([first.lineno, *(d.lineno for d in decorators)])
    whole = source.line(line)
    indentation = whole[: len(whole) - len(whole.lstrip())]
    before = source.text[source.line_starts[line - 1] : source.offset(first.lineno, first.col_offset)]
    if before.strip() and not decorators:
        raise UserError(f"{source.path}:{node.lineno}: write the body of `{node.name}` on lines of its own first")
    # A comment above the first statement belongs to that.
    while line - 1 > node.lineno and source.line(line - 1).lstrip().startswith("#"):
        line -= 1
    start = source.line_starts[line - 1]
    return Edit(start, start, f"{indentation}{text}{source.newline}")


def _sets_limit(function: Scope, module: Module) -> bool:
    """Whether a decorator sets a limit, known or not."""
    return any(True for _ in limits.on_function(function, module))


def _limit_edits(
    function: Scope, module: Module, names: tuple[Constant, Constant]
) -> tuple[tuple[Edit, ...], tuple[Import, ...], tuple[str, ...]]:
    """The limit of an orchestrated entry, where its decorator gives none."""
    node = function.definition
    assert isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    for decorator in node.decorator_list:
        name = _decorator_name(decorator, function, module)
        if name not in _KEYWORDS:
            continue
        keyword, form = _KEYWORDS[name]
        imports: tuple[Import, ...] = ()
        delta = ""
        if "{delta}" in form:
            imports = (header.free_import(module.tree, module.bound_names, "datetime", "timedelta"),)
            delta = imports[0].alias or imports[0].name
        added = [(keyword, form.format(names[0].name, delta=delta))]
        if name in limits.CELERY_TASKS:
            # The worker's process is killed where neither the budget nor the exception of the soft limit ended it.
            added = [("soft_time_limit", names[0].name), (keyword, f"{names[0].name} + {names[1].name}")]
        said = tuple(f"its own limit: `{keyword}={value}`" for keyword, value in added)
        return (_with_keywords(module, decorator, added),), imports, said
    return (), (), ()


def _with_keywords(module: Module, decorator: ast.expr, added: list[tuple[str, str]]) -> Edit:
    source = module.source
    if isinstance(decorator, ast.Call):
        return replace_call(source, decorator, rewritten(parse_call(source, decorator), add=added))
    _, end = source.extent(decorator)
    return Edit(end, end, f"({', '.join(f'{k}={v}' for k, v in added)})")
