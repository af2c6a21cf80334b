"""`run`, `check_output`, `run_async`: the tree of a child ends with its limit, whatever the child does."""

from __future__ import annotations

import asyncio
import ctypes
import os
import pickle
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from budget_witness import Mark, alive, eventually, need_program, pids_with
from deadlint_budget import (
    Budget,
    Cancelled,
    CommandCancelled,
    CommandDeadlineExceeded,
    DeadlineExceeded,
    check_output,
    run,
    run_async,
    run_gdal,
)

PYTHON = sys.executable
Took = Callable[..., Any]


def python(code: str) -> list[str]:
    return [PYTHON, "-c", code]


# --- a drop-in for subprocess.run --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "options"),
    [
        (["echo", "hi"], {"capture_output": True}),
        (["echo", "hi"], {"capture_output": True, "text": True}),
        (["cat"], {"input": b"abc", "capture_output": True}),
        (["cat"], {"input": "å\r\nb\n", "capture_output": True, "text": True, "encoding": "utf-8"}),
        (["cat"], {"input": "", "stdout": subprocess.PIPE, "text": True}),
        ("echo $X; exit 3", {"shell": True, "env": {"X": "y"}, "capture_output": True}),
        (["env"], {"env": {"A": "1"}, "stdout": subprocess.PIPE}),
        (["pwd"], {"cwd": "/", "stdout": subprocess.PIPE, "universal_newlines": True}),
        ("echo out; echo err >&2", {"shell": True, "stdout": -1, "stderr": subprocess.STDOUT}),
        ("kill -9 $$", {"shell": True}),
        (["printf", r"a\r\nb\rc"], {"capture_output": True, "text": True}),
        (["true"], {"start_new_session": True, "preexec_fn": None, "close_fds": True}),
        (["true"], {"process_group": 0}),
        (["true"], {"start_new_session": False}),
    ],
)
def test_the_same_result(args: Any, options: dict[str, Any]) -> None:
    want = subprocess.run(args, check=False, **options)
    got = run(args, want=20, **options)
    assert type(got) is subprocess.CompletedProcess
    assert vars(got) == vars(want)


@pytest.mark.parametrize("isolate", [os.setsid, os.setpgrp, lambda: [os.setsid()], lambda: None])
def test_preexec_fn_that_isolates(isolate: Callable[[], None], mark: Mark) -> None:
    with pytest.raises(DeadlineExceeded):
        run(f"sleep {mark.sleep} & sleep {mark.sleep}", shell=True, want=0.2, preexec_fn=isolate)
    assert mark.count() == 0


def test_check_raises_the_same_error() -> None:
    with pytest.raises(subprocess.CalledProcessError) as caught:
        run("echo out; exit 3", shell=True, check=True, capture_output=True, text=True, want=5)
    assert (caught.value.returncode, caught.value.output) == (3, "out\n")


def test_check_output() -> None:
    assert check_output(["echo", "hi"], text=True, want=5) == "hi\n"
    with pytest.raises(subprocess.CalledProcessError):
        check_output(["false"])
    with pytest.raises(ValueError, match="stdout"):
        check_output(["true"], stdout=subprocess.PIPE)


def test_a_missing_program_passes_through() -> None:
    with pytest.raises(FileNotFoundError):
        run(["no-such-program-at-all"], want=5)


def test_contradictions_are_refused() -> None:
    with pytest.raises(TypeError, match="two spellings"):
        run(["true"], want=1, timeout=1)
    with pytest.raises(ValueError, match="capture_output"):
        run(["true"], capture_output=True, stdout=subprocess.PIPE)
    with pytest.raises(ValueError, match="input"):
        run(["true"], input=b"", stdin=subprocess.PIPE)
    with pytest.raises(TypeError, match="str"):
        run(["cat"], input=b"x", text=True, want=5)


@pytest.mark.parametrize("bad", [-1, float("nan"), float("inf")])
def test_a_bad_limit_starts_nothing(bad: float, tmp_path: Path) -> None:
    for options in ({"want": bad}, {"timeout": bad}, {"grace": bad}):
        with pytest.raises(ValueError, match="finite"):
            run(["touch", str(tmp_path / "started")], **options)
    assert not (tmp_path / "started").exists()


