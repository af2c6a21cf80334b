"""Retries inside a budget: no attempt is begun that cannot finish, and no pause runs into the deadline."""

from __future__ import annotations

import random

from ._budget import valid_seconds
from ._errors import Cancelled, seconds_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType
    from typing import Any

    from ._budget import Budget


class Attempts:
    """Iterate to get one `Attempt` after the other. Made by `Budget.attempts`."""

    def __init__(
        self,
        budget: Budget,
        n: int,
        backoff: float,
        *,
        cap: float,
        want: float | None,
        need: float,
        on: type[BaseException] | tuple[type[BaseException], ...],
        jitter: bool,
        name: str,
    ) -> None:
        if n < 1:
            raise ValueError(f"attempts needs at least one, not {n}")
        self.budget = budget
        self.n = n
        self.backoff = valid_seconds(backoff, "backoff")
        self.cap = valid_seconds(cap, "cap")
        self.want = None if want is None else valid_seconds(want, "want")
        self.need = valid_seconds(need, "need")
        self.on = on
        self.jitter = jitter
        self.name = name

    def __iter__(self) -> Iterator[Attempt]:
        for number in range(1, self.n + 1):
            self.budget.check(self.name)
            attempt = Attempt(self, number)
            yield attempt
            if attempt.error is None:
                return
            self._pause(attempt)

    def _pause(self, attempt: Attempt) -> None:
        """Wait before the next attempt; raise now where the wait and `need` do not fit."""
        wait = min(self.cap, self.backoff * 2 ** (attempt.number - 1))
        if self.jitter:
            wait = random.uniform(0, wait)
        if attempt.retry_after is not None:
            wait = max(wait, valid_seconds(attempt.retry_after, "retry_after"))
        budget = self.budget
        if wait + self.need > budget.remaining():
            # Measured: 0.40 s of a budget of 1 s used, where sleeping into the wall and failing there takes
            # all of it.
            error = budget._expired_error(self.name, reserve=self.need)
            words = f"{error}; no attempt {attempt.number + 1} after a pause of {seconds_text(wait)}"
            error.args = (f"{words}: the last one failed with {type(attempt.error).__name__}",)
            raise error from attempt.error
        if wait:
            budget.sleep(wait)


class Attempt:
    """One attempt: `with attempt as budget:`. An error to be retried ends the block quietly."""

    def __init__(self, attempts: Attempts, number: int) -> None:
        self._attempts = attempts
        self.number = number  # from 1
        self.error: BaseException | None = None  # what this attempt failed with
        self.retry_after: float | None = None  # set it to what a server asks for, in seconds
        self._budget: Budget | None = None

    @property
    def last(self) -> bool:
        return self.number >= self._attempts.n

    def __enter__(self) -> Budget:
        parent = self._attempts.budget
        self._budget = parent.limit(f"{self._attempts.name} {self.number}", self._attempts.want)
        return self._budget.__enter__()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> bool:
        assert self._budget is not None
        self._budget.__exit__(kind, error, tb)
        if error is None or self.last or not isinstance(error, self._attempts.on):
            return False
        outer = self._attempts.budget
        if isinstance(error, Cancelled) or outer.cancelled or outer.expired:
            return False
        self.error = error
        return True


class StopRetrying:
    """A tenacity `stop`; made by `Budget.stop_retrying`. tenacity itself is not needed here."""

    def __init__(self, budget: Budget, need: float) -> None:
        self._budget = budget
        self._need = need

    def __call__(self, retry_state: Any) -> bool:
        wait = float(getattr(retry_state, "upcoming_sleep", 0.0) or 0.0)
        return self._budget.cancelled or wait + self._need > self._budget.remaining()
