"""DL102: a limit on a wait whose expiry does not end the child."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from deadlint.index.scopes import Scope, dotted
from deadlint.index.values import number
from deadlint.model import Level
from deadlint.rule import Rule
from deadlint.site import Report, Site

from deadlint_rules._kill_paths import Kill, Names, Paths, State, TooMany, late_test
from deadlint_rules._limits import seconds
from deadlint_rules._process_owners import Owner, handed_over, owner_of
from deadlint_rules._process_repairs import to_wait
from deadlint_rules._processes import Child, Given, child_of, in_wrapper, limit_given

_POSITION = {"wait": 0, "communicate": 1}


class WaitTimeoutWithoutKill(Rule):
    """The expiry of `Popen.wait` or `communicate` does not end in kill and reap of the whole group.

    ## What it does
    Follows each path from the expiry of `wait(timeout=…)` or `communicate(timeout=…)` to the end of the function,
    through handlers, `finally`, loops, and functions of the file that the child is given to. A path is right where
    it kills the child's group (`killpg` of a child with `start_new_session=True` or `process_group=0`, or a walk over
    its descendants) and then reaps it. Reported once a function and child, on its first timed wait.

    A limit that is kept by hand, in a loop that polls the child and looks at the clock, is judged alike, and reported
    on the last thing that is done to the child.

    Killing and reaping only the direct child is enough for programs that have no children: it is reported at the
    strict level for those in `leaf`.

    ## Why it is bad
    `wait` and `communicate` raise when the time is over, and nothing else: measured, the child and all that it
    started run on. `with Popen(…)` around the wait does not come back at all until the child ends, since its exit
    waits. `kill()` without a `wait()` leaves a zombie. `terminate(); wait()` waits for ever on a child that ignores
    SIGTERM. The documented recipe, `kill(); communicate()`, waits until the last descendant that holds the pipe has
    ended. `killpg` of a child that has no group of its own kills the caller.

    ## Example
    ```python
    import subprocess


    def build(argv):
        proc = subprocess.Popen(argv, stdout=subprocess.PIPE)
        try:
            return proc.communicate(timeout=600)
        except subprocess.TimeoutExpired:
            proc.kill()
            raise
    ```

    ## Use instead
    ```python
    import subprocess

    from deadlint_budget import communicate


    def build(argv):
        proc = subprocess.Popen(argv, stdout=subprocess.PIPE, start_new_session=True)
        return communicate(proc, want=600)
    ```

    ## Fix safety
    Unsafe: the helper sends SIGTERM and SIGKILL to the whole group, where the code before left processes alive that
    something may rely on, and the child gets a session of its own. The exception is the same `TimeoutExpired`, so
    handlers keep working; what a handler did to the child is taken out, because the child is gone by then. Where
    that is not a plain statement of the handler, or arguments come in a `**mapping`, the fix is only shown.

    ## Options
    - `leaf`: programs without children.
    - `wrappers.processes`: functions that stop the whole group.
    - `helpers`: the module that fixed code imports from.

    ## References
    - [subprocess.Popen.communicate](https://docs.python.org/3/library/subprocess.html#subprocess.Popen.communicate)
    - [python/cpython#76116](https://github.com/python/cpython/issues/76116): a grandchild on the pipe
    """

    code = "DL102"
    name = "wait-timeout-without-kill"
    since = "0.1.0"
    calls = frozenset({"subprocess.Popen.wait", "subprocess.Popen.communicate", "subprocess.Popen.poll"})
    words = (("subprocess", "wait("), ("subprocess", "communicate"), ("subprocess", "poll("))

    def check(self, site: Site) -> Iterator[Report]:
        method = site.name.rpartition(".")[2]
        if method == "poll":
            yield from _by_hand(site)
            return
        if limit_given(site, "timeout", _POSITION[method]) is not Given.YES or in_wrapper(site):
            return
        child = child_of(site)
        scope = site.scope
        if scope.kind not in ("function", "module") or not _is_first(site, child):
            return
        problem = _problem(site, child, scope)
        if problem is None:
            return
        limit = site.argument("timeout", _POSITION[method]).node
        yield site.report(
            problem.message,
            problem.remedy,
            level=problem.level,
            fix=lambda: to_wait(site, child, limit) if limit else None,
        )


def _by_hand(site: Site) -> Iterator[Report]:
    """A limit that a loop keeps by polling the child and looking at the clock, where its end leaves the child."""
    child = child_of(site)
    if not child.key or site.scope.kind != "function" or in_wrapper(site):
        return
    calls = [c for c in site.scope.calls if isinstance(c.func, ast.Attribute) and dotted(c.func.value) == child.key]
    if any(isinstance(c.func, ast.Attribute) and c.func.attr in _POSITION and (c.args or c.keywords) for c in calls):
        return  # a wait with a limit, which is judged itself
    polls = [c for c in calls if isinstance(c.func, ast.Attribute) and c.func.attr == "poll"]
    if min(polls, key=lambda c: (c.lineno, c.col_offset)) is not site.call:
        return
    loop = next((s for s in site.scope.blocks if isinstance(s, ast.While) and _keeps_time(s, site, polls)), None)
    problem = _problem(site, child, site.scope, clock=True) if loop is not None else None
    if problem is not None and loop is not None:
        ends = [
            c for c in calls if isinstance(c.func, ast.Attribute) and c.func.attr in _ENDS and c.lineno >= loop.lineno
        ]
        node = max(ends, key=lambda c: (c.lineno, c.col_offset)) if ends else loop
        yield site.report(problem.message, problem.remedy, level=problem.level, node=node)


_ENDS = ("kill", "terminate", "send_signal")


def _keeps_time(loop: ast.While, site: Site, polls: list[ast.Call]) -> bool:
    """Whether a loop polls the child and looks at a clock."""
    inside = list(ast.walk(loop))
    return any(poll in inside for poll in polls) and any(
        late_test(node, site.module, site.scope) is not None for node in inside if isinstance(node, ast.Compare)
    )


def _is_first(site: Site, child: Child) -> bool:
    """Whether this is the first timed wait for this child in the function."""
    if not child.key:
        return True
    for call in site.scope.calls:
        func = call.func
        earlier = (call.lineno, call.col_offset) < (site.call.lineno, site.call.col_offset)
        if not earlier or not isinstance(func, ast.Attribute) or func.attr not in _POSITION:
            continue
        other = site.module.site(call)
        if other is None or dotted(func.value) != child.key:
            continue
        for target in other.targets:
            there = Site(site.module, call, site.scope, (target,), target.name)
            if (
                target.name in WaitTimeoutWithoutKill.calls
                and child_of(there).constructors == child.constructors
                and limit_given(there, "timeout", _POSITION[func.attr]) is Given.YES
            ):
                return False
    return True


@dataclass(frozen=True, slots=True)
class _Problem:
    message: str
    remedy: str
    level: Level = Level.DEFAULT


def _problem(site: Site, child: Child, scope: Scope, *, clock: bool = False) -> _Problem | None:
    """What is wrong with the paths behind the expiry; None where all is well or not known."""
    limit = _limit_text(site)
    if not child.key:
        return _Problem(
            f"{child.label} has no name here, so nothing can kill it when its limit{limit} is over",
            "keep the `Popen` object, and stop its group and reap it on expiry",
        )
    names = Names(frozenset({child.key}))
    if handed_over(site.module, scope, names):
        return None
    try:
        states = Paths(site.module, child.in_group, child.piped, clock).outcome(scope, names)
    except TooMany:
        return None
    owner = owner_of(site, child.key)
    faults = [f for state in states if (f := _fault(state, owner, child)) is not None]
    return _described(min(faults), site, child, limit) if faults else None


# Faults of a path, the worst first.
_OWN_GROUP, _EXIT, _NOTHING, _WAITS, _ASKED, _ASKED_WAITS, _ZOMBIE, _CHILD = range(8)


def _fault(state: State, owner: Owner, child: Child) -> int | None:
    """What is wrong with the end of one path; None where it is right, or someone else's to mend."""
    if state.handed:
        return None
    if state.own_group:
        return _OWN_GROUP
    if state.waits:
        return _EXIT if state.at_exit else _WAITS if state.kill is Kill.NONE else _asked_and_waits(state)
    if state.reaped:
        return None if state.kill is Kill.GROUP else _CHILD
    if state.kill is Kill.NONE:
        return None if owner.kills else _NOTHING
    if state.kill is Kill.ASKED:
        return _ASKED
    return None if owner.reaps else _ZOMBIE


def _asked_and_waits(state: State) -> int | None:
    # Measured: killpg(SIGTERM) and communicate() come back at once and leave nothing.
    return None if state.kill is Kill.GROUP else _ASKED_WAITS


def _described(fault: int, site: Site, child: Child, limit: str) -> _Problem:
    name, label = child.name, child.label
    method = "wait" if site.name.endswith("poll") else site.name.rpartition(".")[2]
    helper = f"`{site.module.settings.helpers}.{method}({child.key}, want=…)`"
    remedy = f"start it with `start_new_session=True` and call {helper}, which stops the group and reaps it"
    tree = _tree(child)
    match fault:
        case 0:
            what = f"{name} has no group of its own, so `killpg` signals this process and its group too"
            return _Problem(what, f"start it with `start_new_session=True`, or call {helper}")
        case 1:
            what = f"the `with` around {name} waits for {label} to end, however long that takes after its limit{limit}"
        case 2:
            what = f"when the limit{limit} is over nothing kills {label}: it runs on, and what it started with it"
        case 3:
            what = (
                f"after its limit{limit} {label} is waited for without end and without a kill: the limit bounds nothing"
            )
        case 4:
            what = (
                f"when the limit{limit} is over {label} is only asked to end: no SIGKILL follows, and no wait reaps it"
            )
        case 5:
            what = (
                f"after its limit{limit} {label} is asked to end and then waited for without end: it may ignore SIGTERM"
            )
        case 6:
            what = f"{label} is killed when its limit{limit} is over but never reaped: a zombie stays"
        case _:
            level = Level.STRICT if child.commands.leaf else Level.DEFAULT
            hang = ", and holds the pipe that is read to its end" if child.piped and method == "communicate" else ""
            what = f"only {label} itself is killed when its limit{limit} is over: {tree} lives on{hang}"
            return _Problem(what, remedy, level)
    return _Problem(what, remedy)


def _tree(child: Child) -> str:
    first = child.commands.first
    if first.launcher:
        return f"what `{first.launcher}` started for it"
    if first.shell:
        return "what its shell started"
    return "what it started"


def _limit_text(site: Site) -> str:
    method = site.name.rpartition(".")[2]
    if method not in _POSITION:
        return ""
    constant = site.argument("timeout", _POSITION[method]).constant
    value = number(constant) if constant is not None else None
    return f" of {seconds(value)}" if value is not None else ""
