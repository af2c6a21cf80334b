"""How long a limit is on one path of calls: a constant, what the calls pass for a parameter, a share of a budget."""

from __future__ import annotations

import ast
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from deadlint.index.budgets import BUDGET
from deadlint.index.scopes import Binding, dotted
from deadlint.index.values import NONE, Const, Function, Parameter, Result, Sequence, Values, number
from deadlint.tree.model import Amount, Known, Pool

if TYPE_CHECKING:
    from deadlint.index.module import Module
    from deadlint.index.scopes import Scope
    from deadlint.tree.program import Program

UNKNOWN = Amount(None, Known.UNKNOWN)
_TIMEOUT_OBJECTS = {
    "httpx.Timeout": ("timeout", 0), "aiohttp.ClientTimeout": ("total", 0), "urllib3.Timeout": ("total", 0),
}  # fmt: skip
_BUDGET_SHARES = {"slice": 0, "limit": 1, "remaining": None}  # where they take what is wanted
_NAMES = ("budget", "_budget")
_ROUNDING = ("int", "float", "round", "str", "timedelta")
Key = tuple["Scope", str]


@dataclass(eq=False)
class Frame:
    """A function that is being called: by which call, and what its parameters are there.

    `reads` gathers what has been asked of parameters, so that what was found out holds for calls that pass the same.
    """

    module: Module
    scope: Scope
    program: Program
    caller: Frame | None = None
    call: ast.Call | None = None
    call_scope: Scope | None = None
    function: Function | None = None
    ambient: Amount | None = None  # the budget of a `with` around the call
    statement: Amount | None = None  # what bounds statements there
    reads: dict[Key, Amount | None] = field(default_factory=dict)

    def parameter(self, scope: Scope, name: str) -> Amount | None:
        """What the parameter of a function on this path is; None where it is no limit."""
        frame: Frame | None = self
        while frame is not None and frame.scope is not scope:
            frame = frame.caller
        amount = frame._own(name) if frame is not None else self._default(scope, name)
        self.reads[scope, name] = amount
        return amount

    def _own(self, name: str) -> Amount | None:
        if self.call is None or self.caller is None or self.function is None or self.call_scope is None:
            return self._default(self.scope, name)
        argument = self.module.resolver.argument_for(self.function, name, self.call)
        if argument is not None:
            passed = amount(argument, self.call_scope, self.caller)
            if passed is None or passed.known in (Known.BUDGET, Known.UNKNOWN):
                return passed
            note = passed.note if passed.note.startswith("parameter") else f"parameter `{name}`"
            return Amount(passed.seconds, Known.PARAMETER, note, passed.pool)
        if any(k.arg is None for k in self.call.keywords) or any(isinstance(a, ast.Starred) for a in self.call.args):
            return Amount(None, Known.UNKNOWN, f"parameter `{name}`")
        return self._default(self.scope, name)

    def _default(self, scope: Scope, name: str) -> Amount | None:
        default = scope.default_of(name)
        if default is None:
            if name in _NAMES:
                return Amount(None, Known.BUDGET, f"the budget `{name}`", Pool(f"{scope.qualified_name}.{name}"))
            return Amount(None, Known.UNKNOWN, f"parameter `{name}`")
        if isinstance(default, ast.Constant) and default.value is None and name in _NAMES:
            return self.ambient
        values = self.module.resolver.evaluate(default, scope.parent or scope)
        found = plain(values)
        if found is not None:
            return Amount(found, Known.DEFAULT, f"default of `{name}`")
        return None if values == (NONE,) else Amount(None, Known.UNKNOWN, f"parameter `{name}`")


def amount(node: ast.expr, scope: Scope, frame: Frame) -> Amount | None:
    """How long the limit is that an expression gives; None where it gives none."""
    home = _parameter_home(node, scope, frame)
    if home is not None and isinstance(node, ast.Name):
        return frame.parameter(home, node.id)
    shared = _share(node, scope, frame)
    if shared is not None:
        return shared
    return _folded(frame.module.resolver.evaluate(node, scope), node, scope, frame)


