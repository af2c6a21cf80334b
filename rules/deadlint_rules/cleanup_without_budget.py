"""DL505: what is done because a limit is over has no limit of its own."""

from __future__ import annotations

from collections.abc import Iterator

from deadlint.model import Related
from deadlint.rule import Rule
from deadlint.site import Report, Site

from deadlint_rules._cleanup_fixes import to_bounded
from deadlint_rules._cleanups import Place
from deadlint_rules._unbounded_cleanups import (
    AWAITED,
    ENDLESS,
    PIPES,
    PROCESSES,
    SHUTDOWNS,
    WAITS,
    Unbounded,
    unbounded_cleanup,
)


class CleanupWithoutBudget(Rule):
    """What is done because a limit is over has no limit of its own.

    ## What it does
    Looks at what runs after an expiry: the handler that names it, a broad handler or a `finally` of a `try` that
    holds a call with a limit, and the branch behind a limit that is kept by hand with a clock. Finds there calls that
    wait without a limit: children that are started (`docker rm -f`, `umount`, `kubectl delete`), `Thread.join`,
    `Process.join`, `Future.result`, `Queue.get` and `join`, `shutdown` of an executor, and reading the pipe of a child
    that still runs to its end. Also `psutil.Process.wait()` behind a `terminate()` that no `kill()` follows.

    Strict in a `finally` or a broad handler, where it also runs after all went well, and for waits for something that
    was told to end before (`stop.set(); thread.join()`).

    What other rules report is theirs: requests (DL201), the paths that end a child (DL102, DL106). Of a child that is
    started here only this one is reported, not DL103.

    ## Why it is bad
    The limit was there to come back in time. What hung the work, a server, a file system, a child that ignores
    signals, often hangs its clean-up as well, and by then nothing is left that would end it: the limit is spent. An
    orchestrator then kills the process with the clean-up half done. `ThreadPoolExecutor.shutdown()` waits for all that
    runs: measured, `result(timeout=1)` on a task of 4 s came back after 4.0 s.

    ## Example
    ```python
    import subprocess


    def render(image, name):
        try:
            subprocess.run(["docker", "run", "--name", name, image], timeout=600, check=True)
        except subprocess.TimeoutExpired:
            subprocess.run(["docker", "rm", "-f", name])
            raise
    ```

    ## Use instead
    ```python
    from deadlint_budget import Budget, DeadlineExceeded, run


    def render(image, name):
        budget = Budget.of(600, "render", reserve=30)
        try:
            run(["docker", "run", "--name", name, image], budget=budget, check=True)
        except DeadlineExceeded:
            run(["docker", "rm", "-f", name], budget=budget.cleanup(20))
            raise
    ```

    ## Fix safety
    Unsafe: a clean-up that was slow, and would have ended, is cut short. A child gets `run(…, budget=…)` with
    `budget.cleanup(CLEANUP_LIMIT_S)`, which lasts into the reserve of the budget in scope; without one, `Budget.of`
    makes a budget for it alone, since the one around may be spent. `join()` of a thread or process gets a limit, and
    comes back with the thread alive. `shutdown()` becomes `shutdown(wait=False, cancel_futures=True)`.

    ## Options
    - `constants.cleanup`: the name and value of the constant that fixes use.
    - `helpers`: the module that fixed code imports from.

    ## References
    - [concurrent.futures.Executor.shutdown](https://docs.python.org/3/library/concurrent.futures.html#concurrent.futures.Executor.shutdown)
    - [MagicStack/asyncpg#1349](https://github.com/MagicStack/asyncpg/issues/1349): a cancellation that blocks `close()`
    """

    code = "DL505"
    name = "cleanup-without-budget"
    since = "0.1.0"
    calls = frozenset(WAITS) | ENDLESS | SHUTDOWNS | PROCESSES | AWAITED | PIPES
    words = (
        ("imeout", "except", "subprocess"), ("imeout", "except", "hread", ".join("),
        ("imeout", "except", "rocess", ".join("), ("imeout", "except", "ueue", ".join("),
        ("imeout", "except", "ueue", ".get("), ("imeout", "except", ".result("), ("imeout", "except", "shutdown("),
        ("imeout", "except", "os.system"), ("imeout", "finally", "subprocess"),
        ("imeout", "finally", "hread", ".join("), ("imeout", "finally", "shutdown("),
        ("imeout", "finally", ".result("), ("DeadlineExceeded", "except"), ("budget", "finally"),
        ("imeLimitExceeded", "except"), ("expired", "subprocess"), ("psutil", "terminate(", ".wait("),
        ("time.monotonic", "while", "subprocess"), ("asyncpg", ".close(", "imeout"),
    )  # fmt: skip

    def check(self, site: Site) -> Iterator[Report]:
        found = unbounded_cleanup(site)
        if found is not None:
            yield _report(site, found)


def _report(site: Site, found: Unbounded) -> Report:
    cleanup = found.cleanup
    if cleanup is None:
        return site.report(
            f"{found.how} for a process that was only asked to end: it may ignore SIGTERM",
            "give the wait a limit, and `kill()` what is left",
            level=found.level,
        )
    over = f" of {cleanup.limit}" if cleanup.limit else ""
    where = f"{cleanup.place.value}{over}" if cleanup.place is not Place.AFTER else "what follows a limit kept by hand"
    related: tuple[Related, ...] = ()
    if cleanup.origin is not None and cleanup.limit:
        related = (site.related(cleanup.origin, "the limit that may be over by then"),)
    return site.report(
        f"{found.how} in {where}: nothing bounds the clean-up",
        _remedy(site),
        level=found.level,
        related=related,
        fix=lambda: to_bounded(site),
    )


def _remedy(site: Site) -> str:
    constant = site.module.settings.constants.cleanup[0]
    helpers = site.module.settings.helpers
    if site.name in PROCESSES:
        given = f"{site.budget}.cleanup({constant})" if site.budget else f"{helpers}.Budget.of({constant})"
        return f"give it time of its own: `{helpers}.run(…, budget={given})`"
    if site.name in SHUTDOWNS:
        return "`shutdown(wait=False, cancel_futures=True)`, and let the work itself have a limit"
    if site.name in PIPES:
        return "kill the child's group first, then read what is left"
    left = f"{site.budget}.cleanup({constant}).remaining()" if site.budget else constant
    if site.name in ENDLESS or site.name.endswith("Queue.join"):
        return "wait for the workers with a limit instead"
    return f"give it a limit: `timeout={left}`"
