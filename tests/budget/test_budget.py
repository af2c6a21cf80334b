"""`Budget`: deadlines, layers, cancellation, and who is named when the time is over."""

# ruff: noqa: PT012 - a block under test is more than one line

from __future__ import annotations

import asyncio
import datetime as dt
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from budget_witness import WoundClock
from deadlint_budget import Budget, Cancelled, DeadlineExceeded, UnitsLeft, current_budget
from deadlint_budget._until import seconds_until


def test_remaining_counts_down_to_zero(clock: WoundClock) -> None:
    budget = Budget.of(10, clock=clock)
    clock.advance(4)
    assert budget.remaining() == 6
    assert not budget.expired
    clock.advance(7)
    assert budget.remaining() == 0
    assert budget.expired


@pytest.mark.parametrize("bad", [-1, float("nan"), float("inf"), -float("inf")])
def test_bad_numbers_are_refused(bad: float, clock: WoundClock) -> None:
    budget = Budget.of(10, clock=clock)
    for call in (Budget.of, budget.slice, budget.sleep, budget.cleanup, lambda s: budget.limit("x", s)):
        with pytest.raises(ValueError, match="finite"):
            call(bad)


@pytest.mark.parametrize("bad", ["10", True, [1]])
def test_what_is_no_number_is_refused(bad: Any) -> None:
    with pytest.raises(TypeError, match="number of seconds"):
        Budget.of(bad)


def test_zero_is_spent() -> None:
    with pytest.raises(DeadlineExceeded):
        Budget.of(0).check()


def test_expiry_is_level_triggered(clock: WoundClock) -> None:
    budget = Budget.of(1, clock=clock)
    clock.advance(1)
    for _ in range(3):
        with pytest.raises(DeadlineExceeded):
            budget.check("here")


def test_slice_is_cut_to_what_is_left(clock: WoundClock) -> None:
    budget = Budget.of(10, clock=clock)
    assert budget.slice() == 10
    assert budget.slice(3) == 3
    assert budget.slice(30) == 10
    assert budget.slice(30, reserve=2) == 8


@pytest.mark.parametrize("left", [0.0, 0.0004, 0.0009])
def test_slice_never_gives_what_a_callee_turns_into_no_limit(left: float, clock: WoundClock) -> None:
    budget = Budget.of(10, clock=clock)
    clock.advance(10 - left)
    with pytest.raises(DeadlineExceeded):
        budget.slice(5)


def test_slice_rounds_a_tiny_want_up(clock: WoundClock) -> None:
    assert Budget.of(10, clock=clock).slice(0.0001) == 0.001
    with pytest.raises(DeadlineExceeded):
        Budget.of(10, clock=clock).slice(0)


def test_a_child_never_outlives_its_parent(clock: WoundClock) -> None:
    flow = Budget.of(10, "flow", clock=clock)
    clock.advance(4)
    task = flow.limit("task", 9)
    assert task.remaining() == 6
    assert task.path == "flow/task"
    assert flow.limit("short", 2).remaining() == 2
    assert flow.limit("all").remaining() == 6


def test_a_child_ends_before_its_parent_s_reserve(clock: WoundClock) -> None:
    flow = Budget.of(100, "flow", reserve=10, clock=clock)
    assert flow.remaining() == 90
    assert flow.limit("task", 500).remaining() == 90
    assert flow.limit("task", 500, reserve=5).remaining() == 85


def test_a_reserve_that_leaves_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="leaves nothing"):
        Budget.of(10, reserve=10)


def test_the_layer_that_fired_is_named(clock: WoundClock) -> None:
    flow = Budget.of(10, "flow", clock=clock)
    tile = flow.limit("build_tile", 30).limit("warp", 40)
    clock.advance(10)
    with pytest.raises(DeadlineExceeded) as caught:
        tile.check("gdalwarp")
    error = caught.value
    assert (error.layer, error.path, error.limit, error.elapsed) == (
        "flow",
        "flow/build_tile/warp/gdalwarp",
        10,
        10,
    )
    assert (error.op, error.cause) == ("gdalwarp", "budget")
    assert "`flow` is out of time: 10 s used of 10 s" in str(error)


