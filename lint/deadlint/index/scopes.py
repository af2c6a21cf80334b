"""Scopes of a module: who binds which name where, and under which control flow.

A function's body is walked only when something asks for it: most functions of most files hold nothing of interest.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from deadlint.index.outline import Outline

if TYPE_CHECKING:
    from deadlint.index.evaluation import Evaluation
    from deadlint.index.module import Module

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef
BindingKind = Literal[
    "assign", "annotate", "import", "function", "class", "parameter", "iterate", "enter", "other"
]  # fmt: skip
MutationKind = Literal["item", "update", "setdefault", "unknown"]
Position = tuple[int, int]


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """A stretch of statements that run together: a body, one branch of an `if`, a handler, a loop."""

    parent: Block | None
    kind: Literal["body", "if", "else", "loop", "try", "handler", "finally", "case", "with"]
    node: ast.AST | None

    def chain(self) -> Iterator[Block]:
        """This block and those around it, innermost first."""
        block: Block | None = self
        while block is not None:
            yield block
            block = block.parent

    def within(self, other: Block) -> bool:
        """Whether this block is `other` or lies in it."""
        return any(block is other for block in self.chain())


@dataclass(frozen=True, slots=True, eq=False)
class Binding:
    """One place that binds a name. `value` is the expression that it is bound to, if that is plain."""

    kind: BindingKind
    position: Position
    block: Block
    value: ast.expr | None = None
    annotation: ast.expr | None = None
    node: ast.AST | None = None  # the def, class or parameter
    target: str = ""  # dotted name, of an import
    index: int | None = None  # the place in an unpacked tuple


@dataclass(frozen=True, slots=True, eq=False)
class Mutation:
    """A change to a dict that a name holds: `x["key"] = value`, `x.update(…)`, `x.setdefault("key", value)`."""

    kind: MutationKind
    position: Position
    block: Block
    key: ast.expr | None = None
    value: ast.expr | None = None
    call: ast.Call | None = None


@dataclass(eq=False, repr=False)
class Scope:
    """A module, class, function or lambda.

    What it holds is filled in by its `Walker` when something first asks for any of it: most functions of most files are
    never asked about, and to make all of these for each of them took a tenth of a cold run.
    """

    kind: Literal["module", "class", "function", "lambda"]
    definition: ast.AST  # its node; of a function that nothing asked about yet, perhaps without its body
    parent: Scope | None
    walker: Walker
    name: str = ""
    bindings: dict[str, list[Binding]] = field(init=False)
    attributes: dict[tuple[str, str], list[tuple[Binding, Scope]]] = field(init=False)
    mutations: dict[str, list[Mutation]] = field(init=False)
    calls: list[ast.Call] = field(init=False)
    blocks: dict[ast.AST, Block] = field(init=False)  # of statements
    functions: list[Scope] = field(init=False)
    classes: list[Scope] = field(init=False)
    returns: list[ast.expr] = field(init=False)
    yields: list[ast.expr | None] = field(init=False)
    outer_names: set[str] = field(init=False)  # declared global or nonlocal
    walked: bool = False
    resolver: Evaluation | None = None  # of a module: who evaluates what stands in it
    path: str | None = None  # of a module: its file
    home: Module | None = None  # of a module: what has it all
    outline: Outline | None = None  # of a function: what has its body, until that is asked for

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> object:
            # Only reached for what is not there yet.
            if name in _FILLED and not self.walked:
                self.walker.walk(self)
                return self.__dict__[name]
            raise AttributeError(name)

    def begin(self) -> None:
        """Make what `Walker` fills in."""
        self.walked = True
        self.bindings = defaultdict(list)
        self.attributes = defaultdict(list)
        self.mutations = defaultdict(list)
        self.calls = []
        self.blocks = {}
        self.functions = []
        self.classes = []
        self.returns = []
        self.yields = []
        self.outer_names = set()

    @property
    def inner(self) -> tuple[Scope, ...]:
        """The functions, lambdas and classes in it that are known so far."""
        return (*self.functions, *self.classes) if self.walked else ()

    def everything(self) -> Iterator[Scope]:
        """This scope and all in it; each is filled when the walk goes on below it."""
        pending = [self]
        while pending:
            scope = pending.pop()
            yield scope
            pending += (*scope.functions, *scope.classes)

    def known(self) -> Iterator[Scope]:
        """This scope and those in it that are known so far: nothing is parsed for it."""
        pending = [self]
        while pending:
            scope = pending.pop()
            yield scope
            pending += scope.inner

    @property
    def node(self) -> ast.AST:
        """The node, complete."""
        if self.outline is not None and isinstance(self.definition, FunctionNode):
            outline, self.outline = self.outline, None
            try:
                outline.complete(self.definition)
            except SyntaxError:
                self.walker.broken = True  # the file's own check says so
        return self.definition

    def mentions(self, word: str) -> bool:
        """Whether `word` occurs in a function, as far as that is known without parsing it."""
        if self.outline is None or not isinstance(self.definition, FunctionNode):
            return True
        span = self.outline.spans.get(self.definition.lineno)
        return span is None or self.outline.text.find(word, *span) >= 0

    def may_assign(self, name: str) -> bool:
        """Whether a function whose body is not parsed may assign to the dotted `name`."""
        span = self.span
        if span is None or self.outline is None:
            return False
        text = self.outline.text
        found = text.find(name, *span)
        while found >= 0:
            end = found + len(name)
            if not (text[end : end + 1].isalnum() or text[end : end + 1] == "_") and _may_assign(text, found, end):
                return True
            found = text.find(name, end, span[1])
        return False

    @property
    def span(self) -> tuple[int, int] | None:
        """Where in the text a function stands whose body was left out; None for any other."""
        if self.outline is None or not isinstance(self.definition, FunctionNode):
            return None
        return self.outline.spans.get(self.definition.lineno)

    @property
    def qualified_name(self) -> str:
        """Dotted, within the module: `Client.fetch`; empty for the module."""
        if self.parent is None:
            return ""
        above = self.parent.qualified_name
        return f"{above}.{self.name}" if above else self.name

    @property
    def owner(self) -> Scope | None:
        """The class of a method."""
        if self.kind == "function" and self.parent is not None and self.parent.kind == "class":
            return self.parent
        return None

    @property
    def module(self) -> Scope:
        """The outermost scope."""
        scope = self
        while scope.parent is not None:
            scope = scope.parent
        return scope

    def enclosing_function(self) -> Scope | None:
        """The innermost function that this scope is or lies in, lambdas left out."""
        scope: Scope | None = self
        while scope is not None and scope.kind != "function":
            scope = scope.parent
        return scope

    def parameters(self) -> Iterator[ast.arg]:
        """All parameters in order, with `*args` and `**kwargs`."""
        if isinstance(self.definition, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            args = self.definition.args
            yield from args.posonlyargs
            yield from args.args
            if args.vararg:
                yield args.vararg
            yield from args.kwonlyargs
            if args.kwarg:
                yield args.kwarg

    def default_of(self, name: str) -> ast.expr | None:
        """The default of a parameter, or None where it has none."""
        if not isinstance(self.definition, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            return None
        args = self.definition.args
        positional = [*args.posonlyargs, *args.args]
        for arg, default in zip(reversed(positional), reversed(args.defaults), strict=False):
            if arg.arg == name:
                return default
        for arg, keyword_default in zip(args.kwonlyargs, args.kw_defaults, strict=True):
            if arg.arg == name:
                return keyword_default
        return None


@dataclass(eq=False, repr=False)
class Walker:
    """Fills scopes. Shared by all scopes of one module: parents of nodes, and attribute bindings of names."""

    filled: list[Scope] = field(default_factory=list)  # scopes whose content is known, in the order in which it came
    parsed: list[Scope] = field(default_factory=list)  # scopes that were parsed, and perhaps not filled
    deferred: list[Scope] = field(default_factory=list)  # functions whose bodies were not parsed with the rest
    complete: bool = False  # whether what functions do to globals and attributes of globals is to be known
    broken: bool = False  # whether the body of a function could not be parsed
    parents: dict[ast.AST, ast.AST] = field(default_factory=dict)
    scope_of: dict[ast.AST, Scope] = field(default_factory=dict)  # of def, class, lambda and call nodes
    _assigned: dict[tuple[str, str], list[tuple[Binding, Scope]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    _sought: set[tuple[str, str]] = field(default_factory=set)

    def module(self, outline: Outline, package: str = "") -> Scope:
        """The scope of a module with its classes and functions, the latter not walked yet."""
        tree = outline.tree
        self._outline = None if outline.whole else outline
        scope = Scope("module", tree, None, self)
        self._package = package
        self.scope_of[tree] = scope
        self.walk(scope)
        return scope

    def walk(self, scope: Scope) -> Scope:
        """Fill `scope`, if that is not done yet."""
        if scope.walked:
            return scope
        scope.begin()
        self.filled.append(scope)
        late = scope.outline is not None
        body = Block(None, "body", scope.node)
        for parameter in scope.parameters():
            scope.bindings[parameter.arg].append(
                Binding("parameter", (0, 0), body, annotation=parameter.annotation, node=parameter)
            )
        match scope.node:
            case ast.Module() | ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
                self._body(scope, scope.node.body, body)
            case ast.Lambda():
                scope.returns.append(scope.node.body)
                self._expression(scope, scope.node.body, body, scope.node)
        if late and self.complete:
            for child in scope.inner:
                self.walk_all(child)
        return scope

    def walk_all(self, scope: Scope) -> None:
        """Fill `scope` and everything below it."""
        self.walk(scope)
        for child in scope.inner:
            self.walk_all(child)

    def walk_parsed(self) -> None:
        """Fill everything that is parsed by now."""
        while self.parsed:
            self.walk(self.parsed.pop())

    def walk_where(self, word: str) -> None:
        """Fill the functions whose source holds `word` and was not parsed yet."""
        if self.deferred:
            left = [scope for scope in self.deferred if scope.outline is not None]
            self.deferred = [scope for scope in left if not scope.mentions(word)]
            for scope in left:
                if scope.mentions(word):
                    self.walk_all(scope)

    def attribute_assigned(self, base: str, name: str) -> list[tuple[Binding, Scope]]:
        """The bindings of `base.name` in the module."""
        if self.complete and self.deferred and (base, name) not in self._sought:
            self._sought.add((base, name))
            text = f"{base}.{name}"
            for scope in self.deferred:
                if scope.may_assign(text):
                    self.walk_all(scope)
        return self._assigned.get((base, name), [])

    def attributes_named(self, name: str) -> list[tuple[str, Binding, Scope]]:
        """The bindings of an attribute of this name, each with what it is one of."""
        self.walk_where(f".{name}")
        return [
            (base, binding, scope)
            for (base, attribute), found in self._assigned.items()
            if attribute == name
            for binding, scope in found
        ]

    def _body(self, scope: Scope, statements: Iterable[ast.stmt], block: Block) -> None:
        for statement in statements:
            self._statement(scope, statement, block)

    def _statement(self, scope: Scope, node: ast.stmt, block: Block) -> None:
        scope.blocks[node] = block
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                self._definition(scope, node, block)
            case ast.ClassDef():
                self._class(scope, node, block)
            case ast.If():
                self._expression(scope, node.test, block, node)
                self._nested(scope, node, node.body, Block(block, "if", node))
                self._nested(scope, node, node.orelse, Block(block, "else", node))
            case ast.For() | ast.AsyncFor():
                self._expression(scope, node.iter, block, node)
                inner = Block(block, "loop", node)
                self._bind(scope, node.target, "iterate", node.iter, inner, node)
                self._nested(scope, node, node.body, inner)
                self._nested(scope, node, node.orelse, Block(block, "else", node))
            case ast.While():
                inner = Block(block, "loop", node)
                self._expression(scope, node.test, inner, node)
                self._nested(scope, node, node.body, inner)
                self._nested(scope, node, node.orelse, Block(block, "else", node))
            case ast.With() | ast.AsyncWith():
                for item in node.items:
                    self.parents[item] = node
                    self._expression(scope, item.context_expr, block, item)
                    if item.optional_vars is not None:
                        self._bind(scope, item.optional_vars, "enter", item.context_expr, block, node)
                self._nested(scope, node, node.body, block)
            case ast.Try() | ast.TryStar():
                self._try(scope, node, block)
            case ast.Match():
                self._expression(scope, node.subject, block, node)
                for case in node.cases:
                    self.parents[case] = node
                    inner = Block(block, "case", case)
                    self._pattern(scope, case.pattern, inner, node.subject)
                    if case.guard is not None:
                        self._expression(scope, case.guard, inner, case)
                    self._nested(scope, case, case.body, inner)
            case _:
                self._simple(scope, node, block)

    def _nested(self, scope: Scope, parent: ast.AST, body: list[ast.stmt], block: Block) -> None:
        for statement in body:
            self.parents[statement] = parent
        self._body(scope, body, block)

    def _try(self, scope: Scope, node: ast.Try | ast.TryStar, block: Block) -> None:
        inner = Block(block, "try", node)
        self._nested(scope, node, node.body, inner)
        for handler in node.handlers:
            self.parents[handler] = node
            caught = Block(block, "handler", handler)
            if handler.type is not None:
                self._expression(scope, handler.type, caught, handler)
            if handler.name is not None:
                position = (handler.lineno, handler.col_offset)
                scope.bindings[handler.name].append(Binding("other", position, caught, node=handler))
            self._nested(scope, handler, handler.body, caught)
        self._nested(scope, node, node.orelse, inner)
        self._nested(scope, node, node.finalbody, Block(block, "finally", node))

    def _simple(self, scope: Scope, node: ast.stmt, block: Block) -> None:
        match node:
            case ast.Import() | ast.ImportFrom():
                self._import(scope, node, block)
            case ast.Assign():
                self._expression(scope, node.value, block, node)
                for target in node.targets:
                    self._bind(scope, target, "assign", node.value, block, node)
            case ast.AnnAssign():
                if node.value is not None:
                    self._expression(scope, node.value, block, node)
                self._bind(
                    scope, node.target, "assign" if node.value else "annotate", node.value, block, node,
                    annotation=node.annotation,
                )  # fmt: skip
            case ast.AugAssign():
                self._expression(scope, node.value, block, node)
                self._augment(scope, node, block)
            case ast.Return():
                if node.value is not None:
                    scope.returns.append(node.value)
                    self._expression(scope, node.value, block, node)
            case ast.Global() | ast.Nonlocal():
                scope.outer_names.update(node.names)
            case ast.Delete():
                for target in node.targets:
                    self._expression(scope, target, block, node)
                    if isinstance(target, ast.Name):
                        scope.bindings[target.id].append(Binding("other", _end(node), block))
                    elif isinstance(target, ast.Subscript):
                        name = dotted(target.value)
                        if name:
                            scope.mutations[name].append(Mutation("unknown", _end(node), block))
            case _:
                for child in ast.iter_child_nodes(node):
                    if isinstance(child, ast.expr):
                        self._expression(scope, child, block, node)

    def _augment(self, scope: Scope, node: ast.AugAssign, block: Block) -> None:
        """`x |= {…}` updates, `x += …` makes the sum of what it was and more; what others leave is unknown."""
        name = dotted(node.target)
        if name and isinstance(node.op, ast.BitOr):
            scope.mutations[name].append(Mutation("update", _end(node), block, value=node.value))
        elif isinstance(node.target, ast.Name):
            home = self._target_scope(scope, node.target.id)
            total = self._sum(node) if home is scope and isinstance(node.op, ast.Add) else None
            kind: BindingKind = "assign" if total is not None else "other"
            home.bindings[node.target.id].append(Binding(kind, _end(node), block, total, node=node))

    def _sum(self, node: ast.AugAssign) -> ast.expr:
        """`x + more` for `x += more`, placed where the statement begins, so that `x` is what it was before."""
        assert isinstance(node.target, ast.Name)
        before = ast.copy_location(ast.Name(node.target.id, ast.Load()), node.target)
        total = ast.copy_location(ast.BinOp(before, node.op, node.value), node)
        self.parents[before] = total
        self.parents[total] = node
        return total

    def _definition(self, scope: Scope, node: FunctionNode, block: Block) -> None:
        for decorator in node.decorator_list:
            self._expression(scope, decorator, block, node)
        args = node.args
        for default in (*args.defaults, *(d for d in args.kw_defaults if d is not None)):
            self._expression(scope, default, block, node)
        inner = Scope("function", node, scope, self, node.name)
        if self._outline is not None and node.lineno in self._outline.spans:
            inner.outline = self._outline
            self.deferred.append(inner)
        else:
            self.parsed.append(inner)
        self.scope_of[node] = inner
        scope.functions.append(inner)
        self._target_scope(scope, node.name).bindings[node.name].append(
            Binding("function", _start(node), block, node=node)
        )

    def _class(self, scope: Scope, node: ast.ClassDef, block: Block) -> None:
        for expression in (*node.decorator_list, *node.bases, *(k.value for k in node.keywords)):
            self._expression(scope, expression, block, node)
        inner = Scope("class", node, scope, self, node.name)
        self.scope_of[node] = inner
        scope.classes.append(inner)
        scope.bindings[node.name].append(Binding("class", _start(node), block, node=node))
        self.walk(inner)

    def _import(self, scope: Scope, node: ast.Import | ast.ImportFrom, block: Block) -> None:
        for alias in node.names:
            if isinstance(node, ast.Import):
                name = alias.asname or alias.name.partition(".")[0]
                target = alias.name if alias.asname else name
            else:
                origin = self._origin(node)
                name = alias.asname or alias.name
                target = f"{origin}.{alias.name}" if origin else alias.name
            self._target_scope(scope, name).bindings[name].append(
                Binding("import", _start(node), block, node=node, target=target)
            )

    def _origin(self, node: ast.ImportFrom) -> str:
        """The dotted module that a `from` import names; relative ones against the module's package."""
        if not node.level:
            return node.module or ""
        parts = self._package.split(".") if self._package else []
        above = parts[: len(parts) - node.level + 1] if parts else []
        # Unknown packages keep a leading dot, so that `from .requests import get` is never the real one.
        return ".".join([*(above or ["." * node.level]), *([node.module] if node.module else [])])

    def _bind(
        self,
        scope: Scope,
        target: ast.expr,
        kind: BindingKind,
        value: ast.expr | None,
        block: Block,
        node: ast.AST,
        *,
        annotation: ast.expr | None = None,
        index: int | None = None,
    ) -> None:
        position = _end(node) if kind == "assign" else _start(target)
        match target:
            case ast.Name(id=name):
                owner = self._target_scope(scope, name)
                if kind == "assign":
                    self.parents[target] = node
                owner.bindings[name].append(
                    Binding(kind, position, block, value, annotation, node=node, index=index)
                )
            case ast.Attribute():
                self._expression(scope, target.value, block, target)
                self.parents[target] = node
                base = dotted(target.value)
                if base:
                    binding = Binding(kind, position, block, value, annotation, node=node, index=index)
                    scope.attributes[base, target.attr].append((binding, scope))
                    self._assigned[base, target.attr].append((binding, scope))
            case ast.Subscript():
                self._expression(scope, target, block, node)
                base = dotted(target.value)
                if base:
                    scope.mutations[base].append(Mutation("item", position, block, target.slice, value))
            case ast.Tuple() | ast.List():
                for i, element in enumerate(target.elts):
                    place = i if index is None and value is not None else None
                    if isinstance(element, ast.Starred):
                        self._bind(scope, element.value, "other", None, block, node)
                    else:
                        self._bind(
                            scope, element, kind if place is not None else "other",
                            value if place is not None else None, block, node, index=place,
                        )  # fmt: skip
            case ast.Starred():
                self._bind(scope, target.value, "other", None, block, node)

    def _target_scope(self, scope: Scope, name: str) -> Scope:
        if name in scope.outer_names:
            above = scope.parent
            while above is not None and above.kind == "class":
                above = above.parent
            while above is not None and above.parent is not None and name not in above.bindings:
                above = above.parent
            return above or scope
        return scope

    def _pattern(self, scope: Scope, pattern: ast.pattern, block: Block, subject: ast.expr) -> None:
        for node in ast.walk(pattern):
            name = getattr(node, "name", None) or getattr(node, "rest", None)
            if isinstance(name, str):
                value = subject if node is pattern else None
                kind: BindingKind = "assign" if value is not None else "other"
                scope.bindings[name].append(Binding(kind, _start(pattern), block, value, node=pattern))

    def _expression(self, scope: Scope, node: ast.expr, block: Block, parent: ast.AST) -> None:
        """Record calls, parents, walrus bindings, yields and the changes to dicts in an expression."""
        parents = self.parents
        parents[node] = parent
        stack: list[ast.AST] = [node]
        while stack:
            current = stack.pop()
            kind = type(current)
            if kind is ast.Name or kind is ast.Constant:
                continue
            if kind is ast.Lambda:
                assert isinstance(current, ast.Lambda)
                inner = Scope("lambda", current, scope, self, "<lambda>")
                self.parsed.append(inner)
                self.scope_of[current] = inner
                scope.functions.append(inner)
                for default in (*current.args.defaults, *(d for d in current.args.kw_defaults if d)):
                    parents[default] = current
                    stack.append(default)
                continue
            if kind is ast.Call:
                assert isinstance(current, ast.Call)
                self._call(scope, current, block)
            elif kind is ast.NamedExpr:
                assert isinstance(current, ast.NamedExpr)
                self._bind(scope, current.target, "assign", current.value, block, current)
            elif kind is ast.Yield or kind is ast.YieldFrom:
                scope.yields.append(current.value if isinstance(current, ast.Yield) else None)
            elif kind is ast.comprehension:
                assert isinstance(current, ast.comprehension)
                self._bind(scope, current.target, "iterate", current.iter, block, current.target)
            for name in current._fields:
                value = getattr(current, name, None)
                if isinstance(value, ast.AST):
                    if isinstance(value, (ast.expr, ast.comprehension, ast.keyword)):
                        parents[value] = current
                        stack.append(value)
                elif isinstance(value, list):
                    for item in value:
                        if isinstance(item, ast.AST):
                            parents[item] = current
                            stack.append(item)

    def _call(self, scope: Scope, node: ast.Call, block: Block) -> None:
        scope.calls.append(node)
        self.scope_of[node] = scope
        scope.blocks[node] = block
        if isinstance(node.func, ast.Attribute) and node.func.attr in _DICT_CHANGES:
            name = dotted(node.func.value)
            if not name:
                return
            match node:
                case ast.Call(func=ast.Attribute(attr="update")):
                    change = Mutation("update", _end(node), block, call=node)
                case ast.Call(func=ast.Attribute(attr="setdefault"), args=[key, value]):
                    change = Mutation("setdefault", _end(node), block, key, value)
                case ast.Call(func=ast.Attribute(attr="pop"), args=[ast.Constant(), *_]):
                    # Taking out a key that is handed over on its own changes nothing for the rest.
                    change = Mutation("unknown", _end(node), block, node.args[0])
                case _:
                    change = Mutation("unknown", _end(node), block)
            scope.mutations[name].append(change)