@pytest.mark.parametrize("limit", [{"want": 0}, {"budget": Budget.of(0)}, {"timeout": 0.0004}])
def test_no_time_starts_nothing(limit: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(CommandDeadlineExceeded, match="not started") as caught:
        run(["touch", str(tmp_path / "started")], **limit)
    assert caught.value.returncode is None
    assert not (tmp_path / "started").exists()


def test_there_is_no_standard_input_unless_asked_for() -> None:
    code = "import os; print(os.readlink('/proc/self/fd/0'))"
    assert run(python(code), stdout=subprocess.PIPE, text=True).stdout.strip() == "/dev/null"
    with open("/etc/hostname") as file:
        found = run(python(code), stdin=file, stdout=subprocess.PIPE, text=True).stdout.strip()
    assert found == "/etc/hostname"


def test_the_child_has_a_session_of_its_own() -> None:
    out = run(python("import os; print(os.getsid(0), os.getpid())"), stdout=subprocess.PIPE, text=True).stdout
    session, pid = out.split()
    assert session == pid != str(os.getsid(0))


# --- the double exception ----------------------------------------------------------------------------------


def test_the_exception_is_both_and_pickles(mark: Mark) -> None:
    budget = Budget.of(30, "flow").limit("build_tile", 20)
    with pytest.raises(subprocess.TimeoutExpired) as caught:
        run(
            f"echo out; echo err >&2; sleep {mark.sleep}",
            shell=True,
            capture_output=True,
            text=True,
            budget=budget,
            want=0.3,
        )
    error = caught.value
    assert isinstance(error, DeadlineExceeded)
    assert (error.stdout, error.output, error.stderr) == ("out\n", "out\n", "err\n")
    assert (error.layer, error.cause, error.limit, error.timeout) == (
        "flow/build_tile/echo",
        "want",
        0.3,
        0.3,
    )
    assert error.returncode == -signal.SIGTERM
    assert error.ending_signal == signal.SIGTERM
    assert error.cmd.startswith("echo out")
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is CommandDeadlineExceeded
    assert (str(again), vars(again)) == (str(error), vars(error))


def test_the_job_is_named_and_not_the_want(mark: Mark) -> None:
    with Budget.of(0.4, "job"), pytest.raises(CommandDeadlineExceeded) as caught:
        run(["sleep", mark.sleep], want=9)
    assert (caught.value.layer, caught.value.path, caught.value.limit) == ("job", "job/sleep", 0.4)


def test_output_cut_in_a_character_is_text_all_the_same(mark: Mark) -> None:
    with pytest.raises(CommandDeadlineExceeded) as caught:
        run(rf"printf 'a\303'; sleep {mark.sleep}", shell=True, stdout=-1, encoding="utf-8", want=0.3)
    assert caught.value.output == "a\N{REPLACEMENT CHARACTER}"


# --- never a hang, nothing left ----------------------------------------------------------------------------

SHELL = {
    "one child": "exec sleep {s}",
    "grandchildren": "sleep {s} & sleep {s}",
    "a pipeline": "sleep {s} | cat; true",
    "ignores SIGTERM": "trap '' TERM; sleep {s} & while :; do sleep {s}; done",
    "closes its pipes": "exec >&- 2>&-; exec sleep {s}",
    "forks and exits, output held": "sleep {s} & exec sleep {s}",
    "left the session": "setsid sleep {s} & sleep {s}",
    "left it twice": "(setsid sh -c 'sleep {s} & sleep {s}' &) ; sleep {s}",
    "stopped": "kill -STOP $$; sleep {s}",
    "a stopped child of its own": "sh -c 'kill -STOP $$; sleep {s}' & sleep {s}",
    "coreutils timeout": "exec timeout {s} sleep {s}",
    "floods its pipe": "yes & sleep {s}",
}


@pytest.mark.parametrize("what", SHELL)
@pytest.mark.parametrize("capture", [False, True])
def test_the_tree_ends_with_the_limit(what: str, capture: bool, mark: Mark, took: Took) -> None:
    where = {"capture_output": True} if capture else {"stdout": subprocess.DEVNULL}
    with took(0.3, 0.3 + 0.3 + 1), pytest.raises(CommandDeadlineExceeded) as caught:
        run(SHELL[what].format(s=mark.sleep), shell=True, want=0.3, grace=0.3, **where)
    assert mark.count() == 0
    assert not caught.value.survivors
    assert not caught.value.stuck


PROGRAMS = {
    "double fork": (
        "import os, time\nif os.fork(): time.sleep({s})\nos.setsid()\nif os.fork(): os._exit(0)\ntime.sleep({s})"
    ),
    "a daemon that closes all": (
        "import os, time\nif os.fork(): time.sleep({s})\nos.setsid()\nif os.fork(): os._exit(0)\n"
        "os.closerange(0, 64)\ntime.sleep({s})"
    ),
    "forks while it is killed": (
        "import os, signal, time\nsignal.signal(signal.SIGTERM, lambda *_: None)\n"
        "for _ in range(50):\n if not os.fork(): time.sleep({s})\n time.sleep(0.01)\ntime.sleep({s})"
    ),
    "forks on SIGTERM": (
        "import os, signal, time\n"
        "def more(*_):\n for _ in range(5):\n  if not os.fork(): time.sleep({s})\n"
        "signal.signal(signal.SIGTERM, more)\ntime.sleep(5); time.sleep({s})"
    ),
}


@pytest.mark.parametrize("what", PROGRAMS)
def test_programs_that_resist(what: str, mark: Mark, took: Took) -> None:
    code = f"# {mark.sleep}\n" + PROGRAMS[what].format(s=mark.sleep)
    with took(0.3, 0.4 + 0.2 + 1), pytest.raises(CommandDeadlineExceeded):
        run(python(code), want=0.4, grace=0.2, stdout=subprocess.PIPE)
    assert pids_with(mark.sleep) == []


def test_an_escapee_is_found_by_its_parent_where_the_environment_is_given(mark: Mark) -> None:
    with pytest.raises(CommandDeadlineExceeded):
        run(
            f"setsid sleep {mark.sleep} & sleep {mark.sleep}",
            shell=True,
            env={"PATH": os.environ["PATH"]},
            want=0.3,
        )
    assert mark.count() == 0


def test_a_child_that_cleans_up_gets_its_grace(took: Took) -> None:
    code = "trap 'sleep 0.2; echo cleaned; exit 3' TERM; echo ready; while :; do sleep 0.01; done"
    with took(0.5, 1.2), pytest.raises(CommandDeadlineExceeded) as caught:
        run(code, shell=True, stdout=-1, text=True, want=0.3, grace=5)
    assert (caught.value.output, caught.value.returncode) == ("ready\ncleaned\n", 3)
    assert caught.value.ending_signal == signal.SIGTERM


def test_much_to_say_on_sigterm_does_not_block_the_child() -> None:
    code = (
        "import signal, sys, time\n"
        "def more(*_): sys.stdout.write('x' * 1_000_000); sys.stdout.flush(); sys.exit(5)\n"
        "signal.signal(signal.SIGTERM, more)\nprint('ready', flush=True)\ntime.sleep(60)"
    )
    with pytest.raises(CommandDeadlineExceeded) as caught:
        run(python(code), stdout=-1, want=0.5, grace=5)
    assert (caught.value.returncode, len(caught.value.output)) == (5, 1_000_006)


def test_a_child_that_ends_at_the_deadline_is_no_error() -> None:
    outcomes = set()
    for number in range(40):
        try:
            run(["sleep", "0.03"], want=0.03 + number / 10_000, grace=1)
            outcomes.add("ended")
        except CommandDeadlineExceeded as error:
            outcomes.add(f"stopped, {error.returncode}")
    assert outcomes <= {"ended", "stopped, 0", "stopped, -15"}  # neither ProcessLookupError nor a hang


def test_the_grace_lies_inside_the_budget(mark: Mark, took: Took) -> None:
    with took(0.9, 1.2), pytest.raises(CommandDeadlineExceeded) as caught:
        run(
            f"trap '' TERM; while :; do sleep {mark.sleep}; done",
            shell=True,
            budget=Budget.of(1, "job"),
            grace=60,
        )
    assert caught.value.ending_signal == signal.SIGKILL


def test_a_reserve_is_where_the_grace_comes_from(mark: Mark, took: Took) -> None:
    budget = Budget.of(1, "job", reserve=0.6)
    with took(0.95, 1.2), pytest.raises(CommandDeadlineExceeded) as caught:
        run(f"trap '' TERM; while :; do sleep {mark.sleep}; done", shell=True, budget=budget, grace=60)
    assert caught.value.ending_seconds > 0.5


@pytest.mark.parametrize("escape", ["", "setsid "])
def test_leftovers_do_not_hold_the_call(escape: str, mark: Mark, took: Took) -> None:
    """Without a limit subprocess.run waits here until the sleeper ends."""
    with took(0, 0.8):
        done = run(f"{escape}sleep {mark.sleep} & echo done", shell=True, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "done\n")
    if escape:
        assert mark.count() == 1  # it left the group of a child that ended well: meant to, for all that we know
        os.kill(mark.pids()[0], signal.SIGKILL)
        assert eventually(lambda: mark.count() == 0)
    assert mark.count() == 0


def test_leftovers_can_be_kept(mark: Mark) -> None:
    run(f"sleep {mark.sleep} &", shell=True, leftovers="keep")
    assert eventually(lambda: mark.count() == 1)
    os.kill(mark.pids()[0], signal.SIGKILL)
    assert eventually(lambda: mark.count() == 0)


def test_a_writer_that_outlives_its_shell_may_finish(tmp_path: Path) -> None:
    """bash does not wait for a process substitution."""
    run(["bash", "-c", f"echo data > >(sleep 0.1; cat > {tmp_path / 'out'})"])
    assert (tmp_path / "out").read_text() == "data\n"


def test_large_output_and_input() -> None:
    data = os.urandom(20_000_000)
    assert run(["cat"], input=data, capture_output=True, want=30).stdout == data


def test_output_is_bounded_and_told() -> None:
    with pytest.warns(RuntimeWarning, match="bytes in the middle were dropped"):
        done = run("echo first; head -c 5000000 /dev/zero; echo last", shell=True, stdout=-1, max_output=1000)
    assert len(done.stdout) == 1000
    assert done.stdout.startswith(b"first\n")
    assert done.stdout.endswith(b"last\n")
    assert done.dropped == 5_000_011 - 1000
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(run("head -c 5000000 /dev/zero", shell=True, stdout=-1, max_output=None).stdout) == 5_000_000


def test_the_exit_is_noticed_at_once() -> None:
    """`Popen.wait(timeout)` polls and takes up to 47 ms (measured)."""
    times = []
    for _ in range(10):
        began = time.monotonic()
        run(["sleep", "0.2"], want=10)
        times.append(time.monotonic() - began)
    assert min(times) < 0.22


# --- cancellation, signals, Ctrl-C -------------------------------------------------------------------------


def test_cancel_from_a_thread(mark: Mark, took: Took) -> None:
    budget = Budget.of(60, "flow")
    threading.Timer(0.2, budget.cancel, ["operator"]).start()
    with took(0.19, 0.7), pytest.raises(CommandCancelled) as caught:
        run(f"sleep {mark.sleep} & sleep {mark.sleep}", shell=True, budget=budget)
    assert isinstance(caught.value, Cancelled)
    assert caught.value.reason == "operator"
    assert type(pickle.loads(pickle.dumps(caught.value))) is CommandCancelled
    assert mark.count() == 0


def test_an_exception_in_the_waiting_thread_stops_the_tree(mark: Mark, took: Took) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGUSR1, interrupt)
    timer = threading.Timer(0.2, os.kill, [os.getpid(), signal.SIGUSR1])
    timer.start()
    try:
        with took(0.19, 0.8), pytest.raises(KeyboardInterrupt):
            run(f"sleep {mark.sleep} & sleep {mark.sleep}", shell=True)
    finally:
        timer.join()
        signal.signal(signal.SIGUSR1, before)
    assert mark.count() == 0


