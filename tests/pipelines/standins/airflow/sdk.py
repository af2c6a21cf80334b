"""Stands for Airflow's task decorator, which only calls what it decorates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def task(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """`airflow.sdk.task`, without a scheduler or limits."""
    return function if function is not None else lambda decorated: decorated
