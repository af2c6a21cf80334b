"""`run` and `check_output`: `subprocess.run` with a limit that stops the whole tree."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from ._bound import Bound, Watched, bounded
from ._budget import Budget, valid_seconds
from ._errors import Cancelled, DeadlineExceeded, seconds_text
from ._events import Event, emit, observers_now
from ._guard import guard
from ._supervision import Ending, Supervision
from ._tree import HAS_PROC, Tree
from ._windows import run_windows

Args = (
    str | bytes | os.PathLike[str] | os.PathLike[bytes] | Sequence[str | bytes | os.PathLike[str] | os.PathLike[bytes]]
)
Leftovers = Literal["kill", "keep"]

# Far above what a program prints for a reader, and below what a worker's memory limit is set to.
MAX_OUTPUT = 256 * 1024 * 1024
GRACE = 5.0


class _Inherit:
    """The default of `stdin`, so that an explicit None can mean what it means to subprocess."""

    def __repr__(self) -> str:
        return "subprocess.DEVNULL"


_NO_STDIN: Any = _Inherit()
_runs = itertools.count(1)


class CommandDeadlineExceeded(DeadlineExceeded, subprocess.TimeoutExpired):
    """A child was stopped, or not started, because the time was over; also a `subprocess.TimeoutExpired`.

    Besides the fields of both: `returncode` (None where it was never started, or is stuck), `ending_signal`
    (the last signal sent, 0 for none), `ending_seconds` (from SIGTERM to the end of the tree), `survivors`
    (pids that could not be stopped) and `denied` (those of them that may not be signalled), `stuck` (the
    child itself did not go), `dropped` (bytes of output that were not kept). `output` and `stderr` are what
    the child said until then: text where text was asked for, unlike in subprocess, which has bytes there.
    """

    cmd: Any = None
    timeout: float = 0.0
    output: Any = None
    stderr: Any = None
    returncode: int | None = None
    ending_signal: int = 0
    ending_seconds: float = 0.0
    survivors: tuple[int, ...] = ()
    denied: tuple[int, ...] = ()
    stuck: bool = False
    dropped: int = 0


class CommandCancelled(CommandDeadlineExceeded, Cancelled):
    """A child was stopped because its budget was cancelled."""


def run(
    args: Args,
    *,
    input: Any = None,
    capture_output: bool = False,
    timeout: float | None = None,
    check: bool = False,
    budget: Budget | None = None,
    want: float | None = None,
    grace: float = GRACE,
    leftovers: Leftovers = "kill",
    max_output: int | None = MAX_OUTPUT,
    stdin: Any = _NO_STDIN,
    stdout: Any = None,
    stderr: Any = None,
    **popen: Any,
) -> subprocess.CompletedProcess[Any]:
    """Run a program like `subprocess.run`, bounded by `want` seconds and by the budget, and stop its whole tree.

    Without `budget` the ambient one counts; `timeout` is another spelling of `want` (TypeError for both).
    With neither nothing bounds it, but Ctrl-C, a signal that ends this process, and any exception still stop
    the tree.

    The child has a session of its own and, unless `stdin` or `input` is given, no standard input. When the
    time is over its group and what has left the group get SIGTERM, `grace` seconds later SIGKILL until
    nothing is left; the grace is taken from the end of a budget (see `docs/budget.md`) and cut to what is
    left of it. What a child that ended leaves behind in its group is stopped as well, after 0.2 s;
    `leftovers="keep"` leaves it. Of captured output at most `max_output` bytes a pipe are kept, the first and
    the last half, with a `RuntimeWarning` and an attribute `dropped` on the result; None keeps all.

    Returns a `subprocess.CompletedProcess`. Raises `CommandDeadlineExceeded` (`CommandCancelled` after a
    cancellation), `subprocess.CalledProcessError` under `check`, ValueError for a bad number before anything
    is started, and what `subprocess.Popen` raises.
    """
    want = _one_want(want, timeout)
    grace = valid_seconds(grace, "grace")
    if capture_output:
        if stdout is not None or stderr is not None:
            raise ValueError("stdout and stderr arguments may not be used with capture_output.")
        stdout = stderr = subprocess.PIPE
    if input is not None:
        if stdin is not _NO_STDIN and stdin is not None:
            raise ValueError("stdin and input arguments may not both be used.")
        stdin = subprocess.PIPE
    elif stdin is _NO_STDIN:
        stdin = subprocess.DEVNULL
    bound = bound_of(args, budget, want, grace)
    with Watched("run", bound):
        if sys.platform == "win32":
            child = subprocess.Popen(args, stdin=stdin, stdout=stdout, stderr=stderr, **popen)
            out, err = run_windows(child, bound, input)
            dropped = 0
        else:
            child, tree = start(args, stdin=stdin, stdout=stdout, stderr=stderr, **popen)
            out, err, dropped = _finish(
                child, tree, bound, grace, input=input, leftovers=leftovers, max_output=max_output
            )
    result = subprocess.CompletedProcess(child.args, child.returncode, out, err)
    if dropped:
        result.__dict__["dropped"] = dropped
    if check:
        result.check_returncode()
    return result


def check_output(args: Args, **options: Any) -> Any:
    """`run(args, check=True)` with standard output captured and returned, like `subprocess.check_output`.

    Takes every keyword of `run` but `stdout` and `capture_output`, and raises the same.
    """
    for name in ("stdout", "check", "capture_output"):
        if name in options:
            raise ValueError(f"{name} argument not allowed, it will be overridden.")
    return run(args, stdout=subprocess.PIPE, check=True, **options).stdout


def _one_want(want: float | None, timeout: float | None) -> float | None:
    if want is not None and timeout is not None:
        raise TypeError("want and timeout are two spellings of one limit: give one of them")
    return timeout if want is None else want


def op_name(args: Args) -> str:
    """What errors call a command: the name of its program."""
    first: Any = args
    if isinstance(args, (str, bytes)):
        words = args.split(None, 1)
        first = words[0] if words else args
    elif isinstance(args, Sequence):
        first = args[0] if args else ""
    return os.path.basename(os.fsdecode(first)) or "command"


def bound_of(args: Args, budget: Budget | None, want: float | None, grace: float) -> Bound:
    """The bound of a command; where there is no time to begin with, the double exception of this module."""
    kinds = (CommandDeadlineExceeded, CommandCancelled)
    fields = {"cmd": args, "timeout": want or 0.0}
    return bounded(op_name(args), budget, want, kinds, note="not started", grace=grace, **fields)


def start(args: Args, **popen: Any) -> tuple[subprocess.Popen[Any], Tree]:
    """Start a child in a session of its own, known to the guard."""
    leads = _isolate(popen)
    marker = None
    number = next(_runs)
    if HAS_PROC and popen.get("env") is None:
        # Only where the environment is inherited: one that is given is passed on as it is.
        name = f"DEADLINT_RUN_{os.getpid()}_{number}".encode()
        popen["env"] = {**_environment(), name: b"1"}
        marker = name + b"="
    slot = None
    if leads:
        guard.begin()
        slot = guard.reserve(number)
    try:
        child: subprocess.Popen[Any] = subprocess.Popen(args, **popen)
    except BaseException:
        guard.release(slot)
        raise
    guard.assign(slot, child.pid)
    return child, Tree(child.pid, leads=leads, marker=marker)


def _environment() -> Mapping[Any, Any]:
    """`os.environ` as bytes; without its decoding and encoding of each name, 0.03 ms a child (measured)."""
    plain = getattr(os.environ, "_data", None)
    return plain if isinstance(plain, dict) else os.environb


def _isolate(popen: dict[str, Any]) -> bool:
    """Give the child a session, whatever the caller said about groups; returns whether it will lead a group."""
    if "start_new_session" in popen or "process_group" in popen:
        group = popen.get("process_group")
        return bool(popen.get("start_new_session")) or group == 0
    before_exec: Callable[[], object] | None = popen.get("preexec_fn")
    if before_exec is None or before_exec in (os.setsid, os.setpgrp):
        popen.pop("preexec_fn", None)  # start_new_session does the same, and setsid fails in one that has it already
        popen["start_new_session"] = True
    else:

        def with_session() -> None:
            before_exec()
            if os.getpgid(0) != os.getpid():
                os.setsid()

        popen["preexec_fn"] = with_session
    return True


def _finish(
    child: subprocess.Popen[Any],
    tree: Tree,
    bound: Bound,
    grace: float,
    *,
    input: Any,
    leftovers: Leftovers,
    max_output: int | None,
) -> tuple[Any, Any, int]:
    try:
        with Supervision(child, tree, bound, input=encoded_input(child, input), max_output=max_output) as supervision:
            return *converse(supervision, grace, leftovers), supervision.dropped
    except BaseException:
        # Whatever failed before the supervision had it: nothing is left behind.
        if child.returncode is None:
            _abandon(child, tree)
        raise
    finally:
        if tree.leads:
            guard.remove(child.pid)


def _abandon(child: subprocess.Popen[Any], tree: Tree) -> None:
    with Supervision(child, tree, Bound("", Budget.detached("stopping"), None)) as supervision:
        supervision.stop(0)
        supervision.close_pipes()


def encoded_input(child: subprocess.Popen[Any], input: Any) -> bytes | None:
    """`input` as bytes, encoded as the child's standard input is."""
    if input is None or child.stdin is None:
        return None
    encoding = getattr(child.stdin, "encoding", None)
    if encoding is None:
        return bytes(memoryview(input))
    if not isinstance(input, str):
        raise TypeError(f"input must be str where text is asked for, not {type(input).__name__}")
    return input.encode(encoding, child.stdin.errors)  # type: ignore[attr-defined]


