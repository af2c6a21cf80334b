"""In which directory a path lies, as far as the source says: the system's temporary one, or that of something named."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from deadlint.index.scopes import Binding, Scope, dotted
from deadlint.index.values import Function
from deadlint.site import targets_of

if TYPE_CHECKING:
    from deadlint.index.module import Module

_TEMPORARY = re.compile(r"/(tmp|var/tmp|dev/shm|run/shm|private/tmp)(/|$)")
# Position of `dir=`; None where it is a keyword in practice.
_MAKERS: dict[str, int | None] = {
    "tempfile.mkdtemp": 2,
    "tempfile.mkstemp": 2,
    "tempfile.mktemp": 2,
    "tempfile.TemporaryDirectory": 2,
    "tempfile.NamedTemporaryFile": 6,
    "tempfile.gettempdir": None,
    "tempfile.gettempdirb": None,
    "aiofiles.tempfile.NamedTemporaryFile": None,
    "aiofiles.tempfile.TemporaryDirectory": None,
}
# Calls whose result lies where their first argument does.
_SAME = frozenset(
    {
        "os.path.join", "os.path.abspath", "os.path.realpath", "os.path.normpath", "os.path.dirname", "os.path.split",
        "os.path.splitext", "os.path.expanduser", "os.fspath", "os.fsdecode", "os.fsencode", "pathlib.Path",
        "pathlib.PurePath", "builtins.str", "glob.glob", "glob.iglob", "os.walk", "os.scandir", "builtins.sorted",
        "builtins.list", "builtins.next", "builtins.iter", "posixpath.join", "contextlib.closing",
        "contextlib.ExitStack.enter_context", "py.path.local",
    }
)  # fmt: skip
# Methods and attributes of paths and files that lead to the same directory or one beside it.
_KEEPING = frozenset(
    {
        "name", "path", "parent", "joinpath", "resolve", "absolute", "with_suffix", "with_name", "with_stem",
        "as_posix", "expanduser", "glob", "rglob", "iterdir", "strip", "rstrip", "removesuffix", "enter_context",
        "__enter__",
    }
)  # fmt: skip
_DEEPEST = 10


@dataclass(frozen=True, slots=True)
class Place:
    """Where a path lies. `root` is a name for that: equal roots are the same directory, or one below it."""

    root: str
    temporary: bool = False  # below the system's temporary directory


UNKNOWN_PLACE = Place("")


@dataclass(slots=True)
class Places:
    """Answers for one module where an expression's path lies."""

    module: Module
    _busy: set[ast.AST] = field(default_factory=set)

    def of(self, node: ast.expr, scope: Scope) -> Place:
        """The place of a path; `UNKNOWN_PLACE` where it may be in several."""
        if node in self._busy or len(self._busy) > _DEEPEST:
            return UNKNOWN_PLACE
        self._busy.add(node)
        try:
            return self._of(node, scope)
        finally:
            self._busy.discard(node)

    def _of(self, node: ast.expr, scope: Scope) -> Place:
        match node:
            case ast.Constant(value=str() as text):
                return _of_text(text)
            case ast.JoinedStr(values=[ast.Constant(value=str() as text), *_]):
                return _of_text(text)
            case ast.JoinedStr(values=[ast.FormattedValue(value=first), *_]):
                return self.of(first, scope)
            case ast.BinOp(op=ast.Mod(), left=ast.Constant(value=str() as text), right=right):
                if not text.startswith("%s"):
                    return _of_text(text)
                return self.of(right.elts[0] if isinstance(right, ast.Tuple) and right.elts else right, scope)
            case ast.BinOp(op=ast.Div() | ast.Add(), left=left):
                return self.of(left, scope)
            case ast.Await(value=value) | ast.Starred(value=value) | ast.Subscript(value=value):
                return self._environment(node, scope) or self.of(value, scope)
            case ast.NamedExpr(value=value):
                return self.of(value, scope)
            case ast.IfExp(body=body, orelse=orelse):
                return _same([self.of(body, scope), self.of(orelse, scope)])
            case ast.BoolOp(values=parts):
                return _same([self.of(part, scope) for part in parts])
            case ast.Call():
                return self._called(node, scope)
            case ast.Name(id=name):
                return self._named(name, node, scope)
            case ast.Attribute():
                return self._attribute(node, scope)
        return UNKNOWN_PLACE

    def _called(self, node: ast.Call, scope: Scope) -> Place:
        values = self.module.resolver.evaluate(node.func, scope)
        names = {t.name for t in targets_of(values)}
        for name in names:
            if name in _MAKERS:
                return self._made(node, name, scope)
            if name in _SAME and node.args:
                return self.of(node.args[0], scope)
            if name in ("os.getenv", "os.environ.get") and node.args:
                return _of_variable(node.args[0])
        match node.func:
            case ast.Attribute(value=ast.Constant(value=str() as text), attr="format"):
                return self.of(node.args[0], scope) if text.startswith("{") and node.args else _of_text(text)
            case ast.Attribute(value=base, attr=attr) if attr in _KEEPING:
                return self.of(base, scope)
        for value in values:
            match value:
                case Function(scope=inner) if inner.module is self.module.scope:
                    returns = self.module.resolver.walked(inner).returns
                    return _same([self.of(result, inner) for result in returns]) if returns else UNKNOWN_PLACE
        return UNKNOWN_PLACE

    def _made(self, node: ast.Call, name: str, scope: Scope) -> Place:
        position = _MAKERS[name]
        given = next((k.value for k in node.keywords if k.arg == "dir"), None)
        if any(k.arg is None for k in node.keywords) or any(isinstance(a, ast.Starred) for a in node.args):
            return UNKNOWN_PLACE
        if given is None and position is not None and position < len(node.args):
            given = node.args[position]
        if given is None or (isinstance(given, ast.Constant) and given.value is None):
            return Place("", temporary=True)
        return self.of(given, scope)

    def _named(self, name: str, node: ast.Name, scope: Scope) -> Place:
        home = self.module.resolver.scope_binding(name, scope)
        if home is None or home.module is not self.module.scope:
            return UNKNOWN_PLACE
        bindings = home.bindings[name]
        if home is scope:
            before = [b for b in bindings if b.position < (node.lineno, node.col_offset)]
            bindings = before or bindings
            last = bindings[-1]
            here = self._block_of(node, scope)
            if here is not None and any(last.block is b for b in here):
                bindings = [last]  # it stands in front of the use on every way there
        places = [self._bound(binding, home, name) for binding in bindings]
        return _same(places)

    def _block_of(self, node: ast.AST, scope: Scope) -> list[object] | None:
        statement = self.module.statement(node) if node in self.module.walker.parents else None
        block = scope.blocks.get(statement) if statement is not None else None
        return list(block.chain()) if block is not None else None

    def _bound(self, binding: Binding, home: Scope, name: str) -> Place:
        match binding.kind:
            case "parameter":
                return self._passed(name, home)
            case "assign" | "enter" | "iterate" if binding.value is not None:
                value = binding.value
                if binding.index is not None and isinstance(value, ast.Tuple) and binding.index < len(value.elts):
                    value = value.elts[binding.index]
                place = self.of(value, home)
                return place if place != UNKNOWN_PLACE else Place(f"name {name}")
            case "import":
                return Place(f"setting {binding.target}")
        return UNKNOWN_PLACE

    def _passed(self, name: str, function: Scope) -> Place:
        """The place of a parameter: where all callers in the file agree, theirs."""
        places = []
        for call, scope in self.module.callers(function) if function.kind == "function" else ():
            for value in self.module.resolver.evaluate(call.func, scope):
                if isinstance(value, Function) and value.scope is function:
                    given = self.module.resolver.argument_for(value, name, call)
                    places.append(self.of(given, scope) if given is not None else UNKNOWN_PLACE)
        place = _same(places)
        return place if place != UNKNOWN_PLACE else Place(f"parameter {name}")

    def _attribute(self, node: ast.Attribute, scope: Scope) -> Place:
        name = dotted(node)
        head, _, rest = name.partition(".")
        if head in ("self", "cls") and rest and "." not in rest:
            return self._own(rest, head, scope)
        if node.attr in _KEEPING:
            return self.of(node.value, scope)
        if _SETTINGS.search(name.rpartition(".")[0]):
            return Place(f"setting {name}")
        return Place(f"name {name}") if name else UNKNOWN_PLACE

    def _own(self, attribute: str, head: str, scope: Scope) -> Place:
        """The place of `self.attribute`, wherever the class assigns it."""
        function = scope.enclosing_function()
        owner = function.owner if function is not None else None
        found = [
            self._bound(binding, where, attribute)
            for binding, where in self.module.walker.attribute_assigned(head, attribute)
            if where.owner is owner
        ]
        place = _same(found) if found else UNKNOWN_PLACE
        return place if place != UNKNOWN_PLACE else Place(f"name {head}.{attribute}")

    def _environment(self, node: ast.expr, scope: Scope) -> Place | None:
        match node:
            case ast.Subscript(value=base, slice=key) if dotted(base) in ("os.environ", "environ"):
                return _of_variable(key)
        return None


