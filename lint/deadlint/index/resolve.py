"""What each expression of a module may stand for.

The analysis follows names through assignments, attributes of `self`, parameters with annotations, returns of the
file's own functions and changes to dicts, in the order of the source. What it cannot follow is unknown.
"""

from __future__ import annotations

import ast

from deadlint.index import fold
from deadlint.index.attributes import Attributes
from deadlint.index.flow import is_none_test
from deadlint.index.names import Names
from deadlint.index.results import Results
from deadlint.index.scopes import Scope, dotted
from deadlint.index.values import (
    UNKNOWN,
    Class,
    Const,
    External,
    Function,
    Mapping,
    Sequence,
    Unknown,
    Values,
    union,
    without_none,
)


class Resolver(Names, Attributes, Results):
    """Evaluates expressions of one module. Results are kept; a cycle is unknown.

    `elsewhere` answers what a dotted name stands for that another module of the project defines.
    """

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
        if dotted(body) and is_none_test(test, dotted(body)) is False:
            values = without_none(values)
        if dotted(orelse) and is_none_test(test, dotted(orelse)) is True:
            other = without_none(other)
        return union(values, other)

    def _boolean(self, op: ast.boolop, parts: list[ast.expr], scope: Scope) -> Values:
        *first, last = (self.evaluate(part, scope) for part in parts)
        if isinstance(op, ast.Or):
            kept = (
                tuple(v for v in without_none(values) if not (isinstance(v, Const) and not v.value)) for values in first
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