def test_an_exception_from_another_thread_arrives(mark: Mark, took: Took) -> None:
    """What Prefect does to a worker thread: no signal reaches that, and a wait without end would never see it."""
    outcome: list[str] = []

    class Stopped(BaseException):
        pass

    def work() -> None:
        try:
            run(f"sleep {mark.sleep} & sleep {mark.sleep}", shell=True)
        except Stopped:
            outcome.append(f"stopped, {mark.count()} left")

    thread = threading.Thread(target=work)
    thread.start()
    assert eventually(lambda: mark.count() == 2)
    with took(0, 1):
        assert thread.ident is not None
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident), ctypes.py_object(Stopped))
        thread.join()
    assert outcome == ["stopped, 0 left"]


def _parent(mark: Mark, prelude: str = "") -> subprocess.Popen[bytes]:
    """A Python process of its own that waits in `run` for a small tree."""
    code = f"""{prelude}
from deadlint_budget import run
run("trap '' INT; sleep {mark.sleep} & sleep {mark.sleep}", shell=True)
"""
    process = subprocess.Popen(python(code), start_new_session=True, stderr=subprocess.DEVNULL)
    assert eventually(lambda: mark.count() == 2, 5)
    return process


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
@pytest.mark.parametrize("whole_group", [False, True])
def test_what_ends_the_parent_ends_the_tree(number: signal.Signals, whole_group: bool, mark: Mark) -> None:
    parent = _parent(mark)
    (os.killpg if whole_group else os.kill)(parent.pid, number)
    parent.wait(5)
    assert eventually(lambda: mark.count() == 0, 2.5)
    assert eventually(lambda: pids_with(f"children of process {parent.pid} ") == [], 2.5)


