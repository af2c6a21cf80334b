"""Remote rasters and vectors: whether what is opened lies behind HTTP, and what limits GDAL's requests there."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from deadlint.index.scopes import Scope, dotted
from deadlint.index.values import UNKNOWN, Const, Function, Parameter, Result, Sequence, Template, Value, Values
from deadlint.site import Site

if TYPE_CHECKING:
    from deadlint.index.module import Module

_REMOTE = re.compile(
    r"/vsi(curl|s3|gs|az|adls|oss|swift|webhdfs)(_streaming)?\b"
    r"|^[\w:\"]{0,12}?((zip|tar|gzip)\+)?(https?|s3|gs|gcs|az|ftp)://"
    r"|^(zip|tar|gzip)\+(https?|s3|gs|az|ftp)://"
)  # fmt: skip
_LOCAL_HOST = re.compile(r"://(localhost|127\.|0\.0\.0\.0|\[::1\])")
# Names that say that the caller gives an address: a hint, no proof.
_ADDRESS = re.compile(r"(^|_)(url|href)s?$")
# What GDAL's requests are bounded by. A connect limit alone left a silent server 25 s and more (measured).
LIMITS = ("GDAL_HTTP_TIMEOUT", "GDAL_HTTP_LOW_SPEED_TIME")
_HELPER = "gdal_http_options"
_FARTHEST = 4  # callers between a call and the block that limits it
_DEEPEST = 8  # assignments, lists and functions between a call and the text that it is given


class Remote(Enum):
    """Whether a dataset lies behind HTTP."""

    YES = "yes"
    PERHAPS = "perhaps"  # its name says so
    NO = "no"  # or not known


def remote(site: Site, node: ast.expr | None, values: Values) -> Remote:
    """Whether a source that a call is given is remote, or one of a list of sources."""
    found = Remote.NO
    for text in _Reader(site.module).texts(values, node, site.scope):
        answer = remote_text(text)
        if answer is Remote.YES:
            return answer
        found = answer if answer is Remote.PERHAPS else found
    name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
    open_ended = not values or any(v == UNKNOWN or isinstance(v, Parameter) for v in values)
    return Remote.PERHAPS if found is Remote.NO and open_ended and _ADDRESS.search(name) else found


def remote_text(text: str) -> Remote:
    """Whether a name of a dataset is that of a remote one. A server on this host is one perhaps."""
    if not _REMOTE.search(text):
        return Remote.NO
    return Remote.PERHAPS if _LOCAL_HOST.search(text) else Remote.YES


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads the texts that an expression may be, or may hold."""

    module: Module
    depth: int = 0
    seen: set[ast.AST] = field(default_factory=set)  # expressions that were followed: each once

    def _deeper(self) -> _Reader | None:
        return _Reader(self.module, self.depth + 1, self.seen) if self.depth < _DEEPEST else None

    def texts(self, values: Values, node: ast.expr | None, scope: Scope) -> Iterator[str]:
        for value in values:
            yield from self._of(value)
        unsaid = all(v == UNKNOWN or isinstance(v, Sequence) for v in values) or UNKNOWN in values
        if unsaid and node is not None and node not in self.seen:
            self.seen.add(node)
            yield from self._collected(node, scope)

    def _of(self, value: Value) -> Iterator[str]:
        match value:
            case Const(value=str() as text):
                yield text
            case Template():
                yield value.text("\0")
            case Sequence(items=items):
                for item in items:
                    yield from (text for inner in item for text in self._of(inner))
            case Result(name=name, call=ast.Call(args=[first, *_]), scope=Scope() as scope) if name in _KEPT_FIRST:
                deeper = self._deeper()
                if deeper is not None:
                    yield from deeper.texts(self.module.resolver.evaluate(first, scope), first, scope)
            case Parameter(scope=scope, name=name, default=default):
                deeper = self._deeper()
                if deeper is not None and self.module.resolver.arguments_of is not None:
                    given = self.module.resolver.arguments_of(scope, name) if scope.module is self.module.scope else ()
                    yield from (text for inner in (*given, *default) for text in deeper._of(inner))

    def _collected(self, node: ast.expr, scope: Scope) -> Iterator[str]:
        """What is appended to the list that a name or a function of the file stands for."""
        deeper = self._deeper()
        if deeper is None:
            return
        resolver = self.module.resolver
        match node:
            case ast.BinOp(op=ast.Add(), left=left, right=right) | ast.IfExp(body=left, orelse=right):
                for part in (left, right):
                    yield from deeper.texts(resolver.evaluate(part, scope), part, scope)
            case ast.Subscript(value=value):
                yield from deeper.texts(resolver.evaluate(value, scope), value, scope)
            case ast.Call():
                for function in resolver.evaluate(node.func, scope):
                    if isinstance(function, Function) and function.scope.module is self.module.scope:
                        inner = resolver.walked(function.scope)
                        for result in inner.returns:
                            yield from deeper.texts((), result, inner)
            case ast.Name(id=name):
                home = resolver.scope_binding(name, scope)
                if home is None or home.module is not self.module.scope:
                    return
                yield from (text for item in _appended(name, home) for text in deeper._said(item, home))
                for binding in home.bindings[name][-4:]:
                    if binding.kind in ("assign", "iterate") and binding.value is not None:
                        yield from deeper.texts((), binding.value, home)

    def _said(self, node: ast.expr, scope: Scope) -> Iterator[str]:
        yield from self.texts(self.module.resolver.evaluate(node, scope), node, scope)


