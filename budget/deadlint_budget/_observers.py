"""Observers that are ready: a summary, log lines, OpenTelemetry metrics."""

from __future__ import annotations

import logging
import math
import signal
import threading
from collections.abc import Callable
from importlib import import_module
from typing import Any

from ._errors import seconds_text
from ._events import Event


def percentile(values: list[float], percent: float) -> float:
    """The value that `percent` of `values` do not exceed (nearest rank); 0 for none."""
    if not values:
        return 0.0
    ordered = sorted(values)
    return ordered[max(0, math.ceil(percent / 100 * len(ordered)) - 1)]


class Summary:
    """Counts and percentiles of what was observed: `with observe(summary := Summary()): …; print(summary)`.

    `timeouts` counts by the layer that fired. `grace` is the 95th percentile of the seconds from SIGTERM to the end of
    a tree, among those that SIGTERM was enough for: what to give as `grace`, with something on top.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.started: dict[str, int] = {}
        self.durations: dict[str, list[float]] = {}
        self.timeouts: dict[str, int] = {}
        self.cancelled = 0
        self.waited = 0.0
        self.killed = 0  # trees that needed SIGKILL
        self.terminations: list[float] = []

    def __call__(self, event: Event) -> None:
        with self._lock:
            match event.kind:
                case "started":
                    self.started[event.op] = self.started.get(event.op, 0) + 1
                case "finished":
                    self.durations.setdefault(event.op, []).append(event.seconds or 0.0)
                case "timed out":
                    layer = event.layer or event.path
                    self.timeouts[layer] = self.timeouts.get(layer, 0) + 1
                    self.durations.setdefault(event.op, []).append(event.seconds or 0.0)
                case "cancelled":
                    self.cancelled += 1
                case "terminated" if event.signal == signal.SIGTERM:
                    self.terminations.append(event.seconds or 0.0)
                case "terminated":
                    self.killed += 1
                case "waited":
                    self.waited += event.seconds or 0.0

    @property
    def grace(self) -> float:
        with self._lock:
            return percentile(self.terminations, 95)

    def __str__(self) -> str:
        with self._lock:
            lines = []
            for op in sorted(self.durations):
                times = self.durations[op]
                shown = ", ".join(f"p{percent} {seconds_text(percentile(times, percent))}" for percent in (50, 95, 99))
                lines.append(f"{op}: {len(times)} times, {shown}")
            for layer, count in sorted(self.timeouts.items()):
                lines.append(f"timed out: {layer}, {count} times")
            if self.cancelled:
                lines.append(f"cancelled: {self.cancelled}")
            if self.terminations or self.killed:
                ends = percentile(self.terminations, 95)
                lines.append(
                    f"stopped: {len(self.terminations)} by SIGTERM (p95 {seconds_text(ends)}: size `grace` by it), "
                    f"{self.killed} by SIGKILL"
                )
            if self.waited:
                lines.append(f"waited: {seconds_text(self.waited)}")
            return "\n".join(lines) or "nothing was observed"


def log_events(logger: logging.Logger | str = "deadlint_budget", level: int = logging.INFO) -> Callable[[Event], None]:
    """An observer that logs a line an event: `observe(log_events())`. `started` and `finished` are at DEBUG."""
    log = logging.getLogger(logger) if isinstance(logger, str) else logger

    def write(event: Event) -> None:
        quiet = event.kind in ("started", "finished")
        words = f"{event.helper} {event.path}: {event.kind}"
        if event.kind in ("timed out", "cancelled") and event.layer:
            words += f" by {event.layer}"
            words += "" if event.limit is None else f" ({seconds_text(event.limit)})"
        if event.signal:
            words += f" with {signal.Signals(event.signal).name}"
        if event.seconds is not None:
            words += f" after {seconds_text(event.seconds)}"
        log.log(logging.DEBUG if quiet else level, words, extra={"deadlint": event})

    return write


def otel_events(meter: Any = None) -> Callable[[Event], None]:
    """An observer that records OpenTelemetry metrics, with `meter` or the global provider's.

    `deadlint.duration` and `deadlint.termination` (histograms, seconds), `deadlint.timeouts` and
    `deadlint.cancellations` (counters), with `helper`, `op` and `layer` as attributes. ImportError without
    opentelemetry-api.
    """
    if meter is None:
        metrics: Any = import_module("opentelemetry.metrics")  # optional
        meter = metrics.get_meter("deadlint_budget")
    duration = meter.create_histogram("deadlint.duration", unit="s", description="Time that an operation took")
    termination = meter.create_histogram("deadlint.termination", unit="s", description="From SIGTERM to the end")
    timeouts = meter.create_counter("deadlint.timeouts", description="Operations that a layer's limit ended")
    cancellations = meter.create_counter("deadlint.cancellations", description="Operations that were cancelled")

    def record(event: Event) -> None:
        attributes = {"helper": event.helper, "op": event.op}
        match event.kind:
            case "finished" | "timed out" if event.seconds is not None:
                duration.record(event.seconds, attributes)
            case "terminated":
                termination.record(event.seconds or 0.0, attributes)
            case "cancelled":
                cancellations.add(1, attributes)
        if event.kind == "timed out":
            timeouts.add(1, {**attributes, "layer": event.layer or event.path})

    return record