def test_an_inner_layer_is_named_where_it_is_the_shorter(clock: WoundClock) -> None:
    tile = Budget.of(10, "flow", clock=clock).limit("tile", 3)
    clock.advance(3)
    with pytest.raises(DeadlineExceeded) as caught:
        tile.check()
    assert (caught.value.layer, caught.value.limit) == ("flow/tile", 3)


def test_a_tie_names_the_outermost(clock: WoundClock) -> None:
    flow = Budget.of(10, "flow", clock=clock)
    assert flow.limit("task", 10).limit("step", 10).layer == "flow"


def test_a_reserve_is_named_as_the_cause(clock: WoundClock) -> None:
    job = Budget.of(1, "job", reserve=0.2, clock=clock)
    clock.advance(0.8)
    with pytest.raises(DeadlineExceeded) as caught:
        job.slice(9)
    assert (caught.value.layer, caught.value.cause, caught.value.limit) == ("job", "reserve", 1)
    assert "only its reserve left" in str(caught.value)


def test_inverted(clock: WoundClock) -> None:
    flow = Budget.of(10, "flow", clock=clock)
    assert flow.limit("task", 11).inverted
    assert not flow.limit("task", 9).inverted


def test_cancelling_reaches_down_and_not_up(clock: WoundClock) -> None:
    flow = Budget.of(10, "flow", clock=clock)
    task, other = flow.limit("task"), flow.limit("other")
    assert task.cancel("operator")
    assert not task.cancel("again")
    assert (task.cancelled, other.cancelled, flow.cancelled) == (True, False, False)
    assert task.cancel_reason == "operator"
    flow.cancel("shutdown")
    for budget in (flow, task, other):
        with pytest.raises(Cancelled) as caught:
            budget.check("there")
        assert (caught.value.layer, caught.value.reason) == ("flow", "shutdown")
    with pytest.raises(Cancelled):
        other.slice(1)


def test_on_cancel_is_called_once() -> None:
    flow = Budget.of(10)
    heard: list[str] = []
    task = flow.limit("task")
    task.on_cancel(lambda: heard.append("a"))
    with task.on_cancel(lambda: heard.append("left")):
        pass
    flow.cancel()
    task.cancel()
    assert heard == ["a"]
    task.on_cancel(lambda: heard.append("late"))
    assert heard == ["a", "late"]


def test_a_failing_callback_does_not_stop_the_others(caplog: pytest.LogCaptureFixture) -> None:
    budget = Budget.of(10)
    heard: list[int] = []
    for number in (1, 2, 3):
        budget.on_cancel(lambda n=number: heard.append(n) if n != 2 else 1 / 0)
    budget.cancel()
    assert sorted(heard) == [1, 3]
    assert "on_cancel" in caplog.text


def test_a_closed_registration_keeps_nothing_alive() -> None:
    flow = Budget.of(10)
    for _ in range(100):
        with flow.limit("task").on_cancel(lambda: None):
            pass
    assert not flow._callbacks


def test_sleep_refuses_what_does_not_fit(clock: WoundClock) -> None:
    budget = Budget.of(10, clock=clock)
    with pytest.raises(DeadlineExceeded):
        budget.sleep(11)
    assert clock.now == 1000
    budget.sleep(9)
    assert budget.remaining() == 1


def test_cancel_wakes_a_sleep(took: Callable[..., Any]) -> None:
    budget = Budget.of(60)
    threading.Timer(0.1, budget.cancel, ["enough"]).start()
    with took(0.09, 0.5), pytest.raises(Cancelled, match="enough"):
        budget.sleep(30)


def test_a_signal_handler_wakes_the_sleep_of_its_own_thread(took: Callable[..., Any]) -> None:
    budget = Budget.of(60)
    before = signal.signal(signal.SIGUSR1, lambda *_: budget.cancel("signal"))
    timer = threading.Timer(0.1, os.kill, [os.getpid(), signal.SIGUSR1])
    timer.start()
    try:
        with took(0.09, 0.5), pytest.raises(Cancelled, match="signal"):
            budget.sleep(30)
    finally:
        timer.join()
        signal.signal(signal.SIGUSR1, before)


# --- until -------------------------------------------------------------------------------------------------

OSLO = "Europe/Oslo"


def _wall(text: str, zone: str = OSLO) -> float:
    from zoneinfo import ZoneInfo  # noqa: PLC0415

    return dt.datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)).timestamp()


