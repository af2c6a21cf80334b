"""`communicate` and `wait` for a `subprocess.Popen` that the caller has made."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ._ambient import current_budget
from ._bound import Bound, Watched
from ._budget import Budget, valid_seconds
from ._guard import guard
from ._processes import GRACE, MAX_OUTPUT, CommandDeadlineExceeded, bound_of, converse, encoded_input
from ._supervision import Supervision
from ._tree import Tree
from ._windows import end_tree, run_windows


def communicate(
    proc: subprocess.Popen[Any],
    input: Any = None,
    *,
    budget: Budget | None = None,
    want: float | None = None,
    grace: float = GRACE,
    max_output: int | None = MAX_OUTPUT,
) -> tuple[Any, Any]:
    """`proc.communicate(input)` within `want` seconds and the budget (default: the ambient one).

    Returns (stdout, stderr). When the time is over, and on any exception, the tree of the child is stopped
    and reaped as `run` does: its group where it leads one, else its descendants (found in Linux's /proc;
    elsewhere the child alone). A pipe that something else holds open after the child's exit is read for at
    most another second. Raises `CommandDeadlineExceeded`, which is also a `subprocess.TimeoutExpired`. A time
    that is over before it begins stops the child as well: it is running already.

    After that, `proc.communicate()` returns what was read until then, as in the recipe of the `subprocess`
    documentation: `except TimeoutExpired: proc.kill(); outs, errs = proc.communicate()`.
    """
    try:
        return _bring_to_end(proc, input, budget, want, grace, pipes=True, max_output=max_output)
    except CommandDeadlineExceeded as error:
        _answer_again(proc, error.output, error.stderr)
        raise


def wait(
    proc: subprocess.Popen[Any],
    *,
    budget: Budget | None = None,
    want: float | None = None,
    grace: float = GRACE,
) -> int:
    """`proc.wait()` within `want` seconds and the budget; the return code. Stops and raises like `communicate`.

    The child's pipes are left alone: a child with more than 64 KiB to say, and nobody who reads it, waits
    until its time is over.
    """
    _bring_to_end(proc, None, budget, want, grace, pipes=False, max_output=None)
    code: int = proc.returncode
    return code


def leads_group(pid: int) -> bool:
    """Whether a child of ours leads a process group of its own."""
    if sys.platform == "win32":
        return False
    try:
        return os.getpgid(pid) == pid
    except ProcessLookupError:
        return False


def _bring_to_end(
    proc: subprocess.Popen[Any],
    input: Any,
    budget: Budget | None,
    want: float | None,
    grace: float,
    *,
    pipes: bool,
    max_output: int | None,
) -> tuple[Any, Any]:
    try:
        grace = valid_seconds(grace, "grace")
        bound = bound_of(proc.args, budget, want, grace)
        data = encoded_input(proc, input)
    except BaseException:
        # Refused; but the child is running already, and this call is what was to bound it.
        _stop_now(proc, budget)
        raise
    with Watched("communicate" if pipes else "wait", bound):
        if sys.platform == "win32":
            return run_windows(proc, bound, input, wait_only=not pipes)
        tree = _tree_of(proc)
        with (
            _guarded(tree),
            Supervision(proc, tree, bound, input=data, pipes=pipes, max_output=max_output) as supervision,
        ):
            return converse(supervision, grace, "keep")


@contextmanager
def _guarded(tree: Tree) -> Iterator[None]:
    """The guard knows of a child that leads a group while it is waited for. One in our own group dies with that."""
    if not tree.leads:
        yield
        return
    guard.begin()
    guard.add(tree.pid)
    try:
        yield
    finally:
        guard.remove(tree.pid)


def _tree_of(proc: subprocess.Popen[Any]) -> Tree:
    return Tree(proc.pid, leads=proc.returncode is None and leads_group(proc.pid))


def _answer_again(proc: subprocess.Popen[Any], out: Any, err: Any) -> None:
    """Let `proc.communicate()` return what was read: its pipes are closed, and it would raise a ValueError."""

    def communicate(input: Any = None, timeout: float | None = None) -> tuple[Any, Any]:
        return out, err

    proc.communicate = communicate  # type: ignore[method-assign]


def _stop_now(proc: subprocess.Popen[Any], budget: Budget | None) -> None:
    """Stop a running child whose time was over before it was waited for; the grace is what the reserve leaves."""
    if proc.returncode is not None:
        return
    if sys.platform == "win32":
        end_tree(proc)
        return
    budget = current_budget() if budget is None else budget
    left = GRACE if budget is None else min(GRACE, max(0.0, budget._hard_end - budget._clock()))
    unbounded = Bound("", Budget.detached("stopping"), None)
    with Supervision(proc, _tree_of(proc), unbounded, pipes=False) as supervision:
        supervision.stop(left)
