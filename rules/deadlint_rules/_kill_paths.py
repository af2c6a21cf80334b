"""What becomes of a child after its limit: every path from the expiry of a wait to the end of the function.

The statements behind a timed wait are run in the abstract, with what is known of the child as the state: whether it
was told to end, killed, reaped. Paths on which the wait came back in time do not matter.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import TYPE_CHECKING, Protocol

from deadlint.index.scopes import Scope, dotted
from deadlint.index.values import NONE, External, Function, Member, Sequence

from deadlint_rules._processes import RUNS, called_functions, called_names

if TYPE_CHECKING:
    from deadlint.index.module import Module


class Kill(IntEnum):
    """The strongest thing that was done to the child."""

    NONE = 0
    ASKED = 1  # SIGTERM or SIGINT to the direct child: it may ignore that
    CHILD = 2  # SIGKILL to the direct child
    GROUP = 3  # the group, or every descendant


@dataclass(frozen=True, slots=True)
class State:
    """What is known of the child at one point of one path."""

    expired: bool = False
    kill: Kill = Kill.NONE
    reaped: bool = False
    waits: bool = False  # waited for without end, and not killed
    at_exit: bool = False  # … by the exit of its `with`
    drained: bool = False  # its pipes were read to their end after the kill
    own_group: bool = False  # `killpg` where the child has our own group
    handed: bool = False  # given to something that is not in sight
    facts: frozenset[tuple[str, object]] = frozenset()  # names with a known constant


States = frozenset[State]
_NOTHING: States = frozenset()
_MOST = 200  # states at one point; real functions stay under 20


class TooMany(Exception):
    """More paths than are worth following."""


@dataclass(frozen=True, slots=True)
class Flow:
    """The states in which a piece of code is left, by how it is left."""

    normal: States = _NOTHING
    expired: States = _NOTHING  # `TimeoutExpired` on its way up
    raised: States = _NOTHING  # another exception
    returned: States = _NOTHING
    broke: States = _NOTHING
    continued: States = _NOTHING

    def joined(self, other: Flow) -> Flow:
        """Both together."""
        return Flow(
            self.normal | other.normal, self.expired | other.expired, self.raised | other.raised,
            self.returned | other.returned, self.broke | other.broke, self.continued | other.continued,
        )  # fmt: skip

    def after(self, following: Flow) -> Flow:
        """This one, with `following` in place of its normal end."""
        return replace(self, normal=_NOTHING).joined(following)

    def each(self, change: Callable[[States], States]) -> Flow:
        """The same with every set of states changed."""
        return Flow(
            change(self.normal), change(self.expired), change(self.raised), change(self.returned),
            change(self.broke), change(self.continued),
        )  # fmt: skip

    @property
    def exits(self) -> States:
        """How a function is left."""
        return self.normal | self.expired | self.raised | self.returned


@dataclass(frozen=True)
class Names:
    """How a function calls the child: the object itself, its number, and what the caller left out."""

    child: frozenset[str]
    number: frozenset[str] = frozenset()
    omitted: frozenset[str] = frozenset()  # parameters that the caller left at None
    codes: frozenset[str] = frozenset()  # what holds the answer of `poll()`

    def is_child(self, node: ast.expr) -> bool:
        """Whether an expression is the child."""
        name = dotted(node)
        return bool(name) and name in self.child

    def mentions(self, node: ast.AST) -> bool:
        """Whether the child or its number occurs in a piece of code."""
        for part in ast.walk(node):
            if isinstance(part, ast.Name | ast.Attribute):
                name = dotted(part)
                if name and (name in self.child or name in self.number):
                    return True
        return False


class Expiry(Protocol):
    """How a limit around the waits for a child expires, where the waits have none of their own."""

    def times(self, call: ast.Call, scope: Scope) -> bool:
        """Whether the limit is around a wait."""

    def reaches(self, place: ast.AST, caught: ast.expr | None, scope: Scope) -> bool:
        """Whether a handler or `suppress` at `place` that names `caught` (None: anything) catches the expiry."""


@dataclass
class Paths:
    """Follows one child through a function and the functions of the file that it is given to."""

    module: Module
    session: bool | None  # whether the child leads a group; None where that is not known
    piped: bool
    clock: bool = False  # whether a look at the clock counts as a limit: one that is written by hand
    expiry: Expiry | None = None  # of asyncio's children, whose waits have no limit of their own
    _busy: set[Scope] = field(default_factory=set)

    def outcome(self, scope: Scope, names: Names) -> States:
        """How the function is left where a timed wait in it has expired. Raises `TooMany`."""
        return frozenset(s for s in self.run(scope, names, frozenset({State()})).exits if s.expired)

    def run(self, scope: Scope, names: Names, states: States) -> Flow:
        """The flow through the body of a function or module."""
        names = replace(names, number=names.number | _numbers(scope, names))
        names = replace(names, child=names.child | _aliases(scope, names), codes=_codes(scope, names))
        names = replace(names, number=names.number | _numbers(scope, names))
        walk = _Walk(self, scope, names)
        body = scope.node.body if isinstance(scope.node, ast.Module | ast.FunctionDef | ast.AsyncFunctionDef) else []
        return walk.block(body, states)


def names_in(scope: Scope, key: str) -> Names:
    """How a function calls the child `key`, its number, and the answers of its `poll()`."""
    names = Names(frozenset({key}))
    return replace(names, number=_numbers(scope, names), codes=_codes(scope, names))


def _codes(scope: Scope, names: Names) -> frozenset[str]:
    """What holds the answer of `poll()`."""
    found: set[str] = set()
    for statement in scope.blocks:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(func=ast.Attribute(value=base, attr="poll"))):
                if names.is_child(base):
                    found.add(name)
    return frozenset(found)


def _aliases(scope: Scope, names: Names) -> frozenset[str]:
    """Other names that the function gives the child."""
    found: set[str] = set()
    for statement in scope.blocks:
        match statement:
            case ast.Assign(targets=[target], value=value) if names.is_child(value) and dotted(target):
                found.add(dotted(target))
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(func=func) as call):
                if dotted(func).endswith("Process") and names.mentions(call):
                    found.add(name)  # `parent = psutil.Process(proc.pid)`
    return frozenset(found)


def _numbers(scope: Scope, names: Names) -> frozenset[str]:
    """What holds the number of the child or of its group."""
    found = {f"{name}.pid" for name in names.child}
    known = replace(names, number=names.number | found)
    for statement in scope.blocks:
        match statement:
            case ast.Assign(targets=[target], value=value) if dotted(target) and known.mentions(value):
                if (
                    not isinstance(value, ast.Call) or dotted(value.func).endswith(("getpgid", "int", "str", "getattr"))
                ) and not names.is_child(value):
                    found.add(dotted(target))
    return frozenset(found)


_KILLING = re.compile(
    r"kill|terminat|stop|reap|cleanup|clean_up|abort|destroy|shutdown|cancel|end_process", re.IGNORECASE
)
_TELLING = frozenset(
    {
        "debug", "info", "warning", "warn", "error", "exception", "critical", "log", "print", "str", "repr", "format",
        "append", "isinstance", "len", "int", "hasattr", "getattr", "getpgid", "id", "bool", "type", "pid_exists",
    }
)  # fmt: skip


@dataclass
class _Walk:
    paths: Paths
    scope: Scope
    names: Names

    # --- statements ----------------------------------------------------------------------------------------

    def block(self, body: Iterable[ast.stmt], states: States) -> Flow:
        flow = Flow(normal=states)
        for statement in body:
            if not flow.normal:
                break
            if len(flow.normal) > _MOST:
                raise TooMany
            flow = flow.after(self.statement(statement, flow.normal))
        return flow

    def statement(self, node: ast.stmt, states: States) -> Flow:
        match node:
            case ast.If():
                return self._if(node, states)
            case ast.While():
                return self._while(node, states)
            case ast.For() | ast.AsyncFor():
                head = self.effects(node.iter, states)
                return head.after(self._loop(node, head.normal, endless=False))
            case ast.Try() | ast.TryStar():
                return self._try(node, states)
            case ast.With() | ast.AsyncWith():
                return self._with(node, states)
            case ast.Match():
                head = self.effects(node.subject, states)
                flow = Flow(normal=head.normal)
                for case in node.cases:
                    flow = flow.joined(self.block(case.body, head.normal))
                return head.after(flow)
            case ast.Return():
                flow = self.effects(node.value, states)
                return replace(flow, normal=_NOTHING, returned=flow.returned | flow.normal)
            case ast.Raise():
                return self._raise(node, states)
            case ast.Break():
                return Flow(broke=states)
            case ast.Continue():
                return Flow(continued=states)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                return Flow(normal=states)
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant(value=value)):
                return Flow(normal=frozenset(_with_fact(s, name, value) for s in states))
        return self._simple(node, states)

    def _simple(self, node: ast.stmt, states: States) -> Flow:
        flow = self.effects(node, states)
        bound = {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        if bound:
            kept = frozenset(replace(s, facts=frozenset(f for f in s.facts if f[0] not in bound)) for s in flow.normal)
            flow = replace(flow, normal=kept)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and _leaves(node.value):
            return replace(flow, normal=_NOTHING, raised=flow.raised | flow.normal)
        return flow

    def _raise(self, node: ast.Raise, states: States) -> Flow:
        flow = self.effects(node, states)
        again = node.exc is None or (isinstance(node.exc, ast.Name) and self._is_caught_name(node, node.exc.id))
        if again:
            return replace(flow, normal=_NOTHING, expired=flow.expired | flow.normal)
        return replace(flow, normal=_NOTHING, raised=flow.raised | flow.normal)

    def _is_caught_name(self, node: ast.AST, name: str) -> bool:
        return any(isinstance(a, ast.ExceptHandler) and a.name == name for a in self.paths.module.ancestors(node))

    def _if(self, node: ast.If, states: States) -> Flow:
        head = self.effects(node.test, states)
        yes = self.block(node.body, self.assume(node.test, head.normal, truth=True))
        no = self.block(node.orelse, self.assume(node.test, head.normal, truth=False))
        return head.after(yes.joined(no))

    def _while(self, node: ast.While, states: States) -> Flow:
        endless = isinstance(node.test, ast.Constant) and bool(node.test.value)
        return self._loop(node, states, endless=endless)

    def _loop(self, node: ast.While | ast.For | ast.AsyncFor, states: States, *, endless: bool) -> Flow:
        """Run the body until no state is new; then `else`, then what broke out."""
        seen, pending, flow = states, states, Flow()
        ends: States = _NOTHING
        while pending:
            if isinstance(node, ast.While):
                head = self.effects(node.test, pending)
                flow = flow.joined(replace(head, normal=_NOTHING))
                ends |= _NOTHING if endless else self.assume(node.test, head.normal, truth=False)
                pending = self.assume(node.test, head.normal, truth=True)
            else:
                ends |= pending
            body = self.block(node.body, pending)
            flow = flow.joined(replace(body, normal=_NOTHING, continued=_NOTHING))
            again = body.normal | body.continued
            pending = again - seen
            seen |= again
            if len(seen) > _MOST:
                raise TooMany
        tail = self.block(node.orelse, ends)
        broke = flow.broke
        flow = replace(flow, broke=_NOTHING).joined(tail)
        return replace(flow, normal=flow.normal | broke)

    def _try(self, node: ast.Try | ast.TryStar, states: States) -> Flow:
        flow = self.block(node.body, states)
        caught = Flow()
        pending, other = flow.expired, flow.raised
        for handler in node.handlers:
            if pending and self._catches(handler):
                caught = caught.joined(self.block(handler.body, pending))
                pending = _NOTHING
            if other and _broad(handler):
                caught = caught.joined(self.block(handler.body, other))
                other = _NOTHING
        tail = self.block(node.orelse, flow.normal)
        flow = replace(flow, normal=_NOTHING, expired=pending, raised=other).joined(tail).joined(caught)
        return self._finally(node.finalbody, flow)

    def _catches(self, handler: ast.ExceptHandler) -> bool:
        if self.paths.expiry is not None:
            return self.paths.expiry.reaches(handler, handler.type, self.scope)
        return catches_expiry(handler, self.paths.module, self.scope)

    def _suppresses(self, call: ast.Call, caught: ast.expr) -> bool:
        if self.paths.expiry is not None:
            return self.paths.expiry.reaches(call, caught, self.scope)
        return names_expiry(caught, self.paths.module, self.scope)

    def _finally(self, body: list[ast.stmt], flow: Flow) -> Flow:
        if not body:
            return flow
        result = Flow()
        for kind in ("normal", "expired", "raised", "returned", "broke", "continued"):
            states: States = getattr(flow, kind)
            if not states:
                continue
            after = self.block(body, states)
            kept: dict[str, States] = {kind: after.normal}
            result = result.joined(replace(after, normal=_NOTHING)).joined(Flow(**kept))
        return result

    def _with(self, node: ast.With | ast.AsyncWith, states: States) -> Flow:
        flow = Flow(normal=states)
        for item in node.items:
            flow = flow.after(self.effects(item.context_expr, flow.normal))
        flow = flow.after(self.block(node.body, flow.normal))
        for item in reversed(node.items):
            flow = self._exit(item, flow)
        return flow

    def _exit(self, item: ast.withitem, flow: Flow) -> Flow:
        """What leaving a context manager does to the child."""
        expression = item.context_expr
        if (
            self.names.is_child(expression) or (item.optional_vars and self.names.is_child(item.optional_vars))
        ) and self._is_process(item):
            return flow.each(lambda states: frozenset(_exit_waits(s) for s in states))
        if isinstance(expression, ast.Call):
            name = dotted(expression.func)
            if name.rpartition(".")[2] == "suppress" and any(self._suppresses(expression, a) for a in expression.args):
                return replace(flow, normal=flow.normal | flow.expired, expired=_NOTHING)
            if self.names.mentions(expression) and self._kills_on_exit(expression, name):
                return flow.each(lambda states: frozenset(replace(s, handed=True) for s in states))
        return flow

    def _is_process(self, item: ast.withitem) -> bool:
        """Whether a `with` enters the process itself, whose exit waits, and not something that yields one."""
        if item.optional_vars is None or self.names.is_child(item.context_expr):
            return True
        match item.context_expr:
            case ast.Call() as call:
                return not any(
                    isinstance(v, Function) and v.scope.yields
                    for v in self.paths.module.resolver.evaluate(call.func, self.scope)
                )
        return False

    def _kills_on_exit(self, call: ast.Call, name: str) -> bool:
        if _KILLING.search(name):
            return True
        inner = called_functions(self.paths.module, call, self.scope)
        return any(_KILLING.search(_attribute(c)) for function in inner for c in function.calls)

    # --- conditions ----------------------------------------------------------------------------------------

    def assume(self, test: ast.expr, states: States, *, truth: bool) -> States:
        """The states in which `test` can be so."""
        match test:
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return self.assume(operand, states, truth=not truth)
            case ast.BoolOp(op=op, values=parts) if isinstance(op, ast.And) is truth:
                for part in parts:
                    states = self.assume(part, states, truth=truth)
                return states
            case ast.BoolOp(values=parts):
                return frozenset().union(*(self.assume(part, states, truth=truth) for part in parts))
            case ast.Constant(value=value):
                return states if bool(value) is truth else _NOTHING
        late = late_test(test, self.paths.module, self.scope) if self.paths.clock and not self.paths._busy else None
        if late is not None:
            return frozenset(replace(s, expired=True) for s in states) if late is truth else states
        alive = self.alive_test(test)
        if alive is not None:
            return frozenset(_known_dead(s) for s in states) if alive is not truth else _running(states)
        there = exists_test(test, self.names)
        if there is not None:
            # What expired was a wait for it, so it is there.
            return frozenset(s for s in states if there is truth or not s.expired)
        return frozenset(s for s in states if _fits(test, s, truth=truth))

    def alive_test(self, test: ast.expr) -> bool | None:
        """True where `test` holds while the child runs, False where it holds once it ended."""
        return alive_test(test, self.names)

    # --- calls ---------------------------------------------------------------------------------------------

    def effects(self, node: ast.AST | None, states: States) -> Flow:
        """What the calls in an expression or simple statement do, in the order in which they run."""
        flow = Flow(normal=states)
        if node is None:
            return flow
        for call in _calls(node):
            if not flow.normal:
                break
            flow = flow.after(self.call(call, flow.normal))
        return flow

    def call(self, call: ast.Call, states: States) -> Flow:
        func = call.func
        if isinstance(func, ast.Attribute) and self.names.is_child(func.value):
            return self._method(call, func.attr, states)
        name = dotted(func)
        last = name.rpartition(".")[2] or _attribute(call)
        if last == "killpg":
            return Flow(normal=frozenset(self._killed_group(s) for s in states))
        if not self.names.mentions(call):
            return self._own_method(call, states)
        if last == "kill" and name.startswith("os."):
            return Flow(normal=frozenset(self._signalled(call, s) for s in states))
        if self._is_helper(call):
            ended = frozenset(replace(s, reaped=True, kill=Kill.GROUP) for s in states)
            return Flow(ended, expired=frozenset(replace(s, expired=True) for s in ended))
        inner = self._inside(call, states)
        if inner is not None:
            return inner
        return Flow(normal=frozenset(self._given_away(call, last, s) for s in states))

    def _is_helper(self, call: ast.Call) -> bool:
        names = called_names(self.paths.module, call, self.scope)
        return bool(names & {"deadlint_budget.wait", "deadlint_budget.communicate"})

    def _method(self, call: ast.Call, attr: str, states: States) -> Flow:
        match attr:
            case "kill":
                return Flow(normal=frozenset(replace(s, kill=max(s.kill, Kill.CHILD)) for s in states))
            case "terminate":
                inner = self._own_method(call, states)
                asked = frozenset(replace(s, kill=max(s.kill, Kill.ASKED)) for s in inner.normal)
                return replace(inner, normal=asked)
            case "send_signal":
                strength = Kill.CHILD if _is_sigkill(call) else Kill.ASKED
                return Flow(normal=frozenset(replace(s, kill=max(s.kill, strength)) for s in states))
            case "children":
                return Flow(normal=frozenset(replace(s, kill=Kill.GROUP) for s in states))
            case "wait" | "communicate":
                return self._waited(call, attr, states)
        return self._own_method(call, states)

    def _waited(self, call: ast.Call, attr: str, states: States) -> Flow:
        if self._timed(call, attr):
            ended = frozenset(_known_dead(s) if s.kill is Kill.NONE else replace(s, reaped=True) for s in states)
            return Flow(normal=ended, expired=frozenset(self._late(s) for s in states if not s.reaped))
        return Flow(normal=frozenset(_waited_for(s, drained=attr == "communicate") for s in states))

    def _late(self, state: State) -> State:
        """The state in which a timed wait raises. What waits behind a kill is no limit but reaping."""
        if state.kill >= Kill.CHILD:
            return replace(state, reaped=True)
        return replace(state, expired=state.expired or not self.paths._busy)

    def _timed(self, call: ast.Call, attr: str) -> bool:
        if self.paths.expiry is not None:
            return self.paths.expiry.times(call, self.scope)
        given = call.args[1:2] if attr == "communicate" else call.args[:1]
        given = [*given, *(k.value for k in call.keywords if k.arg in ("timeout", None))]
        for value in given:
            if isinstance(value, ast.Name) and value.id in self.names.omitted:
                continue
            if self.paths.module.resolver.evaluate(value, self.scope) != (NONE,):
                return True
        return False

    def _killed_group(self, state: State) -> State:
        if self.paths.session is False:
            return replace(state, own_group=True, kill=max(state.kill, Kill.CHILD))
        return replace(state, kill=Kill.GROUP)

    def _signalled(self, call: ast.Call, state: State) -> State:
        if call.args and isinstance(call.args[0], ast.UnaryOp):
            return self._killed_group(state)
        return replace(state, kill=max(state.kill, Kill.CHILD if _is_sigkill(call) else Kill.ASKED))

    def _given_away(self, call: ast.Call, last: str, state: State) -> State:
        """The child handed to a function that is not in sight."""
        names = called_names(self.paths.module, call, self.scope)
        if names & RUNS or names & {"os.system", "subprocess.Popen", "deadlint_budget.run"}:
            return replace(state, kill=Kill.GROUP)  # `taskkill /T /PID …`, `pkill -P …`
        if last == "children" or any(n.startswith("psutil.") for n in names):
            return state if last != "children" else replace(state, kill=Kill.GROUP)
        if _KILLING.search(last) or last in self._wrappers():
            return replace(state, handed=True)
        whole = any(self.names.is_child(a) for a in (*call.args, *(k.value for k in call.keywords)))
        return replace(state, handed=True) if whole and last not in _TELLING and not last[:1].isupper() else state

    def _wrappers(self) -> set[str]:
        return {name.rpartition(".")[2] for name in self.paths.module.settings.wrappers.processes}

    def _own_method(self, call: ast.Call, states: States) -> Flow:
        """A method of the same `self`, or a function inside this one, which sees the child under its own name."""
        inner = self._inside(call, states)
        return Flow(normal=states) if inner is None else inner

    def _inside(self, call: ast.Call, states: States) -> Flow | None:
        """The flow through a function of the file that the call enters with the child; None where it enters none."""
        for value in self.paths.module.resolver.evaluate(call.func, self.scope):
            if isinstance(value, Function):
                names = self._names_inside(value, call)
                if names is None or value.scope in self.paths._busy or len(self.paths._busy) > 3:
                    continue
                self.paths._busy.add(value.scope)
                try:
                    flow = self.paths.run(self.paths.module.resolver.walked(value.scope), names, states)
                finally:
                    self.paths._busy.discard(value.scope)
                return Flow(flow.normal | flow.returned, flow.expired, flow.raised)
        return None

    def _names_inside(self, function: Function, call: ast.Call) -> Names | None:
        """What the child is called in a function that is called; None where that cannot see it."""
        scope = function.scope
        child: set[str] = set()
        number: set[str] = set()
        omitted: set[str] = set()
        resolver = self.paths.module.resolver
        for parameter in scope.parameters():
            argument = resolver.argument_for(function, parameter.arg, call)
            if argument is None:
                default = scope.default_of(parameter.arg)
                if isinstance(default, ast.Constant) and default.value is None:
                    omitted.add(parameter.arg)
            elif self.names.is_child(argument):
                child.add(parameter.arg)
            elif dotted(argument) in self.names.number:
                number.add(parameter.arg)
        first = next(scope.parameters(), None)
        if scope.owner is not None and first is not None and isinstance(call.func, ast.Attribute):
            base = dotted(call.func.value)
            for name in self.names.child:
                if name == base:
                    child.add(first.arg)  # a method of a subclass of Popen
                elif base and name.startswith(f"{base}."):
                    child.add(first.arg + name[len(base) :])
        if scope.parent is self.scope:
            child |= self.names.child
            number |= self.names.number
        return Names(frozenset(child), frozenset(number), frozenset(omitted)) if child or number else None


# --- small questions -----------------------------------------------------------------------------------------


def alive_test(test: ast.expr, names: Names) -> bool | None:
    """True where `test` holds while the child runs, False where it holds once it has ended; None where neither."""
    match test:
        case ast.Compare(left=left, ops=[op], comparators=[ast.Constant(value=None)]) if _asks_code(left, names):
            return isinstance(op, ast.Is | ast.Eq)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            inner = alive_test(operand, names)
            return None if inner is None else not inner
        case ast.Call(func=ast.Attribute(value=base, attr="is_running" | "is_alive")) if names.is_child(base):
            return True
        case ast.Call(func=ast.Attribute(value=base, attr="poll")) if names.is_child(base):
            return None
    return None


def exists_test(test: ast.expr, names: Names) -> bool | None:
    """True where `test` holds if the child's name holds a child, False where if it holds None; None where neither."""
    match test:
        case ast.Compare(left=left, ops=[op], comparators=[ast.Constant(value=None)]) if names.is_child(left):
            return isinstance(op, ast.IsNot | ast.NotEq)
    return True if names.is_child(test) else None