def converse(supervision: Supervision, grace: float, leftovers: Leftovers) -> tuple[Any, Any]:
    """Bring a child to its end and return what it said; raise the double exception where its time is over."""
    try:
        ended = supervision.wait_for_exit()
        if ended:
            supervision.drain()
            supervision.reap()
            if leftovers == "kill":
                supervision.sweep(grace)
            ending = None
        else:
            ending = supervision.stop(grace)
    except BaseException:
        supervision.stop(grace)
        supervision.close_pipes()
        raise
    out, err = (supervision.output(name, lenient=not ended) for name in ("stdout", "stderr"))
    supervision.close_pipes()
    if ending is not None:
        raise stopped_error(supervision.child, supervision.bound, ending, out=out, err=err, dropped=supervision.dropped)
    if supervision.dropped:
        warnings.warn(_dropped_text(supervision), RuntimeWarning, stacklevel=4)
    return out, err


def _dropped_text(supervision: Supervision) -> str:
    name = op_name(supervision.child.args)
    dropped = f"{supervision.dropped} bytes in the middle were dropped"
    return f"`{name}` said more than is kept: {dropped} (max_output)"


def stopped_error(
    child: subprocess.Popen[Any],
    bound: Bound,
    ending: Ending,
    *,
    out: Any = None,
    err: Any = None,
    dropped: int = 0,
) -> DeadlineExceeded:
    """The double exception for a child whose tree was stopped; observers hear how it ended."""
    if observers_now():
        emit(Event("terminated", "run", bound.op, bound.path, seconds=ending.seconds, signal=ending.signal))
    error = bound.error(CommandDeadlineExceeded, CommandCancelled)
    error.args = (f"{error}{_ending_text(ending)}",)
    error.__dict__.update(
        cmd=child.args,
        timeout=bound.seconds or 0.0,
        output=out,
        stderr=err,
        returncode=child.returncode,
        ending_signal=ending.signal,
        ending_seconds=ending.seconds,
        survivors=tuple(ending.survivors),
        denied=tuple(ending.denied),
        stuck=ending.stuck,
        dropped=dropped,
    )
    return error


def _ending_text(ending: Ending) -> str:
    words = ""
    if ending.signal:
        words = f"; stopped with {signal.Signals(ending.signal).name} in {seconds_text(ending.seconds)}"
    if ending.survivors:
        pids = ", ".join(map(str, ending.survivors))
        why = "not ours to signal: another user's" if ending.denied else "in uninterruptible sleep"
        words += f"; STILL RUNNING: {pids} ({why}), end them by hand"
    return words
