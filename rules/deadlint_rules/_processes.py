"""What the rules about processes ask alike: is there a limit, what is started, how, and what bounds it already."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from deadlint.index.scopes import Scope, dotted
from deadlint.index.values import (
    NONE,
    UNKNOWN,
    Class,
    Const,
    External,
    Function,
    Mapping,
    Member,
    Object,
    Partial,
    Result,
    Value,
    Values,
)
from deadlint.site import Site, Target, targets_of

from deadlint_rules._programs import UNKNOWN_COMMAND, Commands, commands

if TYPE_CHECKING:
    from deadlint.index.module import Module

RUNS = frozenset(f"subprocess.{name}" for name in ("run", "call", "check_call", "check_output"))
POPEN = "subprocess.Popen"
ASYNC = "asyncio.Process"
_CONSTRUCTORS = (POPEN, "asyncio.create_subprocess_exec", "asyncio.create_subprocess_shell")


class Given(Enum):
    """Whether a call has a limit."""

    NO = "no"  # none, or None
    YES = "yes"
    PERHAPS = "perhaps"  # only the caller knows


def limit_given(site: Site, name: str = "timeout", position: int | None = None) -> Given:
    """Whether a call gives a limit as `name`; a parameter that may be None counts as one that is given."""
    argument = site.argument(name, position)
    if argument.absent:
        return Given.NO
    if argument.node is not None:
        return Given.NO if argument.values == (NONE,) else Given.YES
    known = [v for v in argument.values if v not in (UNKNOWN, NONE)]
    if known:
        return Given.YES
    return Given.PERHAPS if argument.unknown and not _named_in_spread(site, name) else _of_spread(argument.values)


def _of_spread(values: Values) -> Given:
    return Given.NO if values == (NONE,) else Given.YES


def _named_in_spread(site: Site, name: str) -> bool:
    """Whether `**mapping` holds `name` for certain, with a value that is not known."""
    for keyword in site.call.keywords:
        if keyword.arg is None:
            for value in site.values(keyword.value):
                match value:
                    case Mapping(entries=entries) if any(key == name for key, _ in entries):
                        return True
    return False


def site_at(module: Module, call: ast.Call, scope: Scope, name: str) -> Site:
    """A call, of whichever module, as a site, for what can be asked of its arguments."""
    return Site(module, call, scope, (Target(name),), name)


def called_names(module: Module, call: ast.Call, scope: Scope) -> set[str]:
    """The canonical names of what a call, of whichever module, may reach."""
    return {t.name for t in targets_of(module.resolver.evaluate(call.func, scope))}


def commands_of(site: Site) -> Commands:
    """What a call of the `subprocess` family, `os.system` or one of asyncio's constructors starts."""
    module = site.module
    name = site.name
    if name == "asyncio.create_subprocess_exec":
        values = module.resolver.evaluate(
            ast.copy_location(ast.List(site.call.args, ast.Load()), site.call), site.scope
        )
        shell = False
    elif name.startswith("os.spawn"):
        values, shell = (UNKNOWN,), False
    else:
        values = site.argument(_FIRST.get(name, "args"), 0).values
        shell = name in _SHELL or _truthy(site.argument("shell").values)
    return commands(values, module.resolver, module.settings, shell=shell)


_FIRST = {
    "os.system": "command", "os.popen": "cmd", "subprocess.getoutput": "cmd", "subprocess.getstatusoutput": "cmd",
    "asyncio.create_subprocess_shell": "cmd",
}  # fmt: skip
_SHELL = frozenset(_FIRST)


def _truthy(values: Values) -> bool:
    return any(isinstance(v, Const) and bool(v.value) for v in values)


@dataclass(frozen=True, slots=True)
class Start:
    """The call that starts a child, and where it stands: perhaps in another module."""

    call: ast.Call
    scope: Scope


