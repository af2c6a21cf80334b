"""`process`: a child that is talked with while it runs."""

# ruff: noqa: PT012, SIM117 - a block under test is more than one line

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable
from subprocess import PIPE
from typing import Any

import pytest
from budget_witness import Mark, eventually
from deadlint_budget import Budget, Cancelled, CommandDeadlineExceeded, process

Took = Callable[..., Any]


def test_lines_as_they_come() -> None:
    with process("for i in 1 2 3; do echo $i; done", shell=True, stdout=PIPE, text=True, want=5) as child:
        assert child.stdout is not None
        assert [line.strip() for line in child.stdout] == ["1", "2", "3"]
    assert child.returncode == 0


def test_bytes_and_both_pipes() -> None:
    with process("echo out; echo err >&2", shell=True, stdout=PIPE, stderr=PIPE, want=5) as child:
        assert child.stdout is not None
        assert child.stderr is not None
        assert (child.stdout.read(), child.stderr.read()) == (b"out\n", b"err\n")


def test_a_conversation() -> None:
    with process(["cat"], stdin=PIPE, stdout=PIPE, text=True, want=5) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        for word in ("a", "b"):
            child.stdin.write(f"{word}\n")
            child.stdin.flush()
            assert child.stdout.readline() == f"{word}\n"
        child.stdin.close()
        assert child.wait() == 0


def test_check() -> None:
    with pytest.raises(subprocess.CalledProcessError), process(["false"], check=True):
        pass


@pytest.mark.parametrize(
    "script",
    ["sleep {s}", "setsid sleep {s} & sleep {s}", "trap '' TERM; while :; do sleep {s}; done", "sleep {s} & sleep {s}"],
)
def test_a_read_ends_with_the_limit(script: str, mark: Mark, took: Took) -> None:
    """`for line in p.stdout` never reaches the limit while the pipe is open (measured)."""
    lines = []
    with took(0.3, 1.3), pytest.raises(CommandDeadlineExceeded) as caught:
        with process(
            "echo a; " + script.format(s=mark.sleep), shell=True, stdout=PIPE, text=True, want=0.3, grace=0.2
        ) as child:
            assert child.stdout is not None
            for line in child.stdout:
                lines.append(line)
    assert lines == ["a\n"]
    assert caught.value.limit == 0.3
    assert mark.count() == 0


def test_a_write_ends_with_the_limit(mark: Mark, took: Took) -> None:
    with took(0.3, 1), pytest.raises(CommandDeadlineExceeded):
        with process(["sleep", mark.sleep], stdin=PIPE, want=0.3) as child:
            assert child.stdin is not None
            while True:
                child.stdin.write(b"x" * 10_000)


def test_a_flood_ends_with_the_limit(took: Took) -> None:
    with took(0.3, 1), pytest.raises(CommandDeadlineExceeded):
        with process(["yes"], stdout=PIPE, want=0.3) as child:
            assert child.stdout is not None
            while child.stdout.read(100_000):
                pass


def test_the_limit_holds_while_the_block_does_something_else(mark: Mark) -> None:
    with pytest.raises(CommandDeadlineExceeded), process(["sleep", mark.sleep], want=0.2):
        time.sleep(0.5)
        assert mark.count() == 0


def test_leaving_waits_for_the_child_within_the_limit(mark: Mark, took: Took) -> None:
    with took(0.2, 0.5), process(["sleep", "0.2"], want=5) as child:
        pass
    assert child.returncode == 0
    with took(0.3, 0.8), pytest.raises(CommandDeadlineExceeded), process(["sleep", mark.sleep], want=0.3):
        pass


def test_an_exception_stops_the_tree_at_once(mark: Mark, took: Took) -> None:
    with took(0, 0.6), pytest.raises(KeyError):
        with process(f"sleep {mark.sleep} & sleep {mark.sleep}", shell=True):
            raise KeyError
    assert mark.count() == 0


def test_a_pipe_held_by_a_stranger(mark: Mark, took: Took) -> None:
    with took(0, 1), process(f"setsid sleep {mark.sleep} & echo done", shell=True, stdout=PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.read() == b"done\n"
    for pid in mark.pids():
        subprocess.run(["kill", "-KILL", str(pid)], check=True)
    assert eventually(lambda: mark.count() == 0)


def test_cancel(mark: Mark, took: Took) -> None:
    budget = Budget.of(60, "flow")
    threading.Timer(0.2, budget.cancel, ["enough"]).start()
    with took(0.19, 0.7), pytest.raises(Cancelled, match="enough") as caught:
        with process(["sleep", mark.sleep], stdout=PIPE, budget=budget) as child:
            assert child.stdout is not None
            child.stdout.read()
    assert caught.value.layer == "flow"


def test_stop(mark: Mark) -> None:
    with process(["sleep", mark.sleep]) as child:
        assert child.stop() == -15


def test_no_time_starts_nothing() -> None:
    with pytest.raises(CommandDeadlineExceeded, match="not started"), process(["true"], budget=Budget.of(0)):
        raise AssertionError("entered")
    with pytest.raises(FileNotFoundError), process(["no-such-program"], want=1):
        raise AssertionError("entered")


def test_nothing_is_left() -> None:
    code = """
import os, threading
from subprocess import PIPE
from deadlint_budget import process, run
run(["true"])
before = len(os.listdir("/proc/self/fd"))
for _ in range(100):
    with process(["cat"], stdin=PIPE, stdout=PIPE, want=10) as child:
        child.stdin.write(b"x"); child.stdin.close()
        assert child.stdout.read() == b"x"
assert len(os.listdir("/proc/self/fd")) == before, os.listdir("/proc/self/fd")
assert threading.active_count() == 1
print("clean")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout == "clean\n", done.stderr
