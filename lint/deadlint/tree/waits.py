"""The leaves: calls that wait for something outside, with the limit that each has on this path."""

from __future__ import annotations

import ast
import os
import re
from dataclasses import replace
from typing import TYPE_CHECKING

from deadlint.index import limits, retries
from deadlint.index.blocking import WAITS, Wait
from deadlint.index.budgets import BUDGET
from deadlint.index.retries import Retries
from deadlint.index.scopes import dotted
from deadlint.index.values import NONE, Const, Function, Member, Result, Sequence, Template, Value, Values
from deadlint.site import Argument, Site
from deadlint.tree import worst
from deadlint.tree.amounts import Frame, amount, budget, drawn, plain
from deadlint.tree.model import Amount, Kind, Known, Mark, Node
from deadlint.tree.nodes import limited, place_of

if TYPE_CHECKING:
    from deadlint.index.module import Module

_HELPERS = {
    f"deadlint_budget.{name}": "process"
    for name in ("run", "check_output", "communicate", "wait", "run_async", "run_gdal")
} | {
    f"deadlint_budget.http.{name}": "request"
    for name in ("request", "get", "options", "head", "post", "put", "patch", "delete", "urlopen")
}  # fmt: skip
_CLIENTS = ("httpx.Client", "httpx.AsyncClient", "aiohttp.ClientSession")
_STATEMENT_LIMIT = re.compile(r"(?:statement_timeout|command_timeout)", re.IGNORECASE)
_NUMBER = re.compile(r"statement_timeout['\"]?\s*(?:=|TO\b|,|:)\s*['\"]?(\d+)\s*(ms|s|min|h)?\b", re.IGNORECASE)
_UNITS = {"": 0.001, "ms": 0.001, "s": 1.0, "min": 60.0, "h": 3600.0}
_LONGEST = 40  # characters of a name


def limit_of(site: Site, frame: Frame) -> Amount | None:
    """The limit that a call of `limits.INNER` gives, on this path; None where it gives none."""
    form = limits.INNER[site.name]
    return scaled(given(site, form.keyword, form.position, frame), form.scale)


def given(site: Site, keyword: str, position: int | None, frame: Frame) -> Amount | None:
    """What a call gives for a parameter that is a limit."""
    argument = site.argument(keyword, position)
    if argument.absent:
        return None
    if argument.node is not None:
        return amount(argument.node, site.scope, frame)
    return _of_values(argument)


def _of_values(argument: Argument) -> Amount | None:
    seconds = plain(argument.values)
    if seconds is not None:
        return Amount(seconds, Known.CONSTANT)
    return None if argument.values == (NONE,) else Amount(None, Known.UNKNOWN)


def scaled(found: Amount | None, scale: float) -> Amount | None:
    """The same in seconds."""
    if found is None or found.seconds is None or scale == 1.0:
        return found
    return replace(found, seconds=found.seconds * scale)


def as_amount(limit: limits.Limit) -> Amount:
    """A limit of the index that no parameter decides."""
    if limit.seconds is None:
        return Amount(None, Known.UNKNOWN)
    return Amount(limit.seconds, Known.DEFAULT if limit.default else Known.CONSTANT, limit.default)


def leaf(site: Site, frame: Frame) -> Node | None:
    """The node of a call that waits; None where it does not."""
    place = place_of(site.module, site.call)
    if site.name in _HELPERS:
        return _bounded(Node(_HELPERS[site.name], _shown(site), place), helper_limit(site, frame))
    if site.name == f"{BUDGET}.of":
        return _budget(Node("budget", _budget_name(site), place), site, frame)
    if site.name == f"{BUDGET}.sleep" and isinstance(site.call.func, ast.Attribute):
        whole = budget(site.call.func.value, site.scope, frame)
        wanted = given(site, "seconds", 0, frame)
        return _bounded(Node("sleep", _shown(site), place), drawn(whole, wanted) if whole is not None else wanted)
    wait = WAITS.get(site.name)
    if wait is None or _only_looks(site):
        return None
    node = Node(wait.layer, _shown(site), place)
    if wait.layer == "statement":
        return _bounded(node, _statement_limit(site, wait, frame))
    found = _limit(site, wait, frame)
    if found is not None and found.seconds == 0:
        return None
    if not wait.each_read or found is None:
        return _bounded(node, found)
    return _each_read(node, found, _sent_again(site))


def helper_limit(site: Site, frame: Frame) -> Amount | None:
    """The limit of a helper of `deadlint_budget`: what it wants, of the budget that it is given or that is around."""
    argument = site.argument("budget").node
    whole = budget(argument, site.scope, frame) if argument is not None else frame.ambient
    wanted = given(site, "want", None, frame) or given(site, "timeout", None, frame)
    return drawn(whole, wanted) if whole is not None else wanted


def _bounded(node: Node, limit: Amount | None) -> Node:
    if limit is not None:
        return limited(node, limit)
    mark = Mark(Kind.UNBOUNDED, "nothing bounds it")
    return replace(node, worst=worst.UNBOUNDED, inside=worst.UNBOUNDED, marks=(mark,))


def _sent_again(site: Site) -> Retries | None:
    """What urllib3's `Retry` on the session of a request says about sending it again."""
    mounts = site.name.startswith("requests.Session.") and ".mount(" in site.module.source.text
    return retries.of_session(site) if mounts else None