@dataclass(frozen=True)
class Child:
    """What is known of the child that a method call is about."""

    site: Site
    key: str  # how the function calls it: `proc`, `self._process`; empty where it has no name
    constructors: tuple[Start, ...]  # where it is started, as far as that is in sight

    @property
    def name(self) -> str:
        """How messages call the object."""
        return f"`{self.key}`" if self.key else "the child"

    @property
    def starts(self) -> tuple[Site, ...]:
        """The constructor calls as sites."""
        return tuple(start_site(self.site.module, start) for start in self.constructors)

    @property
    def commands(self) -> Commands:
        """What it runs."""
        each = tuple(c for start in self.starts for c in commands_of(start).each)
        return Commands(tuple(dict.fromkeys(each)) or (UNKNOWN_COMMAND,), self.site.module.settings)

    @property
    def in_group(self) -> bool | None:
        """Whether it leads a process group of its own; None where that is not known."""
        answers = {leads_group(start) for start in self.starts} or {None}
        return next(iter(answers)) if len(answers) == 1 else None

    @property
    def piped(self) -> bool:
        """Whether its output goes to a pipe of ours."""
        return any(has_pipe(start) for start in self.starts)

    @property
    def label(self) -> str:
        """The program where it is known, else the object."""
        first = self.commands.first
        return first.label if first.program else self.name


def start_site(module: Module, start: Start) -> Site:
    """The site of a constructor call; a subclass of the project counts as `Popen`."""
    names = called_names(module, start.call, start.scope)
    name = next((n for n in _CONSTRUCTORS if n in names), POPEN)
    return site_at(module, start.call, start.scope, name)


def child_of(site: Site) -> Child:
    """The child that a method call is about."""
    func = site.call.func
    key = dotted(func.value) if isinstance(func, ast.Attribute) else ""
    found = [start for target in site.targets if (start := _start(target.receiver, site)) is not None]
    return Child(site, key, tuple(dict.fromkeys(found)))


def same_child(call: ast.Call, child: Child) -> bool:
    """Whether a call under the child's name is about this one: the name may have been given to another since."""
    other = child.site.module.site(call)
    if other is None or not child.constructors:
        return True
    found = set(child_of(other).constructors)
    return not found or bool(found & set(child.constructors))


def _start(value: Value | None, site: Site) -> Start | None:
    match value:
        case Result(call=ast.Call() as call, scope=Scope() as scope):
            return Start(call, scope)
        case Member(receiver=receiver):  # `proc.stdout`
            return _start(receiver, site)
        case Object(call=ast.Call() as call):
            return Start(call, site.module.walker.scope_of.get(call, site.scope))
    return None


def leads_group(start: Site) -> bool | None:
    """Whether a constructor puts the child in a group of its own; None where that is not known."""
    if _truthy(start.argument("start_new_session").values) or _zero(start.argument("process_group").values):
        return True
    before = start.argument("preexec_fn")
    if before.node is not None:
        return _makes_session(before.values, start.module)
    for name in ("start_new_session", "process_group", "creationflags"):
        argument = start.argument(name)
        if argument.unknown or (argument.values and name == "creationflags"):
            return None
    return False


def _zero(values: Values) -> bool:
    return any(isinstance(v, Const) and v.value == 0 and v.value is not False for v in values)


_SESSIONS = frozenset({"os.setsid", "os.setpgrp", "os.setpgid"})


def _makes_session(values: Values, module: Module) -> bool | None:
    answers: list[bool | None] = []
    for value in values:
        match value:
            case External(name=name):
                answers.append(name in _SESSIONS)
            case Const(value=None):
                answers.append(False)
            case Function(scope=scope):
                calls = module.resolver.walked(scope).calls
                answers.append(any(called_names(module, call, scope) & _SESSIONS for call in calls))
            case Partial(function=function):
                answers.append(_makes_session((function,), module))
            case _:
                answers.append(None)
    if True in answers:
        return True
    return None if None in answers else False