@pytest.mark.parametrize(
    ("now", "when", "hours"),
    [
        ("2026-06-01T02:00", "06:00", 4),
        ("2026-06-01T06:00", "06:00", 24),
        ("2026-06-01T23:30", "06:00", 6.5),
        ("2026-03-28T22:00", "06:00", 7),  # the night in which an hour is skipped
        ("2026-10-24T22:00", "06:00", 9),  # and the one in which it comes twice
    ],
)
def test_until_a_time_of_day(now: str, when: str, hours: float) -> None:
    assert seconds_until(when, OSLO, _wall(now)) == hours * 3600


def test_until_a_datetime() -> None:
    now = _wall("2026-06-01T02:00")
    aware = dt.datetime(2026, 6, 1, 1, 0, tzinfo=dt.UTC)
    assert seconds_until(aware, None, now) == 3600
    assert seconds_until(dt.datetime(2026, 6, 1, 3, 0), OSLO, now) == 3600
    past = dt.datetime.now(dt.UTC) - dt.timedelta(hours=1)
    assert Budget.until(past).expired
    assert 3590 < Budget.until(dt.datetime.now() + dt.timedelta(hours=1)).remaining() <= 3600


@pytest.mark.parametrize(("when", "zone"), [("6 o'clock", None), ("25:00", None), ("06:00", "Mars/Base")])
def test_until_rubbish(when: str, zone: str | None) -> None:
    with pytest.raises(ValueError, match="no time"):
        Budget.until(when, zone)


# --- units, cleanup, attempts ------------------------------------------------------------------------------


def test_units_stop_at_a_boundary_and_say_what_is_left(clock: WoundClock) -> None:
    budget = Budget.of(10, "flow", clock=clock)
    done = []
    with pytest.raises(UnitsLeft) as caught:
        for tile in budget.units(["a", "b", "c", "d"], need=4):
            clock.advance(4)
            done.append(tile)
    assert done == ["a", "b"]
    assert (caught.value.done, caught.value.left) == (2, ["c", "d"])
    assert "2 units are done, 2 are left" in str(caught.value)
    assert pickle.loads(pickle.dumps(caught.value)).left == ["c", "d"]


def test_units_that_fit_are_complete(clock: WoundClock) -> None:
    units = Budget.of(10, clock=clock).units(range(3), need=2)
    assert list(units) == [0, 1, 2]
    assert (units.complete, units.done, units.left) == (True, 3, [])


def test_quiet_units_end_the_loop(clock: WoundClock) -> None:
    units = Budget.of(3, clock=clock).units(iter("abcd"), quiet=True)
    for _ in units:
        clock.advance(2)
    assert (units.complete, units.done, units.left) == (False, 2, ["c", "d"])


def test_units_stop_on_cancel(clock: WoundClock) -> None:
    budget = Budget.of(10, clock=clock)
    with pytest.raises(UnitsLeft) as caught:
        for _ in budget.units("ab"):
            budget.cancel("operator")
    assert (caught.value.left, caught.value.reason) == (["b"], "operator")


def test_cleanup_has_the_reserve(clock: WoundClock) -> None:
    job = Budget.of(100, "job", reserve=20, clock=clock)
    task = job.limit("task")
    clock.advance(85)
    assert task.expired
    with task.cleanup(60) as cleanup:
        assert cleanup.remaining() == 15
        assert current_budget() is cleanup
        cleanup.check()
    clock.advance(20)
    with pytest.raises(DeadlineExceeded):
        task.cleanup(60).check()


def test_cleanup_without_a_reserve_is_granted(clock: WoundClock) -> None:
    job = Budget.of(1, clock=clock)
    clock.advance(5)
    assert job.cleanup(3).remaining() == 3


def test_cleanup_is_not_cancelled_with_the_work(clock: WoundClock) -> None:
    job = Budget.of(10, clock=clock)
    job.cancel("stop")
    job.cleanup(3).check()


def test_attempts_repeat_until_one_succeeds(clock: WoundClock) -> None:
    budget = Budget.of(100, "flow", clock=clock)
    tried = []
    for attempt in budget.attempts(5, backoff=1, jitter=False, want=7):
        with attempt as mine:
            tried.append((clock.now - 1000, mine.path, mine.remaining()))
            assert current_budget() is mine
            if len(tried) < 3:
                raise OSError("flaky")
    assert tried == [(0, "flow/attempt 1", 7), (1, "flow/attempt 2", 7), (3, "flow/attempt 3", 7)]


