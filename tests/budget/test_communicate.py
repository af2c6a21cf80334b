"""`communicate` and `wait` on a `Popen` of the caller's."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from subprocess import PIPE, Popen
from typing import Any

import pytest
from budget_witness import Mark, alive, eventually
from deadlint_budget import Budget, Cancelled, CommandDeadlineExceeded, DeadlineExceeded, communicate, wait

Took = Callable[..., Any]
ISOLATED: list[dict[str, Any]] = [{}, {"start_new_session": True}, {"process_group": 0}]


@pytest.mark.parametrize("isolation", ISOLATED)
@pytest.mark.parametrize("text", [False, True])
def test_the_same_as_popen_communicate(isolation: dict[str, Any], text: bool) -> None:
    def start() -> Popen[Any]:
        command = "cat; echo err >&2; exit 3"
        return Popen(command, shell=True, stdin=PIPE, stdout=PIPE, stderr=PIPE, text=text, **isolation)

    data: Any = "in\n" if text else b"in\n"
    with start() as want, start() as got:
        assert communicate(got, data, want=10) == want.communicate(data)
        assert got.returncode == want.returncode == 3


def test_without_pipes() -> None:
    process = Popen(["true"])
    assert communicate(process) == (None, None)
    assert process.returncode == 0


@pytest.mark.parametrize("text", [False, True])
def test_the_documented_recipe_gets_what_was_read(text: bool, mark: Mark) -> None:
    """`except TimeoutExpired: proc.kill(); outs, errs = proc.communicate()`, as the subprocess page has it."""
    script = f"echo out; echo err >&2; exec sleep {mark.sleep}"
    process = Popen(script, shell=True, stdout=PIPE, stderr=PIPE, text=text)
    with pytest.raises(subprocess.TimeoutExpired):
        communicate(process, want=0.5, grace=0.2)
    process.kill()
    assert process.communicate() == (("out\n", "err\n") if text else (b"out\n", b"err\n"))


def test_wait_returns_the_code() -> None:
    assert wait(Popen(["sh", "-c", "exit 4"]), want=10) == 4
    process = Popen(["true"])
    process.wait()
    assert wait(process, want=10) == 0


@pytest.mark.parametrize("isolation", ISOLATED)
@pytest.mark.parametrize(
    "script",
    [
        "sleep {s} & sleep {s}",
        "trap '' TERM; sleep {s} & while :; do sleep {s}; done",
        "setsid sleep {s} & sleep {s}",
        "kill -STOP $$; sleep {s}",
    ],
)
def test_communicate_stops_the_tree(isolation: dict[str, Any], script: str, mark: Mark, took: Took) -> None:
    process = Popen("echo out; " + script.format(s=mark.sleep), shell=True, stdout=PIPE, text=True, **isolation)
    with took(0.3, 1.6), pytest.raises(subprocess.TimeoutExpired) as caught:
        communicate(process, want=0.3, grace=0.2)
    assert isinstance(caught.value, DeadlineExceeded)
    assert caught.value.output == "out\n"
    assert process.returncode is not None
    assert process.stdout is not None
    assert process.stdout.closed
    assert mark.count() == 0


@pytest.mark.parametrize("isolation", ISOLATED)
def test_wait_stops_the_tree(isolation: dict[str, Any], mark: Mark, took: Took) -> None:
    process = Popen(f"sleep {mark.sleep} & sleep {mark.sleep}", shell=True, stdout=PIPE, **isolation)
    with took(0.3, 1), pytest.raises(CommandDeadlineExceeded) as caught:
        wait(process, want=0.3)
    assert (caught.value.output, process.returncode) == (None, -15)
    assert process.stdout is not None
    assert not process.stdout.closed  # it is the caller's, who may have a thread that reads it
    process.stdout.close()
    assert mark.count() == 0


def test_with_popen_around_it_comes_back(mark: Mark, took: Took) -> None:
    """`with Popen` alone waits in its exit until the child ends (measured)."""
    command = f"sleep {mark.sleep} & sleep {mark.sleep}"
    with (
        took(0.3, 1),
        pytest.raises(CommandDeadlineExceeded),
        Popen(command, shell=True, stdout=PIPE) as process,
    ):
        communicate(process, want=0.3)
    assert mark.count() == 0


def test_a_pipe_held_by_a_stranger_does_not_hold_the_call(mark: Mark, took: Took) -> None:
    process = Popen(f"setsid sleep {mark.sleep} & echo done", shell=True, stdout=PIPE)
    with took(0, 1.2):
        assert communicate(process) == (b"done\n", None)
    assert process.returncode == 0
    for pid in mark.pids():
        subprocess.run(["kill", "-KILL", str(pid)], check=True)
    assert eventually(lambda: mark.count() == 0)


@pytest.mark.parametrize("call", [communicate, wait])
def test_a_spent_budget_stops_what_runs(call: Callable[..., Any], mark: Mark, took: Took) -> None:
    process = Popen(f"sleep {mark.sleep} & sleep {mark.sleep}", shell=True, start_new_session=True)
    with took(0, 0.7), pytest.raises(CommandDeadlineExceeded):
        call(process, budget=Budget.of(0))
    assert process.poll() is not None
    assert mark.count() == 0


def test_a_bad_number_stops_what_runs(mark: Mark) -> None:
    process = Popen(["sleep", mark.sleep])
    with pytest.raises(ValueError, match="finite"):
        wait(process, want=float("nan"))
    assert process.poll() is not None


def test_the_ambient_budget_counts(mark: Mark) -> None:
    with Budget.of(0.3, "flow"), pytest.raises(CommandDeadlineExceeded) as caught:
        wait(Popen(["sleep", mark.sleep]))
    assert caught.value.path == "flow/sleep"


def test_cancel_wakes_it(mark: Mark, took: Took) -> None:
    budget = Budget.of(60)
    threading.Timer(0.2, budget.cancel, ["enough"]).start()
    with took(0.19, 0.8), pytest.raises(Cancelled, match="enough"):
        communicate(Popen(["sleep", mark.sleep], stdout=PIPE), budget=budget)


def test_a_stranger_child_is_not_touched(mark: Mark) -> None:
    """A child in our own group: only its descendants are stopped, not the group, which is ours."""
    bystander = Popen(["sleep", mark.sleep])
    with pytest.raises(CommandDeadlineExceeded):
        wait(Popen("sleep 30 & sleep 30", shell=True), want=0.2)
    assert alive(bystander.pid)
    bystander.kill()
    bystander.wait()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize("call", ["communicate", "wait"])
def test_what_ends_the_parent_ends_an_isolated_child(call: str, number: signal.Signals, mark: Mark) -> None:
    code = f"""
