"""`observe`: what the helpers tell, the summary, log lines, OpenTelemetry."""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Callable
from typing import Any

import pytest
from budget_witness import Cluster, Mark, Server, need_module
from deadlint_budget import (
    Budget,
    DeadlineExceeded,
    Event,
    Summary,
    http,
    log_events,
    observe,
    otel_events,
    process,
    run,
    statement_timeout,
)
from deadlint_budget._observers import percentile
from test_http import fine, silent

Serve = Callable[..., Server]


def shown(events: list[Event]) -> list[tuple[str, str, str]]:
    return [(event.helper, event.kind, event.path) for event in events]


def test_run(mark: Mark) -> None:
    events: list[Event] = []
    budget = Budget.of(60, "flow")
    with observe(events.append):
        run(["true"], budget=budget)
        with pytest.raises(DeadlineExceeded):
            run(["sleep", mark.sleep], budget=budget, want=0.2)
    run(["true"])  # not observed any more
    assert shown(events) == [
        ("run", "started", "flow/true"),
        ("run", "finished", "flow/true"),
        ("run", "started", "flow/sleep"),
        ("run", "terminated", "flow/sleep"),
        ("run", "timed out", "flow/sleep"),
    ]
    assert events[3].signal == signal.SIGTERM
    assert events[3].seconds is not None
    assert events[3].seconds < 0.2
    assert (events[4].layer, events[4].limit) == ("flow/sleep", 0.2)


def test_the_layer_that_fired_is_told_and_cancellation_is_another_thing(mark: Mark) -> None:
    events: list[Event] = []
    with observe(events.append):
        with pytest.raises(DeadlineExceeded), Budget.of(0.2, "flow"):
            run(["sleep", mark.sleep], want=9)
        budget = Budget.of(60, "flow")
        threading.Timer(0.2, budget.cancel).start()
        with pytest.raises(DeadlineExceeded):
            run(["sleep", mark.sleep], budget=budget)
    assert [(event.kind, event.layer) for event in events if event.layer] == [
        ("timed out", "flow"),
        ("cancelled", "flow"),
    ]


def test_other_helpers(serve: Serve) -> None:
    need_module("requests")
    events: list[Event] = []
    budget = Budget.of(60, "flow")
    with observe(events.append):
        http.get(serve(fine).url, budget=budget)
        http.urlopen(serve(fine).url, budget=budget).read()
        with pytest.raises(DeadlineExceeded):
            http.get(serve(silent).url, budget=budget, want=0.1)
        budget.sleep(0.01)
        with process(["true"], budget=budget):
            pass
    assert shown(events) == [
        ("http", "started", "flow/127.0.0.1"),
        ("http", "finished", "flow/127.0.0.1"),
        ("urlopen", "started", "flow/127.0.0.1"),
        ("urlopen", "finished", "flow/127.0.0.1"),
        ("http", "started", "flow/127.0.0.1"),
        ("http", "timed out", "flow/127.0.0.1"),
        ("sleep", "waited", "flow"),
        ("process", "started", "flow/true"),
        ("process", "finished", "flow/true"),
    ]


def test_statements(cluster: Cluster) -> None:
    conn = need_module("psycopg2").connect(cluster.dsn)
    events: list[Event] = []
    with observe(events.append):
        with statement_timeout(conn, want=5):
            pass
        with pytest.raises(DeadlineExceeded), statement_timeout(conn, want=0.1):
            conn.cursor().execute("SELECT pg_sleep(5)")
    conn.close()
    assert [event.kind for event in events] == ["started", "finished", "started", "timed out"]


def test_a_failing_observer_is_logged_and_dropped(caplog: pytest.LogCaptureFixture) -> None:
    heard: list[Event] = []

    def fails(event: Event) -> None:
        raise ValueError

    with observe(fails), observe(heard.append):
        run(["true"])
    assert len(heard) == 2
    assert "an observer failed" in caplog.text


def test_percentile() -> None:
    values = [float(n) for n in range(1, 101)]
    assert [percentile(values, p) for p in (50, 95, 99, 100)] == [50, 95, 99, 100]
    assert percentile([3.0], 95) == 3
    assert percentile([], 95) == 0


def test_summary(mark: Mark) -> None:
    with observe(summary := Summary()), Budget.of(60, "flow") as budget:
        for _ in range(3):
            run(["true"])
        with pytest.raises(DeadlineExceeded):
            run(["sleep", mark.sleep], want=0.1)
        with pytest.raises(DeadlineExceeded):
            run(f"trap '' TERM; while :; do sleep {mark.sleep}; done", shell=True, want=0.1, grace=0.1)
        budget.sleep(0.02)
    assert summary.started == {"true": 3, "sleep": 1, "trap": 1}
    assert summary.timeouts == {"flow/sleep": 1, "flow/trap": 1}
    assert len(summary.durations["true"]) == 3
    assert 0 < summary.grace < 0.1
    assert summary.killed == 1
    text = str(summary)
    assert "true: 3 times, p50" in text
    assert "timed out: flow/sleep, 1 times" in text
    assert "size `grace` by it" in text
    assert "waited: 0.02 s" in text
    assert str(Summary()) == "nothing was observed"


def test_log_lines(mark: Mark, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, "deadlint_budget"), observe(log_events()), pytest.raises(DeadlineExceeded):
        run(["sleep", mark.sleep], want=0.1)
    started, terminated, timed_out = caplog.records
    assert started.levelno == logging.DEBUG
    assert terminated.getMessage().startswith("run sleep: terminated with SIGTERM after ")
    assert timed_out.getMessage().startswith("run sleep: timed out by sleep (0.1 s) after ")
    assert timed_out.levelno == logging.INFO


def test_opentelemetry(mark: Mark) -> None:
    sdk: Any = need_module("opentelemetry.sdk.metrics", "pip install opentelemetry-sdk")
    export: Any = need_module("opentelemetry.sdk.metrics.export", "pip install opentelemetry-sdk")
    reader = export.InMemoryMetricReader()
    meter = sdk.MeterProvider([reader]).get_meter("test")
    with observe(otel_events(meter)), Budget.of(0.2, "flow"):
        run(["true"])
        with pytest.raises(DeadlineExceeded):
            run(["sleep", mark.sleep])
    (resource,) = reader.get_metrics_data().resource_metrics
    found = {metric.name: metric.data.data_points for metric in resource.scope_metrics[0].metrics}
    assert {"deadlint.duration", "deadlint.termination", "deadlint.timeouts"} == set(found)
    (timeout,) = found["deadlint.timeouts"]
    assert (timeout.value, timeout.attributes["layer"], timeout.attributes["op"]) == (1, "flow", "sleep")
    assert sum(point.count for point in found["deadlint.duration"]) == 2
    assert otel_events() is not None  # the global provider
