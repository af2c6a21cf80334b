"""What an attribute stands for: of modules, of results, of objects and classes of the project."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from datetime import timedelta

from deadlint.index import defaults
from deadlint.index.evaluation import Evaluation
from deadlint.index.flow import decorators_of, decorators_of_class, first_parameter, may_be_none
from deadlint.index.known import SAME_OBJECT, canonical
from deadlint.index.scopes import Scope, dotted
from deadlint.index.values import (
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
    Super,
    Template,
    Unknown,
    Value,
    Values,
    union,
    without_none,
)

_FIELD_DECORATORS = frozenset({"dataclass", "define", "frozen", "mutable", "attrs", "s", "attributes"})


class Attributes(Evaluation):
    """The part of a resolver that follows attributes."""

    def _attribute_expression(self, node: ast.Attribute, scope: Scope) -> Values:
        assigned = self._assigned_attribute(node, scope)
        if assigned:
            return assigned
        values = union(*(self.attribute(base, node.attr) for base in self.evaluate(node.value, scope)))
        name = dotted(node)
        if name and may_be_none(values) and self._guarded(name, node, scope):
            values = without_none(values)
        if name and scope.mutations.get(name) and any(isinstance(v, Mapping) for v in values):
            return self._changed_attribute(name, values, node, scope)
        return values

    def _changed_attribute(self, name: str, values: Values, node: ast.AST, scope: Scope) -> Values:
        position = (getattr(node, "lineno", 0), getattr(node, "col_offset", 0))
        for change in scope.mutations[name]:
            if change.position <= position:
                values = tuple(self._apply(change, v, scope) if isinstance(v, Mapping) else v for v in values)
        return values

    def _assigned_attribute(self, node: ast.Attribute, scope: Scope) -> Values:
        """`name.attr` where `name.attr = …` stands in the file for the same `name`, `self` left out."""
        base = dotted(node.value)
        here = self._walker.attribute_assigned(base, node.attr) if base else None
        if not here:
            return ()
        head = base.partition(".")[0]
        home = self.scope_binding(head, scope)
        if home is None or (home.owner is not None and head == first_parameter(home)):
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
            case Const(timedelta()) if name == "total_seconds":
                return (Member("datetime.timedelta.total_seconds", base),)
            case Const(int() | float() | timedelta()) if name == "value":
                return (base,)  # of a member of an enumeration
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

    def _look_up(self, order: Iterable[Scope | External], name: str, cls: Scope, instance: Value | None) -> Values:
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
                return self._as_made(values, base, name, instance) if isinstance(instance, Object) else values
        return ()

    def _as_made(self, values: Values, cls: Scope, name: str, instance: Object) -> Values:
        """A field of a settings or data class: what its constructor was given, else its default, marked as such."""
        if not any(isinstance(v, Const) for v in values) or not self._has_fields(cls, name):
            return values
        for keyword in instance.call.keywords if instance.call is not None else ():
            if keyword.arg == name:
                return self.evaluate(keyword.value, self._where(instance.call))
        return tuple(defaults.marked(v, f"`{cls.name}.{name}`") for v in values)

    def _where(self, call: ast.Call | None) -> Scope:
        return self._walker.scope_of.get(call, self._module) if call is not None else self._module

    def _has_fields(self, cls: Scope, name: str) -> bool:
        """Whether a class takes its annotated attributes from its constructor or the environment."""
        if not any(b.annotation is not None for b in cls.bindings.get(name, ())):
            return False
        if decorators_of_class(cls) & _FIELD_DECORATORS:
            return True
        above = (base.name for base in self.mro(cls) if isinstance(base, External))
        return any(base.startswith(("pydantic", "attr.", "typing.NamedTuple", "sqlmodel.")) for base in above)

    def _own_attribute(self, cls: Scope, name: str, instance: Value | None) -> Values:
        """`name` as the class itself defines it: a method, a class attribute, or an assignment to `self`."""
        resolver = self.for_scope(cls)
        if resolver is not self:
            return resolver._own_attribute(cls, name, instance)
        for function in cls.functions:
            if function.name == name:
                if {"property", "cached_property"} & decorators_of(function):
                    return self._returned(Function(function, instance), None, function)
                bound = None if "staticmethod" in decorators_of(function) else instance or Class(cls)
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
                first = first_parameter(method)
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
