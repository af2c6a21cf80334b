"""A budget that crosses processes: pickle, environment, header; clocks that differ; Dask and Prefect."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from budget_witness import REQUIRED, WoundClock, need_module
from deadlint_budget import Budget, Cancelled, DeadlineExceeded, _transport, current_budget

SPAWN = multiprocessing.get_context("spawn")


def left_of(budget: Budget) -> float:
    return budget.remaining()


def ambient_path() -> str:
    budget = current_budget()
    return "none" if budget is None else budget.path


def spend(budget: Budget) -> None:
    time.sleep(0.3)
    budget.check("worker")


def same(one: float, other: float, within: float = 0.05) -> bool:
    return abs(one - other) < within


def test_a_pickle_has_no_reading_of_the_monotonic_clock(clock: WoundClock) -> None:
    """That clock has another epoch on another host: 60 s there were read as 2,587,917 s (measured)."""
    clock.now = 7_654_321.0
    data = pickle.dumps(Budget.of(60, clock=clock), protocol=0)
    assert b"76543" not in data
    assert same(pickle.loads(data).remaining(), 60)


def test_layers_and_who_is_to_blame_survive() -> None:
    flow = Budget.of(0.2, "flow", reserve=0.05)
    tile = pickle.loads(pickle.dumps(flow.limit("tile", 30)))
    assert tile.path == "flow/tile"
    assert same(tile.remaining(), 0.15)
    time.sleep(0.2)
    with pytest.raises(DeadlineExceeded) as caught:
        tile.check("gdalwarp")
    assert (caught.value.layer, caught.value.path, caught.value.limit) == ("flow", "flow/tile/gdalwarp", 0.2)


def test_a_cancellation_and_a_detached_budget_travel() -> None:
    flow = Budget.of(60, "flow")
    flow.cancel("operator")
    with pytest.raises(Cancelled, match="operator"):
        pickle.loads(pickle.dumps(flow.limit("tile"))).check()
    free = pickle.loads(pickle.dumps(Budget.detached("outlives its caller")))
    assert free.remaining() == float("inf")
    assert pickle.loads(pickle.dumps(free.limit("x", 5))).remaining() <= 5


@pytest.mark.parametrize(
    ("wall_moves", "left"),
    [
        (0.0, 60),
        (10.0, 50),  # ten seconds on the way, in a queue: the wall clock knows
        (-3600.0, 60),  # the receiver's clock is an hour behind: never more than what was left
        (30.0, 30),  # it is half a minute ahead: that much is lost
        (3600.0, 0),  # an hour ahead: nothing is left
    ],
)
def test_the_earlier_of_the_two_counts(wall_moves: float, left: float, monkeypatch: pytest.MonkeyPatch) -> None:
    budget = Budget.of(60)
    for carry in (pickle.dumps(budget), budget.to_env(), budget.to_header()):
        there = time.time() + wall_moves
        monkeypatch.setattr(_transport.time, "time", lambda there=there: there)
        if isinstance(carry, bytes):
            arrived = pickle.loads(carry)
        else:
            arrived = Budget.from_env(carry) or Budget.from_header(carry)
        monkeypatch.undo()
        assert same(arrived.remaining(), left)


def test_env_and_header() -> None:
    budget = Budget.of(60, "flow").limit("gdalwärp", 30)
    assert Budget.from_env({}) is None
    assert Budget.from_header({}) is None
    for carried in (budget.to_env(), budget.to_header()):
        (text,) = carried.values()
        assert text.isascii()
        assert "\n" not in text
    arrived = Budget.from_header({"deadlint-budget": budget.to_header()["Deadlint-Budget"]}, name="handler")
    assert arrived is not None
    assert arrived.path == "flow/gdalwärp/handler"


@pytest.mark.parametrize(
    "text",
    ["x", "[]", "[1]", "[2,[]]", '[1,["a"]]', '[1,["a",1,0,"x",0,0,null]]', '[1,["a",-5,0,1,1,0,null]]',
     '[1,["a",1,0,NaN,0,0,null]]', '[1,["a",1,0,Infinity,0,0,null]]', '[1,[3,1,0,1,1,0,null]]'],
)  # fmt: skip
def test_rubbish_from_outside_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no budget in"):
        Budget.from_header({"Deadlint-Budget": text})


def test_a_child_process_reads_it_when_asked() -> None:
    code = (
        "from deadlint_budget import Budget, current_budget\n"
        "print(current_budget())\n"
        "budget = Budget.from_env(name='child')\n"
        "print(budget.path, budget.remaining())"
    )
    env = {**os.environ, **Budget.of(60, "flow").to_env()}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=env)
    first, second = done.stdout.splitlines()
    assert first == "None"  # never implicitly
    path, left = second.split()
    assert path == "flow/child"
    assert 58 < float(left) <= 60


def test_another_time_namespace() -> None:
    """The clock differs by 100,000 s there, with the same boot id."""
    code = "import pickle, sys; print(pickle.load(sys.stdin.buffer).remaining())"
    command = ["unshare", "--time", "--monotonic", "100000", "--fork", sys.executable, "-c", code]
    data = pickle.dumps(Budget.of(60))
    done = subprocess.run(command, input=data, capture_output=True, check=False)
    if done.returncode:
        pytest.skip(f"unshare --time is not allowed here: {done.stderr.decode()[:80]}")
    assert 55 < float(done.stdout) <= 60


def test_multiprocessing_spawn() -> None:
    with SPAWN.Pool(1) as pool:
        assert 50 < pool.apply(left_of, (Budget.of(60),)) <= 60


def test_concurrent_futures() -> None:
    budget = Budget.of(60, "flow")
    with ProcessPoolExecutor(1, mp_context=SPAWN) as pool:
        assert 50 < pool.submit(left_of, budget.limit("tile", 59)).result() <= 59
        assert pool.submit(ambient_path).result() == "none"
        assert pool.submit(budget.bind(ambient_path)).result() == "flow"
        with pytest.raises(DeadlineExceeded, match="noticed in `short/worker`") as caught:
            pool.submit(spend, Budget.of(0.2, "short")).result()
    assert caught.value.layer == "short"


def test_dask() -> None:
    distributed = need_module("distributed", "pip install distributed")
    os.environ["PYTHONPATH"] = os.pathsep.join(sys.path)  # the workers import this module by name
    budget = Budget.of(60, "flow")
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        futures = [client.submit(left_of, budget.limit("tile", 50), pure=False) for _ in range(4)]
        assert all(40 < left <= 50 for left in client.gather(futures))
        assert client.submit(budget.bind(ambient_path)).result() == "flow"
        with pytest.raises(DeadlineExceeded) as caught:
            client.submit(spend, Budget.of(0.25, "short")).result()
    assert caught.value.layer == "short"


def test_prefect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a process of its own: Prefect starts a server, which takes it half a minute, and reads settings at import."""
    need_module("prefect", "pip install prefect")
    if not REQUIRED:
        pytest.skip("Prefect's server takes half a minute to start: set DEADLINT_REQUIRE_SERVICES=1 to run this")
    code = """
from prefect import flow, task
from deadlint_budget import Budget, DeadlineExceeded, current_budget, run

@task
def left(budget):
    return budget.remaining()

@task
def ambient():
    budget = current_budget()
    return budget and budget.path

@task
def late(budget):
    run(["sleep", "30"], budget=budget)

@flow
def nightly():
    budget = Budget.of(60, "nightly")
    with budget:
        direct, submitted = left(budget), left.submit(budget).result()
        paths = ambient(), ambient.submit().result()
    try:
        late.submit(budget.limit("tile", 0.5)).result()
    except DeadlineExceeded as error:
        return direct, submitted, paths, error.layer

direct, submitted, paths, layer = nightly()
assert 40 < submitted <= direct <= 60
print(paths, layer)
"""
    env = {
        **os.environ,
        "PREFECT_HOME": str(tmp_path),
        "PREFECT_LOGGING_LEVEL": "CRITICAL",
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "60",
        "DO_NOT_TRACK": "1",
    }
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, env=env, timeout=120
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.splitlines()[-1] == "('nightly', 'nightly') nightly/tile"


def test_nothing_is_read_implicitly(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in Budget.of(0).to_env().items():
        monkeypatch.setenv(name, value)
    assert current_budget() is None
    arrived: Any = Budget.from_env()
    assert arrived.expired