def test_a_tree_that_ignores_sigterm_ends_with_its_killed_parent(mark: Mark) -> None:
    code = f"""
from deadlint_budget import run
run("trap '' TERM HUP; sleep {mark.sleep} & while :; do sleep {mark.sleep}; done", shell=True)
"""
    parent = subprocess.Popen(python(code))
    assert eventually(lambda: mark.count() == 2, 5)
    parent.kill()
    parent.wait()
    assert eventually(lambda: mark.count() == 0, 3)


def test_a_second_ctrl_c_ends_the_grace(mark: Mark) -> None:
    code = f"""
from deadlint_budget import run
run("trap '' TERM INT; while :; do sleep {mark.sleep}; done", shell=True, grace=60)
"""
    parent = subprocess.Popen(python(code), stderr=subprocess.DEVNULL)
    assert eventually(lambda: mark.count() == 1, 5)
    parent.send_signal(signal.SIGINT)
    time.sleep(0.4)
    assert parent.poll() is None
    parent.send_signal(signal.SIGINT)
    parent.wait(3)
    assert eventually(lambda: mark.count() == 0, 1)


def test_the_guard_is_no_child_of_ours_and_ends_with_us() -> None:
    code = """
import os
from deadlint_budget import run
run(["true"])
try:
    os.waitpid(-1, os.WNOHANG)
except ChildProcessError:
    print(os.getpid())
"""
    pid = subprocess.run(python(code), capture_output=True, text=True, check=True).stdout.strip()
    assert pid
    assert eventually(lambda: pids_with(f"children of process {pid} ") == [])