def test_the_last_attempt_s_own_error_comes_out(clock: WoundClock) -> None:
    with pytest.raises(OSError, match="no 2"):
        for attempt in Budget.of(100, clock=clock).attempts(2, backoff=0):
            with attempt:
                raise OSError(f"no {attempt.number}")


def test_no_attempt_is_begun_that_cannot_finish(clock: WoundClock) -> None:
    budget = Budget.of(10, "flow", clock=clock)
    count = 0
    with pytest.raises(DeadlineExceeded, match="no attempt 2") as caught:
        for attempt in budget.attempts(5, backoff=1, jitter=False, need=6):
            with attempt:
                count += 1
                clock.advance(4)
                raise ConnectionError("reset")
    assert count == 1
    assert clock.now == 1004  # it failed now, and did not sleep into the wall
    assert isinstance(caught.value.__cause__, ConnectionError)


def test_a_server_s_retry_after_is_honoured(clock: WoundClock) -> None:
    times = []
    for attempt in Budget.of(100, clock=clock).attempts(2, backoff=0):
        with attempt:
            times.append(clock.now)
            if attempt.number == 1:
                attempt.retry_after = 6
                raise OSError("503")
    assert times == [1000, 1006]


def test_an_attempt_that_timed_out_is_repeated_but_a_spent_budget_is_not(clock: WoundClock) -> None:
    budget = Budget.of(10, "flow", clock=clock)
    seen = 0
    with pytest.raises(DeadlineExceeded) as caught:
        for attempt in budget.attempts(9, backoff=0, want=4):
            with attempt as mine:
                seen += 1
                clock.advance(4)
                mine.check()
    assert seen == 3
    assert caught.value.layer == "flow"


def test_a_cancelled_attempt_is_not_repeated(clock: WoundClock) -> None:
    budget = Budget.of(10, clock=clock)
    seen = 0
    with pytest.raises(Cancelled):
        for attempt in budget.attempts(5, backoff=0):
            with attempt as mine:
                seen += 1
                budget.cancel("stop")
                mine.check()
    assert seen == 1


def test_tenacity_stops_within_the_budget() -> None:
    tenacity = pytest.importorskip("tenacity")
    budget = Budget.of(1, "flow")
    tried = 0

    @tenacity.retry(
        stop=tenacity.stop_after_attempt(50) | budget.stop_retrying(need=0.2),
        wait=tenacity.wait_fixed(0.3),
        reraise=True,
    )
    def flaky() -> None:
        nonlocal tried
        tried += 1
        raise OSError("no")

    began = time.monotonic()
    with pytest.raises(OSError, match="no"):
        flaky()
    assert tried in (2, 3)
    assert time.monotonic() - began < 0.9


# --- ambient, threads, asyncio -----------------------------------------------------------------------------


def test_the_ambient_budget_nests() -> None:
    assert current_budget() is None
    with Budget.of(10) as outer:
        with outer.limit("inner") as inner, inner:
            assert current_budget() is inner
        assert current_budget() is outer
    assert current_budget() is None


def test_leaving_by_an_exception_restores() -> None:
    with pytest.raises(KeyError), Budget.of(10):
        raise KeyError
    assert current_budget() is None


def test_threads_begin_outside_and_bind_carries_it_in() -> None:
    budget = Budget.of(10)
    with budget, ThreadPoolExecutor(1) as pool:
        assert pool.submit(current_budget).result() is None
        assert pool.submit(budget.bind(current_budget)).result() is budget
        assert pool.submit(current_budget).result() is None


def test_tasks_inherit_it() -> None:
    async def child() -> Budget | None:
        return current_budget()

    async def main() -> None:
        with Budget.of(10) as budget:
            task = asyncio.create_task(child())
        assert await task is budget
        assert await budget.bind(child)() is budget
        assert current_budget() is None

    asyncio.run(main())


def test_one_budget_in_many_threads() -> None:
    budget = Budget.of(10)
    with budget, ThreadPoolExecutor(8) as pool:

        def work(_: int) -> bool:
            with budget, budget.limit("x") as mine:
                return current_budget() is mine

        assert all(pool.map(work, range(200)))


