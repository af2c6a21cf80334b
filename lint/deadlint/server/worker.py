"""The one thread that checks: what somebody waits for goes before what is done in advance."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

_Result = TypeVar("_Result")

# Seconds without work after which garbage is looked for. Syntax trees are many objects: in the midst of checks, the
# collector took a quarter of their time.
IDLE_S = 2.0


class Worker:
    """Runs work one at a time. Work that is cancelled before its turn is never begun; later, its result is dropped."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="deadlint")
        self._waiting = 0
        self._quiet = asyncio.Event()
        self._quiet.set()
        self._collecting: asyncio.TimerHandle | None = None
        gc.disable()

    async def run(self, work: Callable[[], _Result]) -> _Result:
        """What `work` returns. Raises what it raises."""
        self._waiting += 1
        self._quiet.clear()
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, work)
        finally:
            self._waiting -= 1
            if not self._waiting:
                self._quiet.set()
                self._collect_later()

    async def run_when_quiet(self, work: Callable[[], _Result]) -> _Result:
        """The same for work that nobody waits for; begun when there is no other."""
        await self._quiet.wait()
        self._collect_later()
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    def _collect_later(self) -> None:
        if self._collecting is not None:
            self._collecting.cancel()
        self._collecting = asyncio.get_running_loop().call_later(IDLE_S, self._thread.submit, gc.collect)

    def stop(self) -> None:
        """Begin no more work; what runs is left to end."""
        self._thread.shutdown(wait=False, cancel_futures=True)
