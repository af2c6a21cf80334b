"""Handlers that wait for an exception which the expiry of a limit does not raise."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from deadlint.index import limits
from deadlint.index.values import External
from deadlint.site import Site, Target

# What returns when time is up, and raises nothing.
SILENT = frozenset(
    {
        "asyncio.wait", "concurrent.futures.wait", "threading.Thread.join", "threading.Event.wait",
        "threading.Condition.wait", "multiprocessing.Process.join", "select.select",
    }
)  # fmt: skip
# What the expiry of these raises instead of TimeoutError.
_OTHERS = (
    (
        "subprocess.",
        "subprocess.TimeoutExpired",
        frozenset({"subprocess.TimeoutExpired", "subprocess.SubprocessError"}),
    ),
    (
        "requests.",
        "requests.Timeout",
        frozenset(
            f"{base}.{name}"
            for base in ("requests", "requests.exceptions")
            for name in ("Timeout", "ReadTimeout", "ConnectTimeout", "RequestException", "ConnectionError")
        ) | {"builtins.OSError", "builtins.IOError"},
    ),
    (
        "httpx.",
        "httpx.TimeoutException",
        frozenset({"httpx.TimeoutException", "httpx.TransportError", "httpx.RequestError", "httpx.HTTPError"}),
    ),
    ("queue.Queue.get", "queue.Empty", frozenset({"queue.Empty"})),
    ("queue.Queue.put", "queue.Full", frozenset({"queue.Full"})),
)  # fmt: skip
RAISING = frozenset({"queue.Queue.get", "queue.Queue.put"}) | frozenset(
    name
    for name in limits.INNER
    if name.startswith(("subprocess.", "requests.", "httpx.")) and not name.startswith("httpx.AsyncClient")
)
_TIMEOUTS = frozenset(
    {
        "builtins.TimeoutError", "asyncio.TimeoutError", "asyncio.exceptions.TimeoutError",
        "concurrent.futures.TimeoutError", "socket.timeout",
    }
)  # fmt: skip
_ALL = frozenset({"builtins.Exception", "builtins.BaseException"})


def deaf_handler(site: Site) -> tuple[ast.ExceptHandler, str] | None:
    """The handler around a call that waits for TimeoutError in vain, and what the call raises (or nothing)."""
    raised, caught = "", frozenset[str]()
    if site.name not in SILENT:
        prefix = next((p for p in _OTHERS if site.name.startswith(p[0])), None)
        if prefix is None:
            return None
        _, raised, caught = prefix
    inner: ast.AST = site.call
    for node in site.ancestors():
        if isinstance(node, ast.Try) and inner in node.body:
            return _handler(node, site, raised, caught)
        if isinstance(node, ast.With | ast.AsyncWith):
            return None  # a scope in between may raise it
        inner = node
    return None


def _handler(node: ast.Try, site: Site, raised: str, caught: frozenset[str]) -> tuple[ast.ExceptHandler, str] | None:
    if any(not _is_harmless(call, site) for call in _calls(node.body) if call is not site.call):
        return None
    names = [_caught(handler, site) for handler in node.handlers]
    if any(one is None or one & (_ALL | caught) for one in names):
        return None
    deaf = (h for h, one in zip(node.handlers, names, strict=True) if one is not None and one <= _TIMEOUTS)
    handler = next(deaf, None)
    return (handler, raised) if handler is not None else None


def _caught(handler: ast.ExceptHandler, site: Site) -> frozenset[str] | None:
    """The names of what a handler catches; None where one is not known."""
    if handler.type is None:
        return _ALL
    parts = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    found = set()
    for part in parts:
        for value in site.values(part):
            if not isinstance(value, External):
                return None
            found.add(value.name)
    return frozenset(found)


def _calls(body: list[ast.stmt]) -> Iterator[ast.Call]:
    for statement in body:
        for node in ast.walk(statement):
            if isinstance(node, ast.Call):
                yield node


def _is_harmless(call: ast.Call, site: Site) -> bool:
    """Whether another call in the block certainly raises no TimeoutError."""
    targets = site.module.targets(call)
    names = [t.name for t in targets]
    return bool(names) and all(name.startswith(("builtins.", "str.", "dict.", "logging.", "json.")) for name in names)


def has_limit(site: Site) -> bool:
    """Whether the call is given a limit at all."""
    positions = {"asyncio.wait": 1, "select.select": 3, "queue.Queue.get": 1, "queue.Queue.put": 2}
    if site.name in limits.INNER:
        return limits.of_call(Site(site.module, site.call, site.scope, (Target(site.name),), site.name)) is not None
    position = positions.get(site.name, 1 if site.name.endswith("futures.wait") else 0)
    argument = site.argument("timeout", position)
    return not argument.absent and not (argument.constant is not None and argument.constant.value is None)
