"""What is made by hand where a budget is at hand: deadlines, pauses, second budgets, limits of statements."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from deadlint import header
from deadlint.index.scopes import Scope
from deadlint.migrate.elapsed import elapsed
from deadlint.migrate.statements import set_by_hand
from deadlint.model import Edit, Finding, Fix, Import, Safety
from deadlint.settings import Settings
from deadlint.source import SourceFile

if TYPE_CHECKING:
    from deadlint.index.module import Module
    from deadlint.project import Project

_CLOCKS = frozenset({"time.monotonic", "time.time", "time.perf_counter"})
OWN = "migrate"  # the code of what only a migration replaces
_SLEEP = "time.sleep"
_BUDGET_OF = "deadlint_budget.Budget.of"


@dataclass(frozen=True, slots=True)
class AtHand:
    """The expression of the budget that a function has; where it may be None it is not `certain`."""

    budget: str
    certain: bool = True

    def layer(self, name: str, seconds: str) -> str:
        """The source of a layer of it; without a budget, one that stands alone."""
        layer = f"{self.budget}.limit({name}, {seconds})"
        if self.certain:
            return layer
        return f'{layer} if {self.budget} else Budget.detached("no budget is given", {seconds}, {name})'


def by_hand(source: SourceFile, settings: Settings, project: Project, budgets: Mapping[str, AtHand]) -> list[Finding]:
    """What a budget replaces in the functions of `budgets`, which are dotted names."""
    from deadlint.index.module import Module  # noqa: PLC0415 - modules ask their project in turn

    module = Module(source, settings, project)
    try:
        return [one for name, budget in budgets.items() for one in _in_function(module, name, budget)]
    finally:
        module.release()


def _in_function(module: Module, name: str, has: AtHand) -> Iterator[Finding]:
    module.walker.walk_all(module.scope)
    for function in _functions(module.scope):
        if function.qualified_name == name:
            yield from _deadlines(module, function, has)
            yield from _elapsed(module, function, has)
            for call, fix in set_by_hand(module, function, has.budget):
                remedy = f"`statement_timeout(…, {has.budget}, want=…)`"
                yield _finding(module, call, "a limit that knows nothing of the budget", remedy, fix)
            if has.certain:
                yield from _pauses(module, function, has.budget)
            else:
                yield from _second_budgets(module, function, has)


def _functions(scope: Scope) -> Iterator[Scope]:
    for function in scope.functions:
        yield function
        yield from _functions(function)
    for cls in scope.classes:
        yield from _functions(cls)


def _finding(module: Module, node: ast.expr | ast.stmt, message: str, remedy: str, fix: Fix | None) -> Finding:
    return Finding(OWN, "made-by-hand", module.source.path, module.span(node), message, remedy, fix=fix)


def _layer_name(function: Scope) -> str:
    """What a layer is called: after its function, a constructor after its class."""
    return function.owner.name if function.owner is not None and function.name == "__init__" else function.name


def _pauses(module: Module, function: Scope, budget: str) -> Iterator[Finding]:
    """`time.sleep(5)`, which `budget.sleep(5)` ends with the budget or its cancellation."""
    for call in function.calls:
        if len(call.args) != 1 or call.keywords or not any(t.name == _SLEEP for t in module.targets(call)):
            continue
        start, end = module.source.extent(call.func)
        title = f"`{module.source.segment(call)}` ends with the budget"
        fix = Fix(title, Safety.UNSAFE, (Edit(start, end, f"{budget}.sleep"),))
        yield _finding(module, call, "a pause that knows nothing of the budget", f"`{budget}.sleep(…)`", fix)


def _second_budgets(module: Module, function: Scope, has: AtHand) -> Iterator[Finding]:
    """`name = Budget.of(60, "publish")` where the budget may be None: a rule's fix would ask that."""
    for call in function.calls:
        if not any(target.name == _BUDGET_OF for target in module.targets(call)) or len(call.args) > 2 or call.keywords:
            continue
        statement = module.statement(call)
        if isinstance(statement, ast.Assign) and statement.value is call and call.args:
            name = module.source.segment(call.args[1]) if len(call.args) > 1 else f'"{_layer_name(function)}"'
            seconds = module.source.segment(call.args[0])
            edit = Edit(*module.source.extent(call), has.layer(name, seconds))
            fix = Fix("its budget is a layer of the one it is given", Safety.UNSAFE, (edit,), _imports(module))
            yield _finding(module, call, "a second budget", f"`{has.budget}.limit(…)`", fix)


