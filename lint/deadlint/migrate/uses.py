"""Who uses the functions of a project: calls, hand-overs to a thread or pool, and mentions that nobody can follow."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import TYPE_CHECKING

from deadlint.index.flow import decorators_of
from deadlint.index.scopes import Scope
from deadlint.index.values import Attached, Class, External, Function, Object, Partial, Value
from deadlint.migrate.sources import Sources

if TYPE_CHECKING:
    from deadlint.index.module import Module

# Attributes of a decorated function that run it and hand on keywords: `build_tile.submit(tile)`.
_RUNNING = frozenset({"submit", "map", "fn", "run", "__wrapped__", "__call__"})
# Those that send it to a worker as a message.
_SENDING = frozenset({"delay", "apply_async", "s", "si", "signature", "send", "send_with_options", "enqueue", "apply"})
# Calls that run the function at a position of their arguments, and hand on keywords.
_WITH_KEYWORDS = {
    "asyncio.to_thread": 0,
    "concurrent.futures.ThreadPoolExecutor.submit": 0,
    "concurrent.futures.ProcessPoolExecutor.submit": 0,
    "concurrent.futures.Executor.submit": 0,
    "functools.partial": 0,
    "starlette.concurrency.run_in_threadpool": 0,
    "fastapi.concurrency.run_in_threadpool": 0,
}
# Those that do not: there the function has to come with its keyword already bound.
_WITHOUT_KEYWORDS = {
    "asyncio.AbstractEventLoop.run_in_executor": 1,
    "anyio.to_thread.run_sync": 0,
    "trio.to_thread.run_sync": 0,
    "builtins.map": 0,
    "builtins.filter": 0,
    "concurrent.futures.ThreadPoolExecutor.map": 0,
    "concurrent.futures.ProcessPoolExecutor.map": 0,
    "concurrent.futures.Executor.map": 0,
} | {
    f"multiprocessing.{pool}.{method}": 0
    for pool in ("Pool", "pool.Pool", "pool.ThreadPool")
    for method in ("map", "imap", "imap_unordered", "starmap", "map_async", "starmap_async", "apply", "apply_async")
}
_TARGETS = frozenset({"threading.Thread", "multiprocessing.Process", "multiprocessing.context.Process"})

_PROPERTIES = frozenset({"property", "cached_property"})


class How(Enum):
    """How a use gives a function its arguments."""

    CALL = auto()  # as a call, or by something that hands on keywords
    BOUND = auto()  # it is handed over by itself
    UNSEEN = auto()  # nobody can say: a property is read, a callback handed to something that is not known


@dataclass(frozen=True, eq=False)
class Use:
    """A place that runs a function: the call `node` is given the keyword, or `argument` is put into a `partial`."""

    module: Module
    node: ast.expr
    scope: Scope
    function: Scope
    how: How
    argument: ast.expr | None = None

    @property
    def caller(self) -> Scope | None:
        """The function that the use stands in, lambdas left out."""
        return self.scope.enclosing_function()


@dataclass(frozen=True, slots=True)
class Mention:
    """A place where a function gets out of sight; `why` is a clause about it."""

    path: str
    line: int
    why: str


@dataclass(eq=False)
class Uses:
    """The uses of the functions of a project, in all its files."""

    by_caller: dict[Scope, list[Use]] = field(default_factory=lambda: defaultdict(list))
    by_function: dict[Scope, list[Use]] = field(default_factory=lambda: defaultdict(list))
    mentions: dict[Scope, list[Mention]] = field(default_factory=lambda: defaultdict(list))
    unknown: dict[Scope, list[tuple[Module, ast.Call]]] = field(default_factory=lambda: defaultdict(list))
    unknown_names: set[str] = field(default_factory=set)  # of what is called on something that nobody can follow

    @classmethod
    def of(cls, sources: Sources) -> Uses:
        """Look through every module."""
        found = cls()
        modules = tuple(sources.modules())
        names = frozenset(name for module in modules for name in _function_names(module))
        for module in modules:
            _Look(module, found, names).through()
        return found

    def add(self, use: Use) -> None:
        """Take a use."""
        if use.how is not How.UNSEEN:
            self.by_function[use.function].append(use)
        if use.caller is not None:
            self.by_caller[use.caller].append(use)


class _Look:
    """The look through one module."""

    def __init__(self, module: Module, uses: Uses, names: frozenset[str]) -> None:
        self._module = module
        self._uses = uses
        self._names = names
        self._accounted: set[ast.expr] = set()  # expressions of functions that a use explains

    def through(self) -> None:
        for call in self._module.calls:
            scope = self._module.walker.scope_of[call]
            self._call(call, scope)
            self._handed(call, scope)
        for node, parent, scope in _loads(self._module.tree, self._module.scope, self._module):
            last = node.id if isinstance(node, ast.Name) else node.attr
            if node not in self._accounted and (last in self._names or last in _SENDING):
                self._mention(node, parent, scope)
                if isinstance(node, ast.Attribute):
                    self._property(node, scope)

    def _call(self, call: ast.Call, scope: Scope) -> None:
        values = self._module.resolver.evaluate(call.func, scope)
        found = [self._function_of(value) for value in values]
        functions = [function for function in found if function is not None]
        if not functions:
            if not self._module.targets(call):
                self._unknown(call, scope)
            return
        self._account(call.func)
        if len(functions) < len(found):
            for function in functions:
                self._lost(function, call, "a call there may reach something else as well")
            return
        for function in dict.fromkeys(functions):
            self._uses.add(Use(self._module, call, scope, function, How.CALL))
            if function.owner is not None and self._is_protocol(function.owner):
                self._uses.unknown_names.add(function.name)  # whichever class has a method of that name may be meant

    def _is_protocol(self, cls: Scope) -> bool:
        bases = self._module.resolver.mro(cls)
        return any(isinstance(base, External) and base.name == "typing.Protocol" for base in bases)

    def _unknown(self, call: ast.Call, scope: Scope) -> None:
        """A call of what cannot be followed, such as a method of a fixture of pytest."""
        caller = scope.enclosing_function()
        if caller is not None:
            self._uses.unknown[caller].append((self._module, call))
        if isinstance(call.func, ast.Attribute):
            self._uses.unknown_names.add(call.func.attr)

    def _function_of(self, value: Value) -> Scope | None:
        """The function that a call of `value` runs with the call's keywords."""
        match value:
            case Function(scope=function):
                return function if function.kind == "function" else None
            case Attached(function=Function(scope=function), name=name) if name in _RUNNING:
                return function
            case Partial(function=Function(scope=function)):
                return function
            case Class(scope=cls):
                return self._module.resolver.method(cls, "__init__")
            case Object(cls=cls):
                return self._module.resolver.method(cls, "__call__")
        return None

    def _handed(self, call: ast.Call, scope: Scope) -> None:
        for target in self._module.targets(call):
            if target.name in _WITH_KEYWORDS:
                self._argument(call, scope, _at(call, _WITH_KEYWORDS[target.name]), How.CALL)
            elif target.name in _WITHOUT_KEYWORDS:
                self._argument(call, scope, _at(call, _WITHOUT_KEYWORDS[target.name]), How.BOUND)
            elif target.name in _TARGETS:
                handed = next((k.value for k in call.keywords if k.arg == "target"), None)
                self._argument(call, scope, handed, How.BOUND)

    def _argument(self, call: ast.Call, scope: Scope, node: ast.expr | None, how: How) -> None:
        if node is None or isinstance(node, ast.Lambda | ast.Call):
            return
        values = self._module.resolver.evaluate(node, scope)
        functions = [value.scope for value in values if isinstance(value, Function) and value.scope.kind == "function"]
        if functions and len(functions) == len(values):
            self._account(node)
            for function in dict.fromkeys(functions):
                self._uses.add(Use(self._module, call, scope, function, how, node))

    def _account(self, node: ast.expr) -> None:
        """Say of an expression, and of what it begins with, that a use explains it."""
        while True:
            self._accounted.add(node)
            if not isinstance(node, ast.Attribute):
                return
            node = node.value

    def _mention(self, node: ast.expr, parent: ast.AST | None, scope: Scope) -> None:
        """A name that stands for a function, but where it is not called."""
        for value in self._module.resolver.evaluate(node, scope):
            match value:
                case Function(scope=function) if function.kind == "function":
                    why = _why(node, parent)
                    if why:
                        self._lost(function, node, why)
                        self._uses.add(Use(self._module, node, scope, function, How.UNSEEN))
                case Attached(function=Function(scope=function), name=name) if name in _SENDING:
                    self._lost(function, node, f"`.{name}` sends it to a worker, in another process")
                    self._uses.add(Use(self._module, node, scope, function, How.UNSEEN))

    def _property(self, node: ast.Attribute, scope: Scope) -> None:
        """A read attribute that is a property, which runs a function."""
        for value in self._module.resolver.evaluate(node.value, scope):
            if isinstance(value, Object):
                method = self._module.resolver.method(value.cls, node.attr)
                if method is not None and _PROPERTIES & decorators_of(method):
                    self._uses.add(Use(self._module, node, scope, method, How.UNSEEN))

    def _lost(self, function: Scope, node: ast.expr, why: str) -> None:
        self._uses.mentions[function].append(Mention(self._module.source.path, node.lineno, why))


