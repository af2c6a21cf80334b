"""Stands for Celery: the decorator of a task, which only calls what it decorates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def shared_task(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """`celery.shared_task`, without a worker or limits."""
    return function if function is not None else lambda decorated: decorated
