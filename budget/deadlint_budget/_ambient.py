"""The ambient budget: a stack in a context variable, which asyncio tasks and `asyncio.to_thread` inherit."""

from __future__ import annotations

from contextvars import ContextVar

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._budget import Budget

# A tuple rather than ContextVar tokens: one budget may be entered by several threads and tasks at once,
# and a token can only be reset in the context that made it.
_stack: ContextVar[tuple[Budget, ...]] = ContextVar("deadlint_budget", default=())


def current_budget() -> Budget | None:
    """The innermost budget whose `with` block (or `bind`) this code runs in; None outside any.

    Threads that are started by hand or by an executor's `submit` begin outside any: use `Budget.bind`.
    """
    stack = _stack.get()
    return stack[-1] if stack else None


def push(budget: Budget) -> None:
    _stack.set((*_stack.get(), budget))


def pop(budget: Budget) -> None:
    stack = _stack.get()
    for position in range(len(stack) - 1, -1, -1):
        if stack[position] is budget:
            _stack.set(stack[:position])
            return