def test_a_guard_that_was_ended_is_replaced(mark: Mark) -> None:
    code = f"""
import sys
from deadlint_budget import run
run(["true"])
print("ready", flush=True)
sys.stdin.readline()
run(["sleep", "{mark.sleep}"], stdout=-3)
"""
    parent = subprocess.Popen(python(code), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert parent.stdin is not None
    assert parent.stdout is not None
    parent.stdout.readline()
    guard = f"children of process {parent.pid} "
    for pid in pids_with(guard):
        os.kill(pid, signal.SIGKILL)
    assert eventually(lambda: pids_with(guard) == [])
    parent.stdin.write(b"\n")
    parent.stdin.flush()
    assert eventually(lambda: mark.count() == 1, 5)
    parent.kill()
    parent.stdin.close()
    parent.stdout.close()
    parent.wait()
    assert eventually(lambda: mark.count() == 0, 3)


def test_killed_before_it_knows_its_child(mark: Mark) -> None:
    """The moment between starting a child and learning its number is short, and was hit on a busy machine."""
    code = f"""
import os, time
from deadlint_budget import run
from deadlint_budget._guard import guard
run(["true"])
guard.assign = lambda slot, pid: (time.sleep(0.3), os.kill(os.getpid(), 9))
run("sleep {mark.sleep} & sleep {mark.sleep}", shell=True)
"""
    parent = subprocess.Popen(python(code))
    assert eventually(lambda: mark.count() == 2, 5)
    assert parent.wait(5) == -signal.SIGKILL
    assert eventually(lambda: mark.count() == 0, 3)


def test_a_forked_child_has_a_guard_of_its_own(mark: Mark) -> None:
    code = f"""
import os, time
from deadlint_budget import run
run(["true"])
if os.fork() == 0:
    run(["sleep", "{mark.sleep}"])
time.sleep(60)
"""
    parent = subprocess.Popen(python(code), start_new_session=True)
    assert eventually(lambda: mark.count() == 1, 5)
    os.killpg(parent.pid, signal.SIGKILL)
    parent.wait()
    assert eventually(lambda: mark.count() == 0, 3)


def test_a_process_of_another_user_is_told(mark: Mark) -> None:
    if os.getuid() != 0:
        pytest.skip("needs root, to have processes of two users")
    sleeper = subprocess.Popen(["sleep", mark.sleep])
    code = f"""
import os
from deadlint_budget._tree import Tree
tree = Tree({sleeper.pid}, leads=False)
os.setuid(65534)
tree.send(15, child_alive=True)
print(sorted(tree.denied))
"""
    out = subprocess.run(python(code), capture_output=True, text=True, check=True).stdout
    assert out.strip() == f"[{sleeper.pid}]"
    assert alive(sleeper.pid)
    sleeper.kill()
    sleeper.wait()


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user may enter; pytest's own are closed at every level."""
    folder = Path(tempfile.mkdtemp(prefix="deadlint-run-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def test_a_child_that_changed_its_user_is_told(mark: Mark, open_folder: Path, took: Took) -> None:
    """A set-user-id program that gives itself another user for good, started by one who may not signal that user."""
    if os.getuid() != 0:
        pytest.skip("needs root, to make a set-user-id program")
    tool = open_folder / "as-daemon"
    shutil.copy(need_program("setpriv", "util-linux"), tool)
    tool.chmod(0o4755)
    code = f"""
import os, deadlint_budget
from deadlint_budget import CommandDeadlineExceeded, run
run(["true"])
os.setresuid(65534, 65534, 65534)
try:
    command = [{str(tool)!r}, "--reuid=1", "--clear-groups", "sleep", "{mark.sleep}"]
    run(command, stdout=-3, stderr=-3, want=0.4, grace=0.2)  # what goes on must not hold the pipes of this process
except CommandDeadlineExceeded as error:
    print(error.stuck, error.denied == error.survivors != (), error.returncode)
    print(error)
"""
    with took(0.4, 4):
        done = subprocess.run(python(code), capture_output=True, text=True, check=False)
    for pid in mark.pids():
        os.kill(pid, signal.SIGKILL)
    assert eventually(lambda: mark.count() == 0)
    first, message = done.stdout.splitlines()
    assert first == "True True None", done.stderr
    assert "STILL RUNNING" in message
    assert "another user's" in message


@pytest.mark.parametrize(
    "prelude", ["signal.signal(signal.SIGCHLD, signal.SIG_IGN)", "threading.Thread(target=reap).start()"]
)
def test_somebody_else_reaps_our_child(prelude: str, took: Took) -> None:
    code = f"""
import os, signal, threading, time
from deadlint_budget import CommandDeadlineExceeded, run
def reap():
    end = time.monotonic() + 1.5
    while time.monotonic() < end:
        try:
            os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            pass
run(["true"])
{prelude}
for _ in range(20):
    assert run(["sh", "-c", "exit 0"], want=10, capture_output=True).returncode == 0
try:
    run(["sleep", "30"], want=0.2, grace=0.2)
except CommandDeadlineExceeded:
    print("stopped")
"""
    with took(0, 4):
        done = subprocess.run(python(code), capture_output=True, text=True, check=False)
    assert done.stdout == "stopped\n", done.stderr


# --- many, and what they leave -----------------------------------------------------------------------------


def test_no_leaks_in_a_thousand_runs() -> None:
    code = """
import os, subprocess, threading
from deadlint_budget import Budget, DeadlineExceeded, run

def left():
    children = subprocess.run(["ps", "--ppid", str(os.getpid()), "-o", "comm="], capture_output=True, text=True)
    return len(os.listdir("/proc/self/fd")), threading.active_count(), children.stdout.split()

budget = Budget.of(120)
run(["true"])
before = left()
for number in range(1000):
    run(["true"], budget=budget, capture_output=number % 2 == 0)
for _ in range(20):
    try:
        run(["sleep", "5"], want=0.01, capture_output=True)
    except DeadlineExceeded:
        pass
assert left() == before, (before, left())
assert before[1:] == (1, ["ps"]), before
assert not budget._callbacks
print("clean")
"""
    done = subprocess.run(python(code), capture_output=True, text=True, check=False)
    assert done.stdout == "clean\n", done.stderr


def test_many_at_once(mark: Mark, took: Took) -> None:
    outcomes: list[str] = []

    def one() -> None:
        try:
            run(f"sleep {mark.sleep} & sleep {mark.sleep}", shell=True, want=0.3, capture_output=True)
        except CommandDeadlineExceeded:
            outcomes.append("stopped")

    threads = [threading.Thread(target=one) for _ in range(20)]
    with took(0.3, 3):
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert outcomes == ["stopped"] * 20
    assert mark.count() == 0


# --- asyncio -----------------------------------------------------------------------------------------------


def test_run_async() -> None:
    done = asyncio.run(run_async(["echo", "hi"], capture_output=True, text=True, want=5))
    assert done.stdout == "hi\n"


def test_run_async_limit_and_ambient_budget(mark: Mark, took: Took) -> None:
    async def main() -> None:
        with Budget.of(0.4, "flow"):
            await run_async(["sleep", mark.sleep])

    with took(0.3, 0.9), pytest.raises(CommandDeadlineExceeded) as caught:
        asyncio.run(main())
    assert caught.value.layer == "flow"
    assert mark.count() == 0


@pytest.mark.parametrize("seconds", [None, 60])
def test_asyncio_timeout_stops_the_tree(seconds: float | None, mark: Mark, took: Took) -> None:
    budget = None if seconds is None else Budget.of(seconds, "flow")

    async def main() -> None:
        async with asyncio.timeout(0.3):
            await run_async(f"sleep {mark.sleep} & sleep {mark.sleep}", shell=True, budget=budget)

    with took(0.29, 1), pytest.raises(TimeoutError):
        asyncio.run(main())
    assert mark.count() == 0


def test_many_async_at_once(took: Took) -> None:
    async def main() -> None:
        await asyncio.gather(*(run_async(["sleep", "0.3"]) for _ in range(24)))

    with took(0.3, 1.2):
        asyncio.run(main())


def test_run_gdal_defaults() -> None:
    with pytest.raises(subprocess.CalledProcessError) as caught:
        run_gdal(["sh", "-c", r"printf 'bad \377'; exit 1"], want=5)
    assert caught.value.stdout == "bad \N{REPLACEMENT CHARACTER}"
    assert run_gdal(["sh", "-c", "exit 2"], check=False, stdout=subprocess.DEVNULL).returncode == 2
