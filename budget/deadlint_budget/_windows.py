"""Windows, as far as it goes: the limit holds, and `taskkill /T` ends the tree. Not measured; see `docs/budget.md`."""

# ruff: noqa: PLC0415 - imports wait for the call that needs them, so that `import deadlint_budget` is quick

from __future__ import annotations

import contextlib
import subprocess
from typing import Any

from ._bound import Bound


def end_tree(child: subprocess.Popen[Any]) -> None:
    """End a child and its descendants, without a grace: there is no SIGTERM to send."""
    # The child is killed below in any case, and what stops a tree cannot be bounded by what it implements.
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):  # deadlint: ignore[DL104]
        subprocess.run(  # deadlint: ignore[DL101]
            ["taskkill", "/T", "/F", "/PID", str(child.pid)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=5,
            check=False,
        )
    child.kill()
    with contextlib.suppress(subprocess.TimeoutExpired):
        child.wait(timeout=1)


def run_windows(child: subprocess.Popen[Any], bound: Bound, input: Any, *, wait_only: bool = False) -> tuple[Any, Any]:
    """Wait for a child within its bound, in steps in which a cancellation is noticed."""
    from ._processes import CommandCancelled, CommandDeadlineExceeded

    try:
        while True:
            left = bound.remaining()
            step = 0.1 if left is None else min(0.1, left)
            try:
                if wait_only:
                    child.wait(timeout=step)
                    return None, None
                out, err = child.communicate(input, timeout=step)
                return out, err
            except subprocess.TimeoutExpired as expired:
                if bound.over():
                    error = bound.error(CommandDeadlineExceeded, CommandCancelled)
                    error.__dict__.update(cmd=child.args, timeout=bound.seconds or 0.0, output=expired.output)
                    raise error from None
    except BaseException:
        end_tree(child)
        raise
