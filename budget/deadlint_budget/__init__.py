"""Deadlines for data pipelines: one `Budget` per job, every limit derived from it, and calls that really stop.

Standard library only. Importing this package loads the budget itself; the helpers for processes, HTTP,
PostgreSQL, files and signals are loaded when they are first used, so that `import deadlint_budget` stays
under 15 ms.
"""

# ruff: noqa: PLC0415 - imports wait for the call that needs them, so that `import deadlint_budget` is quick

from __future__ import annotations

from ._ambient import current_budget
from ._budget import Budget
from ._errors import Cancelled, DeadlineExceeded
from ._events import Event, Observation, observe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from . import http as http
    from ._async import run_async
    from ._attempts import Attempt, Attempts
    from ._gdal import GdalCancelled, GdalDeadlineExceeded, gdal_forget, gdal_http_options, gdal_progress, run_gdal
    from ._observers import Summary, log_events, otel_events
    from ._outputs import OutputError, atomic_output
    from ._popen import communicate, wait
    from ._postgres import statement_timeout
    from ._processes import CommandCancelled, CommandDeadlineExceeded, check_output, run
    from ._signals import cancel_on_signals
    from ._stream import Process, process
    from ._units import Units, UnitsLeft

__version__ = "0.1.0"
# Rewritten code depends on these names for years: the first number changes when one of them changes its
# meaning.
API_VERSION = (1, 0)

# name -> the module that has it
_LAZY = {
    "Attempt": "_attempts",
    "Attempts": "_attempts",
    "CommandCancelled": "_processes",
    "CommandDeadlineExceeded": "_processes",
    "GdalCancelled": "_gdal",
    "GdalDeadlineExceeded": "_gdal",
    "OutputError": "_outputs",
    "Process": "_stream",
    "Summary": "_observers",
    "Units": "_units",
    "UnitsLeft": "_units",
    "atomic_output": "_outputs",
    "cancel_on_signals": "_signals",
    "check_output": "_processes",
    "communicate": "_popen",
    "gdal_forget": "_gdal",
    "gdal_http_options": "_gdal",
    "gdal_progress": "_gdal",
    "log_events": "_observers",
    "otel_events": "_observers",
    "process": "_stream",
    "run": "_processes",
    "run_async": "_async",
    "run_gdal": "_gdal",
    "statement_timeout": "_postgres",
    "wait": "_popen",
}

__all__ = [
    "API_VERSION",
    "Attempt",
    "Attempts",
    "Budget",
    "Cancelled",
    "CommandCancelled",
    "CommandDeadlineExceeded",
    "DeadlineExceeded",
    "Event",
    "GdalCancelled",
    "GdalDeadlineExceeded",
    "Observation",
    "OutputError",
    "Process",
    "Summary",
    "Units",
    "UnitsLeft",
    "atomic_output",
    "cancel_on_signals",
    "check_output",
    "communicate",
    "current_budget",
    "gdal_forget",
    "gdal_http_options",
    "gdal_progress",
    "http",
    "log_events",
    "observe",
    "otel_events",
    "process",
    "run",
    "run_async",
    "run_gdal",
    "statement_timeout",
    "wait",
]


if not TYPE_CHECKING:  # for a type checker the imports above are all there is

    def __getattr__(name: str) -> object:
        from importlib import import_module

        if name == "http":
            return import_module(f"{__name__}.http")
        if name in _LAZY:
            value = getattr(import_module(f"{__name__}.{_LAZY[name]}"), name)
            globals()[name] = value
            return value
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
