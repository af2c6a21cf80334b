"""What the text around a name says of it: branches that exclude each other, tests for None, decorators."""

from __future__ import annotations

import ast

from deadlint.index.known import DECLARED_FIELDS
from deadlint.index.scopes import Block, FunctionNode, Scope, dotted
from deadlint.index.values import NONE, UNKNOWN, Parameter, Result, Value, Values


def says_nothing(value: Value) -> bool:
    """Whether a value leaves its name to the annotation: not known, or the declaration of a field."""
    return value == UNKNOWN or (isinstance(value, Result) and value.name in DECLARED_FIELDS)


def may_be_none(values: Values) -> bool:
    return any(v == NONE or (isinstance(v, Parameter) and NONE in v.default) for v in values)


def first_parameter(function: Scope) -> str | None:
    if "staticmethod" in decorators_of(function):
        return None
    first = next(function.parameters(), None)
    return first.arg if first is not None else None


def takes_kwargs(function: Scope) -> bool:
    """Whether a function has a parameter for any keywords."""
    return isinstance(function.definition, FunctionNode | ast.Lambda) and function.definition.args.kwarg is not None


def is_decorated(function: Scope) -> bool:
    """Whether a function has decorators."""
    return isinstance(function.definition, FunctionNode) and bool(function.definition.decorator_list)


def decorators_of(function: Scope) -> set[str]:
    """The last names of a function's decorators."""
    if not isinstance(function.definition, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return set()
    names = set()
    for decorator in function.definition.decorator_list:
        target = decorator.func if isinstance(decorator, ast.Call) else decorator
        names.add(dotted(target).rpartition(".")[2])
    return names


def decorators_of_class(cls: Scope) -> set[str]:
    """The last names of a class's decorators."""
    if not isinstance(cls.definition, ast.ClassDef):
        return set()
    called = (d.func if isinstance(d, ast.Call) else d for d in cls.definition.decorator_list)
    return {dotted(target).rpartition(".")[2] for target in called}


def exclusive(one: Block, other: Block) -> bool:
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


def replaces_none(inner: Block, outer: Block) -> bool:
    """Whether `inner` is the body of an `if` that is entered where a name is None, below `outer`."""
    if inner.kind != "if" or inner is outer or not isinstance(inner.node, ast.If):
        return False
    test = inner.node.test
    return isinstance(test, (ast.UnaryOp, ast.Compare)) and is_none_test(test, None) is True


def is_none_test(test: ast.expr, name: str | None) -> bool | None:
    """True where `test` holds only if `name` is None (or empty), False where it excludes that, None otherwise."""

    def same(node: ast.expr) -> bool:
        return name is None or dotted(node) == name

    match test:
        case ast.Compare(left=left, ops=[op], comparators=[ast.Constant(value=None)]) if same(left):
            return True if isinstance(op, ast.Is | ast.Eq) else False if isinstance(op, ast.IsNot | ast.NotEq) else None
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            inner = is_none_test(operand, name)
            return None if inner is None else not inner
        case ast.BoolOp(op=ast.And(), values=parts):
            if any(is_none_test(part, name) is False for part in parts):
                return False
        case ast.Name() | ast.Attribute() if same(test):
            return False
        case ast.Call(func=ast.Name(id="isinstance"), args=[first, *_]) if same(first):
            return False
    return None


def leaves(body: list[ast.stmt]) -> bool:
    return bool(body) and isinstance(body[-1], ast.Return | ast.Raise | ast.Continue | ast.Break)
