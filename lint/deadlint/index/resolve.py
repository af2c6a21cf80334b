"""What each expression of a module may stand for.

The analysis follows names through assignments, attributes of `self`, parameters with annotations, returns of the
file's own functions and changes to dicts, in the order of the source. What it cannot follow is unknown.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from deadlint.index import fold
from deadlint.index.known import DECLARED_FIELDS, RETURNS, SAME_OBJECT, TRANSPARENT, canonical
from deadlint.index.scopes import Binding, Block, Mutation, Scope, Walker, dotted
from deadlint.index.values import (
    NONE,
    UNKNOWN,
    Attached,
    Class,
    Const,
    External,
    Function,
    Mapping,
    Member,
    Object,
    Parameter,
    Partial,
    Result,
    Sequence,
    Super,
    Template,
    Unknown,
    Value,
    Values,
    union,
    without_none,
)

if TYPE_CHECKING:
    from deadlint.index.scopes import Position

_BUILTINS = frozenset(dir(builtins))
_DEEP = 40  # nested evaluations; real code stays under 15
_STEPS = 4_000  # evaluations for one question; a 500 KB module with cyclic calls took minutes without a bound
_TRIES = 3  # evaluations of one expression within others, all cut short, before the last one is kept
_BINDINGS = 24  # of one name that are followed, the last ones


@dataclass
class Effort:
    """What one question has cost so far. Shared by the resolvers of a project, which ask each other."""

    busy: set[object] = field(default_factory=set)  # what is being evaluated, so that a cycle is noticed
    cuts: int = 0  # how often an evaluation was cut short, by a cycle or a bound
    steps: int = 0


class Resolver:
    """Evaluates expressions of one module. Results are kept; a cycle is unknown.

    `elsewhere` answers what a dotted name stands for that another module of the project defines.
    """

    def __init__(
        self,
        walker: Walker,
        module: Scope,
        elsewhere: Callable[[str], Values] | None = None,
        effort: Effort | None = None,
    ) -> None:
        self._walker = walker
        self._module = module
        self._elsewhere = elsewhere
        self._effort = effort or Effort()
        self._values: dict[ast.expr, Values] = {}
        self._tries: dict[ast.expr, int] = {}
        self._returns: dict[Scope, tuple[Values, bool]] = {}
        self._exits: dict[Scope, list[ast.If]] = {}
        self._attributes: dict[tuple[Scope, str], Values] = {}
        module.resolver = self
        # Set by whoever knows the callers of the module's functions; parameters are unknown without it.
        self.arguments_of: Callable[[Scope, str], Values] | None = None

    # --- expressions ---------------------------------------------------------------------------------------

    def evaluate(self, node: ast.expr, scope: Scope) -> Values:
        """The possible values of `node`, which stands in `scope`. Never empty."""
        known = self._values.get(node)
        if known is not None:
            return known
        resolver = self.for_scope(scope)
        if resolver is not self:
            return resolver.evaluate(node, scope)
        if not self._effort.busy:
            self._effort.steps = 0
        self._effort.steps += 1
        if node in self._effort.busy or len(self._effort.busy) > _DEEP or self._effort.steps > _STEPS:
            self._effort.cuts += 1
            return (UNKNOWN,)
        cuts = self._effort.cuts
        self._effort.busy.add(node)
        try:
            values = self._evaluate(node, scope) or (UNKNOWN,)
        finally:
            self._effort.busy.discard(node)
        # What was cut short inside of a longer evaluation may be known when asked for on its own.
        if cuts == self._effort.cuts or not self._effort.busy or self._tried_enough(node):
            self._values[node] = values
        return values

    def _tried_enough(self, node: ast.expr) -> bool:
        """Whether an expression was cut short so often that it is not worth trying again."""
        self._tries[node] = self._tries.get(node, 0) + 1
        return self._tries[node] >= _TRIES

    def for_scope(self, scope: Scope) -> Resolver:
        """The resolver of the module that `scope` stands in."""
        return scope.module.resolver or self

    def walked(self, scope: Scope) -> Scope:
        """`scope`, of whichever module, with its calls and bindings filled in."""
        return self.for_scope(scope)._walker.walk(scope)

    def _evaluate(self, node: ast.expr, scope: Scope) -> Values:
        match node:
            case ast.Constant(value=value):
                return (Const(value),)
            case ast.Name(id=name):
                return self._name(name, node, scope)
            case ast.Attribute():
                return self._attribute_expression(node, scope)
            case ast.Call():
                return self._call(node, scope)
            case ast.Await(value=value) | ast.Starred(value=value) | ast.NamedExpr(value=value):
                return self.evaluate(value, scope)
            case ast.IfExp(test=test, body=body, orelse=orelse):
                return self._conditional(test, body, orelse, scope)
            case ast.BoolOp(op=op, values=parts):
                return self._boolean(op, parts, scope)
            case ast.BinOp() | ast.UnaryOp() | ast.JoinedStr():
                return fold.operation(node, lambda n: self.evaluate(n, scope))
            case ast.Dict():
                return (self._dict(node, scope),)
            case ast.List(elts=items) | ast.Tuple(elts=items) | ast.Set(elts=items):
                return (self._sequence(items, scope),)
            case ast.ListComp(elt=item) | ast.SetComp(elt=item) | ast.GeneratorExp(elt=item):
                return (Sequence((self.evaluate(item, scope),), open=True),)
            case ast.Subscript():
                return self._subscript(node, scope)
            case ast.Lambda():
                return (Function(self._walker.scope_of[node]),)
        return (UNKNOWN,)

    def _conditional(self, test: ast.expr, body: ast.expr, orelse: ast.expr, scope: Scope) -> Values:
        values = self.evaluate(body, scope)
        other = self.evaluate(orelse, scope)
        if dotted(body) and _is_none_test(test, dotted(body)) is False:
            values = without_none(values)
        if dotted(orelse) and _is_none_test(test, dotted(orelse)) is True:
            other = without_none(other)
        return union(values, other)

    def _boolean(self, op: ast.boolop, parts: list[ast.expr], scope: Scope) -> Values:
        *first, last = (self.evaluate(part, scope) for part in parts)
        if isinstance(op, ast.Or):
            kept = (
                tuple(v for v in without_none(values) if not (isinstance(v, Const) and not v.value))
                for values in first
            )
            return union(*kept, last)
        falsy = (
            tuple(v for v in values if not isinstance(v, Const) or not v.value) for values in first
        )  # fmt: skip
        plain = (tuple(v for v in values if isinstance(v, (Const, Unknown))) for values in falsy)
        return union(*plain, last)

    def _sequence(self, items: list[ast.expr], scope: Scope) -> Sequence:
        found: list[Values] = []
        for item in items:
            if isinstance(item, ast.Starred):
                inner = self.evaluate(item.value, scope)
                match inner:
                    case (Sequence(items=more, open=is_open),):
                        found.extend(more)
                        if not is_open:
                            continue
                return Sequence(tuple(found), open=True)
            found.append(self.evaluate(item, scope))
        return Sequence(tuple(found))

    def _dict(self, node: ast.Dict, scope: Scope) -> Mapping:
        result = Mapping()
        for key, value in zip(node.keys, node.values, strict=True):
            if key is None:
                for more in self.evaluate(value, scope)[:1]:
                    result = fold.merged(result, more)
            else:
                result = self._with_item(result, key, self.evaluate(value, scope), scope)
        return result

    def _with_item(self, mapping: Mapping, key: ast.expr, values: Values, scope: Scope) -> Mapping:
        match self.evaluate(key, scope):
            case (Const(str() as name),):
                return fold.with_entry(mapping, name, values)
        return Mapping(mapping.entries, mapping.perhaps, open=True)

    def _subscript(self, node: ast.Subscript, scope: Scope) -> Values:
        found: list[Values] = []
        for base in self.evaluate(node.value, scope):
            match base:
                case External() | Class():
                    found.append((base,))  # a generic: `Queue[int]`
                case Mapping():
                    match self.evaluate(node.slice, scope):
                        case (Const(str() as key),):
                            found.append(base.get(key) or (UNKNOWN,))
                case Sequence(items=items):
                    match self.evaluate(node.slice, scope):
                        case (Const(int() as index),) if -len(items) <= index < len(items):
                            found.append(items[index])
        return union(*found)

    # --- names ---------------------------------------------------------------------------------------------

    def _name(self, name: str, node: ast.Name, scope: Scope) -> Values:
        home = self.scope_binding(name, scope)
        if home is None:
            return (External(f"builtins.{name}"),) if name in _BUILTINS else self._starred(name) or (UNKNOWN,)
        position = (node.lineno, node.col_offset)
        if home is scope:
            block = self._block(node, scope)
            reaching = list(self._reaching(home.bindings[name], position, block))
        else:
            reaching = [(b, False) for b in home.bindings[name]]
        groups: list[Values] = [(UNKNOWN,)] if len(reaching) > _BINDINGS else []
        for binding, drop_none in reaching[-_BINDINGS:]:
            values = self._bound(name, binding, home)
            groups.append(without_none(values) if drop_none else values)
        values = union(*groups)
        if home is scope and _may_be_none(values) and self._guarded(name, node, scope):
            values = without_none(values)
        return self._changed(name, values, node, scope, home)

    def exported(self, name: str) -> Values:
        """What the module's own `name` stands for to those who import it; empty where it has none."""
        bindings = self._module.bindings.get(name, ())
        if not bindings:
            return self._starred(name)
        return union(*(self._bound(name, binding, self._module) for binding in bindings[-_BINDINGS:]))

    def _starred(self, name: str) -> Values:
        """What `name` may be through `from module import *`; empty where the module has no such import."""
        stars = self._module.bindings.get("*", ())
        return union(*(self._import(binding.target[:-1] + name) for binding in stars))

    def scope_binding(self, name: str, scope: Scope) -> Scope | None:
        """The scope that `name`, used in `scope`, belongs to."""
        resolver = self.for_scope(scope)
        if resolver is not self:
            return resolver.scope_binding(name, scope)
        self._walker.walk(scope)
        current: Scope | None = scope
        while current is not None:
            self._walker.walk(current)
            visible = (current is scope or current.kind != "class") and name not in current.outer_names
            if visible and current.bindings.get(name):
                return current
            current = current.parent
        return None

    def _block(self, node: ast.AST, scope: Scope) -> Block | None:
        """The block of the statement that `node` lies in."""
        current: ast.AST | None = node
        while current is not None:
            block = scope.blocks.get(current)
            if block is not None and isinstance(current, (ast.stmt, ast.Call)):
                return block
            current = self._walker.parents.get(current)
        return None

    def _reaching(
        self, bindings: list[Binding], position: Position, block: Block | None
    ) -> Iterator[tuple[Binding, bool]]:
        """The bindings that may be in force at `position`, and whether None was replaced by a later one."""
        before = [b for b in bindings if b.position < position]
        if block is None:
            yield from ((b, False) for b in bindings)
            return
        around = list(block.chain())
        loops = [b for b in around if b.kind == "loop"]
        later = [b for b in bindings if b.position >= position and any(b.block.within(x) for x in loops)]
        start = 0
        for i, binding in enumerate(before):
            if any(binding.block is x for x in around) and binding.kind != "annotate":
                start = i
        live = [b for b in before[start:] if not _exclusive(b.block, block)]
        for i, binding in enumerate(live):
            yield binding, any(_replaces_none(other.block, binding.block) for other in live[i + 1 :])
        if not live or later:
            yield from ((b, False) for b in later or bindings)

    def _guarded(self, name: str, node: ast.AST, scope: Scope) -> bool:
        """Whether `name` is known not to be None where `node` stands."""
        block = self._block(node, scope)
        for around in block.chain() if block else ():
            if isinstance(around.node, ast.If):
                answer = _is_none_test(around.node.test, name)
                if (around.kind == "if" and answer is False) or (around.kind == "else" and answer is True):
                    return True
        return any(self._left_if_none(name, node, scope))

    def _left_if_none(self, name: str, node: ast.AST, scope: Scope) -> Iterator[bool]:
        """Whether an earlier `if name is None: return/raise` stands in the function."""
        line = getattr(node, "lineno", 0)
        if scope not in self._exits:
            self._exits[scope] = [
                s for s in scope.blocks if isinstance(s, ast.If) and not s.orelse and _leaves(s.body)
            ]
        for statement in self._exits[scope]:
            if statement.lineno < line and _is_none_test(statement.test, name) is True:
                yield True

    def _bound(self, name: str, binding: Binding, home: Scope) -> Values:
        """What a binding gives its name."""
        resolver = self.for_scope(home)
        if resolver is not self:
            return resolver._bound(name, binding, home)
        match binding.kind:
            case "import":
                return self._import(binding.target)
            case "function" if isinstance(binding.node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                return (Function(self._walker.scope_of[binding.node]),)
            case "class" if isinstance(binding.node, ast.ClassDef):
                return (Class(self._walker.scope_of[binding.node]),)
            case "parameter":
                return self._parameter(name, binding, home)
            case "annotate":
                return self.annotated(binding.annotation, home) or (UNKNOWN,)
            case "assign" if binding.value is not None:
                values = self._unpacked(binding, self.evaluate(binding.value, home))
                if binding.annotation is not None and any(_says_nothing(value) for value in values):
                    return union(
                        tuple(v for v in values if not _says_nothing(v)), self.annotated(binding.annotation, home)
                    )
                return values
            case "enter" if binding.value is not None:
                return self._unpacked(binding, self._entered(self.evaluate(binding.value, home)))
            case "iterate" if binding.value is not None and binding.index is None:
                return union(
                    self._items(self.evaluate(binding.value, home)), *self._appended(binding.value, home)
                )
        return (UNKNOWN,)

    def _appended(self, node: ast.expr, home: Scope) -> Iterator[Values]:
        """What is appended to the list that a loop runs over: `for child in children` after `children.append(…)`."""
        name = dotted(node)
        for call in home.calls if name else ():
            match call:
                case ast.Call(func=ast.Attribute(value=base, attr="append" | "add"), args=[item]):
                    if dotted(base) == name:
                        yield self.evaluate(item, home)

    def _import(self, target: str) -> Values:
        if self._elsewhere is not None:
            found = self._elsewhere(target)
            if found:
                return found
        return (External(canonical(target)),)

    def _unpacked(self, binding: Binding, values: Values) -> Values:
        if binding.index is None:
            return values
        found = []
        for value in values:
            match value:
                case Sequence(items=items) if binding.index < len(items):
                    found.append(items[binding.index])
                case _:
                    found.append((UNKNOWN,))
        return union(*found)

    def _items(self, values: Values) -> Values:
        found = []
        for value in values:
            match value:
                case Sequence(items=items, open=is_open) if items:
                    found.append(union(*items, *([(UNKNOWN,)] if is_open else ())))
                case Result(name=name) if name.endswith(".ExitStack"):
                    found.append((value,))
                case _:
                    found.append((UNKNOWN,))
        return union(*found)

    def _entered(self, values: Values) -> Values:
        """What `with value as name` binds."""
        found: list[Values] = []
        for value in values:
            match value:
                case Object():
                    entered = union(
                        *(self._method_result(value, name) for name in ("__enter__", "__aenter__"))
                    )
                    found.append(entered or (value,))
                case _:
                    found.append((value,))
        return union(*found)

    def _method_result(self, value: Object, name: str) -> Values:
        for attribute in self.attribute(value, name):
            if isinstance(attribute, Function):
                return self._returned(attribute, None, attribute.scope)
        return ()

    def _parameter(self, name: str, binding: Binding, home: Scope) -> Values:
        owner = home.owner
        first = next(home.parameters(), None)
        if owner is not None and first is binding.node:
            match _decorators(home):
                case names if "staticmethod" in names:
                    pass
                case names if "classmethod" in names or home.name in ("__new__", "__init_subclass__"):
                    return (Class(owner),)
                case _:
                    return (Object(owner),)
        assert isinstance(home.definition, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
        args = home.definition.args
        if binding.node is args.kwarg:
            return (Mapping(open=True),)
        if binding.node is args.vararg:
            return (Sequence((), open=True),)
        default = home.default_of(name)
        defaults = self.evaluate(default, home.parent or home) if default is not None else ()
        values: Values = (Parameter(home, name, defaults),)
        annotated = self.annotated(binding.annotation, home.parent or home)
        return (*annotated, *values) if annotated else values

    def annotated(self, annotation: ast.expr | None, scope: Scope) -> Values:
        """Instances of the classes that an annotation names; empty where it names none that matters."""
        match annotation:
            case None:
                return ()
            case ast.Constant(value=str() as text):
                try:
                    inner = ast.parse(text, mode="eval").body
                except (SyntaxError, ValueError):
                    return ()
                for node in ast.walk(inner):
                    self._walker.scope_of.setdefault(node, scope)
                return self.annotated(inner, scope)
            case ast.BinOp(left=left, op=ast.BitOr(), right=right):
                return union(self.annotated(left, scope), self.annotated(right, scope))
            case ast.Subscript(value=base, slice=inner):
                name = dotted(base).rpartition(".")[2]
                parts = inner.elts if isinstance(inner, ast.Tuple) else [inner]
                if name in ("Optional", "Union", "ClassVar", "Final", "Required", "NotRequired"):
                    return union(*(self.annotated(part, scope) for part in parts))
                if name == "Annotated" and parts:
                    return self.annotated(parts[0], scope)
                return self.annotated(base, scope) if name not in ("type", "Type", "list", "dict") else ()
            case ast.Name() | ast.Attribute():
                return self._instances(self._annotation_name(annotation, scope))
        return ()

    def _annotation_name(self, node: ast.expr, scope: Scope) -> Values:
        """The values of a dotted name in an annotation, which may stand for something defined later."""
        match node:
            case ast.Name(id=name):
                return self._annotating(name, node, scope)
            case ast.Attribute(value=base, attr=attr):
                return union(
                    *(self.attribute(value, attr) for value in self._annotation_name(base, scope))
                )  # fmt: skip
        return ()

    def _annotating(self, name: str, node: ast.Name, scope: Scope) -> Values:
        """What a name in an annotation stands for; in `session: session = field()` that is the outer one."""
        home = self.scope_binding(name, scope)
        if home is None:
            return ()
        if node in self._effort.busy:
            self._effort.cuts += 1
            return ()
        bindings = [b for b in home.bindings[name] if b.annotation is not node]
        if not bindings:
            return self._annotating(name, node, home.parent) if home.parent is not None else ()
        self._effort.busy.add(node)
        try:
            return union(*(self._bound(name, b, home) for b in bindings))
        finally:
            self._effort.busy.discard(node)

    @staticmethod
    def _instances(values: Values) -> Values:
        found: list[Value] = []
        for value in values:
            match value:
                case External(name=name) if not name.startswith(("builtins.", "typing.")):
                    found.append(Result(name))
                case Class(scope=scope):
                    found.append(Object(scope))
        return tuple(found)

    # --- changes to dicts ----------------------------------------------------------------------------------

    def _changed(self, name: str, values: Values, node: ast.AST, scope: Scope, home: Scope) -> Values:
        """`values` after the changes to the dict `name` before `node`."""
        if not any(isinstance(v, Mapping) for v in values):
            return values
        changes = home.mutations.get(name, ())
        position = (getattr(node, "lineno", 0), getattr(node, "col_offset", 0))
        if home is not scope:
            elsewhere = bool(scope.mutations.get(name))
            return tuple(
                Mapping(v.entries, v.perhaps, open=True) if isinstance(v, Mapping) and (changes or elsewhere) else v
                for v in values
            )
        last = max(
            (b.position for b in home.bindings[name] if b.position < position and b.kind == "assign"),
            default=(0, 0),
        )
        block = self._block(node, scope)
        result = values
        for change in changes:
            if last < change.position <= position and not (block and _exclusive(change.block, block)):
                result = tuple(
                    self._apply(change, v, scope) if isinstance(v, Mapping) else v for v in result
                )
        return result

    def _apply(self, change: Mutation, mapping: Mapping, scope: Scope) -> Mapping:
        match change:
            case Mutation(kind="item" | "setdefault", key=ast.expr() as key, value=ast.expr() as value):
                return self._with_item(mapping, key, self.evaluate(value, scope), scope)
            case Mutation(kind="update", call=ast.Call(args=args, keywords=keywords)):
                for arg in args:
                    for more in self.evaluate(arg, scope)[:1]:
                        mapping = fold.merged(mapping, more)
                return self._with_keywords(mapping, keywords, scope)
            case Mutation(kind="update", value=ast.expr() as value):
                for more in self.evaluate(value, scope)[:1]:
                    mapping = fold.merged(mapping, more)
                return mapping
            case Mutation(kind="unknown", key=ast.expr() as key):
                match self.evaluate(key, scope):
                    case (Const(str() as name),):
                        return fold.without_entry(mapping, name)
        return Mapping(mapping.entries, mapping.perhaps, open=True)

    def _with_keywords(self, mapping: Mapping, keywords: list[ast.keyword], scope: Scope) -> Mapping:
        for keyword in keywords:
            values = self.evaluate(keyword.value, scope)
            if keyword.arg is None:
                mapping = fold.merged(mapping, values[0])
            else:
                mapping = fold.with_entry(mapping, keyword.arg, values)
        return mapping

    # --- attributes ----------------------------------------------------------------------------------------

    def _attribute_expression(self, node: ast.Attribute, scope: Scope) -> Values:
        assigned = self._assigned_attribute(node, scope)
        if assigned:
            return assigned
        values = union(*(self.attribute(base, node.attr) for base in self.evaluate(node.value, scope)))
        name = dotted(node)
        if name and _may_be_none(values) and self._guarded(name, node, scope):
            values = without_none(values)
        if name and scope.mutations.get(name) and any(isinstance(v, Mapping) for v in values):
            return self._changed_attribute(name, values, node, scope)
        return values

    def _changed_attribute(self, name: str, values: Values, node: ast.AST, scope: Scope) -> Values:
        position = (getattr(node, "lineno", 0), getattr(node, "col_offset", 0))
        for change in scope.mutations[name]:
            if change.position <= position:
                values = tuple(
                    self._apply(change, v, scope) if isinstance(v, Mapping) else v for v in values
                )
        return values

    def _assigned_attribute(self, node: ast.Attribute, scope: Scope) -> Values:
        """`name.attr` where `name.attr = …` stands in the file for the same `name`, `self` left out."""
        base = dotted(node.value)
        here = self._walker.assigned_attributes.get((base, node.attr)) if base else None
        if not here:
            return ()
        head = base.partition(".")[0]
        home = self.scope_binding(head, scope)
        if home is None or (home.owner is not None and head == _first_parameter(home)):
            return ()
        found = []
        position = (node.lineno, node.col_offset)
        for binding, where in here:
            if self.scope_binding(head, where) is not home:
                continue
            if where is scope and binding.position >= position:
                continue
            found.append(self._bound("", binding, where))
        return union(*found)

    def attribute(self, base: Value, name: str) -> Values:
        """What `base.name` may be."""
        match base:
            case External(name=module):
                return self._import(f"{module}.{name}")
            case Result(name=kind):
                if name in SAME_OBJECT:
                    return (base,)
                return (Member(canonical(f"{kind}.{name}"), base),)
            case Member(name=path):
                return (Member(canonical(f"{path}.{name}"), base),)
            case Object(cls=cls):
                return self._class_attribute(cls, name, base) or (UNKNOWN,)
            case Class(scope=cls):
                return self._class_attribute(cls, name, None) or (UNKNOWN,)
            case Super(cls=cls, instance=instance):
                return self._inherited(cls, name, instance) or (UNKNOWN,)
            case Function():
                return (Attached(base, name),)
            case Partial(function=function) if name == "func":
                return (function,)
            case Const(str()) | Template():
                return (Member(f"str.{name}", base),)
            case Mapping():
                return (Member(f"dict.{name}", base),)
            case Parameter(default=default):
                known = tuple(v for v in default if not isinstance(v, Const | Unknown))
                passed = self._passed(base)
                found = union(*(self.attribute(v, name) for v in (*known, *passed)))
                return found or (UNKNOWN,)
        return (UNKNOWN,)

    def _passed(self, parameter: Parameter) -> Values:
        """What the callers in the file pass for a parameter, where that is something with attributes."""
        resolver = self.for_scope(parameter.scope)
        if resolver is not self:
            return resolver._passed(parameter)
        if self.arguments_of is None:
            return ()
        key = (parameter.scope, parameter.name)
        if key in self._effort.busy:
            self._effort.cuts += 1
            return ()
        self._effort.busy.add(key)
        try:
            values = self.arguments_of(parameter.scope, parameter.name)
        finally:
            self._effort.busy.discard(key)
        return tuple(v for v in values if isinstance(v, Result | Object | Member))

    def passed(self, parameter: Parameter) -> Values:
        """What the callers in the file pass for a parameter, if any are known."""
        return self._passed(parameter)

    def mro(self, cls: Scope) -> list[Scope | External]:
        """The class and its bases, depth first: classes of the file, and external ones by name."""
        order: list[Scope | External] = []
        pending: list[Scope | External] = [cls]
        while pending and len(order) < 30:
            current = pending.pop(0)
            if current in order:
                continue
            order.append(current)
            if isinstance(current, Scope) and isinstance(current.node, ast.ClassDef):
                above: list[Scope | External] = []
                for base in current.node.bases:
                    for value in self.evaluate(base, current.parent or self._module):
                        match value:
                            case Class(scope=scope):
                                above.append(scope)
                            case External():
                                above.append(value)
                            case Result(name=name):
                                above.append(External(name))
                pending = above + pending
        return order

    def subclass_of(self, cls: Scope, name: str) -> bool:
        """Whether the class has the external class `name` among its bases."""
        return any(isinstance(base, External) and base.name == name for base in self.mro(cls))

    def method(self, cls: Scope, name: str) -> Scope | None:
        """The method `name` of a class of the file, its own or from a base in the file."""
        for base in self.mro(cls):
            if isinstance(base, Scope):
                found = [f for f in base.functions if f.name == name]
                if found:
                    return found[-1]
        return None

    def _class_attribute(self, cls: Scope, name: str, instance: Value | None) -> Values:
        return self._look_up(self.mro(cls), name, cls, instance)

    def _inherited(self, cls: Scope, name: str, instance: Value | None) -> Values:
        return self._look_up(self.mro(cls)[1:], name, cls, instance)

    def _look_up(
        self, order: Iterable[Scope | External], name: str, cls: Scope, instance: Value | None
    ) -> Values:
        for base in order:
            if isinstance(base, External):
                if base.name in ("builtins.object", "abc.ABC", "typing.Protocol", "typing.Generic"):
                    continue
                if base.name.startswith("builtins."):
                    return ()
                receiver = instance or Class(cls)
                return (Member(canonical(f"{base.name}.{name}"), receiver),)
            values = self._own_attribute(base, name, instance)
            if values:
                return values
        return ()

    def _own_attribute(self, cls: Scope, name: str, instance: Value | None) -> Values:
        """`name` as the class itself defines it: a method, a class attribute, or an assignment to `self`."""
        resolver = self.for_scope(cls)
        if resolver is not self:
            return resolver._own_attribute(cls, name, instance)
        for function in cls.functions:
            if function.name == name:
                if {"property", "cached_property"} & _decorators(function):
                    return self._returned(Function(function, instance), None, function)
                bound = None if "staticmethod" in _decorators(function) else instance or Class(cls)
                return (Function(function, bound),)
        key = (cls, name)
        if key in self._attributes:
            return self._attributes[key]
        if key in self._effort.busy:
            self._effort.cuts += 1
            return ()
        cuts = self._effort.cuts
        self._effort.busy.add(key)
        try:
            found = [self._bound(name, b, cls) for b in cls.bindings.get(name, ())]
            for method in cls.functions:
                first = _first_parameter(method)
                if first is None or not (method.walked or method.mentions(name)):
                    continue
                self._walker.walk(method)
                for binding, where in method.attributes.get((first, name), ()):
                    found.append(self._bound(name, binding, where))
            values = union(*found)
        finally:
            self._effort.busy.discard(key)
        if cuts == self._effort.cuts or not self._effort.busy:
            self._attributes[key] = values
        return values

    # --- calls ---------------------------------------------------------------------------------------------

    def _call(self, node: ast.Call, scope: Scope) -> Values:
        return union(*(self.called(f, node, scope) for f in self.evaluate(node.func, scope)))

    def called(self, function: Value, node: ast.Call, scope: Scope) -> Values:
        """What a call of `function` by `node` returns."""
        match function:
            case External(name=name):
                return self._external_call(name, node, scope)
            case Member(name=name, receiver=receiver):
                return self._member_call(name, receiver, node, scope)
            case Class(scope=cls):
                return (Object(cls, node),)
            case Function():
                return self._returned(function, node, scope)
            case Partial(function=inner, call=call):
                return self.called(inner, call, scope)
            case Object(cls=cls):
                method = self.method(cls, "__call__")
                return self._returned(Function(method, function), node, scope) if method else (UNKNOWN,)
            case Result(name=name) if f"{name}.__call__" in RETURNS:
                return (Result(RETURNS[f"{name}.__call__"], node, function, scope),)
            case Super():
                return (UNKNOWN,)
        return (UNKNOWN,)

    def _member_call(self, name: str, receiver: Value, node: ast.Call, scope: Scope) -> Values:
        if name in TRANSPARENT and node.args:
            return self.evaluate(node.args[0], scope)
        if name == "str.format" and isinstance(receiver, Const | Template):
            return (fold.formatted(receiver),)
        if name == "str.split" and not node.args:
            return (fold.split(receiver),)
        if name == "str.join" and node.args:
            return (fold.joined(receiver, self.evaluate(node.args[0], scope)),)
        if name == "dict.get" and isinstance(receiver, Mapping) and node.args:
            match self.evaluate(node.args[0], scope):
                case (Const(str() as key),):
                    default = self.evaluate(node.args[1], scope) if len(node.args) > 1 else (NONE,)
                    return receiver.get(key) or default
            return (UNKNOWN,)
        if name == "dict.copy":
            return (receiver,)
        if name.startswith(("str.", "dict.")):
            return (UNKNOWN,)
        return (Result(RETURNS.get(name, name), node, receiver, scope),)

    def _external_call(self, name: str, node: ast.Call, scope: Scope) -> Values:
        args = node.args
        match name:
            case "functools.partial" | "functools.partialmethod" if args:
                return tuple(Partial(f, node) for f in self.evaluate(args[0], scope))
            case "builtins.dict":
                mapping = Mapping()
                if args:
                    mapping = fold.merged(mapping, self.evaluate(args[0], scope)[0])
                return (self._with_keywords(mapping, node.keywords, scope),)
            case "builtins.super":
                function = scope.enclosing_function()
                while function is not None and function.owner is None:
                    function = function.parent.enclosing_function() if function.parent else None
                if function is None or function.owner is None:
                    return (UNKNOWN,)
                return (Super(function.owner, Object(function.owner)),)
            case "builtins.getattr" if len(args) >= 2:
                return self._getattr(args, scope)
            case "builtins.list" | "builtins.tuple" if len(args) == 1:
                return self.evaluate(args[0], scope)
            case "typing.cast" if len(args) == 2:
                return self.annotated(args[0], scope) or self.evaluate(args[1], scope)
            case "pytest.importorskip" | "importlib.import_module" | "builtins.__import__" if args:
                match self.evaluate(args[0], scope):
                    case (Const(str() as module),):
                        return (External(canonical(module)),)
                return (UNKNOWN,)
        if name in TRANSPARENT and args:
            return self.evaluate(args[0], scope)
        folded = fold.call(name, node, lambda n: self.evaluate(n, scope))
        if name == "builtins.str" and folded == (UNKNOWN,):
            return (Result(name, node, None, scope), UNKNOWN)  # of a path, say: the call tells who asks
        if folded is not None:
            return folded
        return (Result(RETURNS.get(name, name), node, None, scope),)

    def _getattr(self, args: list[ast.expr], scope: Scope) -> Values:
        names = self.evaluate(args[1], scope)
        found = []
        for base in self.evaluate(args[0], scope):
            for name in names:
                if isinstance(name, Const) and isinstance(name.value, str):
                    found.append(self.attribute(base, name.value))
                elif isinstance(base, External | Result):
                    found.append(self.attribute(base, "*"))
        return union(*found)

    def _returned(self, function: Function, node: ast.Call | None, scope: Scope) -> Values:
        """What a function returns, with its parameters replaced by the call's arguments."""
        inner = self.walked(function.scope)
        if inner.yields and not _decorators(inner) & {"contextmanager", "asynccontextmanager", "fixture"}:
            return (UNKNOWN,)
        results = [y for y in inner.yields if y is not None] if inner.yields else inner.returns
        found, open_ = self._results(inner, results)
        if not found:
            return () if node is None else (UNKNOWN,) if inner.yields else (NONE,)
        if node is None or not open_:
            return found
        parts = (part for result in results for part in self._parts(result, inner))
        return union(*(self._given(part, none, function, node, scope) for part, none in parts))

    def _results(self, inner: Scope, results: list[ast.expr]) -> tuple[Values, bool]:
        """What a function returns to any caller, and whether its arguments are among that."""
        known = self._returns.get(inner)
        if known is None:
            cuts = self._effort.cuts
            found = union(*(self.evaluate(value, inner) for value in results))
            known = (found, any(isinstance(v, Parameter) and v.scope is inner for v in found))
            if cuts == self._effort.cuts:
                self._returns[inner] = known
        return known

    def _parts(self, result: ast.expr, scope: Scope) -> Iterator[tuple[ast.expr, bool]]:
        """The expressions that a returned one chooses from, and whether each is known not to be None there."""
        match result:
            case ast.IfExp(test=test, body=body, orelse=orelse):
                for part, answer in ((body, False), (orelse, True)):
                    for inner, excluded in self._parts(part, scope):
                        name = dotted(inner)
                        yield inner, excluded or (bool(name) and _is_none_test(test, name) is answer)
            case ast.BoolOp(op=ast.Or(), values=[*first, last]):
                yield from ((part, True) for part in first)
                yield from self._parts(last, scope)
            case _:
                name = dotted(result)
                yield result, bool(name) and self.for_scope(scope)._guarded(name, result, scope)

    def _given(
        self, part: ast.expr, not_none: bool, function: Function, node: ast.Call, scope: Scope
    ) -> Values:
        """What a returned expression is with the arguments of the call; without None where that is excluded."""
        found = union(
            *(self._substituted(v, function, node, scope) for v in self.evaluate(part, function.scope))
        )
        return without_none(found) if not_none else found

    def _substituted(self, value: Value, function: Function, node: ast.Call, scope: Scope) -> Values:
        if not isinstance(value, Parameter) or value.scope is not function.scope:
            return (value,)
        argument = self.argument_for(function, value.name, node)
        if argument is not None:
            return self.evaluate(argument, scope)
        return value.default or (UNKNOWN,)

    def argument_for(self, function: Function, name: str, node: ast.Call) -> ast.expr | None:
        """The expression that a call passes for the parameter `name`, if it passes one in plain sight."""
        for keyword in node.keywords:
            if keyword.arg == name:
                return keyword.value
        definition = function.scope.definition
        if not isinstance(definition, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            return None
        positional = [a.arg for a in (*definition.args.posonlyargs, *definition.args.args)]
        if function.receiver is not None and positional:
            positional = positional[1:]
        if name not in positional:
            return None
        index = positional.index(name)
        if index >= len(node.args) or any(isinstance(a, ast.Starred) for a in node.args[: index + 1]):
            return None
        return node.args[index]


def _says_nothing(value: Value) -> bool:
    """Whether a value leaves its name to the annotation: not known, or the declaration of a field."""
    return value == UNKNOWN or (isinstance(value, Result) and value.name in DECLARED_FIELDS)


def _may_be_none(values: Values) -> bool:
    return any(v == NONE or (isinstance(v, Parameter) and NONE in v.default) for v in values)


def _first_parameter(function: Scope) -> str | None:
    if "staticmethod" in _decorators(function):
        return None
    first = next(function.parameters(), None)
    return first.arg if first is not None else None


def _decorators(function: Scope) -> set[str]:
    """The last names of a function's decorators."""
    if not isinstance(function.definition, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return set()
    names = set()
    for decorator in function.definition.decorator_list:
        target = decorator.func if isinstance(decorator, ast.Call) else decorator
        names.add(dotted(target).rpartition(".")[2])
    return names


def _exclusive(one: Block, other: Block) -> bool:
    """Whether two blocks are different branches of one `if` or `match`, or a body and a handler that ran after it."""
    if one is other or one.parent is None or other.parent is None:
        return False
    branches = {id(b.node): b for b in one.chain() if b.kind in ("if", "else", "case")}
    if not branches:
        return False
    for block in other.chain():
        if block.kind in ("if", "else") and id(block.node) in branches:
            return branches[id(block.node)] is not block and isinstance(block.node, ast.If)
        if block.kind == "case":
            mine = next((b for b in one.chain() if b.kind == "case"), None)
            if mine is not None and mine.node is not block.node and mine.parent is block.parent:
                return True
    return False


def _replaces_none(inner: Block, outer: Block) -> bool:
    """Whether `inner` is the body of an `if` that is entered where a name is None, below `outer`."""
    if inner.kind != "if" or inner is outer or not isinstance(inner.node, ast.If):
        return False
    test = inner.node.test
    return isinstance(test, (ast.UnaryOp, ast.Compare)) and _is_none_test(test, None) is True


def _is_none_test(test: ast.expr, name: str | None) -> bool | None:
    """True where `test` holds only if `name` is None (or empty), False where it excludes that, None otherwise."""

    def same(node: ast.expr) -> bool:
        return name is None or dotted(node) == name

    match test:
        case ast.Compare(left=left, ops=[op], comparators=[ast.Constant(value=None)]) if same(left):
            return True if isinstance(op, ast.Is | ast.Eq) else False if isinstance(op, ast.IsNot | ast.NotEq) else None
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            inner = _is_none_test(operand, name)
            return None if inner is None else not inner
        case ast.BoolOp(op=ast.And(), values=parts):
            if any(_is_none_test(part, name) is False for part in parts):
                return False
        case ast.Name() | ast.Attribute() if same(test):
            return False
        case ast.Call(func=ast.Name(id="isinstance"), args=[first, *_]) if same(first):
            return False
    return None


def _leaves(body: list[ast.stmt]) -> bool:
    return bool(body) and isinstance(body[-1], ast.Return | ast.Raise | ast.Continue | ast.Break)