def _folded(values: Values, node: ast.expr, scope: Scope, frame: Frame) -> Amount | None:
    found = plain(values)
    if found is not None:
        notes = [value.note for value in values if isinstance(value, Const) and value.note]
        return Amount(found, Known.DEFAULT if notes else Known.CONSTANT, notes[0] if notes else "")
    if values == (NONE,):
        return None
    match values:
        case (Parameter(scope=home, name=name),):
            return frame.parameter(home, name)
        case (Sequence(items=items),) if items:
            parts = [plain(item) for item in items]
            known = [part for part in parts if part is not None]
            return Amount(max(known), Known.CONSTANT) if len(known) == len(parts) else UNKNOWN
        case (Result() as value,):
            inside = _of_object(value, scope, frame)
            return inside if inside is not None else _structure(node, scope, frame)
    return _structure(node, scope, frame)


def plain(values: Values) -> float | None:
    """The most that values can be which are all numbers."""
    found = [number(value) for value in values]
    known = [n for n in found if n is not None]
    return max(known) if known and len(known) == len(found) else None


def _of_object(value: Result, scope: Scope, frame: Frame) -> Amount | None:
    """The limit in `httpx.Timeout(…)` and its kin, or what a budget is."""
    if value.name == BUDGET:
        return budget_amount(value, scope, frame)
    form = _TIMEOUT_OBJECTS.get(value.name)
    if form is None or value.call is None:
        return None
    keyword, position = form
    for given in value.call.keywords:
        if given.arg == keyword:
            return amount(given.value, value.scope or scope, frame)
    if len(value.call.args) > position:
        return amount(value.call.args[position], value.scope or scope, frame)
    return UNKNOWN


def _structure(node: ast.expr, scope: Scope, frame: Frame) -> Amount:
    """The arithmetic of an expression of which parts are parameters or shares of a budget."""
    match node:
        case ast.BinOp(left=left, op=op, right=right):
            return _arithmetic(op, amount(left, scope, frame), amount(right, scope, frame))
        case ast.Call(func=ast.Name(id="min"), args=[_, *_] as args, keywords=[]):
            return _least([amount(arg, scope, frame) for arg in args])
        case ast.Call(func=ast.Name(id="max"), args=[_, *_] as args, keywords=[]):
            return _most([amount(arg, scope, frame) for arg in args])
        case ast.Call(args=[inner], keywords=[]) if dotted(node.func).rpartition(".")[2] in _ROUNDING:
            return amount(inner, scope, frame) or UNKNOWN
        case ast.IfExp(body=body, orelse=orelse):
            return _most([found for part in (body, orelse) if (found := amount(part, scope, frame)) is not None])
        case ast.BoolOp(op=ast.Or(), values=parts):
            return _most([found for part in parts if (found := amount(part, scope, frame)) is not None])
        case ast.Await(value=inner) | ast.NamedExpr(value=inner):
            return amount(inner, scope, frame) or UNKNOWN
    return UNKNOWN


def _arithmetic(op: ast.operator, left: Amount | None, right: Amount | None) -> Amount:
    if left is None or right is None:
        return UNKNOWN
    known = left.known if left.known is not Known.CONSTANT else right.known
    note, pool = left.note or right.note, left.pool or right.pool
    if left.seconds is None or right.seconds is None:
        return Amount(None, known, note, pool)
    match op:
        case ast.Add():
            seconds = left.seconds + right.seconds
        case ast.Sub():
            seconds = left.seconds - right.seconds
        case ast.Mult():
            seconds = left.seconds * right.seconds
        case ast.Div() if right.seconds:
            seconds = left.seconds / right.seconds
        case _:
            return Amount(None, known, note, pool)
    return Amount(seconds, known, note, pool)


def _least(found: list[Amount | None]) -> Amount:
    """`min(…)`: one that is known is enough for a bound."""
    parts = [part for part in found if part is not None]
    if not parts:
        return UNKNOWN
    shared = next((part for part in parts if part.pool is not None), None)
    best = min(parts, key=lambda part: math.inf if part.seconds is None else part.seconds)
    if shared is None or shared is best:
        return best
    return Amount(best.seconds, Known.BUDGET, shared.note, shared.pool)


def _most(found: list[Amount | None] | list[Amount]) -> Amount:
    parts = [part for part in found if part is not None]
    if not parts or len(parts) < len(found):
        return UNKNOWN
    return max(parts, key=lambda part: math.inf if part.seconds is None else part.seconds)


