"""What a call returns: of something external, of a class or function of the project, of a partial."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from deadlint.index import defaults, fold
from deadlint.index.evaluation import Evaluation
from deadlint.index.flow import decorators_of, is_none_test
from deadlint.index.known import RETURNS, TRANSPARENT, canonical
from deadlint.index.scopes import Scope, dotted
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
    Super,
    Template,
    Value,
    Values,
    number,
    union,
    without_none,
)


class Results(Evaluation):
    """The part of a resolver that follows calls."""

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
            case Attached(function=changed, name="with_options" | "options"):
                return (changed,)  # the same task, with other options
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
        if name == "datetime.timedelta.total_seconds" and isinstance(receiver, Const):
            return (defaults.noted(Const(number(receiver)), receiver),)
        if defaults.reads_number(name):
            return self._settled(Result(name, node, receiver, scope)) or (UNKNOWN,)
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
        if defaults.reads_number(name):
            return self._settled(Result(name, node, None, scope)) or (UNKNOWN,)
        if name in ("builtins.int", "builtins.float") and len(args) == 1:
            folded: Values | None = fold.converted(name, self._as_set(self.evaluate(args[0], scope)))
        else:
            folded = fold.call(name, node, lambda n: self.evaluate(n, scope))
        if name == "builtins.str" and folded == (UNKNOWN,):
            return (Result(name, node, None, scope), UNKNOWN)  # of a path, say: the call tells who asks
        if folded is not None:
            return folded
        return (Result(RETURNS.get(name, name), node, None, scope),)

    def _as_set(self, values: Values) -> Values:
        """`values` with the defaults of settings in place of what reads them; without those that have none."""
        read = [v for v in values if isinstance(v, Result) and v.name in defaults.ENVIRONMENT]
        if not read:
            return values
        note = defaults.key_of(read[0], lambda n: self.evaluate(n, read[0].scope or self._module))
        others = tuple(defaults.marked(v, note) for v in values if v not in read and v != NONE)
        return union(*(self._settled(v) for v in read), others) or (UNKNOWN,)

    def _settled(self, value: Result) -> Values:
        """The default of a setting that a call reads; empty where there is none."""
        home = value.scope or self._module
        return defaults.of_setting(value, lambda n: self.evaluate(n, home))

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
        if inner.yields and not decorators_of(inner) & {"contextmanager", "asynccontextmanager", "fixture"}:
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
                        yield inner, excluded or (bool(name) and is_none_test(test, name) is answer)
            case ast.BoolOp(op=ast.Or(), values=[*first, last]):
                yield from ((part, True) for part in first)
                yield from self._parts(last, scope)
            case _:
                name = dotted(result)
                yield result, bool(name) and self.for_scope(scope)._guarded(name, result, scope)

    def _given(self, part: ast.expr, not_none: bool, function: Function, node: ast.Call, scope: Scope) -> Values:
        """What a returned expression is with the arguments of the call; without None where that is excluded."""
        found = union(*(self._substituted(v, function, node, scope) for v in self.evaluate(part, function.scope)))
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
