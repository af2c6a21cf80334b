"""Calls that hold their thread until something outside has happened, and what bounds each of them by itself."""

from __future__ import annotations

import ast
import re

from deadlint.index.blocking import DATABASES, LOCKS, SLEEP, THREADS
from deadlint.index.values import NONE, Const, Result, number
from deadlint.site import Site

from deadlint_rules._gdal import POSITIONS as GDAL
from deadlint_rules._http import REQUESTS, URLLIB3, URLOPEN, VERBS
from deadlint_rules._limits import seconds
from deadlint_rules._processes import RUNS, Given, limit_given

_PROCESSES = RUNS | {
    "subprocess.getoutput", "subprocess.getstatusoutput", "os.system", "subprocess.Popen.wait",
    "subprocess.Popen.communicate", "deadlint_budget.run", "deadlint_budget.check_output", "deadlint_budget.wait",
    "deadlint_budget.communicate",
}  # fmt: skip
_HTTP = frozenset(
    {*REQUESTS, *URLOPEN, *URLLIB3, "urllib.request.urlretrieve"}
    | {f"{base}.{verb}" for base in ("httpx", "httpx.Client") for verb in (*VERBS, "request", "stream")}
)
BLOCKING = frozenset({SLEEP}) | _PROCESSES | _HTTP | DATABASES | frozenset(THREADS) | frozenset(GDAL) | LOCKS

# What occurs in every file that can call one of them, the calls' own module left to the resolver.
WORDS = (
    ("time.sleep",), ("from time import",), ("import requests",), ("from requests",), ("urllib",), ("httpx",),
    ("subprocess", "import"), ("os.system",), ("psycopg",), ("sqlalchemy", "execute"), ("sqlalchemy", ".scalar"),
    ("gdal.",), ("queue", "Queue"), ("threading", ".wait("), ("threading", ".join("), ("multiprocessing", ".join("),
    ("concurrent", ".result("), ("concurrent", "wait("), ("fcntl",), ("filelock",),
)  # fmt: skip


def blocks(site: Site) -> bool:
    """Whether a call to one of `BLOCKING` really waits, and not only looks."""
    match site.name:
        case "queue.Queue.get" | "queue.SimpleQueue.get" | "multiprocessing.Queue.get":
            return site.argument("block", 0).constant != Const(False) and _timeout(site, 1) != 0
        case "fcntl.flock" | "fcntl.lockf":
            return not _mentions(site, "LOCK_NB", "LOCK_UN")
        case "concurrent.futures.Future.result":
            # Of one that is only annotated it is not known whether it has a result by now.
            return (
                isinstance(site.target.receiver, Result)
                and site.target.receiver.call is not None
                and not _known_to_be_done(site)
            )
    position = THREADS.get(site.name)
    return position is None or _timeout(site, position) != 0


def _timeout(site: Site, position: int) -> float | None:
    constant = site.argument("timeout", position).constant
    return number(constant) if constant is not None else None


def _mentions(site: Site, *names: str) -> bool:
    return any(isinstance(n, ast.Attribute | ast.Name) and ast.unparse(n).endswith(names) for n in ast.walk(site.call))


_DONE = re.compile(r"(^|\.)(done|as_completed|wrap_future|add_done_callback)$|^(concurrent\.)?futures\.wait$|^wait$")


def _known_to_be_done(site: Site) -> bool:
    """Whether the function asks or has waited for the future before."""
    return any(_DONE.search(ast.unparse(call.func)) for call in site.scope.calls)


def length(site: Site) -> float | None:
    """The seconds after which a blocking call comes back by itself, where that is a known number."""
    argument = site.argument("seconds", 0) if site.name == SLEEP else site.argument("timeout", _position(site))
    return number(argument.constant) if argument.constant is not None else None


def bounded(site: Site) -> bool:
    """Whether a blocking call has a limit of its own, also one that is not known."""
    if site.name == SLEEP or site.name.startswith("deadlint_budget."):
        return True
    if site.name in DATABASES | LOCKS or site.name in GDAL or site.name == "os.system":
        return False
    argument = site.argument("timeout", _position(site))
    return limit_given(site, "timeout", _position(site)) is not Given.NO or argument.values not in ((), (NONE,))


def _position(site: Site) -> int | None:
    if site.name in THREADS:
        return THREADS[site.name]
    form = (REQUESTS | URLOPEN).get(site.name)
    return (
        form.position
        if form is not None
        else {"subprocess.Popen.wait": 0, "subprocess.Popen.communicate": 1}.get(site.name)
    )


def shown(site: Site) -> str:
    """How messages call a blocking call: as it is written, with its limit where that is known."""
    text = ast.unparse(site.call.func)
    text = text if len(text) <= 40 and text.isprintable() else site.name
    bound = length(site)
    return f"`{text}` ({seconds(bound)})" if bound is not None else f"`{text}`"


__all__ = ["BLOCKING", "DATABASES", "SLEEP", "WORDS", "blocks", "bounded", "length", "shown"]