def _parameter_home(node: ast.expr, scope: Scope, frame: Frame) -> Scope | None:
    """The function that a name is a parameter of, if nothing else is bound to it."""
    if not isinstance(node, ast.Name):
        return None
    home = frame.module.resolver.for_scope(scope).scope_binding(node.id, scope)
    if home is None or home.kind != "function":
        return None
    bindings = home.bindings.get(node.id, [])
    return home if len(bindings) == 1 and bindings[0].kind == "parameter" else None


# --- budgets -------------------------------------------------------------------------------------------------


def _share(node: ast.expr, scope: Scope, frame: Frame) -> Amount | None:
    """`budget.slice(30)`, `budget.remaining()`, `budget.limit("tile", 300)`: of a budget, no more than is wanted."""
    match node:
        case ast.Call(func=ast.Attribute(value=base, attr=attr)) if attr in _BUDGET_SHARES:
            whole = budget(base, scope, frame)
            if whole is None:
                return None
            return drawn(whole, _wanted(node, _BUDGET_SHARES[attr], scope, frame))
    return None


def _wanted(call: ast.Call, position: int | None, scope: Scope, frame: Frame) -> Amount | None:
    given = next((k.value for k in call.keywords if k.arg == "want"), None)
    if given is None and position is not None and len(call.args) > position:
        given = call.args[position]
    return amount(given, scope, frame) if given is not None else None


def drawn(whole: Amount, wanted: Amount | None) -> Amount:
    """What is wanted of a budget, as far as it reaches."""
    if wanted is None or wanted.seconds is None:
        return whole
    least = wanted.seconds if whole.seconds is None else min(wanted.seconds, whole.seconds)
    return Amount(least, Known.BUDGET, whole.note, whole.pool)


def budget(node: ast.expr, scope: Scope, frame: Frame) -> Amount | None:
    """What budget an expression is; None where it is none for certain."""
    home = _parameter_home(node, scope, frame)
    if home is not None and isinstance(node, ast.Name):
        found = frame.parameter(home, node.id)
        if found is not None and found.known is Known.BUDGET:
            return found
    bound = _bound(node, scope, frame)
    if bound is not None:
        return bound
    for value in frame.module.resolver.evaluate(node, scope):
        match value:
            case Result(name=name) if name == BUDGET:
                return budget_amount(value, scope, frame, dotted(node))
            case Parameter(scope=home, name=name) if name in _NAMES:
                return frame.parameter(home, name)
    return None


def _bound(node: ast.expr, scope: Scope, frame: Frame) -> Amount | None:
    """The budget that `for attempt in budget.attempts(…): with attempt as mine:` binds to a name."""
    if not isinstance(node, ast.Name):
        return None
    position = (node.lineno, node.col_offset)
    bindings = [b for b in scope.bindings.get(node.id, ()) if b.position < position]
    match bindings:
        case [*_, Binding(kind="enter", value=ast.Name() as entered)]:
            return _bound(entered, scope, frame)
        case [*_, Binding(kind="iterate", value=ast.Call(func=ast.Attribute(value=base, attr="attempts")) as call)]:
            whole = budget(base, scope, frame)
            return None if whole is None else drawn(whole, _wanted(call, None, scope, frame))
    return None


def budget_amount(value: Result, scope: Scope, frame: Frame, name: str = "") -> Amount:
    """How long a budget is that a call makes, and what it draws on."""
    note = f"the budget `{name}`" if name else "a budget"
    call = value.call
    if call is None:
        return Amount(None, Known.BUDGET, note, Pool(f"{scope.qualified_name}.{name}"))
    home = value.scope or scope
    match call.func:
        case ast.Attribute(attr="of") if call.args or call.keywords:
            given = next((k.value for k in call.keywords if k.arg == "seconds"), None) or next(iter(call.args), None)
            inner = amount(given, home, frame) if given is not None else None
            seconds = inner.seconds if inner is not None else None
            place = f"{home.module.path}:{call.lineno}:{call.col_offset}"
            pool = Pool(place, math.inf if seconds is None else seconds)
            return Amount(seconds, Known.BUDGET, note, pool)
        case ast.Attribute(attr="limit", value=base):
            whole = budget(base, home, frame)
            if whole is not None:
                return drawn(whole, _wanted(call, 1, home, frame))
    if dotted(call.func).endswith("current_budget") and frame.ambient is not None:
        return frame.ambient
    return Amount(None, Known.BUDGET, note, Pool(f"{home.module.path}:{call.lineno}:{call.col_offset}"))

