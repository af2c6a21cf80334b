"""`cancel_on_signals` in processes of their own, which real signals hit."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import warnings

import pytest
from budget_witness import Mark, eventually
from deadlint_budget import Budget, cancel_on_signals

PRELUDE = """
import asyncio, os, signal, sys, threading, time
from deadlint_budget import Budget, Cancelled, cancel_on_signals, run
budget = Budget.of(60, "flow", reserve=5)
def say(*words): print(*words, flush=True)
"""


def start(code: str) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", PRELUDE + textwrap.dedent(code)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def end(process: subprocess.Popen[str], *numbers: int) -> tuple[int, str, str]:
    for number in numbers:
        process.send_signal(number)
    assert process.stdout is not None
    assert process.stderr is not None
    out, err = process.stdout.read(), process.stderr.read()  # communicate would lose what readline has buffered
    return process.wait(10), out, err


WORK = """
try:
    with cancel_on_signals(budget):
        try:
            say("ready")
            budget.sleep(50)
        except Cancelled as error:
            with budget.cleanup(3) as cleanup:
                run(["sleep", "0.1"])
                say("cleaned", error.reason, cleanup.remaining() > 2)
            raise
finally:
    say("finally")
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_the_exit_code_is_128_and_the_number(number: signal.Signals) -> None:
    code, out, err = end(start(WORK), number)
    assert (code, out) == (128 + number, f"cleaned {number.name} True\nfinally\n"), err
    assert err == ""


def test_ctrl_c_ends_as_python_ends_it() -> None:
    code, out, err = end(start(WORK), signal.SIGINT)
    assert (code, out) == (-signal.SIGINT, "cleaned SIGINT True\nfinally\n")
    assert "KeyboardInterrupt" in err


def test_a_child_is_stopped(mark: Mark) -> None:
    code = f"""
    with cancel_on_signals(budget):
        say("ready")
        run("sleep {mark.sleep} & sleep {mark.sleep}", shell=True, budget=budget)
    """
    process = start(code)
    assert eventually(lambda: mark.count() == 2)
    assert end(process, signal.SIGTERM)[0] == 143
    assert mark.count() == 0


def test_work_that_does_not_notice_ends_the_process_all_the_same() -> None:
    code = """
    with cancel_on_signals(budget):
        say("ready")
        time.sleep(0.5)
        say("done", budget.cancelled)
    say("not reached")
    """
    assert end(start(code), signal.SIGTERM)[:2] == (143, "done True\n")


def test_without_a_signal_nothing_happens() -> None:
    code = """
    before = signal.getsignal(signal.SIGTERM)
    with cancel_on_signals(budget) as signals:
        say("ready")
    say(signals.received, signal.getsignal(signal.SIGTERM) is before)
    """
    assert end(start(code))[:2] == (0, "None True\n")


def test_another_error_comes_out_as_it_is() -> None:
    code = """
    with cancel_on_signals(budget):
        say("ready")
        time.sleep(0.5)
        raise KeyError("mine")
    """
    code_, _, err = end(start(code), signal.SIGTERM)
    assert code_ == 1
    assert "KeyError: 'mine'" in err


def test_a_second_signal_does_not_wait() -> None:
    code = """
    with cancel_on_signals(budget):
        say("ready")
        try:
            budget.sleep(50)
        finally:
            say("cleaning")
            time.sleep(50)
    """
    process = start(code)
    process.send_signal(signal.SIGTERM)
    assert process.stdout is not None
    assert process.stdout.readline() == "cleaning\n"
    assert end(process, signal.SIGTERM)[0] == -signal.SIGTERM


def test_an_orchestrator_s_handler_is_called_when_all_is_clean() -> None:
    code = """
    class Terminated(BaseException): pass
    def orchestrator(number, frame):
        say("orchestrator", number)
        raise Terminated
    signal.signal(signal.SIGTERM, orchestrator)
    try:
        with cancel_on_signals(budget):
            try:
                say("ready")
                budget.sleep(50)
            finally:
                say("cleaned")
    except Terminated as error:
        say("ended by it, after", type(error.__context__).__name__)
    """
    expected = "cleaned\norchestrator 15\nended by it, after Cancelled\n"
    assert end(start(code), signal.SIGTERM)[:2] == (0, expected)


def test_nested_blocks_are_cancelled_together() -> None:
    code = """
    inner = Budget.of(30, "inner")
    with cancel_on_signals(budget):
        try:
            with cancel_on_signals(inner):
                say("ready")
                inner.sleep(20)
        except Cancelled:
            say("inner", inner.cancel_reason, "outer", budget.cancel_reason)
        say("going on to the end of the outer block")
    say("not reached")
    """
    code_, out, _ = end(start(code), signal.SIGTERM)
    assert (code_, out) == (143, "inner SIGTERM outer SIGTERM\ngoing on to the end of the outer block\n")


def test_an_ignored_signal_stays_ignored() -> None:
    code = """
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with cancel_on_signals(budget):
        say("ready")
        time.sleep(0.5)
    say("went on", budget.cancelled)
    """
    assert end(start(code), signal.SIGHUP)[:2] == (0, "went on False\n")


def test_under_asyncio() -> None:
    code = """
    async def main():
        async with budget.scope():
            say("ready")
            await asyncio.sleep(50)
    try:
        with cancel_on_signals(budget):
            asyncio.run(main())
    finally:
        say("finally")
    """
    assert end(start(code), signal.SIGTERM)[:2] == (143, "finally\n")


def test_inside_a_running_loop() -> None:
    code = """
    async def main():
        with cancel_on_signals(budget):
            async with budget.scope():
                say("ready")
                await asyncio.sleep(50)
    asyncio.run(main())
    """
    assert end(start(code), signal.SIGTERM)[0] == 143


def test_work_in_threads_is_cancelled() -> None:
    code = """
    from concurrent.futures import ThreadPoolExecutor
    with cancel_on_signals(budget), ThreadPoolExecutor(3) as pool:
        futures = [pool.submit(budget.sleep, 50) for _ in range(3)]
        say("ready")
        for future in futures:
            future.result()
    """
    assert end(start(code), signal.SIGTERM)[0] == 143


def test_in_another_thread_it_says_that_it_does_nothing() -> None:
    caught: list[warnings.WarningMessage] = []

    def work() -> None:
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            with cancel_on_signals(Budget.of(5)):
                caught.extend(seen)

    before = signal.getsignal(signal.SIGTERM)
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert "main thread" in str(caught[0].message)
    assert signal.getsignal(signal.SIGTERM) is before


def test_as_pid_1_the_signal_counts() -> None:
    if os.getuid() != 0:
        pytest.skip("needs root for a pid namespace")
    code = PRELUDE + textwrap.dedent(WORK)
    command = ["unshare", "--pid", "--fork", "--kill-child", sys.executable, "-c", code]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    if process.stdout.readline() != "ready\n":
        pytest.skip("unshare --pid is not allowed here")
    child = subprocess.run(["ps", "--ppid", str(process.pid), "-o", "pid="], capture_output=True, text=True, check=True)
    os.kill(int(child.stdout), signal.SIGTERM)
    assert end(process)[:2] == (143, "cleaned SIGTERM True\nfinally\n")
