"""One parsed module: the front door to its scopes, values, calls, budgets and limits."""

from __future__ import annotations

import ast
from collections.abc import Callable, Container, Iterable, Iterator
from contextlib import suppress
from functools import cached_property, partial

from deadlint.graph import Entries, Graph
from deadlint.index import limits
from deadlint.index.budgets import Budgets
from deadlint.index.candidates import HANDED_OVER, RUNNING, Mentions, Wanted, candidates, end_of, parse_where
from deadlint.index.known import canonical
from deadlint.index.newer import parse
from deadlint.index.outline import Outline, outline
from deadlint.index.resolve import Resolver
from deadlint.index.scopes import Scope, Walker, dotted
from deadlint.index.values import UNKNOWN, Attached, Class, External, Function, Partial, Values, union
from deadlint.model import Span
from deadlint.project import Project, package_of
from deadlint.settings import Settings
from deadlint.site import PROJECT, Site, Target, targets_of
from deadlint.source import SourceFile


class Module:
    """A file with what its rules may ask. Raises `SyntaxError` where `ast` cannot parse it.

    Unless it is wanted `whole`, the bodies of its functions are parsed as far as the answers need them. Of one that is
    only imported from (`asked_only`) less is needed: what its own functions do to its globals is left out.
    """

    def __init__(
        self,
        source: SourceFile,
        settings: Settings,
        project: Project | None = None,
        entries: Entries | None = None,
        *,
        asked_only: bool = False,
        whole: bool = True,
    ) -> None:
        self.source = source
        self.settings = settings
        parsed = outline(source.text) if asked_only else _parsed(source.text, whole=whole)
        self._tree = parsed.tree
        self.walker = Walker()
        self.scope = self.walker.module(parsed, package_of(source.path) if project else "")
        self.scope.path = source.path
        self.resolver = Resolver(
            self.walker,
            self.scope,
            _elsewhere(source.path, settings.helpers, project),
            project.effort if project else None,
        )
        self.resolver.arguments_of = self._arguments
        self.scope.home = self
        self.budgets = Budgets(self)
        self.graph = Graph(self, entries or {})
        self._sites: dict[ast.Call, Site | None] = {}
        self._mentions = Mentions(self)
        if not asked_only:
            self.walker.complete = True
            self.walker.walk_where("global ")

    @property
    def tree(self) -> ast.Module:
        """The whole tree."""
        self.walker.walk_all(self.scope)
        return self._tree

    def release(self) -> None:
        """Let go of everything at once. Scopes and resolvers refer to each other, so only the collector would find
        them, and it took half of the time of a cold run; nothing may be asked of the module afterwards.
        """
        pending = [self.scope]
        while pending:
            scope = pending.pop()
            pending.extend(scope.inner)
            scope.__dict__.clear()
        self.__dict__.clear()

    # --- nodes -----------------------------------------------------------------------------------------------

    def span(self, node: ast.expr | ast.stmt | ast.ExceptHandler) -> Span:
        """The span of a node; of a compound statement only its first line."""
        start, end = self.source.extent(node)
        if isinstance(node, _COMPOUND):
            first_line = self.source.line_starts[node.lineno - 1] + len(self.source.line(node.lineno))
            end = min(end, first_line)
        return self.source.span(start, end)

    def ancestors(self, node: ast.AST) -> Iterator[ast.AST]:
        """The nodes around `node`, innermost first, up to and without the enclosing `def`, `class` or lambda."""
        current = self.walker.parents.get(node)
        while current is not None and not isinstance(
            current, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda
        ):
            yield current
            current = self.walker.parents.get(current)

    def statement(self, node: ast.AST) -> ast.stmt:
        """The innermost statement that holds `node`."""
        current: ast.AST | None = node
        while current is not None and not isinstance(current, ast.stmt):
            current = self.walker.parents.get(current)
        assert current is not None, "every expression stands in a statement"
        return current

    # --- calls -----------------------------------------------------------------------------------------------

    @cached_property
    def calls(self) -> tuple[ast.Call, ...]:
        """Every call of the module in the order of the source."""
        self.walker.walk_all(self.scope)
        found = (call for scope in self.scope.everything() for call in scope.calls)
        return tuple(sorted(found, key=lambda c: (c.end_lineno or 0, c.end_col_offset or 0)))

    def calls_where(self, words: Iterable[str]) -> tuple[ast.Call, ...]:
        """The calls of the functions whose source holds one of the words, and of all else that is parsed by now."""
        parse_where(self.walker, self.source.text, frozenset(words))
        self.walker.walk_parsed()
        return tuple(sorted((call for scope in self.walker.filled for call in scope.calls), key=end_of))

    @cached_property
    def sites(self) -> tuple[Site, ...]:
        """Every call that may reach something external, or that runs a function of the project."""
        return tuple(site for call in self.calls if (site := self.site(call)) is not None)

    def sites_of(self, wanted: Wanted, lines: Container[int] | None = None) -> tuple[Site, ...]:
        """Those of `sites` that could be wanted: to parse and to follow each call takes most of the time of a run.

        Only those on `lines`, where these are given.
        """
        calls = (call for call in candidates(self, wanted) if lines is None or call.lineno in lines)
        return tuple(site for call in calls if (site := self.site(call)) is not None)

    def sites_named(self, *tails: str) -> tuple[Site, ...]:
        """The sites whose names may end in one of `tails`."""
        return self.sites_of(Wanted(frozenset(tails)))

    def site(self, call: ast.Call) -> Site | None:
        """The site of a call of this module, if it has one."""
        if call not in self._sites:
            scope = self.walker.scope_of.get(call)
            if scope is None:
                return None
            inner = tuple(Target(PROJECT, function) for function in self.run_by(call, scope))
            targets = (*self.targets(call), *inner)
            self._sites[call] = Site(self, call, scope, targets) if targets else None
        return self._sites[call]

    def targets(self, call: ast.Call) -> tuple[Target, ...]:
        """The external things that a call may reach."""
        scope = self.walker.scope_of.get(call)
        if scope is None:
            return ()
        return tuple(dict.fromkeys(targets_of(self.resolver.evaluate(call.func, scope))))

    @cached_property
    def bound_names(self) -> frozenset[str]:
        """Every name that some scope of the module binds."""
        self.walker.walk_all(self.scope)
        every = self.scope.everything()
        return frozenset(name for scope in every for name, bindings in scope.bindings.items() if bindings)

    # --- callers ---------------------------------------------------------------------------------------------

    @cached_property
    def sets_alarms(self) -> bool:
        """Whether the file may set an alarm, which bounds what stands behind it."""
        return "alarm(" in self.source.text or "setitimer(" in self.source.text

    @cached_property
    def hands_limits(self) -> bool:
        """Whether the file may run a function with a limit that the call gives: `task.apply_async(time_limit=…)`."""
        return any(word in self.source.text for word in _HANDING_LIMITS)

    def naming(self, name: str) -> tuple[ast.Call, ...]:
        """The calls in the file that name `name`: call it, take something of it, or hand it over."""
        return tuple(self._mentions.of(name))

    def bound_to(self, call: ast.Call, function: Scope) -> Function:
        """`function` as a call reaches it: bound to its object where it is a method."""
        for value in self.resolver.evaluate(call.func, self.walker.scope_of[call]):
            match value:
                case Function(scope=scope) if scope is function:
                    return value
                case Class(scope=cls) if cls is function.owner and function.name == "__init__":
                    return Function(function, value)
        return Function(function, None)

    def callers(self, function: Scope) -> list[tuple[ast.Call, Scope]]:
        """The calls in the file that run `function`, by its name, a method, a task's `submit`, or handed over."""
        found = []
        for call in self._mentions.of(function.name):
            scope = self.walker.scope_of[call]
            run = (*self.run_by(call, scope), *self.run_by_operator(call, scope))
            if any(one.scope is function for one in run):
                found.append((call, scope))
        if function.name == "__init__" and function.owner is not None:
            found.extend(
                (call, self.walker.scope_of[call]) for call in self._mentions.of(function.owner.name)
            )
        return found

    def run_by(self, call: ast.Call, scope: Scope) -> tuple[Function, ...]:
        """The functions of the file that a call runs before it returns (or whose result it hands back)."""
        found: list[Function] = []
        for value in self.resolver.evaluate(call.func, scope):
            match value:
                case Function():
                    found.append(value)
                case Attached(function=function, name=name) if name in RUNNING or self._waits_for(call, name):
                    found.append(function)
                case Partial(function=Function() as function):
                    found.append(function)
        for name in {target.name for target in self.targets(call)} & HANDED_OVER.keys():
            if HANDED_OVER[name] < len(call.args):
                found += self._functions(call.args[HANDED_OVER[name]], scope)
        return tuple(found)

    def run_by_operator(self, call: ast.Call, scope: Scope) -> tuple[Function, ...]:
        """The functions that an Airflow operator is handed to run, with arguments that the call does not show."""
        handed = [keyword.value for keyword in call.keywords if keyword.arg == "python_callable"]
        if not handed or not any(limits.is_operator(target.name) for target in self.targets(call)):
            return ()
        return tuple(self._functions(handed[0], scope))

    def _functions(self, node: ast.expr, scope: Scope) -> Iterator[Function]:
        for value in self.resolver.evaluate(node, scope):
            match value:
                case Function():
                    yield value
                case Attached(function=function) | Partial(function=Function() as function):
                    yield function

    def _waits_for(self, call: ast.Call, name: str) -> bool:
        """Whether a task that is sent to a queue is waited for: `task.delay().get(timeout=60)`."""
        if name not in ("delay", "apply_async"):
            return False
        parent = self.walker.parents.get(call)
        return isinstance(parent, ast.Attribute) and parent.attr in ("get", "wait", "collect")

    def runs_directly(self, call: ast.Call, function: Scope) -> bool:
        """Whether a call that runs `function` does so where it stands: no `to_thread`, no `submit`, no new task."""
        if self.walker.scope_of[call].kind == "lambda":
            return False  # who calls it, and where, is out of sight
        for value in self.resolver.evaluate(call.func, self.walker.scope_of[call]):
            match value:
                case Function(scope=scope) | Partial(function=Function(scope=scope)) if scope is function:
                    return not isinstance(function.definition, ast.AsyncFunctionDef) or self._awaited(call)
                case Class(scope=scope) if scope is function.owner:
                    return True
        return False

    def _awaited(self, coroutine: ast.expr) -> bool:
        """Whether a coroutine is awaited where it is made, alone or with others, under a limit or not."""
        parent = self.walker.parents.get(coroutine)
        while isinstance(parent, ast.Starred | ast.keyword | ast.ListComp | ast.List):
            parent = self.walker.parents.get(parent)
        match parent:
            case ast.Await():
                return True
            case ast.Call(func=func) if dotted(func).rpartition(".")[2] in _AWAITING:
                return self._awaited(parent)
        return False

    def _arguments(self, function: Scope, name: str) -> Values:
        """What the callers in the file pass for a parameter."""
        found: list[Values] = []
        for call, scope in self.callers(function):
            bound = Function(function, None)
            values = self.resolver.evaluate(call.func, scope)
            for value in values:
                if isinstance(value, Function) and value.scope is function:
                    bound = value
            if not values or any(t.name in HANDED_OVER or limits.is_operator(t.name) for t in targets_of(values)):
                found.append((UNKNOWN,))  # what it is handed with stands among the arguments of another function
                continue
            if function.owner is not None and bound.receiver is None and function.name == "__init__":
                bound = Function(function, values[0])
            argument = self.resolver.argument_for(bound, name, call)
            if argument is not None:
                found.append(self.resolver.evaluate(argument, scope))
        return union(*found)


