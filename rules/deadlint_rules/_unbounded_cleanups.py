"""Waits without a limit in what is done because a limit is over."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from deadlint.index.values import Const
from deadlint.model import Level
from deadlint.site import Site

from deadlint_rules._async_limits import is_coroutine
from deadlint_rules._cleanups import Cleanup, Place, cleanup_of, told_to_end
from deadlint_rules._processes import RUNS, Given, commands_of, in_wrapper, limit_given, stopped_by_signal

# Waits for something else of this process, and where they take a timeout.
WAITS = {
    "threading.Thread.join": 0, "multiprocessing.Process.join": 0, "concurrent.futures.Future.result": 0,
    "concurrent.futures.wait": 1, "queue.Queue.get": 1, "multiprocessing.Queue.get": 1, "psutil.Process.wait": 0,
}  # fmt: skip
# Waits that cannot be given one.
ENDLESS = frozenset({"queue.Queue.join", "multiprocessing.JoinableQueue.join", "multiprocessing.Pool.join"})
SHUTDOWNS = frozenset(
    {"concurrent.futures.ThreadPoolExecutor.shutdown", "concurrent.futures.ProcessPoolExecutor.shutdown"}
)
PROCESSES = RUNS | {"os.system", "subprocess.getoutput", "subprocess.getstatusoutput"}
AWAITED = frozenset({"asyncio.Queue.join", "asyncpg.Connection.close", "asyncpg.Pool.close"})
PIPES = frozenset(
    {
        "asyncio.Process.stdout.read", "asyncio.Process.stderr.read", "subprocess.Popen.stdout.read",
        "subprocess.Popen.stderr.read",
    }
)  # fmt: skip
_KILLED = frozenset({"kill", "killpg", "terminate", "send_signal"})


@dataclass(frozen=True, slots=True)
class Unbounded:
    """A wait without a limit in a clean-up; `cleanup` is None on a kill path that stands alone."""

    cleanup: Cleanup | None
    how: str
    level: Level


def unbounded_cleanup(site: Site) -> Unbounded | None:
    """What is wrong with a call that waits without a limit because one is over; None where it is none."""
    if site.scope.kind not in ("function", "module") or site.target.partial is not None or in_wrapper(site):
        return None
    if is_coroutine(site.function) and site.name not in AWAITED | PIPES:
        return None  # it holds the event loop, which is another fault
    how = _how(site)
    if how is None:
        return None
    if site.name == "psutil.Process.wait":
        return Unbounded(cleanup_of(site), how, Level.DEFAULT) if _only_asked(site) else None
    cleanup = cleanup_of(site)
    if cleanup is None:
        return None
    if site.name in AWAITED and cleanup.place in (Place.BROAD, Place.FINALLY):
        return None  # where every connection is closed
    told = site.name not in PROCESSES and told_to_end(site)
    if site.name in PIPES and told_to_end(site, _KILLED):
        return None
    sure = cleanup.place in (Place.HANDLER, Place.AFTER) and not told and site.name not in AWAITED
    long = site.name in PROCESSES and commands_of(site).long_running
    return Unbounded(cleanup, how, Level.DEFAULT if sure or long else Level.STRICT)


def _how(site: Site) -> str | None:
    """What the call waits for, in words; None where it has a limit or does not wait."""
    name, text = site.name, _written(site)
    if name in RUNS:
        started = commands_of(site)
        if limit_given(site) is not Given.NO or started.bounded or stopped_by_signal(site):
            return None
        return f"{started.first.label} may run for ever"
    if name in PROCESSES:
        started = commands_of(site)
        return None if started.bounded or stopped_by_signal(site) else f"{started.first.label} may run for ever"
    if name in SHUTDOWNS:
        waits = site.argument("wait", 0).constant != Const(False) and not site.argument("wait", 0).unknown
        return f"`{text}` waits for all that the executor runs" if waits else None
    if name in WAITS:
        if limit_given(site, "timeout", WAITS[name]) is not Given.NO or _only_looks(site):
            return None
        return f"`{text}` waits without end"
    if name in PIPES:
        return None if site.call.args else f"`{text}` waits until the child has ended"
    if name in AWAITED and limit_given(site, "timeout", 0) is not Given.NO:
        return None
    return f"`{text}` waits without end"


def _only_looks(site: Site) -> bool:
    return site.name.endswith("Queue.get") and site.argument("block", 0).constant == Const(False)


def _only_asked(site: Site) -> bool:
    """Whether a process was asked to end before, by SIGTERM, and not killed."""
    return told_to_end(site, frozenset({"terminate"})) and not told_to_end(site, frozenset({"kill", "killpg"}))


def _written(site: Site) -> str:
    text = ast.unparse(site.call.func)
    return text if len(text) <= 40 and text.isprintable() else site.name
