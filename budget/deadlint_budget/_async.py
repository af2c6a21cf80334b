"""`run_async`: `run` for a coroutine, with the tree stopped when the task is cancelled."""

from __future__ import annotations

import asyncio
import contextvars
import subprocess
import threading
from contextlib import suppress
from typing import Any

from ._ambient import current_budget
from ._budget import Budget
from ._processes import GRACE, Args, run


async def run_async(
    args: Args, *, budget: Budget | None = None, grace: float = GRACE, **options: Any
) -> subprocess.CompletedProcess[Any]:
    """`await run_async(args)`: what `run` does, takes and raises, without blocking the event loop.

    When the task is cancelled (also by `asyncio.timeout` or `wait_for` around it) the tree is stopped first,
    and the CancelledError goes on when it is gone: `grace` seconds and a little more at most. Each call has a
    thread of its own: asyncio's default executor has no more than `cpu_count + 4` of them, and `asyncio.run`
    waits for it.
    """
    above = current_budget() if budget is None else budget
    own = Budget.detached("a task of its own: cancelled below") if above is None else above
    mine = own.limit("async") if above is not None else own
    loop = asyncio.get_running_loop()
    done: asyncio.Future[subprocess.CompletedProcess[Any]] = loop.create_future()
    context = contextvars.copy_context()

    def work() -> None:
        outcome: Any = None
        error: BaseException | None = None
        try:
            outcome = context.run(lambda: run(args, budget=mine, grace=grace, **options))
        except BaseException as raised:
            error = raised
        # the loop was closed meanwhile: nobody waits
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(_settle, done, outcome, error)

    # A daemon: an interpreter that ends does not wait for it, and the guard ends the child.
    threading.Thread(target=work, name="deadlint-run-async", daemon=True).start()
    try:
        return await asyncio.shield(done)
    except asyncio.CancelledError:
        mine.cancel("its task was cancelled")
        await _wait_through_cancellation(done)
        raise


def _settle(done: asyncio.Future[Any], outcome: Any, error: BaseException | None) -> None:
    if done.done():
        return
    if error is not None:
        done.set_exception(error)
    else:
        done.set_result(outcome)


async def _wait_through_cancellation(done: asyncio.Future[Any]) -> None:
    """Wait for the thread, which is bounded, also when the task is cancelled once more."""
    while not done.done():
        try:
            await asyncio.wait([done])
        except asyncio.CancelledError:
            continue
    if not done.cancelled():
        done.exception()  # looked at, so that asyncio does not complain of an error that nobody has seen