def _each_read(node: Node, limit: Amount, tried: Retries | None) -> Node:
    found = limited(node, limit, tried)
    mark = Mark(Kind.PER_READ, "its limit holds for each read, nothing bounds the whole")
    return replace(found, worst=worst.UNBOUNDED, inside=worst.UNBOUNDED, marks=(*found.marks, mark))


def _budget(node: Node, site: Site, frame: Frame) -> Node:
    """Where a budget begins: no time passes there."""
    return replace(node, limit=given(site, "seconds", 0, frame))


def _limit(site: Site, wait: Wait, frame: Frame) -> Amount | None:
    if wait.keyword is None:
        return None
    told = limits.in_arguments(site)
    if told is not None:
        own = given(site, wait.keyword, wait.position, frame)
        least = own is None or own.seconds is None or told.seconds < own.seconds
        return Amount(told.seconds, Known.CONSTANT, f"`{told.words}` in its arguments") if least else own
    argument = site.argument(wait.keyword, wait.position)
    if not argument.absent:
        return given(site, wait.keyword, wait.position, frame)
    client = site.target.receiver
    if isinstance(client, Result) and client.name in _CLIENTS and client.call is not None:
        for keyword in client.call.keywords:
            if keyword.arg == "timeout":
                return amount(keyword.value, client.scope or site.scope, frame)
            if keyword.arg is None:
                return Amount(None, Known.UNKNOWN)
    if wait.default is not None:
        return Amount(wait.default, Known.DEFAULT, f"default of {site.name.partition('.')[0]}")
    return None


def _only_looks(site: Site) -> bool:
    """Whether a call comes back at once, or waits for what is known to be done."""
    match site.name:
        case "queue.Queue.get" | "queue.SimpleQueue.get" | "multiprocessing.Queue.get":
            return site.argument("block", 0).constant == Const(False)
        case "fcntl.flock" | "fcntl.lockf":
            return any(word in ast.unparse(site.call) for word in ("LOCK_NB", "LOCK_UN"))
        case "concurrent.futures.Future.result":
            return _counted_where_submitted(site)
        case _ if site.name in limits.STATEMENTS:
            return limits.of_call(site) is not None  # it sets the limit
    return False


def _counted_where_submitted(site: Site) -> bool:
    """Whether a future is one of a function that is followed where it is submitted, or that nothing is known of."""
    future = site.target.receiver
    if not isinstance(future, Result) or future.call is None:
        return True
    submitted = future.call.args[:1]
    home = future.scope or site.scope
    return any(isinstance(v, Function) for node in submitted for v in site.module.resolver.evaluate(node, home))


# --- statements ----------------------------------------------------------------------------------------------


def _statement_limit(site: Site, wait: Wait, frame: Frame) -> Amount | None:
    """What bounds a statement: a helper around it, its own timeout, or what the file says of its session."""
    if frame.statement is not None:
        return frame.statement
    own = given(site, wait.keyword, None, frame) if wait.keyword is not None else None
    if own is not None:
        return own
    if site.module.settings.server_statement_timeout:
        return Amount(None, Known.UNKNOWN, "statement_timeout of the server")
    for text in _texts(site, frame):
        if _STATEMENT_LIMIT.search(text):
            return _of_text(text)
    return None


def _texts(site: Site, frame: Frame) -> list[str]:
    """The source of the file of a statement, and of those that make its connection."""
    modules: dict[Module, None] = {site.module: None}
    value: Value | None = site.target.receiver
    while value is not None:
        match value:
            case Result(receiver=receiver, scope=scope):
                module = frame.program.of(scope) if scope is not None else None
                if module is not None:
                    modules[module] = None
                value = receiver
            case Member(receiver=receiver):
                value = receiver
            case _:
                value = None
    return [module.source.text for module in modules]


def _of_text(text: str) -> Amount:
    """The limit that a file sets for its statements, where it names one number alone."""
    found = {float(number) * _UNITS[(unit or "").lower()] for number, unit in _NUMBER.findall(text)}
    if len(found) == 1 and 0.0 not in found:
        return Amount(found.pop(), Known.CONSTANT, "statement_timeout")
    return Amount(None, Known.UNKNOWN, "statement_timeout")


# --- names ---------------------------------------------------------------------------------------------------


def _shown(site: Site) -> str:
    """What a leaf is called: the program that it starts, else the call as it is written."""
    program = _program(site)
    text = program or dotted(site.call.func) or site.name
    return text if len(text) <= _LONGEST and text.isprintable() else site.name


def _program(site: Site) -> str:
    call: ast.Call | None = site.call
    receiver = site.target.receiver
    if site.name.endswith((".wait", ".communicate")) and isinstance(receiver, Result):
        call = receiver.call
    if not (site.name.startswith(("subprocess.", "asyncio.Process")) or site.name in _HELPERS or "system" in site.name):
        return ""
    if "http" in site.name or call is None or not call.args:
        return ""
    first = call.args[0]
    for value in site.module.resolver.evaluate(first, site.scope):
        match value:
            case Sequence(items=(head, *_)):
                found = _base(head)
            case _:
                found = _base((value,))
        if found:
            return found
    return ""


def _base(values: Values) -> str:
    """The name of a program from the first word of its command line."""
    for value in values:
        match value:
            case Const(value=str() as text):
                pass
            case Template(parts=(str() as text, *_)):
                pass
            case _:
                continue
        word = text.split()[0] if text.split() else ""
        if re.fullmatch(r"[\w.+@/-]{1,60}", word):
            return os.path.basename(word)
    return ""


def _budget_name(site: Site) -> str:
    match site.argument("name", 1).constant:
        case Const(value=str() as name):
            return name
    return "job"
