"""What a name stands for: its bindings that are in force, parameters, annotations, and changes to dicts."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator
from typing import TYPE_CHECKING

from deadlint.index import defaults, fold
from deadlint.index.evaluation import Evaluation
from deadlint.index.flow import decorators_of, exclusive, is_none_test, leaves, may_be_none, replaces_none, says_nothing
from deadlint.index.known import canonical
from deadlint.index.scopes import Binding, Block, Mutation, Scope, dotted
from deadlint.index.values import (
    UNKNOWN,
    Class,
    Const,
    External,
    Function,
    Mapping,
    Object,
    Parameter,
    Result,
    Sequence,
    Value,
    Values,
    union,
    without_none,
)

if TYPE_CHECKING:
    from deadlint.index.scopes import Position

_BUILTINS = frozenset(dir(builtins))
_BINDINGS = 24  # of one name that are followed, the last ones


class Names(Evaluation):
    """The part of a resolver that follows names."""

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
        if home is scope and may_be_none(values) and self._guarded(name, node, scope):
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
        live = [b for b in before[start:] if not exclusive(b.block, block)]
        for i, binding in enumerate(live):
            yield binding, any(replaces_none(other.block, binding.block) for other in live[i + 1 :])
        if not live or later:
            yield from ((b, False) for b in later or bindings)

    def _guarded(self, name: str, node: ast.AST, scope: Scope) -> bool:
        """Whether `name` is known not to be None where `node` stands."""
        block = self._block(node, scope)
        for around in block.chain() if block else ():
            if isinstance(around.node, ast.If):
                answer = is_none_test(around.node.test, name)
                if (around.kind == "if" and answer is False) or (around.kind == "else" and answer is True):
                    return True
        return any(self._left_if_none(name, node, scope))

    def _left_if_none(self, name: str, node: ast.AST, scope: Scope) -> Iterator[bool]:
        """Whether an earlier `if name is None: return/raise` stands in the function."""
        line = getattr(node, "lineno", 0)
        if scope not in self._exits:
            self._exits[scope] = [s for s in scope.blocks if isinstance(s, ast.If) and not s.orelse and leaves(s.body)]
        for statement in self._exits[scope]:
            if statement.lineno < line and is_none_test(statement.test, name) is True:
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
                declared = self._declared(values, home)
                if declared:
                    return declared
                if binding.annotation is not None and any(says_nothing(value) for value in values):
                    return union(
                        tuple(v for v in values if not says_nothing(v)), self.annotated(binding.annotation, home)
                    )
                return values
            case "enter" if binding.value is not None:
                return self._unpacked(binding, self._entered(self.evaluate(binding.value, home)))
            case "iterate" if binding.value is not None and binding.index is None:
                return union(self._items(self.evaluate(binding.value, home)), *self._appended(binding.value, home))
        return (UNKNOWN,)

    def _declared(self, values: Values, home: Scope) -> Values:
        """The default of a field that is declared by a call: `limit: int = Field(30)`."""
        found = (defaults.of_field(v, lambda n: self.evaluate(n, home)) for v in values if isinstance(v, Result))
        return union(*found) if home.kind == "class" else ()

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
                    entered = union(*(self._method_result(value, name) for name in ("__enter__", "__aenter__")))
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
            match decorators_of(home):
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
            if last < change.position <= position and not (block and exclusive(change.block, block)):
                result = tuple(self._apply(change, v, scope) if isinstance(v, Mapping) else v for v in result)
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
