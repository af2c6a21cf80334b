"""A function that carries its budget into a thread, a task or another process."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ._budget import Budget

_COROUTINE = 0x80  # inspect.CO_COROUTINE; importing inspect costs 8 ms


class WithBudget:
    """`fn`, run with `budget` as the ambient one. A class and not a closure, so that it pickles."""

    def __init__(self, budget: Budget, fn: Callable[..., Any]) -> None:
        self.budget = budget
        self.fn = fn
        self.__wrapped__ = fn
        self.__name__ = getattr(fn, "__name__", type(fn).__name__)
        self.__doc__ = getattr(fn, "__doc__", None)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if getattr(getattr(self.fn, "__code__", None), "co_flags", 0) & _COROUTINE:
            return self._call_async(args, kwargs)
        with self.budget:
            return self.fn(*args, **kwargs)

    async def _call_async(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        with self.budget:
            return await self.fn(*args, **kwargs)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.budget, self.fn)

    def __repr__(self) -> str:
        return f"<{self.__name__} under {self.budget!r}>"