def test_scope_ends_an_await(took: Callable[..., Any]) -> None:
    async def main() -> None:
        async with Budget.of(0.2, "flow").scope("wait"):
            await asyncio.sleep(10)

    with took(0.19, 0.5), pytest.raises(DeadlineExceeded) as caught:
        asyncio.run(main())
    assert caught.value.layer == "flow"


def test_scope_notices_blocking_code() -> None:
    async def main() -> None:
        async with Budget.of(0.1).scope():
            time.sleep(0.15)  # noqa: ASYNC251 - the fault that asyncio.timeout does not see

    with pytest.raises(DeadlineExceeded):
        asyncio.run(main())


def test_scope_notices_a_swallowed_cancellation() -> None:
    async def main() -> None:
        async with Budget.of(0.1).scope():
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(10)

    with pytest.raises(DeadlineExceeded):
        asyncio.run(main())


def test_scope_is_woken_by_cancel(took: Callable[..., Any]) -> None:
    async def main() -> None:
        budget = Budget.of(30)
        threading.Timer(0.1, budget.cancel, ["enough"]).start()
        async with budget.scope():
            assert current_budget() is budget
            await asyncio.sleep(10)

    with took(0.09, 0.5), pytest.raises(Cancelled, match="enough"):
        asyncio.run(main())


def test_scope_leaves_results_and_outer_cancellation_alone() -> None:
    async def main() -> int:
        async with Budget.of(30).scope():
            await asyncio.sleep(0)
            return 7

    async def cancelled_from_outside() -> None:
        task = asyncio.create_task(main_long())
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    async def main_long() -> None:
        async with Budget.of(30).scope():
            await asyncio.sleep(20)

    assert asyncio.run(main()) == 7
    asyncio.run(cancelled_from_outside())


# --- detached, pickling, import ----------------------------------------------------------------------------


def test_detached() -> None:
    with Budget.of(0.0) as spent:
        free = Budget.detached("the notification must go out")
        free.check()
        spent.cancel()
        assert not free.cancelled
        assert free.slice(5) == 5
        with pytest.raises(ValueError, match="needs a want"):
            free.slice()
    assert 4 < Budget.detached("bounded all the same", 5).remaining() <= 5
    with pytest.raises(ValueError, match="reason"):
        Budget.detached("")


def test_errors_pickle() -> None:
    for raised in (DeadlineExceeded, Cancelled):
        error = raised("words", layer="flow", path="flow/x", limit=3.0, elapsed=3.1, op="x", cause="want")
        again = pickle.loads(pickle.dumps(error))
        assert type(again) is raised
        assert str(again) == "words"
        assert vars(again) == vars(error)
    budget = Budget.of(5, "flow")
    budget.cancel("stop")
    with pytest.raises(Cancelled) as caught:
        budget.check()
    assert pickle.loads(pickle.dumps(caught.value)).reason == "stop"


def test_errors_are_timeouts() -> None:
    assert issubclass(DeadlineExceeded, TimeoutError)
    assert issubclass(Cancelled, DeadlineExceeded)


def test_import_is_quick_and_loads_nothing_heavy(tmp_path: Path) -> None:
    code = (
        "import sys, time; before = set(sys.modules); t = time.process_time(); import deadlint_budget; "
        "print(time.process_time() - t, *(set(sys.modules) - before))"
    )
    # Compiled once, as an installed package is, wherever the tests may write.
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    env["PYTHONPYCACHEPREFIX"] = str(tmp_path)
    command = [sys.executable, "-c", code]
    runs = [
        subprocess.run(command, capture_output=True, text=True, check=True, env=env).stdout.split() for _ in range(9)
    ]
    assert not {"asyncio", "subprocess", "ssl", "typing", "deadlint", "requests"} & set(runs[0])
    assert min(float(seconds) for seconds, *_ in runs) < 0.015


def test_every_public_name_is_there() -> None:
    import deadlint_budget  # noqa: PLC0415

    for name in deadlint_budget.__all__:
        assert getattr(deadlint_budget, name) is not None
    with pytest.raises(AttributeError):
        _ = deadlint_budget.no_such_thing
