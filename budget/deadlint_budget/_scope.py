"""`Budget.scope`: asyncio's own timeout on a budget's deadline."""

from __future__ import annotations

import asyncio
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType

    from ._budget import Budget
    from ._cancellation import Registration


class Scope:
    """An async context manager; made by `Budget.scope`."""

    def __init__(self, budget: Budget, op: str) -> None:
        self._budget = budget
        self._op = op
        self._timeout: asyncio.Timeout | None = None
        self._registration: Registration | None = None

    async def __aenter__(self) -> Budget:
        self._budget.check(self._op)
        loop = asyncio.get_running_loop()
        left = self._budget.remaining()
        timeout = asyncio.timeout_at(None if left == float("inf") else loop.time() + left)
        self._timeout = timeout
        await timeout.__aenter__()

        def fire() -> None:
            if not timeout.expired():
                timeout.reschedule(loop.time())

        def wake() -> None:
            # the loop is closed: nothing is left to wake
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(fire)

        self._registration = self._budget.on_cancel(wake)
        self._budget.__enter__()
        return self._budget

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        assert self._timeout is not None
        assert self._registration is not None
        self._budget.__exit__(kind, error, tb)
        self._registration.close()
        try:
            await self._timeout.__aexit__(kind, error, tb)
        except TimeoutError as timed_out:
            self._budget.check(self._op)
            # The loop's clock may be a tick ahead of the budget's: the scope fired, so the time is over.
            raise self._budget._expired_error(self._op) from timed_out
        if kind is None:
            # asyncio.timeout is edge-triggered: a block that blocks, or that swallows the cancellation,
            # leaves it without an error (measured). The budget is level-triggered: ask again.
            self._budget.check(self._op)
