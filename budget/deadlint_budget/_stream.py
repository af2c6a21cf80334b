"""`process`: a child that is read and written to while it runs, within a limit."""

from __future__ import annotations

import io
import os
import select
import subprocess
import threading
import time
from contextlib import suppress
from types import TracebackType
from typing import IO, Any

from ._ambient import current_budget
from ._bound import Watched, bounded
from ._budget import Budget, valid_seconds
from ._errors import DeadlineExceeded
from ._guard import guard
from ._processes import (
    GRACE,
    Args,
    CommandCancelled,
    CommandDeadlineExceeded,
    Leftovers,
    op_name,
    start,
    stopped_error,
)
from ._supervision import DRAIN_IDLE, Ending, Supervision
from ._tree import Tree


class Process:
    """A running child. Made by `process`; `stdin`, `stdout` and `stderr` are files where a pipe was asked for."""

    stdin: IO[Any] | None = None
    stdout: IO[Any] | None = None
    stderr: IO[Any] | None = None

    def __init__(
        self,
        args: Args,
        *,
        budget: Budget | None,
        want: float | None,
        grace: float,
        check: bool,
        leftovers: Leftovers,
        popen: dict[str, Any],
    ) -> None:
        self.args = args
        self._above = current_budget() if budget is None else budget
        self._want = want
        self._grace = valid_seconds(grace, "grace")
        self._check = check
        self._leftovers = leftovers
        self._popen = popen
        self._ending: Ending | None = None
        self._over = False  # the time was over (or cancelled) before the child had ended
        self._failure: BaseException | None = None

    def __enter__(self) -> Process:
        op = op_name(self.args)
        above = self._above
        # A budget of its own, to be cancelled when the block is left by an exception.
        self._budget = Budget.detached("its block ends it", name=op) if above is None else above.limit(op)
        kinds = (CommandDeadlineExceeded, CommandCancelled)
        fields = {"cmd": self.args, "timeout": self._want or 0.0}
        self._bound = bounded("", self._budget, self._want, kinds, note="not started", grace=self._grace, **fields)
        text = _text_options(self._popen)
        self._child, tree = start(self.args, **{"stdin": subprocess.DEVNULL, **self._popen, "bufsize": 0})
        self._done, done = os.pipe()  # its closing end tells readers that the child is gone
        try:
            self._open_files(text)
            self._watcher = threading.Thread(target=self._watch, args=(tree, done), name=f"deadlint-{op}", daemon=True)
            self._watcher.start()
            self._watched = Watched("process", self._bound)
            self._watched.__enter__()
        except BaseException:
            with Supervision(self._child, tree, self._bound, pipes=False) as supervision:
                supervision.stop(0)
            raise
        return self

    def _open_files(self, text: dict[str, Any] | None) -> None:
        child = self._child
        for name, stream in (("stdout", child.stdout), ("stderr", child.stderr)):
            if stream is not None:
                reader = io.BufferedReader(_Reader(self, stream.fileno()))
                setattr(self, name, reader if text is None else io.TextIOWrapper(reader, **text))
        if child.stdin is not None:
            os.set_blocking(child.stdin.fileno(), False)
            writer = io.BufferedWriter(_Writer(self, child.stdin.fileno()))
            self.stdin = writer if text is None else io.TextIOWrapper(writer, write_through=True, **text)

    def _watch(self, tree: Tree, done: int) -> None:
        """In a thread: wait for the exit, and stop the tree when the time is over, whatever the block is doing."""
        try:
            with Supervision(self._child, tree, self._bound, pipes=False) as supervision:
                if supervision.wait_for_exit():
                    supervision.reap()
                    if self._leftovers == "kill":
                        supervision.sweep(self._grace)
                else:
                    self._over = True
                    self._ending = supervision.stop(self._grace)
        except BaseException as failure:
            self._failure = failure
        finally:
            if tree.leads:
                guard.remove(self._child.pid)
            os.close(done)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        try:
            if error is not None:
                self._budget.cancel(f"its block was left by {type(error).__name__}")
            self._close_files()
            self._join()
        finally:
            os.close(self._done)
        if error is None:
            try:
                self._raise_if_over()
            except DeadlineExceeded as over:
                error = over
                raise
            finally:
                self._watched.__exit__(None, error, None)
            if self._check and self._child.returncode:
                raise subprocess.CalledProcessError(self._child.returncode, self._child.args)
        else:
            self._watched.__exit__(kind, error, tb)

    def _close_files(self) -> None:
        for stream in (self.stdin, self.stdout, self.stderr):
            if stream is not None:
                with suppress(BrokenPipeError, DeadlineExceeded):  # what was still buffered is for nobody
                    stream.close()
        for raw in (self._child.stdin, self._child.stdout, self._child.stderr):
            if raw is not None:
                raw.close()

    def _join(self) -> None:
        try:
            self._watcher.join()  # bounded where the budget is: the thread ends with the child or its limit
        except BaseException:
            self._budget.cancel("interrupted")
            self._watcher.join()
            raise
        if self._failure is not None:
            raise self._failure

    def _raise_if_over(self) -> None:
        if self._over:
            self._watcher.join()
            assert self._ending is not None
            raise stopped_error(self._child, self._bound, self._ending)

    # --- for the block ----------------------------------------------------------------------------------------

    @property
    def pid(self) -> int:
        return self._child.pid

    @property
    def returncode(self) -> int | None:
        """The exit status; None while the child runs."""
        return self._child.returncode

    def wait(self) -> int:
        """Wait for the end within the limit; the exit status. Raises `CommandDeadlineExceeded` when time is over."""
        self._join()
        self._raise_if_over()
        code: int = self._child.returncode
        return code

    def stop(self) -> int | None:
        """Stop the tree now (SIGTERM, grace, SIGKILL); the exit status. Leaving the block does not raise for it."""
        self._budget.cancel("stopped")
        self._join()
        self._over = False
        return self._child.returncode