def _may_assign(text: str, start: int, end: int) -> bool:
    """Whether the line around an attribute may assign to it: `x.y = …`, `a, x.y = …`, `as x.y`, `for x.y in`."""
    stop = text.find("\n", end)
    after = text[end : stop if stop >= 0 else len(text)].lstrip()
    if after.startswith(":") or " in " in after:
        return True
    if after.startswith("(") or not after:
        return False
    sign = after.find("=")
    if sign >= 0 and after[sign : sign + 2] != "==" and after[sign - 1 : sign] not in ("!", "<", ">"):
        return True
    return " as " in text[text.rfind("\n", 0, start) + 1 : start]


_DICT_CHANGES = frozenset({"update", "setdefault", "pop", "popitem", "clear"})


_FILLED = frozenset({
    "bindings", "attributes", "mutations", "calls", "blocks", "functions", "classes", "returns", "yields",
    "outer_names",
})  # fmt: skip


def dotted(node: ast.expr) -> str:
    """`a.b.c` for a chain of names, else an empty text."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return ""
    parts.append(node.id)
    return ".".join(reversed(parts))


def _start(node: ast.AST) -> Position:
    return (getattr(node, "lineno", 0), getattr(node, "col_offset", 0))


def _end(node: ast.AST) -> Position:
    return (getattr(node, "end_lineno", 0) or 0, getattr(node, "end_col_offset", 0) or 0)