from subprocess import Popen
from deadlint_budget import communicate, wait
{call}(Popen("sleep {mark.sleep} & sleep {mark.sleep}", shell=True, start_new_session=True), want=60)
"""
    parent = Popen([sys.executable, "-c", code], stderr=subprocess.DEVNULL)
    assert eventually(lambda: mark.count() == 2, 5)
    time.sleep(0.05)  # the child runs before it is waited for: that it dies before then is not promised
    parent.send_signal(number)
    parent.wait(5)
    assert eventually(lambda: mark.count() == 0, 2.5)


def test_a_loop_in_our_own_group_does_not_slip_away(mark: Mark) -> None:
    """The shell starts another sleeper as soon as one is killed; which of the two comes first is chance."""
    for _ in range(15):
        process = Popen(f"trap '' TERM; while :; do sleep {mark.sleep}; done", shell=True)
        with pytest.raises(CommandDeadlineExceeded):
            communicate(process, want=0.05, grace=0)
        assert mark.count() == 0


def test_a_full_pipe_is_drained() -> None:
    code = "import sys; sys.stdout.write('x' * 5_000_000); sys.stderr.write('y' * 5_000_000)"
    out, err = communicate(Popen([sys.executable, "-c", code], stdout=PIPE, stderr=PIPE), want=30)
    assert (len(out), len(err)) == (5_000_000, 5_000_000)


def test_no_thread_or_descriptor_is_left() -> None:
    code = """
import os, threading
from subprocess import PIPE, Popen
from deadlint_budget import Budget, communicate, wait
before = len(os.listdir("/proc/self/fd"))
for _ in range(100):
    communicate(Popen(["true"], stdout=PIPE), budget=Budget.of(10))
    wait(Popen(["true"]), want=10)
assert len(os.listdir("/proc/self/fd")) == before
assert threading.active_count() == 1
print("clean")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout == "clean\n", done.stderr


def test_a_child_that_does_not_read_its_input(mark: Mark, took: Took) -> None:
    process = Popen(["sleep", mark.sleep], stdin=PIPE)
    began = time.monotonic()
    with took(0.3, 1), pytest.raises(CommandDeadlineExceeded):
        communicate(process, b"x" * 1_000_000, want=0.3)
    assert time.monotonic() - began < 1
