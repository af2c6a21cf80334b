"""What the statements of a function come to: their calls in the order of the source, by branches and loops."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from deadlint.index import limits, retries
from deadlint.index.flow import leaves
from deadlint.index.limit_forms import ALARMS
from deadlint.index.retries import Retries
from deadlint.index.values import Attached, Class, Const, Function, Partial, Value
from deadlint.site import Site, Target, targets_of
from deadlint.tree import turns, waits, worst
from deadlint.tree.amounts import Frame, budget
from deadlint.tree.model import Amount, Kind, Known, Mark, Node, Order
from deadlint.tree.nodes import either, group, limited, place_of

if TYPE_CHECKING:
    from deadlint.index.scopes import Scope
    from deadlint.tree.program import Program

_TOGETHER = frozenset({"asyncio.gather", "asyncio.wait", "asyncio.as_completed"})
_POOLS = ("ThreadPoolExecutor", "ProcessPoolExecutor", "Executor")
_MAPPING = frozenset(f"concurrent.futures.{pool}.map" for pool in _POOLS)
_SUBMITTING = frozenset(f"concurrent.futures.{pool}.submit" for pool in _POOLS) | _MAPPING
# Operators that do nothing.
_IDLE = (".EmptyOperator", ".DummyOperator", ".LatestOnlyOperator")
# Calls of a task that start it elsewhere and come back at once.
_DETACHED = frozenset({"delay", "apply_async", "send", "send_with_options", "enqueue"})
_CLOCKS = frozenset({"time.monotonic", "time.time", "time.perf_counter"})
_STATEMENT = "deadlint_budget.statement_timeout"
_LONGEST = 48  # characters of source in the name of a loop


class Functions(Protocol):
    """Who knows what a function comes to."""

    program: Program

    def function(self, frame: Frame) -> Node | None:
        """The node of the function that is called in `frame`."""


@dataclass(eq=False)
class Body:
    """Reads the statements of one function, as one call runs them."""

    functions: Functions
    frame: Frame

    def block(self, statements: Sequence[ast.stmt]) -> list[Node]:
        """The nodes of statements that follow each other."""
        found: list[Node] = []
        for number, statement in enumerate(statements):
            rest = statements[number + 1 :]
            alarm = self._alarm(statement)
            if alarm is not None and alarm[1].seconds != 0:
                return [*found, *self._until_taken_back(*alarm, rest)]
            if isinstance(statement, ast.If):
                nodes, done = self._if(statement, rest)
                found += nodes
                if done:
                    break
            else:
                found += self._statement(statement)
        return found

    def _alarm(self, statement: ast.stmt) -> tuple[ast.Call, Amount] | None:
        """The call by which a statement sets an alarm, and to how long; 0 takes it back."""
        if not self.frame.module.sets_alarms:
            return None
        match statement:
            case ast.Expr(value=ast.Call() as call):
                for target in self._targets(call):
                    form = ALARMS.get(target.name)
                    if form is not None:
                        site = Site(self.frame.module, call, self._scope, (target,), target.name)
                        limit = waits.given(site, form.keyword, form.position, self.frame)
                        return None if limit is None else (call, limit)
        return None

    def _until_taken_back(self, call: ast.Call, limit: Amount, rest: Sequence[ast.stmt]) -> list[Node]:
        """What runs under an alarm: up to where it is taken back, perhaps in a `finally`."""
        end = len(rest)
        for number, statement in enumerate(rest):
            final = statement.finalbody if isinstance(statement, ast.Try) else []
            taken_back = [self._alarm(one) for one in (statement, *final)]
            if any(one is not None and one[1].seconds == 0 for one in taken_back):
                end = number + 1
                break
        inside = self.block(rest[:end])
        if not inside:
            return self.block(rest[end:])
        scope = group("scope", "signal.alarm", place_of(self.frame.module, call), inside)
        return [limited(scope, limit), *self.block(rest[end:])]

    def _if(self, node: ast.If, rest: Sequence[ast.stmt]) -> tuple[list[Node], bool]:
        """An `if`, with the statements behind it where one of its branches leaves the block."""
        tested = self._expression(node.test)
        body, orelse = self.block(node.body), self.block(node.orelse)
        place = place_of(self.frame.module, node)
        if body and leaves(node.body):
            return [*tested, *either(place, (body, [*orelse, *self.block(rest)]))], True
        if orelse and leaves(node.orelse):
            return [*tested, *either(place, ([*body, *self.block(rest)], orelse))], True
        return [*tested, *either(place, (body, orelse))], False

    def _statement(self, node: ast.stmt) -> list[Node]:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                return []  # its body runs when it is called
            case ast.For() | ast.AsyncFor():
                return [*self._expression(node.iter), *self._for(node), *self.block(node.orelse)]
            case ast.While():
                inside = [*self._expression(node.test), *self.block(node.body)]
                return [*self._while(node, inside), *self.block(node.orelse)]
            case ast.With() | ast.AsyncWith():
                return self._with(node, node.items)
            case ast.Try() | ast.TryStar():
                caught = either(place_of(self.frame.module, node), [self.block(h.body) for h in node.handlers])
                return [*self.block(node.body), *caught, *self.block(node.orelse), *self.block(node.finalbody)]
            case ast.Match():
                cases = [self.block(case.body) for case in node.cases]
                return [*self._expression(node.subject), *either(place_of(self.frame.module, node), cases)]
        return [found for child in ast.iter_child_nodes(node) for found in self._part(child)]

    def _part(self, node: ast.AST) -> list[Node]:
        return self._expression(node) if isinstance(node, ast.expr | ast.keyword) else []

    # --- loops -------------------------------------------------------------------------------------------------

    def _for(self, node: ast.For | ast.AsyncFor) -> list[Node]:
        inside = self.block(node.body)
        if not inside:
            return []
        name = f"for {_short(node.target)} in {_short(node.iter)}"
        return [self._loop(name, node, node.iter, inside)]

    def _loop(self, name: str, node: ast.stmt | ast.expr, iterated: ast.expr, inside: list[Node]) -> Node:
        """A loop over what `iterated` holds: by the number of its turns, or by the budget that it asks."""
        loop = group("loop", name, place_of(self.frame.module, node), inside)
        match iterated:
            case ast.Call(func=ast.Attribute(value=base, attr="units" | "attempts" as attr)):
                whole = budget(base, self._scope, self.frame)
                if whole is not None:
                    tries = turns.number(iterated.args[0], self.frame) if attr == "attempts" and iterated.args else None
                    return replace(limited(loop, whole), attempts=tries)
        return _counted(loop, turns.of_iterated(iterated, self.frame))

    def _while(self, node: ast.While, inside: list[Node]) -> list[Node]:
        if not inside:
            return []
        loop = group("loop", f"while {_short(node.test)}", place_of(self.frame.module, node), inside)
        for part in ast.walk(node.test):
            if isinstance(part, ast.Attribute) and part.attr in ("remaining", "expired", "cancelled"):
                whole = budget(part.value, self._scope, self.frame)
                if whole is not None:
                    return [replace(limited(loop, whole), attempts=None)]
            if isinstance(part, ast.Call) and {t.name for t in self._targets(part)} & _CLOCKS:
                return [replace(limited(loop, Amount(None, Known.UNKNOWN, "a clock")), attempts=None)]
        return [_counted(loop, turns.of_while(node, self.frame))]

    # --- with --------------------------------------------------------------------------------------------------

    def _with(self, node: ast.With | ast.AsyncWith, items: Sequence[ast.withitem]) -> list[Node]:
        """The body of a `with`, under what its items impose."""
        if not items:
            return self.block(node.body)
        expression = items[0].context_expr
        if isinstance(expression, ast.Call):
            for target in self._targets(expression):
                site = Site(self.frame.module, expression, self._scope, (target,), target.name)
                layer, name = _imposed(site)
                if layer:
                    found = self._with(node, items[1:])
                    limit = (
                        waits.limit_of(site, self.frame)
                        if layer == "scope"
                        else waits.given(site, "dagrun_timeout", None, self.frame)
                    )
                    return [limited(group(layer, name, place_of(self.frame.module, expression), found), limit)]
                if target.name == _STATEMENT:
                    return self._under(node, items, statement=waits.helper_limit(site, self.frame))
        whole = budget(expression, self._scope, self.frame)
        if whole is None and isinstance(expression, ast.Call) and isinstance(expression.func, ast.Attribute):
            whole = budget(expression.func.value, self._scope, self.frame)  # `budget.scope()`
        if whole is not None:
            made = self._expression(expression)
            return [*made, *self._under(node, items, ambient=whole)]
        return [*self._expression(expression), *self._with(node, items[1:])]

    def _under(
        self,
        node: ast.With | ast.AsyncWith,
        items: Sequence[ast.withitem],
        *,
        ambient: Amount | None = None,
        statement: Amount | None = None,
    ) -> list[Node]:
        frame = self.frame
        before = frame.ambient, frame.statement
        frame.ambient, frame.statement = ambient or before[0], statement or before[1]
        try:
            return self._with(node, items[1:])
        finally:
            frame.ambient, frame.statement = before

    # --- expressions -------------------------------------------------------------------------------------------

    def _expression(self, node: ast.AST) -> list[Node]:
        match node:
            case ast.Lambda() | ast.Constant() | ast.Name():
                return []
            case ast.IfExp(test=test, body=body, orelse=orelse):
                place = place_of(self.frame.module, node)
                branches = (self._expression(body), self._expression(orelse))
                return [*self._expression(test), *either(place, branches)]
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
                return self._comprehension(node)
            case ast.Call():
                return self._call(node)
        return [found for child in ast.iter_child_nodes(node) for found in self._expression(child)]

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> list[Node]:
        first = node.generators[0]
        parts: list[ast.expr] = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        parts += [test for each in node.generators for test in each.ifs]
        inside = [found for part in parts for found in self._expression(part)]
        before = self._expression(first.iter)
        if not inside:
            return before
        nested = len(node.generators) > 1
        name = f"for {_short(first.target)} in {_short(first.iter)}"
        if nested:
            loop = group("loop", name, place_of(self.frame.module, node), inside)
            return [*before, _uncounted(loop)]
        return [*before, self._loop(name, node, first.iter, inside)]

    def _call(self, node: ast.Call) -> list[Node]:
        targets = self._targets(node)
        names = {target.name for target in targets}
        place = place_of(self.frame.module, node)
        if "asyncio.wait_for" in names:
            site = Site(self.frame.module, node, self._scope, targets, "asyncio.wait_for")
            inside = [found for arg in node.args[:1] for found in self._expression(arg)]
            scope = group("scope", "asyncio.wait_for", place, inside)
            return [limited(scope, waits.limit_of(site, self.frame))]
        if names & _TOGETHER:
            return self._together(node)
        arguments = [found for child in ast.iter_child_nodes(node) for found in self._expression(child)]
        for target in targets:
            site = Site(self.frame.module, node, self._scope, (target,), target.name)
            if limits.is_operator(target.name):
                return [*arguments, self._operator(site)]
            leaf = waits.leaf(site, self.frame)
            if leaf is not None:
                return [*arguments, leaf]
        return [*arguments, *self._run(node)]

    def _together(self, node: ast.Call) -> list[Node]:
        """Coroutines that run at the same time; of those that a comprehension makes, all are alike."""
        parts: list[Node] = []
        for argument in node.args:
            inner = argument.value if isinstance(argument, ast.Starred) else argument
            if isinstance(inner, ast.ListComp | ast.GeneratorExp | ast.SetComp):
                parts += self._expression(inner.elt)
            else:
                parts += self._expression(inner)
        if len(parts) < 2:
            return parts
        return [group("together", "", place_of(self.frame.module, node), parts, Order.TOGETHER)]

    def _run(self, node: ast.Call) -> list[Node]:
        """The functions of the project that a call runs."""
        branches = []
        for function, call in self._functions(node):
            module = self.functions.program.of(function.scope)
            if module is None:
                continue
            frame = Frame(
                module, function.scope, self.functions.program, self.frame, call, self._scope, function,
                self.frame.ambient, self.frame.statement,
            )  # fmt: skip
            found = self.functions.function(frame)
            if found is not None:
                found = self._with_options(found, node)
                branches.append([replace(found, called=place_of(self.frame.module, node))])
        nodes = either(place_of(self.frame.module, node), branches)
        if nodes and any(target.name in _MAPPING for target in self._targets(node)):
            return [_uncounted(group("loop", _short(node.func), nodes[0].called or nodes[0].place, nodes))]
        if nodes and isinstance(node.func, ast.Attribute) and node.func.attr in _DETACHED:
            mark = Mark(Kind.ELSEWHERE, "runs elsewhere, and nobody waits for it here")
            return [replace(one, worst=worst.NOTHING, marks=(*one.marks, mark)) for one in nodes]
        return nodes

    def _with_options(self, node: Node, call: ast.Call) -> Node:
        """A task under the limit and the attempts that `with_options` gives it for this call."""
        options = _options(call)
        if options is None or node.layer not in ("task", "flow"):
            return node
        site = Site(self.frame.module, options, self._scope, (Target("prefect.task"),), "prefect.task")
        keywords = {keyword.arg for keyword in options.keywords}
        limit = waits.given(site, "timeout_seconds", None, self.frame) if "timeout_seconds" in keywords else node.limit
        if "retries" in keywords:
            return limited(replace(node, attempts=1, pauses=0.0), limit, retries.of_decorator(site))
        return limited(node, limit, Retries(node.attempts, node.pauses, node.until))

    def _functions(self, node: ast.Call) -> Iterator[tuple[Function, ast.Call]]:
        """The functions that a call runs, each with the call as it would be written for it alone."""
        module = self.frame.module
        called = self._values(node.func)
        run = module.run_by(node, self._scope)
        for value in called:
            if isinstance(value, Attached) and value.name in _DETACHED and value.function not in run:
                yield value.function, node
            if isinstance(value, Class):
                made = module.resolver.method(value.scope, "__init__")
                if made is not None:
                    yield Function(made, value), node
        submitted = [
            value
            for target in self._targets(node)
            if target.name in _SUBMITTING and node.args
            for value in self._values(node.args[0])
            if isinstance(value, Function)
        ]
        for function in dict.fromkeys((*run, *submitted)):
            yield function, self._own_call(node, function, called)

    def _own_call(self, node: ast.Call, function: Function, called: Sequence[Value]) -> ast.Call:
        """The call of a function that another call runs: `to_thread(f, x)` is `f(x)`, `partial(f, x)()` as well."""
        for value in called:
            if isinstance(value, Partial) and value.function == function:
                return _call(node, value.call.args[0], [*value.call.args[1:], *node.args], value.call.keywords)
            if value == function or (isinstance(value, Attached) and value.function == function):
                return node
        for place, argument in enumerate(node.args):
            for value in self._values(argument):
                match value:
                    case Function() if value == function:
                        return _call(node, argument, node.args[place + 1 :])
                    case Partial(function=inner, call=made) if inner == function:
                        return _call(node, made.args[0], [*made.args[1:], *node.args[place + 1 :]], made.keywords)
        return node

    def _operator(self, site: Site) -> Node:
        """An Airflow operator with the function that it is given."""
        limit = limits.operator_limit(site) or limits.sensor_limit(site)
        inside = []
        for value in site.argument("python_callable").values:
            if isinstance(value, Function):
                module = self.functions.program.of(value.scope)
                if module is not None:
                    found = self.functions.function(Frame(module, value.scope, self.functions.program))
                    inside += [found] if found is not None else []
        match site.argument("task_id").constant:
            case Const(value=str() as name):
                pass
            case _:
                name = site.name.rpartition(".")[2]
        node = group("operator", name, place_of(self.frame.module, site.call), inside)
        known = None if limit is None else waits.as_amount(limit)
        tried = retries.of_operator(site)
        if not inside and known is None and not site.name.endswith(_IDLE):
            node = replace(node, inside=worst.UNBOUNDED, marks=(Mark(Kind.UNBOUNDED, "no execution_timeout"),))
        return limited(node, known, tried)

    # --- what the index says -----------------------------------------------------------------------------------

    @property
    def _scope(self) -> Scope:
        return self.frame.scope

    def _values(self, node: ast.expr) -> tuple[Value, ...]:
        return self.frame.module.resolver.evaluate(node, self._scope)

    def _targets(self, call: ast.Call) -> tuple[Target, ...]:
        return tuple(dict.fromkeys(targets_of(self._values(call.func))))


def _options(call: ast.Call) -> ast.Call | None:
    """The `task.with_options(…)` that a call runs, by itself or with `submit`; None where it runs none."""
    match call.func:
        case ast.Call(func=ast.Attribute(attr="with_options")) as options:
            return options
        case ast.Attribute(value=ast.Call(func=ast.Attribute(attr="with_options")) as options):
            return options
    return None


def _call(
    node: ast.Call, function: ast.expr, args: list[ast.expr], keywords: Sequence[ast.keyword] = ()
) -> ast.Call:
    return ast.copy_location(ast.Call(function, args, [*keywords, *node.keywords]), node)


def _imposed(site: Site) -> tuple[str, str]:
    """The layer and name of what a `with` imposes on its body; empty where it imposes nothing."""
    form = limits.INNER.get(site.name)
    if form is not None and form.layer == "scope":
        return "scope", site.name
    if site.name == "airflow.DAG":
        match site.argument("dag_id", 0).constant:
            case Const(value=str() as name):
                return "dag", name
        return "dag", ""
    return "", ""


def _counted(loop: Node, number: int | None) -> Node:
    """A loop of so many turns."""
    if number is None:
        return _uncounted(loop)
    return replace(loop, attempts=number, worst=worst.repeated(loop.inside, number))


def _uncounted(loop: Node) -> Node:
    """A loop whose turns are not known: if it waits at all, nothing bounds it."""
    if loop.inside.seconds == 0 and loop.inside.exact:
        return replace(loop, attempts=None)
    mark = Mark(Kind.UNCOUNTED, "how often it goes round is not known")
    return replace(loop, attempts=None, worst=worst.UNBOUNDED, marks=(*loop.marks, mark))


def _short(node: ast.expr) -> str:
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
