"""Sessions of requests that give every request a timeout: by their class, an adapter, or a replaced `request`."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from enum import IntEnum
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from deadlint.index.scopes import dotted
from deadlint.index.values import Class, External, Function, Object, Partial, Result, Value, Values
from deadlint.site import Site, targets_of

if TYPE_CHECKING:
    from deadlint.index.module import Module
    from deadlint.index.scopes import Scope

_SENDING = ("request", "send")
# Adapters that send as requests does, or reach nothing remote.
_PLAIN_ADAPTERS = ("requests.HTTPAdapter", "requests.adapters.BaseAdapter")


class Default(IntEnum):
    """Whether a session gives a timeout to a request that has none."""

    NO = 0
    UNKNOWN = 1
    YES = 2


def default_of(site: Site) -> Default:
    """What the session of this call does for a request without a timeout."""
    receiver = site.target.receiver
    found = Default.NO
    for root in _modules(receiver, site):
        for owner, default in _changes(root, site.module):
            if _same(owner, receiver) or owner == External("requests.Session"):
                found = max(found, default)
    match receiver:
        case Object(cls=cls) | Class(scope=cls):
            return max(found, _class_default(cls, site))
        case Result(scope=scope) if scope is not None and _configured(scope, site.module):
            return Default.YES
    return found


def _modules(receiver: Value | None, site: Site) -> set[Scope]:
    """The modules that may change a session: where it is used, and where it is made."""
    match receiver:
        case Object(cls=scope) | Class(scope=scope):
            return {site.module.scope, scope.module}
        case Result(scope=scope) if scope is not None:
            return {site.module.scope, scope.module}
    return {site.module.scope}


def _same(owner: Value, receiver: Value | None) -> bool:
    """Whether a change to one is a change to the other; what a class does to itself holds for its objects."""
    match owner, receiver:
        case Object(cls=one), Object(cls=other):
            return one is other
    return owner == receiver


def overridden(site: Site) -> bool:
    """Whether the call is a session class's own `super().request(…)`, whose callers decide on the timeout."""
    function = site.function
    match site.call.func:
        case ast.Attribute(value=ast.Call(func=ast.Name(id="super")), attr=attr):
            return function is not None and function.owner is not None and function.name == attr in _SENDING
    return False


def _configured(scope: Scope, module: Module) -> bool:
    """Whether a class or factory is one of those that the configuration says set a default."""
    return is_named(scope, module, module.settings.wrappers.sessions)


def is_named(scope: Scope, module: Module, names: tuple[str, ...]) -> bool:
    """Whether a definition of the file is one of these dotted names (`package.module.name`)."""
    path = (
        (scope.module.path or module.source.path)
        .replace("\\", "/")
        .removesuffix(".py")
        .removesuffix("/__init__")
        .replace("/", ".")
    )
    full = f".{path}.{scope.qualified_name}"
    return any(full.endswith(f".{name}") for name in names)


def _class_default(cls: Scope, site: Site) -> Default:
    module = site.module
    resolver = module.resolver
    if _configured(cls, module):
        return Default.YES
    for name in _SENDING:
        method = resolver.method(cls, name)
        through = method is not None and not _calls_super(site, name)
        if method is not None and through and sets_timeout(method):
            return Default.YES
    for base in resolver.mro(cls):
        if isinstance(base, External):
            continue
        for method in base.functions:
            first = next(method.parameters(), None)
            for name in _SENDING:
                for binding, where in method.attributes.get((first.arg if first else "", name), ()):
                    if binding.value is not None and _replacement(binding.value, where, module) is Default.YES:
                        return Default.YES
    return Default.NO


def _calls_super(site: Site, name: str) -> bool:
    match site.call.func:
        case ast.Attribute(value=ast.Call(func=ast.Name(id="super")), attr=attr):
            return attr == name
    return False


def sets_timeout(function: Scope) -> bool:
    """Whether a function puts a timeout of its own where its caller gave none."""
    default = function.default_of("timeout")
    return (default is not None and _something(default)) or writes_timeout(function)


def writes_timeout(function: Scope) -> bool:
    """Whether the body of a function gives a timeout that is more than its caller's."""
    parameters = {p.arg for p in function.parameters()}
    return any(_is_default(node, parameters) for node in ast.walk(function.node))


def _is_default(node: ast.AST, parameters: set[str]) -> bool:
    match node:
        case ast.Call(func=ast.Attribute(attr="setdefault"), args=[ast.Constant(value="timeout"), value]):
            return _something(value)
        case ast.Assign(targets=targets, value=value):
            return any(_is_timeout(target) for target in targets) and _something(value)
        case ast.AugAssign(target=target) | ast.AnnAssign(target=target):
            return _is_timeout(target)
        case ast.keyword(arg="timeout", value=ast.Name(id="timeout")):
            return "timeout" not in parameters
        case ast.keyword(arg="timeout", value=value):
            return _something(value)
        case ast.Dict(keys=keys, values=values):
            return any(
                isinstance(key, ast.Constant) and key.value == "timeout" and _something(value)
                for key, value in zip(keys, values, strict=True)
            )
    return False


