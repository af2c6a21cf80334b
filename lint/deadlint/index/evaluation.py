"""One question at a time: evaluating an expression, once, within bounds, in the module that it stands in."""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field

from deadlint.index.scopes import Binding, Mutation, Scope, Walker
from deadlint.index.values import UNKNOWN, Function, Mapping, Parameter, Value, Values

_DEEP = 40  # nested evaluations; real code stays under 15
_STEPS = 4_000  # evaluations for one question; a 500 KB module with cyclic calls took minutes without a bound
_TRIES = 3  # evaluations of one expression within others, all cut short, before the last one is kept


@dataclass
class Effort:
    """What one question has cost so far. Shared by the resolvers of a project, which ask each other."""

    busy: set[object] = field(default_factory=set)  # what is being evaluated, so that a cycle is noticed
    cuts: int = 0  # how often an evaluation was cut short, by a cycle or a bound
    steps: int = 0


class Evaluation(ABC):
    """What the parts of a resolver share: its module, what it knows already, and how it asks."""

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

    def for_scope(self, scope: Scope) -> Evaluation:
        """The resolver of the module that `scope` stands in."""
        return scope.module.resolver or self

    def walked(self, scope: Scope) -> Scope:
        """`scope`, of whichever module, with its calls and bindings filled in."""
        return self.for_scope(scope)._walker.walk(scope)

    # --- what the parts ask of each other --------------------------------------------------------------------

    @abstractmethod
    def _evaluate(self, node: ast.expr, scope: Scope) -> Values:
        """The possible values of `node`, worked out anew."""

    @abstractmethod
    def exported(self, name: str) -> Values:
        """What the module's own `name` stands for to those who import it; empty where it has none."""

    @abstractmethod
    def scope_binding(self, name: str, scope: Scope) -> Scope | None:
        """The scope that `name`, used in `scope`, belongs to."""

    @abstractmethod
    def annotated(self, annotation: ast.expr | None, scope: Scope) -> Values:
        """Instances of the classes that an annotation names; empty where it names none that matters."""

    @abstractmethod
    def attribute(self, base: Value, name: str) -> Values:
        """What `base.name` may be."""

    @abstractmethod
    def method(self, cls: Scope, name: str) -> Scope | None:
        """The method `name` of a class of the project, its own or inherited."""

    @abstractmethod
    def argument_for(self, function: Function, name: str, node: ast.Call) -> ast.expr | None:
        """The expression that a call passes for the parameter `name`, if it passes one in plain sight."""

    @abstractmethod
    def _import(self, target: str) -> Values: ...

    @abstractmethod
    def _bound(self, name: str, binding: Binding, home: Scope) -> Values: ...

    @abstractmethod
    def _guarded(self, name: str, node: ast.AST, scope: Scope) -> bool: ...

    @abstractmethod
    def _apply(self, change: Mutation, mapping: Mapping, scope: Scope) -> Mapping: ...

    @abstractmethod
    def _with_item(self, mapping: Mapping, key: ast.expr, values: Values, scope: Scope) -> Mapping: ...

    @abstractmethod
    def _with_keywords(self, mapping: Mapping, keywords: list[ast.keyword], scope: Scope) -> Mapping: ...

    @abstractmethod
    def _own_attribute(self, cls: Scope, name: str, instance: Value | None) -> Values: ...

    @abstractmethod
    def _passed(self, parameter: Parameter) -> Values: ...

    @abstractmethod
    def _returned(self, function: Function, node: ast.Call | None, scope: Scope) -> Values: ...
