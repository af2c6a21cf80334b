"""Stands for Prefect: the decorators, which only call what they decorate."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def task(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """`prefect.task`, without a runner, retries or limits."""
    return function if function is not None else lambda decorated: decorated


flow = task
