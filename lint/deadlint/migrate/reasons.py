"""Why the signature of a function is not to be touched, and what a person can do there."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from deadlint.index.scopes import Scope
from deadlint.index.values import Class, External, Function, Member, Result, Value
from deadlint.migrate.names import dotted_module
from deadlint.migrate.sources import Sources
from deadlint.migrate.uses import Uses

if TYPE_CHECKING:
    from deadlint.index.module import Module

# Decorators of these packages hand on the keywords of a call.
_HANDING_ON = (
    "prefect.", "airflow.", "celery.", "dagster.", "dramatiq.", "rq.", "tenacity.", "stamina.", "backoff.", "retry.",
    "retrying.", "functools.wraps", "contextlib.", "builtins.staticmethod", "builtins.classmethod",
    "timeout_decorator.", "wrapt_timeout_decorator.", "func_timeout.", "typing.", "typing_extensions.", "numba.",
    "abc.abstractmethod", "asgiref.sync.", "opentelemetry.", "sentry_sdk.", "beartype.", "typeguard.",
)  # fmt: skip
_CACHES = frozenset({"functools.lru_cache", "functools.cache"})
_PROPERTIES = frozenset({"builtins.property", "functools.cached_property"})
_NO_BASES = frozenset(
    {"builtins.object", "abc.ABC", "typing.Protocol", "typing.Generic", "typing.NamedTuple", "enum.Enum"}
)


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a function is left as it is, and what a person should do."""

    why: str
    remedy: str


@dataclass(frozen=True, slots=True)
class Reasons:
    """Answers for the functions of one project."""

    sources: Sources
    uses: Uses
    exported: frozenset[Scope]
    exported_too: bool = False  # whether what is exported may get an optional parameter

    @classmethod
    def of(cls, sources: Sources, uses: Uses, *, exported_too: bool = False) -> Reasons:
        """Look for what the project exports."""
        return cls(sources, uses, frozenset(_exported(sources)), exported_too)

    def against(self, function: Scope) -> Reason | None:
        """Why `function` is left as it is; None where its signature may change."""
        path = function.module.path or ""
        module = self.sources.module(path)
        if module is None or path not in self.sources.files.by_path:
            return Reason("its file is outside of the given paths", "migrate that project as well, or name its path")
        if self.sources.files.by_path[path].is_test:
            return Reason("it is a test", "give it a budget by hand, if its test is about limits")
        return (
            self._kind(function)
            or self._decorated(function, module)
            or self._inherited(function, module)
            or self._mentioned(function)
            or self._public(function)
        )

    def _kind(self, function: Scope) -> Reason | None:
        dunder = function.name.startswith("__") and function.name.endswith("__")
        if function.owner is not None and dunder and function.name not in ("__init__", "__call__"):
            return Reason("Python itself calls it", "keep a budget on the object: `self.budget`")
        return None

    def _decorated(self, function: Scope, module: Module) -> Reason | None:
        node = function.definition
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            return None
        outer = function.parent or function
        for decorator in node.decorator_list:
            inner = decorator.func if isinstance(decorator, ast.Call) else decorator
            text = f"`@{ast.unparse(inner)}`"
            for value in module.resolver.evaluate(inner, outer):
                name = _name(value)
                if name in _PROPERTIES:
                    return Reason(f"it is a property ({text})", "make it a method, or keep a budget on the object")
                if name in _CACHES:
                    return Reason(f"{text} would keep a result for each budget", "put the cache behind the budget")
                if not _hands_on(value):
                    return Reason(
                        f"{text} may not hand the budget on, or have others call it",
                        "let the decorator pass keywords on (`**kwargs`), then run this again",
                    )
        return None

    def _inherited(self, function: Scope, module: Module) -> Reason | None:
        owner = function.owner
        if owner is None or function.name == "__init__":
            return None
        for base in module.resolver.mro(owner)[1:]:
            if isinstance(base, External):
                if base.name not in _NO_BASES and not function.name.startswith("_"):
                    return Reason(
                        f"it may override a method of `{base.name}`, which that calls",
                        "keep a budget on the object: `self.budget`",
                    )
            elif any(f.name == function.name for f in base.functions):
                return Reason(f"it overrides `{base.name}.{function.name}`", "change the whole family by hand")
        for cls in self._subclasses(owner):
            if any(f.name == function.name for f in cls.functions):
                return Reason(f"`{cls.name}.{function.name}` overrides it", "change the whole family by hand")
        return None

    def _subclasses(self, owner: Scope) -> Iterator[Scope]:
        for module in self.sources.modules():
            for cls in _classes(module.scope):
                if cls is not owner and cls.definition.bases and owner in module.resolver.mro(cls):  # type: ignore[attr-defined]
                    yield cls

    def _mentioned(self, function: Scope) -> Reason | None:
        for mention in self.uses.mentions.get(function, ()):
            known = self.sources.files.by_path.get(mention.path)
            if known is not None and known.is_test:
                continue  # a test that replaces it, or runs it in a way of its own, goes on as before
            shown = known.shown if known is not None else mention.path
            return Reason(
                f"{mention.why} at {shown}:{mention.line}",
                "bind the budget where it is handed over, `functools.partial(…, budget=budget)`, and take it here",
            )
        return None

    def _public(self, function: Scope) -> Reason | None:
        scope = None if self.exported_too else self._exported_as(function)
        if scope is None:
            return None
        what = "it" if scope is function else f"`{scope.name}`"
        return Reason(
            f"{what} is exported, so others call it",
            "with --exported it gets `budget: Budget | None = None`, which changes nothing for those who call it now",
        )

    def is_exported(self, function: Scope) -> bool:
        """Whether others can call a function."""
        return self._exported_as(function) is not None

    def _exported_as(self, function: Scope) -> Scope | None:
        """What of a function is exported: itself, or the class that it stands in."""
        scope: Scope | None = function
        if function.owner is not None and function.name.startswith("_") and function.name != "__init__":
            return None
        while scope is not None and scope not in self.exported:
            scope = scope.parent
        return scope


