"""DL502: a limit on the wait for a thread or pool, which does not end the work."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from deadlint.index.scopes import dotted
from deadlint.index.values import Result, Value, number
from deadlint.model import Level
from deadlint.rule import Rule
from deadlint.site import Report, Site

from deadlint_rules._async_limits import TIMEOUTS, around
from deadlint_rules._handed_work import HANDING, THREAD, Bound, Work, executor_of
from deadlint_rules._kill_paths import caught_names, late_test
from deadlint_rules._limits import places, seconds
from deadlint_rules._processes import Given, limit_given

_THREADS = frozenset(name for name in HANDING if not name.startswith(("concurrent.", "multiprocessing.")))
_JOIN = "threading.Thread.join"
_SHUTDOWNS = frozenset(f"concurrent.futures.{kind}PoolExecutor.shutdown" for kind in ("Thread", "Process"))
_FUTURES = {
    "concurrent.futures.Future.result": 0, "concurrent.futures.Future.exception": 0, "concurrent.futures.wait": 1,
    "concurrent.futures.as_completed": 1, "concurrent.futures.ThreadPoolExecutor.map": None,
    "concurrent.futures.ProcessPoolExecutor.map": None, "asyncio.run_coroutine_threadsafe.result": 0,
    "multiprocessing.Pool.apply_async.get": 0, "multiprocessing.pool.ThreadPool.apply_async.get": 0,
}  # fmt: skip


class ExecutorWorkSurvivesTimeout(Rule):
    """The limit ends the wait for a thread or pool; the work goes on, and something waits for it later.

    ## What it does
    Finds `asyncio.to_thread` and `run_in_executor` (anyio's and trio's too) under a limit of the event loop, and
    `Future.result(timeout=…)`, `as_completed(…, timeout=…)`, `wait(…, timeout=…)` and `map(…, timeout=…)` on executors,
    and `join(timeout=…)` of a thread that the function has made. Also `shutdown()` behind a loop that submits work and
    breaks off when a time of its own is over (strict).

    Default where the work is seen to wait without a limit of its own, and where a `with` over the executor, or
    `shutdown()`, waits for the work that the limit gave up. Strict where nothing is known of the work. Clean where
    what blocks in it has a limit, or it is given a timeout, a deadline, a budget or an event. A `result(timeout=…)`
    that a loop asks again and again is no limit but a way to look.

    ## Why it is bad
    Nothing can stop a thread from outside. Measured: `wait_for(to_thread(f), 1)` raises at 1.0 s, `f` runs to its
    end, and `asyncio.run` came back after 4.0 s, since it waits for its executor; with an executor of one's own the
    interpreter waits at its exit. `with ThreadPoolExecutor() as ex: ex.submit(f).result(timeout=1)` raises only after
    4.0 s: the exit of the `with` waits first, for processes too (`multiprocessing.Pool` ends its own). anyio's and
    trio's threads are waited for before the limit is noticed at all, unless they are abandoned. Until then the work
    writes on, beside the retry that was started because of the timeout.

    ## Example
    ```python
    from concurrent.futures import ThreadPoolExecutor


    def build(render, tile):
        with ThreadPoolExecutor() as executor:
            return executor.submit(render, tile).result(timeout=60)
    ```

    ## Use instead
    ```python
    from concurrent.futures import ThreadPoolExecutor

    from deadlint_budget import Budget


    def build(render, tile):
        budget = Budget.of(60)
        with ThreadPoolExecutor() as executor:
            return executor.submit(render, tile, budget=budget).result(timeout=60)
    ```

    ## Fix safety
    There is no fix: only the author of the work knows where it can stop.

    ## Options
    None.

    ## References
    - [Executor.shutdown](https://docs.python.org/3/library/concurrent.futures.html#concurrent.futures.Executor.shutdown)
    - [asyncio.to_thread](https://docs.python.org/3/library/asyncio-task.html#asyncio.to_thread)
    """

    code = "DL502"
    name = "executor-work-survives-timeout"
    since = "0.1.0"
    calls = _THREADS | frozenset(_FUTURES) | {_JOIN} | _SHUTDOWNS
    words = (
        ("to_thread", "timeout"),
        ("to_thread", "wait_for"),
        ("to_thread", "_after("),
        ("run_in_executor", "timeout"),
        ("run_in_executor", "wait_for"),
        ("run_in_threadpool", "timeout"),
        ("run_in_threadpool", "wait_for"),
        ("async_add_executor_job", "timeout("),
        ("async_add_executor_job", "wait_for("),
        ("Executor", "timeout"),
        ("Executor", ".result("),
        ("run_coroutine_threadsafe", ".result("),
        ("apply_async", ".get("),
        ("threading", "target=", ".join("),
        ("Executor", "shutdown(", "break"),
    )

    def check(self, site: Site) -> Iterator[Report]:
        if site.name in _THREADS:
            yield from _thread(site)
        elif site.name == _JOIN:
            yield from _joined_thread(site)
        elif site.name in _SHUTDOWNS:
            yield from _after_a_loop(site)
        elif limit_given(site, "timeout", _FUTURES[site.name]) is Given.YES and not _looked_at_again(site):
            yield from _future(site)


# --- threads under a limit of the event loop -------------------------------------------------------------------


def _thread(site: Site) -> Iterator[Report]:
    nearest = next(around(site), None)
    work = Work(site, site.call, site.name)
    bound = work.bound
    if nearest is None or bound is Bound.OWN or site.scope.kind != "function":
        return
    if bound is Bound.UNKNOWN and nearest.path:
        return
    amount = f" of {seconds(nearest.limit.seconds)}" if nearest.limit.seconds is not None else ""
    why = f": {work.culprit} in it has no limit" if work.culprit else ""
    if site.name.startswith(("anyio.", "trio.")) and not _abandoned(site):
        what = f"the limit{amount} waits for the thread of {work.label}, however long that takes{why}"
    else:
        what = f"the thread of {work.label} goes on after the limit{amount}, and the end of the loop waits for it{why}"
    yield site.report(
        what,
        _remedy(work),
        level=Level.DEFAULT if bound is Bound.NONE else Level.STRICT,
        related=places(nearest, what="the limit"),
    )


def _abandoned(site: Site) -> bool:
    return any(not site.argument(name).absent for name in ("abandon_on_cancel", "cancellable"))


def _remedy(work: Work) -> str:
    if work.culprit:
        return f"give {work.culprit} a limit of its own, shorter than this one"
    return f"give {work.label} a limit of its own, a budget, or an event that it looks at"


def _joined_thread(site: Site) -> Iterator[Report]:
    """A thread of this function that `join` waits for with a limit."""
    match site.target.receiver:
        case Result(name="threading.Thread", call=ast.Call() as call):
            pass
        case _:
            return
    if limit_given(site, "timeout", 0) is not Given.YES or site.module.walker.scope_of.get(call) is not site.scope:
        return
    later = [c for c in site.scope.calls if (c.lineno, c.col_offset) > (site.call.lineno, site.call.col_offset)]
    names = {c.func.attr for c in later if isinstance(c.func, ast.Attribute)}
    work = Work(site, call, THREAD, ("daemon", "name"))
    bound = work.bound
    if bound is Bound.OWN or names & {"set", "join", "kill", "terminate", "killpg", "cancel", "_exit"}:
        return
    if bound is Bound.UNKNOWN and not names & {"is_alive", "isAlive"}:
        return
    constant = site.argument("timeout", 0).constant
    value = number(constant) if constant is not None else None
    amount = f" of {seconds(value)}" if value is not None else ""
    why = f": {work.culprit} in it has no limit" if work.culprit else ""
    yield site.report(
        f"the thread of {work.label} goes on after the limit{amount}{why}",
        _remedy(work),
        level=Level.DEFAULT if bound is Bound.NONE else Level.STRICT,
    )


# --- limits that a loop keeps by hand ------------------------------------------------------------------------------


def _after_a_loop(site: Site) -> Iterator[Report]:
    """`shutdown()` behind a loop that submits work and leaves when a time is over."""
    if not _waits(site.call):
        return
    for loop in site.scope.blocks:
        if isinstance(loop, ast.While | ast.For) and (loop.end_lineno or 0) < site.call.lineno:
            inside = list(ast.walk(loop))
            late = next((n for n in inside if isinstance(n, ast.If) and _leaves_late(n, site)), None)
            if late is not None and any(isinstance(n, ast.Attribute) and n.attr == "submit" for n in inside):
                yield site.report(
                    f"the limit that the loop keeps by hand ends nothing: `{ast.unparse(site.call.func)}` waits for all"
                    " that was submitted",
                    "`shutdown(wait=False, cancel_futures=True)`, and give the work itself a limit",
                    level=Level.STRICT,
                    related=(site.related(late, "left here when the time is over"),),
                )
                return


def _leaves_late(node: ast.If, site: Site) -> bool:
    """Whether an `if` leaves its loop because a time is over."""
    parts = node.test.values if isinstance(node.test, ast.BoolOp) else [node.test]
    return isinstance(node.body[-1], ast.Break) and any(
        late_test(part, site.module, site.scope) is True for part in parts
    )


# --- futures ---------------------------------------------------------------------------------------------------


def _future(site: Site) -> Iterator[Report]:
    if site.name.startswith("asyncio."):
        yield from _coroutine(site)
        return
    works = list(_works_of(site))
    work = next((w for w in works if w.bound is not Bound.OWN), None)
    if works and work is None:
        return
    label = work.label if work is not None else "the work"
    why = f": {work.culprit} in it has no limit" if work is not None and work.culprit else ""
    waits = _joined_by(site)
    if waits is not None:
        yield site.report(
            f"the limit{_amount(site)} ends nothing: {waits} waits until {label} is done{why}",
            "give the work itself a limit, or an event that it looks at",
        )
    elif work is not None and (work.local or work.bound is Bound.NONE) and not _pool_is_ended(site):
        yield site.report(
            f"{label} goes on after the limit{_amount(site)}, and the interpreter waits for it at its exit{why}",
            _remedy(work),
            level=Level.STRICT,
        )


def _coroutine(site: Site) -> Iterator[Report]:
    """A coroutine on another thread's loop, which its future can cancel."""
    key = dotted(site.call.func.value) if isinstance(site.call.func, ast.Attribute) else ""
    if key and any(dotted(call.func) == f"{key}.cancel" for call in site.scope.calls):
        return
    yield site.report(
        f"the coroutine goes on after the limit{_amount(site)}: nothing cancels its future",
        "cancel the future when the limit is over, or put `asyncio.timeout` around the coroutine",
        level=Level.STRICT,
    )


def _works_of(site: Site) -> Iterator[Work]:
    """The work behind a future, a `map`, or the futures that the function has made, where it is in sight."""
    if site.name.endswith(".map"):
        yield Work(site, site.call, "concurrent.futures.ThreadPoolExecutor.submit", ("timeout", "chunksize"))
    elif site.target.receiver is None:
        for call in site.scope.calls:
            if isinstance(call.func, ast.Attribute) and call.func.attr == "submit":
                for target in site.module.targets(call):
                    if target.name in HANDING:
                        yield Work(site, call, target.name)
    else:
        work = _submitted(site, site.target.receiver)
        if work is not None:
            yield work


def _submitted(site: Site, value: Value | None) -> Work | None:
    match value:
        case Result(call=ast.Call() as call, receiver=receiver):
            for target in site.module.targets(call):
                if target.name in HANDING:
                    return Work(site, call, target.name)
            return _submitted(site, receiver)
    return None


def _amount(site: Site) -> str:
    constant = site.argument("timeout", _FUTURES[site.name]).constant
    value = number(constant) if constant is not None else None
    return f" of {seconds(value)}" if value is not None else ""


def _joined_by(site: Site) -> str | None:
    """What waits for the work after the limit, in words: the exit of a `with`, or `shutdown`."""
    own = executor_of(site.target.receiver)
    for node in site.ancestors():
        if isinstance(node, ast.With):
            for item in node.items:
                for value in site.values(item.context_expr):
                    executor = executor_of(value)
                    if executor is not None and (own is None or own.call is executor.call):
                        return None if _processes_are_ended(site) else "the exit of the `with` over the executor"
    if own is None:
        return None
    place = (site.call.lineno, site.call.col_offset)
    for call in site.scope.calls:
        if (
            isinstance(call.func, ast.Attribute)
            and call.func.attr == "shutdown"
            and (call.lineno, call.col_offset) > place
            and _waits(call)
            and any(executor_of(v) == own for v in site.values(call.func.value))
        ):
            return "`shutdown()`"
    return None


def _waits(call: ast.Call) -> bool:
    given = [*call.args[:1], *(k.value for k in call.keywords if k.arg == "wait")]
    return not any(isinstance(value, ast.Constant) and not value.value for value in given)


def _processes_are_ended(site: Site) -> bool:
    """Whether the function kills the workers, or leaves the interpreter at once."""
    names = [ast.unparse(call.func) for call in site.scope.calls]
    return any(
        name.endswith((".kill", ".terminate", "os._exit", "os.killpg", "kill_workers", "terminate_workers"))
        for name in names
    )


def _pool_is_ended(site: Site) -> bool:
    """Whether the workers of a `multiprocessing.Pool` are ended: by the exit of its `with`, or `terminate()`."""
    if not site.name.startswith("multiprocessing.Pool"):
        return _processes_are_ended(site)
    with_pool = any(
        isinstance(node, ast.With) and any("Pool(" in ast.unparse(item.context_expr) for item in node.items)
        for node in site.ancestors()
    )
    return with_pool or _processes_are_ended(site)


def _looked_at_again(site: Site) -> bool:
    """Whether a loop asks again when the time is over."""
    inner: ast.AST = site.call
    caught = False
    for node in site.ancestors():
        match node:
            case ast.Try(handlers=handlers, body=body) if inner in body:
                caught = caught or any(_stays(handler, site) for handler in handlers)
            case ast.While():
                return caught or site.name.endswith((".wait", ".as_completed"))
        inner = node
    return False


def _stays(handler: ast.ExceptHandler, site: Site) -> bool:
    """Whether a handler catches the expiry and lets the loop go on."""
    names = caught_names(handler.type, site.module, site.scope) if handler.type is not None else set()
    about = any(n in TIMEOUTS or re.search(r"Timeout(Error)?$", n) or n == "builtins.Exception" for n in names)
    return about and not any(isinstance(s, ast.Raise | ast.Return | ast.Break) for s in handler.body)