def has_pipe(start: Site) -> bool:
    """Whether a call captures output through a pipe."""
    if start.name == "subprocess.check_output" or _truthy(start.argument("capture_output").values):
        return True
    pipes = {External("subprocess.PIPE"), External("asyncio.subprocess.PIPE")}
    return any(pipes & set(start.argument(name).values) for name in ("stdout", "stderr"))


# --- what bounds a call already --------------------------------------------------------------------------------

_FOREIGN = re.compile(
    r"conn|lock|idle|kill|terminate|grace|shut|http|request|retry|cache|ping|poll|login|session|keep|alive|stop"
    r"|interval|visibility|expire|ttl|read_|socket|queue|heartbeat|handler|callback|budget_(usd|eur|id)",
)


def meaningful_bound(site: Site) -> str | None:
    """What bounds the caller here, in words; None where it is only a parameter for something else."""
    bound = site.bound
    parameter = re.fullmatch(r"the parameter `(\w+)`", bound or "")
    if bound is None or parameter is None:
        return bound
    name = parameter[1]
    return None if _FOREIGN.search(name.lower()) or _told_to_child(name, site) else bound


def _told_to_child(name: str, site: Site) -> bool:
    """Whether a parameter becomes part of a command line: `["kubectl", "wait", f"--timeout={timeout}"]`."""
    function = site.function
    for node in ast.walk(function.node) if function is not None else ():
        if isinstance(node, ast.List | ast.JoinedStr) and any(
            isinstance(n, ast.Name) and n.id == name for n in ast.walk(node)
        ):
            statement = site.module.statement(node) if node in site.module.walker.parents else None
            if not (isinstance(statement, ast.Expr | ast.Raise) and isinstance(node, ast.JoinedStr)):
                return True
    return False


_ALARMS = frozenset({"signal.alarm", "signal.setitimer"})


def stopped_by_signal(site: Site) -> bool:
    """Whether an alarm or a death penalty ends a call in this function: it raises in the main thread."""
    function = site.function
    if function is None:
        return False
    position = (site.call.lineno, site.call.col_offset)
    for call in function.calls:
        if (
            (call.lineno, call.col_offset) < position
            and not _stops_alarm(call)
            and called_names(site.module, call, function) & _ALARMS
        ):
            return True
    return any(_deadly(item, site) for node in site.ancestors() for item in _entered(node))


def _stops_alarm(call: ast.Call) -> bool:
    match call.args:
        case [ast.Constant(value=0)]:
            return True
    return False


def _entered(node: ast.AST) -> Iterator[ast.expr]:
    if isinstance(node, ast.With | ast.AsyncWith):
        for item in node.items:
            yield item.context_expr


def _deadly(expression: ast.expr, site: Site) -> bool:
    """Whether a context manager raises in its body when a time is over, by a signal."""
    if not isinstance(expression, ast.Call):
        return False
    if re.search(r"death_?penalty", dotted(expression.func), re.IGNORECASE):
        return True
    module = site.module
    if any(n.endswith("DeathPenalty") for n in called_names(module, expression, site.scope)):
        return True
    for function in called_functions(module, expression, site.scope):
        if any(called_names(module, call, function) & _ALARMS for call in function.calls):
            return True
    return False


def called_functions(module: Module, call: ast.Call, scope: Scope) -> Iterator[Scope]:
    """The functions of the file that a call enters: itself, or the methods of a class that it makes."""
    for value in module.resolver.evaluate(call.func, scope):
        match value:
            case Function(scope=inner):
                yield module.resolver.walked(inner)
            case Class(scope=cls):
                for method in cls.functions:
                    yield module.resolver.walked(method)


def in_wrapper(site: Site) -> bool:
    """Whether the call stands in a function that the settings name as one that stops the group."""
    function = site.function
    if function is None:
        return False
    own = function.qualified_name
    return any(name == own or name.endswith(f".{own}") for name in site.module.settings.wrappers.processes)