def _elsewhere(importer: str, helpers: str, project: Project | None) -> Callable[[str], Values] | None:
    """Who answers what a dotted name stands for that the file imports; a copy of the helpers is the helpers."""
    found = partial(project.elsewhere, importer=importer) if project else None
    if helpers == HELPERS:
        return found

    def answer(target: str) -> Values:
        if target == helpers or target.startswith(f"{helpers}."):
            return (External(canonical(HELPERS + target.removeprefix(helpers))),)
        return found(target) if found is not None else ()

    return answer


def _parsed(text: str, *, whole: bool) -> Outline:
    """The tree of a text, of all of it where it is wanted `whole` or where parts of it cannot be had."""
    if not whole:
        with suppress(SyntaxError):
            return outline(text)
    return Outline(parse(text), text)


HELPERS = "deadlint_budget"
_COMPOUND = (
    ast.ExceptHandler | ast.With | ast.AsyncWith | ast.While | ast.For | ast.AsyncFor | ast.FunctionDef
    | ast.AsyncFunctionDef | ast.ClassDef
)  # fmt: skip
_HANDING_LIMITS = ("apply_async", "send_with_options", ".to_job(", "with_options", "job_timeout", "func_timeout")
# What is awaited together with the coroutines that it is given.
_AWAITING = frozenset({"wait_for", "gather", "shield"})