_SETTINGS = re.compile(r"(^|\.)(settings|config|conf|cfg)$", re.IGNORECASE)


def _of_text(text: str) -> Place:
    if _TEMPORARY.match(text):
        return Place("", temporary=True)
    return Place(f"path {text.split('/')[1] if text.startswith('/') else '.'}")


def _of_variable(key: ast.expr) -> Place:
    match key:
        case ast.Constant(value="TMPDIR" | "TEMP" | "TMP"):
            return Place("", temporary=True)
        case ast.Constant(value=str() as name):
            return Place(f"setting {name}")
    return UNKNOWN_PLACE


def _same(places: list[Place]) -> Place:
    """The place that all are in; unknown where they differ."""
    return places[0] if places and all(p == places[0] for p in places) else UNKNOWN_PLACE


def source_and_target(call: ast.Call, *, method: bool) -> tuple[ast.expr, ast.expr] | None:
    """The two paths of a rename: both arguments, or the object and its argument."""
    given = list(_positional(call, ("src", "dst", "target")))
    if method and isinstance(call.func, ast.Attribute):
        given.insert(0, call.func.value)
    return (given[0], given[1]) if len(given) >= 2 else None


def _positional(call: ast.Call, keywords: tuple[str, ...]) -> Iterator[ast.expr]:
    if any(isinstance(a, ast.Starred) for a in call.args):
        return
    yield from call.args
    for name in keywords:
        yield from (k.value for k in call.keywords if k.arg == name)


_WRAPPERS = frozenset({"Path", "str", "fspath", "quote"})


def alike(one: ast.expr, other: ast.expr) -> bool:
    """Whether two expressions are the same path, as a text or as a `Path`."""
    return ast.dump(bare(one)) == ast.dump(bare(other))


def bare(node: ast.expr) -> ast.expr:
    """A path without the calls that change its type alone: `Path(…)`, `str(…)`."""
    match node:
        case ast.Call(func=func, args=[inner], keywords=[]) if dotted(func).rpartition(".")[2] in _WRAPPERS:
            return bare(inner)
    return node