def _imports(module: Module) -> tuple[Import, ...]:
    return (header.free_import(module.tree, module.bound_names, module.settings.helpers, "Budget"),)


def _deadlines(module: Module, function: Scope, has: AtHand) -> Iterator[Finding]:
    """`deadline = time.monotonic() + 60` and what is done with it."""
    made = [(name, binding) for name, bindings in function.bindings.items() for binding in bindings]
    for name, binding in made:
        match binding.node, binding.value:
            case ast.Assign(targets=[ast.Name()]), ast.BinOp(left=left, op=ast.Add(), right=right) as total:
                seconds = right if _is_clock(module, left) else left if _is_clock(module, right) else None
            case _:
                continue
        if seconds is None:
            continue
        alone = len(function.bindings[name]) == 1
        layer = f'{name} = {has.budget}.limit("{_layer_name(function)}", {module.source.segment(seconds)})'
        yield _finding(
            module,
            total,
            f"`{name}` is a deadline made by hand, which knows nothing of the budget `{has.budget}`",
            f"derive it: `{layer}`, and ask `{name}.remaining()` or `{name}.expired`",
            _layer(module, function, name, total, seconds, has) if alone else None,
        )


def _elapsed(module: Module, function: Scope, has: AtHand) -> Iterator[Finding]:
    """`start = time.monotonic()`, and a limit on what has passed since."""
    name = f'"{_layer_name(function)}"'
    found = elapsed(module, function, lambda node: _is_clock(module, node), lambda seconds: has.layer(name, seconds))
    for node, limit, edits in found:
        message = f"{limit} is a limit on the time that has passed, and knows nothing of the budget `{has.budget}`"
        imports = () if has.certain else _imports(module)
        title = f"the limit `{limit}` on the time that has passed is a layer of the budget"
        fix = Fix(title, Safety.UNSAFE, edits, imports) if edits is not None else None
        yield _finding(module, node, message, f"derive it: `{has.budget}.limit({name}, {limit})`, and ask that", fix)


def _is_clock(module: Module, node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and any(target.name in _CLOCKS for target in module.targets(node))


def _layer(
    module: Module, function: Scope, name: str, total: ast.BinOp, seconds: ast.expr, has: AtHand
) -> Fix | None:
    """The deadline as a layer of the budget; None where something is done with it that a layer cannot."""
    source = module.source
    start, end = source.extent(total)
    edits = [Edit(start, end, has.layer(f'"{_layer_name(function)}"', source.segment(seconds)))]
    for node in ast.walk(function.node):
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load):
            edit = _asked(module, node, name)
            if edit is None:
                return None
            edits.append(edit)
    imports = () if has.certain else _imports(module)
    return Fix(f"the deadline `{name}` is a layer of the budget", Safety.UNSAFE, tuple(edits), imports)


def _asked(module: Module, node: ast.Name, name: str) -> Edit | None:
    """A look at the clock against the deadline, as a question to the layer."""
    parent = module.walker.parents.get(node)
    match parent:
        case ast.BinOp(left=left, op=ast.Sub(), right=clock) if left is node and _is_clock(module, clock):
            return Edit(*module.source.extent(parent), f"{name}.remaining()")
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            if right is node and _is_clock(module, left):
                before = isinstance(op, ast.Lt | ast.LtE)
            elif left is node and _is_clock(module, right):
                before = isinstance(op, ast.Gt | ast.GtE)
            else:
                return None
            if not isinstance(op, ast.Lt | ast.LtE | ast.Gt | ast.GtE):
                return None
            return Edit(*module.source.extent(parent), f"not {name}.expired" if before else f"{name}.expired")
    return None
