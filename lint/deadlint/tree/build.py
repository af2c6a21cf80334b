"""From the entries of a program down to what waits: each function that is called becomes a node, with its worst case.

What a call leads to is what the index says it runs; where that says nothing, nothing is claimed.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from deadlint.index import limits, retries
from deadlint.index.limits import Limit
from deadlint.index.retries import Retries
from deadlint.index.values import Function
from deadlint.site import Site
from deadlint.tree import worst
from deadlint.tree.amounts import Frame, Key
from deadlint.tree.body import Body
from deadlint.tree.entries import Entry, layer_named, layer_of
from deadlint.tree.model import Amount, Kind, Known, Mark, Node
from deadlint.tree.nodes import definition_of, group, limited, place_of

if TYPE_CHECKING:
    from deadlint.index.module import Module
    from deadlint.index.scopes import Scope
    from deadlint.tree.program import Program

_DEEPEST = 40  # calls; real pipelines are under 15
_MOST = 20_000  # functions that are looked into in one run, each as often as it is called in another way


@dataclass(frozen=True, slots=True)
class _Kept:
    """What a function came to, and for which calls that holds."""

    node: Node | None
    reads: dict[Key, Amount | None]
    ambient: tuple[Amount | None, Amount | None]
    cuts: frozenset[Scope]  # functions above it that it leads back to
    reached: frozenset[Scope]


@dataclass(eq=False)
class Builder:
    """Builds the nodes of one program."""

    program: Program
    _kept: dict[Scope, list[_Kept]] = field(default_factory=dict)
    _active: list[Scope] = field(default_factory=list)
    _cuts: set[Scope] = field(default_factory=set)
    _reached: set[Scope] = field(default_factory=set)
    _looked_into: int = 0

    def entry(self, entry: Entry) -> tuple[Node | None, frozenset[Scope]]:
        """The tree of an entry, None where nothing in it waits or has a limit; and the functions that it reaches."""
        self._reached = set()
        if entry.block is None:
            node = self.function(Frame(entry.module, entry.scope, self.program, function=Function(entry.scope)))
            if node is not None and node.layer == "function":
                node = replace(node, layer=entry.layer, name=entry.name)
        else:
            node = self._block(entry, entry.block)
        return node, frozenset(self._reached - {entry.scope})

    def _block(self, entry: Entry, block: ast.With | ast.If) -> Node | None:
        body = Body(self, Frame(entry.module, entry.scope, self.program))
        if isinstance(block, ast.With):
            nodes = body.block([block])
            return nodes[0] if len(nodes) == 1 else None
        nodes = body.block(block.body)
        return group(entry.layer, entry.name, place_of(entry.module, block), nodes) if nodes else None

    def function(self, frame: Frame) -> Node | None:
        """The node of the function that is called in `frame`; None where nothing in it waits or has a limit."""
        called = frame.scope
        self._reached.add(called)
        place = definition_of(called, frame.module)
        if called in self._active:
            self._cuts.add(called)
            return Node("function", called.name, place, marks=(Mark(Kind.AGAIN, "called already, further out"),))
        known = self._remembered(frame)
        if known is not None:
            self._reached |= known.reached
            self._cuts |= known.cuts
            return known.node
        if len(self._active) >= _DEEPEST or self._looked_into >= _MOST:
            mark = Mark(Kind.CUT, "not followed further")
            return Node("function", called.name, place, worst=worst.NOT_KNOWN, marks=(mark,))
        return self._looked_at(frame)

    def _remembered(self, frame: Frame) -> _Kept | None:
        for kept in self._kept.get(frame.scope, ()):
            if (
                kept.ambient == (frame.ambient, frame.statement)
                and kept.cuts <= set(self._active)
                and all(frame.parameter(*key) == value for key, value in kept.reads.items())
            ):
                return kept
        return None

    def _looked_at(self, frame: Frame) -> Node | None:
        self._looked_into += 1
        called = frame.scope
        cuts, self._cuts = self._cuts, set()
        reached, self._reached = self._reached, set()
        ambient = (frame.ambient, frame.statement)
        self._active.append(called)
        try:
            frame.module.walker.walk(called)
            children = Body(self, frame).block(_statements(called))
        finally:
            self._active.pop()
        node = self._decorated(frame, children, recursive=called in self._cuts)
        self._cuts.discard(called)
        kept = _Kept(node, dict(frame.reads), ambient, frozenset(self._cuts), frozenset(self._reached))
        self._kept.setdefault(called, []).append(kept)
        self._cuts |= cuts
        self._reached |= reached
        if frame.caller is not None:
            frame.caller.reads.update((k, v) for k, v in frame.reads.items() if k[0] is not called)
        return node

    def _decorated(self, frame: Frame, children: list[Node], *, recursive: bool) -> Node | None:
        """A function with its decorators: a node for each that limits it or tries it again, the outermost around."""
        called, module = frame.scope, frame.module
        sites = list(retries.decorator_sites(called, module))
        layer = layer_of(called, module)
        if not sites and layer is None and (not children or (recursive and not any(map(_waits, children)))):
            return None
        name = called.qualified_name if called.owner is not None else called.name
        node = group("function", name, definition_of(called, module), children)
        if recursive and node.worst.seconds > 0:
            node = replace(
                node,
                worst=worst.UNBOUNDED,
                inside=worst.UNBOUNDED,
                marks=(*node.marks, Mark(Kind.UNCOUNTED, "calls itself, and nothing says how often")),
            )
        for number, site in enumerate(reversed(sites)):
            limit, tried = _limit(site, called, module), retries.of_decorator(site)
            own = layer_named(site.name) or ("retry" if limit is None else "scope")
            if number:
                node = group(own, name, node.place, [node])
            node = replace(limited(node, limit, tried), layer=own, place=place_of(module, site.call))
        if layer is not None and node.layer != layer:
            node = replace(node, layer=layer) if not sites else group(layer, name, node.place, [node])
        if node.limit is None and (layer is not None or called.owner is not None):
            beside = _elsewhere(called, module, sites)
            node = node if beside is None else limited(node, beside, _tried_by(node))
        return node


def _tried_by(node: Node) -> Retries | None:
    """The attempts that a node has already."""
    return None if node.attempts == 1 and node.until is None else Retries(node.attempts, node.pauses, node.until)


def _waits(node: Node) -> bool:
    """Whether a node, or one below, is more than a way back to where it came from."""
    if node.children:
        return any(map(_waits, node.children))
    return not node.has(Kind.AGAIN)


def _limit(site: Site, called: Scope, module: Module) -> Amount | None:
    """The last of the limits that a decorator puts on a function: a hard one behind a soft one."""
    span = module.span(site.call)
    return _last([limit for limit in limits.of_decorators(called, module) if limit.span == span])


def _elsewhere(called: Scope, module: Module, sites: Sequence[Site]) -> Amount | None:
    """The limit that the class of a task, or its application, puts on it; not what a single call gives."""
    spans = {module.span(site.call) for site in sites}
    found = [limit for limit in limits.on_function(called, module) if limit.span not in spans and "." not in limit.name]
    return _last(found)


def _last(found: Sequence[Limit]) -> Amount | None:
    if not found:
        return None
    known = [limit.seconds for limit in found if limit.seconds is not None]
    if len(known) < len(found):
        return Amount(None, Known.UNKNOWN)
    default = next((limit.default for limit in found if limit.default), "")
    return Amount(max(known), Known.DEFAULT if default else Known.CONSTANT, default)


def _statements(function: Scope) -> list[ast.stmt]:
    match function.node:
        case ast.FunctionDef(body=body) | ast.AsyncFunctionDef(body=body):
            return body
        case ast.Lambda(body=expression):
            return [ast.copy_location(ast.Expr(expression), expression)]
    return []