_CLOCKS = frozenset({"time.time", "time.monotonic", "time.perf_counter", "datetime.datetime.now"})


def late_test(test: ast.expr, module: Module, scope: Scope) -> bool | None:
    """True where `test` holds once a time is over, False where it holds until then; None where it asks no clock."""
    match test:
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            for side, more in ((left, ast.Gt | ast.GtE), (right, ast.Lt | ast.LtE)):
                calls = (n for n in ast.walk(side) if isinstance(n, ast.Call))
                if any(called_names(module, call, scope) & _CLOCKS for call in calls):
                    return isinstance(op, more) if isinstance(op, ast.Gt | ast.GtE | ast.Lt | ast.LtE) else None
    return None


def _asks_code(node: ast.expr, names: Names) -> bool:
    match node:
        case ast.NamedExpr(value=value):
            return _asks_code(value, names)
        case ast.Name(id=name):
            return name in names.codes
        case ast.Call(func=ast.Attribute(value=base, attr="poll")) | ast.Attribute(value=base, attr="returncode"):
            return names.is_child(base)
    return False


def _calls(node: ast.AST) -> Iterator[ast.Call]:
    """The calls in a piece of code in the order in which they run, those in lambdas and definitions left out."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.Lambda | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield from _calls(child)
    if isinstance(node, ast.Call):
        yield node


def _attribute(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else dotted(call.func).rpartition(".")[2]


def _leaves(call: ast.Call) -> bool:
    return dotted(call.func) in ("sys.exit", "os._exit", "exit", "quit", "os.abort")


def _is_sigkill(call: ast.Call) -> bool:
    for argument in call.args:
        if dotted(argument).endswith("SIGKILL") or (isinstance(argument, ast.Constant) and argument.value == 9):
            return True
    return False


def _waited_for(state: State, *, drained: bool) -> State:
    if state.reaped:
        return state
    if state.kill >= Kill.CHILD:
        return replace(state, reaped=True, drained=drained)
    return replace(state, reaped=True, waits=True)


def _exit_waits(state: State) -> State:
    if state.reaped:
        return state
    if state.kill >= Kill.CHILD:
        return replace(state, reaped=True)
    return replace(state, reaped=True, waits=True, at_exit=True)


def _known_dead(state: State) -> State:
    """The state in which the child is found to have ended by itself: nothing is owed to it then."""
    return state if state.reaped else replace(state, reaped=True, kill=Kill.GROUP)


def _running(states: States) -> States:
    return frozenset(s for s in states if not s.reaped)


def _with_fact(state: State, name: str, value: object) -> State:
    kept = frozenset(f for f in state.facts if f[0] != name)
    if isinstance(value, bool | int | str | None):
        kept |= {(name, value)}
    return replace(state, facts=kept)


def _fits(test: ast.expr, state: State, *, truth: bool) -> bool:
    """Whether what is known of names allows `test` to be so."""
    known = dict(state.facts)
    match test:
        case ast.Name(id=name) if name in known:
            return bool(known[name]) is truth
        case ast.Compare(left=ast.Name(id=name), ops=[op], comparators=[ast.Constant(value=value)]) if name in known:
            same = known[name] == value and type(known[name]) is type(value)
            if isinstance(op, ast.Is | ast.Eq):
                return same is truth
            if isinstance(op, ast.IsNot | ast.NotEq):
                return same is not truth
    return True


EXPIRY = frozenset({"subprocess.TimeoutExpired", "subprocess.SubprocessError", "psutil.TimeoutExpired"})
BROAD = frozenset({"builtins.Exception", "builtins.BaseException"})


def catches_expiry(handler: ast.ExceptHandler, module: Module, scope: Scope) -> bool:
    """Whether a handler catches `TimeoutExpired`."""
    return handler.type is None or names_expiry(handler.type, module, scope)


def names_expiry(node: ast.expr, module: Module, scope: Scope) -> bool:
    """Whether what an `except` or `suppress` names covers `TimeoutExpired`."""
    names = caught_names(node, module, scope)
    return bool(names & (EXPIRY | BROAD)) or any(n.endswith("TimeoutExpired") for n in names)


def caught_names(node: ast.expr, module: Module, scope: Scope) -> set[str]:
    """The exceptions that an `except` names, by canonical name; as written where that is not known."""
    found: set[str] = set()
    for part in node.elts if isinstance(node, ast.Tuple) else [node]:
        values = module.resolver.evaluate(part, scope)
        inner = [v for value in values if isinstance(value, Sequence) for item in value.items for v in item]
        known = [v.name for v in (*values, *inner) if isinstance(v, External | Member)]
        found.update(known or [dotted(part)])
    return found


def _broad(handler: ast.ExceptHandler) -> bool:
    if handler.type is None:
        return True
    parts = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(dotted(part) in ("Exception", "BaseException") for part in parts)