def _function_names(module: Module) -> Iterator[str]:
    """The names of the functions of a module, and the names that it gives to what it imports."""
    for node in ast.walk(module.tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name
            case ast.alias(asname=str() as name):
                yield name


def _at(call: ast.Call, position: int) -> ast.expr | None:
    before = call.args[: position + 1]
    return before[position] if len(before) > position and not any(isinstance(a, ast.Starred) for a in before) else None


def _why(node: ast.expr, parent: ast.AST | None) -> str:
    """Why a mention takes a function out of sight; empty where it does not."""
    match parent:
        case ast.Assign(targets=[ast.Name()]) | ast.AnnAssign(target=ast.Name()):
            return ""  # another name for it, whose calls are followed
        case ast.Attribute(attr=attr) if attr in _RUNNING | _SENDING or attr.startswith("__"):
            return ""  # looked at as a whole
        case ast.Attribute(attr=attr):
            return f"`.{attr}` of it is used"
        case ast.Call() | ast.keyword():
            return "it is handed to something that calls it with arguments of its own"
        case ast.Return():
            return "it is returned as a value"
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef() if node in parent.decorator_list:
            return "it is used as a decorator"
    return "it is kept as a value, to be called elsewhere"


def _loads(
    node: ast.AST, scope: Scope, module: Module
) -> Iterator[tuple[ast.Name | ast.Attribute, ast.AST | None, Scope]]:
    """Each name and attribute that is read, what it stands in, and its scope."""
    stack: list[tuple[ast.AST, ast.AST | None, Scope]] = [(node, None, scope)]
    while stack:
        current, parent, where = stack.pop()
        inner = module.walker.scope_of.get(current, where) if not isinstance(current, ast.Call) else where
        match current:
            case ast.Name(ctx=ast.Load()) | ast.Attribute(ctx=ast.Load()):
                yield current, parent, where
        for name, value in ast.iter_fields(current):
            # Decorators, defaults and bases are evaluated outside, and annotations name no function.
            if name in ("annotation", "returns"):
                continue
            outside = name in ("decorator_list", "args", "bases", "keywords") and inner is not where
            below = where if outside else inner
            items = value if isinstance(value, list) else [value]
            stack.extend((item, current, below) for item in items if isinstance(item, ast.AST))