def _name(value: Value) -> str:
    match value:
        case External(name=name) | Member(name=name) | Result(name=name):
            return name
    return ""


def _hands_on(value: Value) -> bool:
    """Whether a decorator, by all that is known, hands the keywords of a call on."""
    match value:
        case Function(scope=function):
            # One without a function of its own gives back what it decorates, and may have kept it for others to call.
            inner = [n for n in ast.walk(function.node) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)][1:]
            return any(n.args.kwarg for n in inner)
    name = _name(value)
    return name.startswith(_HANDING_ON) or name.rpartition(".")[2] in ("wraps",)


def _classes(scope: Scope) -> Iterator[Scope]:
    for cls in scope.classes:
        yield cls
        yield from _classes(cls)


def _exported(sources: Sources) -> Iterator[Scope]:
    """What others can call: listed in an `__all__`, at hand in a package's `__init__.py`, installed as a program."""
    programs = _programs(sources.settings.root)
    for module in sources.modules():
        path = module.source.path
        dotted_name = dotted_module(path)
        names = _listed(module.tree) | {name for where, name in programs if where == dotted_name}
        if path.endswith("__init__.py"):
            names |= {name for name, bindings in module.scope.bindings.items() if bindings and name[:1] != "_"}
        for name in sorted(names):
            for value in module.resolver.exported(name):
                match value:
                    case Function(scope=scope):
                        yield scope
                    case Class(scope=scope):
                        yield scope


def _programs(root: str) -> set[tuple[str, str]]:
    """The modules and functions that `pyproject.toml` installs as programs or entry points."""
    import tomli  # noqa: PLC0415 - as the configuration is read

    try:
        with open(os.path.join(root, "pyproject.toml"), "rb") as file:
            project = tomli.load(file).get("project", {})
    except (OSError, tomli.TOMLDecodeError):
        return set()
    groups = [project.get("scripts"), project.get("gui-scripts"), *(project.get("entry-points") or {}).values()]
    targets = [target for group in groups if isinstance(group, dict) for target in group.values()]
    return {(where, name) for where, _, name in (str(target).partition(":") for target in targets) if name}


def _listed(tree: ast.Module) -> set[str]:
    found: set[str] = set()
    for node in tree.body:
        match node:
            case (
                ast.Assign(targets=[ast.Name(id="__all__")], value=ast.List(elts=items) | ast.Tuple(elts=items))
                | ast.AugAssign(target=ast.Name(id="__all__"), value=ast.List(elts=items) | ast.Tuple(elts=items))
            ):
                found.update(i.value for i in items if isinstance(i, ast.Constant) and isinstance(i.value, str))
    return found