def _appended(name: str, scope: Scope) -> Iterator[ast.expr]:
    for call in scope.calls:
        match call:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=base), attr="append" | "extend"), args=[item]):
                if base == name:
                    yield item


_KEPT_FIRST = frozenset({"os.path.join", "urllib.parse.urljoin", "posixpath.join", "builtins.str", "os.fspath"})


# --- limits ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Limits:
    """Where a file limits GDAL's requests: everywhere, or in the `with` statements of these."""

    everywhere: bool = False
    blocks: frozenset[ast.AST] = frozenset()


_KNOWN: WeakKeyDictionary[Module, _Limits] = WeakKeyDictionary()


def limited(site: Site) -> bool:
    """Whether GDAL's requests have a limit where a call stands: around it, around its callers, or in the whole file."""
    limits = _limits(site.module)
    return limits.everywhere or bool(limits.blocks and _within(site.call, site.scope, limits, site.module, 0))


def limits_anything(module: Module) -> bool:
    """Whether a file says anywhere how long GDAL's requests may take."""
    limits = _limits(module)
    return limits.everywhere or bool(limits.blocks)


def _within(node: ast.AST, scope: Scope, limits: _Limits, module: Module, depth: int) -> bool:
    current: ast.AST | None = node
    while current is not None:
        if current in limits.blocks:
            return True
        current = module.walker.parents.get(current)
    function = scope.enclosing_function()
    if function is None or depth > _FARTHEST:
        return False
    return any(_within(call, inner, limits, module, depth + 1) for call, inner in module.callers(function))


def _limits(module: Module) -> _Limits:
    if module not in _KNOWN:
        text = module.source.text
        _KNOWN[module] = _read(module) if any(word in text for word in (*LIMITS, _HELPER)) else _Limits()
    return _KNOWN[module]


def _read(module: Module) -> _Limits:
    headers: dict[ast.AST, ast.AST] = {}
    said: list[ast.AST] = []
    prose: set[ast.AST] = set()
    for node in ast.walk(module.tree):
        match node:
            case ast.With(items=items) | ast.AsyncWith(items=items):
                headers.update((inner, node) for item in items for inner in ast.walk(item.context_expr))
            case ast.Expr(value=ast.Constant() as text):
                prose.add(text)
        if node not in prose and _says_limit(node):
            said.append(node)
    if any(node not in headers for node in said):
        return _Limits(everywhere=True)
    return _Limits(blocks=frozenset(headers[node] for node in said))


_OPTION = re.compile(rf"\b({'|'.join(LIMITS)})(=|\s+[\d{{]|$)")


def _says_limit(node: ast.AST) -> bool:
    match node:
        case ast.keyword(arg=str() as name):
            return name.upper() in LIMITS
        case ast.Constant(value=str() as text):
            return bool(_OPTION.search(text))
        case ast.Call(func=func):
            return dotted(func).rpartition(".")[2] == _HELPER
    return False