class _Reader(io.RawIOBase):
    """Our end of an output pipe: a read ends with the child's limit, and when a stranger holds the other end."""

    def __init__(self, process: Process, fd: int) -> None:
        self._process = process
        self._fd = fd

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        process = self._process
        look = select.poll()
        look.register(self._fd, select.POLLIN)
        look.register(process._done, select.POLLIN)
        ready = dict(look.poll())
        if self._fd not in ready:
            look.unregister(process._done)
            if not look.poll(DRAIN_IDLE * 1000):
                process._raise_if_over()
                return 0
        data = os.read(self._fd, len(buffer))
        if not data:
            _settle(process)
            process._raise_if_over()
        buffer[: len(data)] = data
        return len(data)


class _Writer(io.RawIOBase):
    """Our end of the input pipe: a write ends with the child's limit."""

    def __init__(self, process: Process, fd: int) -> None:
        self._process = process
        self._fd = fd

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        process = self._process
        look = select.poll()
        look.register(self._fd, select.POLLOUT)
        look.register(process._done, select.POLLIN)
        while True:
            look.poll()
            try:
                return os.write(self._fd, data)
            except BlockingIOError:
                if not process._watcher.is_alive():
                    process._raise_if_over()
                    raise BrokenPipeError(f"`{op_name(process.args)}` has ended") from None
            except BrokenPipeError:
                _settle(process)
                process._raise_if_over()
                raise

    def close(self) -> None:
        if not self.closed:
            super().close()
            stdin = self._process._child.stdin
            if stdin is not None:
                stdin.close()


def _settle(process: Process) -> None:
    """Pipes close before the exit is noticed: give the watcher a moment to say which of the two it was."""
    if process._bound.over():
        process._watcher.join(process._grace + 2)
    else:
        time.sleep(0)


def _text_options(popen: dict[str, Any]) -> dict[str, Any] | None:
    """Take the options for text out of `popen`; None for bytes."""
    text = popen.pop("text", None) or popen.pop("universal_newlines", None)
    popen.pop("universal_newlines", None)
    encoding, errors = popen.pop("encoding", None), popen.pop("errors", None)
    if not (text or encoding or errors):
        return None
    return {"encoding": encoding or "locale", "errors": errors}


def process(
    args: Args,
    *,
    budget: Budget | None = None,
    want: float | None = None,
    grace: float = GRACE,
    check: bool = False,
    leftovers: Leftovers = "kill",
    **popen: Any,
) -> Process:
    """`with process(args, stdout=PIPE, text=True) as child:` a child to talk with while it runs, like `Popen`.

    Bounded and stopped as `run` is, whatever the block does meanwhile: a thread watches. Reads and writes on the
    child's files come back at the limit too (plain pipes block on them for ever). Leaving the block closes the
    files and waits for the child; an exception that leaves it stops the tree at once. Other keywords are those of
    `subprocess.Popen`; standard input is empty unless asked for.

    Raises `CommandDeadlineExceeded` (`CommandCancelled`) from a read, a write, `wait` or the end of the block,
    `subprocess.CalledProcessError` at its end under `check`. Not on Windows.
    """
    return Process(args, budget=budget, want=want, grace=grace, check=check, leftovers=leftovers, popen=dict(popen))
