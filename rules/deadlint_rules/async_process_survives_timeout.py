"""DL106: a limit of asyncio around a wait for a child, whose expiry does not end the child."""

from __future__ import annotations

from collections.abc import Iterator

from deadlint.graph import Around
from deadlint.index.scopes import dotted
from deadlint.model import Level
from deadlint.rule import Rule
from deadlint.site import Report, Site

from deadlint_rules._async_limits import around, expiry_of
from deadlint_rules._kill_paths import Kill, Names, Paths, State, TooMany
from deadlint_rules._limits import places, seconds
from deadlint_rules._process_owners import handed_over, owner_of
from deadlint_rules._processes import ASYNC, Child, child_of, in_wrapper

_WAITS = frozenset({f"{ASYNC}.wait", f"{ASYNC}.communicate"})


class AsyncProcessSurvivesTimeout(Rule):
    """`wait_for` or `timeout` ends the wait for an asyncio child, and nothing ends the child.

    ## What it does
    Follows each path from the expiry of `asyncio.wait_for(proc.communicate(), …)`, `proc.wait()`, or the same inside
    `async with asyncio.timeout(…)`, also where a caller sets the limit, to the end of the function: handlers,
    `finally`, and functions of the file that the child is given to. Reported where a path leaves the child running,
    or waits for it without end and without a kill.

    At the strict level also where the child is only asked to end, and where the child alone is killed and may have
    started others (`leaf` names programs that start none).

    ## Why it is bad
    Measured: the limit is kept, `TimeoutError` arrives at 1.0 s, and the process lives on, also after `asyncio.run` has
    returned and the transport was collected. It keeps its memory and its output file while a retry starts a second
    one beside it. `kill()` ends the direct child alone; a grandchild that holds the pipe lives on, and `await
    proc.wait()` then waits for that one although the child is dead (more than 3 s for a limit of 1 s).

    ## Example
    ```python
    import asyncio


    async def build(argv):
        proc = await asyncio.create_subprocess_exec(*argv)
        await asyncio.wait_for(proc.communicate(), timeout=600)
    ```

    ## Use instead
    ```python
    from deadlint_budget import run_async


    async def build(argv):
        await run_async(argv, want=600)
    ```

    ## Fix safety
    There is no fix: the child is started in one statement and waited for in another, and what happens between them
    decides how the two become one `await run_async(…)`.

    ## Options
    - `leaf`: programs without children.
    - `wrappers.processes`: functions that stop the whole group.

    ## References
    - [asyncio subprocesses](https://docs.python.org/3/library/asyncio-subprocess.html)
    - [python/cpython#83169](https://github.com/python/cpython/issues/83169): `wait_for` leaves the process
    - [python/cpython#119710](https://github.com/python/cpython/issues/119710): `wait()` and a grandchild on the pipe
    """

    code = "DL106"
    name = "async-process-survives-timeout"
    since = "0.1.0"
    calls = _WAITS
    words = (
        ("create_subprocess", "wait_for"),
        ("create_subprocess", "timeout("),
        ("create_subprocess", "timeout_at("),
        ("create_subprocess", "wait("),
        ("create_subprocess", "communicate("),
    )

    def check(self, site: Site) -> Iterator[Report]:
        nearest = next(around(site), None)
        if nearest is None or in_wrapper(site) or site.scope.kind != "function":
            return
        child = child_of(site)
        if not _is_first(site, child):
            return
        problem = _problem(site, child, nearest)
        if problem is not None:
            message, level = problem
            yield site.report(
                message,
                f"`await {site.module.settings.helpers}.run_async(…, {_bound(site)})` stops the whole tree, on expiry"
                " and when it is cancelled",
                level=level,
                related=places(nearest, what="the limit"),
            )


def _bound(site: Site) -> str:
    return f"budget={site.budget}" if site.budget else "want=…"


def _is_first(site: Site, child: Child) -> bool:
    """Whether this is the first wait for the child in the function that has a limit around it."""
    for call in site.scope.calls:
        if (call.lineno, call.col_offset) >= (site.call.lineno, site.call.col_offset):
            continue
        other = site.module.site(call)
        if (
            other is not None
            and child.key
            and dotted(getattr(call.func, "value", call.func)) == child.key
            and any(t.name in _WAITS for t in other.targets)
            and child_of(other).constructors == child.constructors
            and next(around(other), None) is not None
        ):
            return False
    return True


# Faults of a path, the worst first.
_NOTHING, _WAITED, _ASKED, _CHILD = range(4)


def _problem(site: Site, child: Child, nearest: Around) -> tuple[str, Level] | None:
    """What is wrong with the paths behind the expiry; None where all is well or not known."""
    label = child.label
    length = f" of {seconds(nearest.limit.seconds)}" if nearest.limit.seconds is not None else ""
    if not child.key:
        return f"{label} has no name here, so nothing can kill it when its limit{length} is over", Level.DEFAULT
    names = Names(frozenset({child.key}))
    if handed_over(site.module, site.scope, names):
        return None
    paths = Paths(site.module, child.in_group, child.piped, expiry=expiry_of(site, nearest))
    try:
        states = paths.outcome(site.scope, names)
    except TooMany:
        return None
    others_kill = owner_of(site, child.key).kills
    faults = [f for state in states if (f := _fault(state, others_kill=others_kill)) is not None]
    return _described(min(faults), child, length) if faults else None


def _fault(state: State, *, others_kill: bool) -> int | None:
    """What is wrong with the end of one path. A child that was killed needs no wait: the event loop reaps it."""
    if state.handed:
        return None
    if state.kill is Kill.NONE:
        return _WAITED if state.waits else None if state.reaped or others_kill else _NOTHING
    if state.kill is Kill.ASKED:
        return None if others_kill and not state.waits else _ASKED
    return _CHILD if state.kill is Kill.CHILD else None


def _described(fault: int, child: Child, length: str) -> tuple[str, Level] | None:
    label, first = child.label, child.commands.first
    if fault == _NOTHING:
        return (
            f"when the limit{length} is over nothing kills {label}: it runs on, and what it started with it",
            Level.DEFAULT,
        )
    if fault == _WAITED:
        return f"after its limit{length} {label} is waited for without end and without a kill", Level.DEFAULT
    if fault == _ASKED:
        return f"when the limit{length} is over {label} is only asked to end, and it may ignore SIGTERM", Level.STRICT
    if child.commands.leaf:
        return None
    tree = "what its shell started" if first.shell else "what it started"
    hang = ", and a wait that follows waits for whoever holds the pipe" if child.piped else ""
    return f"only {label} itself is killed when the limit{length} is over: {tree} lives on{hang}", Level.STRICT