def _is_timeout(target: ast.expr) -> bool:
    match target:
        case ast.Name(id="timeout") | ast.Subscript(slice=ast.Constant(value="timeout")):
            return True
    return False


def _something(value: ast.expr) -> bool:
    """Whether a value is more than None and than what the caller gave."""
    match value:
        case ast.Constant(value=None):
            return False
        case ast.Call(func=ast.Attribute(attr="get" | "pop"), args=[ast.Constant(value="timeout"), *default]):
            return any(_something(one) for one in default)
    return True


# --- what a file does to its sessions -------------------------------------------------------------------------

_CHANGES: WeakKeyDictionary[Scope, tuple[tuple[Value, Default], ...]] = WeakKeyDictionary()


def _changes(root: Scope, module: Module) -> tuple[tuple[Value, Default], ...]:
    """The sessions whose way to send the module of scope `root` changes, each with what the change does."""
    if root not in _CHANGES:
        scopes = tuple(_scopes(root, module))
        _CHANGES[root] = (*_mounted(scopes, module), *_replaced(scopes, module))
    return _CHANGES[root]


def _scopes(root: Scope, module: Module) -> Iterator[Scope]:
    pending = [root]
    while pending:
        scope = module.resolver.walked(pending.pop())
        yield scope
        pending.extend((*scope.functions, *scope.classes))


def _mounted(scopes: Sequence[Scope], module: Module) -> Iterator[tuple[Value, Default]]:
    mounts = (
        (call, scope)
        for scope in scopes
        for call in scope.calls
        if isinstance(call.func, ast.Attribute) and call.func.attr == "mount"
    )
    for call, scope in mounts:
        for target in targets_of(module.resolver.evaluate(call.func, scope)):
            session = target.receiver
            # Of a session that is only annotated nobody knows which one it is.
            unknown = isinstance(session, Result) and session.call is None
            if target.name != "requests.Session.mount" or session is None or unknown:
                continue
            site = Site(module, call, scope, (target,), target.name)
            prefix = site.argument("prefix", 0).constant
            if prefix is None or str(prefix.value).startswith("http"):
                for value in site.argument("adapter", 1).values:
                    yield session, _adapter_default(value, module)


def _adapter_default(adapter: Value, module: Module) -> Default:
    match adapter:
        case Object(cls=cls):
            send = module.resolver.method(cls, "send")
            return Default.YES if send is not None and sets_timeout(send) else Default.NO
        case Result(name=name) if name in _PLAIN_ADAPTERS:
            return Default.NO
        case Result(name=name):
            return Default.YES if "timeout" in name.lower() or "deadline" in name.lower() else Default.UNKNOWN
    return Default.UNKNOWN


def _replaced(scopes: Sequence[Scope], module: Module) -> Iterator[tuple[Value, Default]]:
    """Sessions with an assignment `session.request = …`."""
    for name in _SENDING:
        for owners, value, scope in assigned(scopes, name, module):
            default = _replacement(value, scope, module)
            yield from ((owner, default) for owner in owners if isinstance(owner, Result | Object | External))


def assigned(scopes: Sequence[Scope], attribute: str, module: Module) -> Iterator[tuple[Values, ast.expr, Scope]]:
    """Each assignment to `x.attribute`: what `x` may be, the value, and where it stands."""
    for scope in scopes:
        for (_, name), places in scope.attributes.items():
            for binding, _ in places if name == attribute else ():
                if binding.value is None or not isinstance(binding.node, ast.Assign):
                    continue
                for target in binding.node.targets:
                    if isinstance(target, ast.Attribute) and target.attr == attribute:
                        yield module.resolver.evaluate(target.value, scope), binding.value, scope


def _replacement(value: ast.expr, scope: Scope, module: Module) -> Default:
    """What a function does that takes the place of a session's `request`."""
    if isinstance(value, ast.Call) and dotted(value.func).endswith(("partial", "partialmethod")):
        return Default.YES if any(_is_default(keyword, set()) for keyword in value.keywords) else Default.NO
    found = [Default.NO]
    for one in module.resolver.evaluate(value, scope):
        match one:
            case Function(scope=function):
                found.append(Default.YES if sets_timeout(function) else Default.NO)
            case Partial(call=call):
                given = any(_is_default(keyword, set()) for keyword in call.keywords)
                found.append(Default.YES if given else Default.NO)
            case _:
                found.append(Default.UNKNOWN)
    return max(found)


def sets_attribute(value: Value, attribute: str, module: Module) -> bool:
    """Whether the file assigns to an attribute of what `value` is."""
    scopes = tuple(_scopes(module.scope, module))
    return any(value in owners for owners, _, _ in assigned(scopes, attribute, module))
