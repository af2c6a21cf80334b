"""One child from its start to its end: its pipes, its exit, its deadline and its cancellation in one loop."""

from __future__ import annotations

import contextlib
import os
import selectors
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import IO, Any

from ._bound import Bound
from ._tree import CONT, HAS_PROC, KILL, TERM, Tree

# Exceptions that are raised into this thread from outside (PyThreadState_SetAsyncExc, which Prefect uses in
# worker threads) arrive between two waits only.
TICK = 0.25
POLL = 0.02  # between looks at the child where there is no pidfd
# What a pipe may go on saying after the child's exit, counted from the last byte, and in all. A process that
# left the group can hold the pipe for ever; one that is flushing (bash does not wait for `>(gzip > out)`)
# needs milliseconds.
DRAIN_IDLE = 0.2
DRAIN = 1.0
KILL_WAIT = 1.0  # for SIGKILL to take; longer only in uninterruptible sleep

_Selector = getattr(selectors, "PollSelector", selectors.SelectSelector)


class Capture:
    """The output of one pipe: all of it up to `limit` bytes, beyond that the first and the last half."""

    def __init__(self, limit: int | None) -> None:
        self._limit = limit
        self._head: list[bytes] = []
        self._tail: deque[bytes] = deque()
        self._head_room = None if limit is None else limit - limit // 2
        self._tail_size = 0
        self.dropped = 0

    def add(self, data: bytes) -> None:
        if self._head_room is None:
            self._head.append(data)
            return
        if self._head_room:
            self._head.append(data[: self._head_room])
            data = data[self._head_room :]
            self._head_room -= len(self._head[-1])
        if data:
            self._tail.append(data)
            self._tail_size += len(data)
            self._trim()

    def _trim(self) -> None:
        assert self._limit is not None
        while self._tail and (surplus := self._tail_size - self._limit // 2) > 0:
            first = self._tail.popleft()
            self._tail_size -= len(first)
            if len(first) > surplus:
                self._tail.appendleft(first[surplus:])
                self._tail_size += len(first) - surplus
                self.dropped += surplus
            else:
                self.dropped += len(first)

    def value(self) -> bytes:
        return b"".join((*self._head, *self._tail))


class Waker:
    """A pipe that a cancellation writes into; closing it is safe against a write at the same moment."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.reading, self._writing = os.pipe()
        os.set_blocking(self._writing, False)
        self._open = True

    def wake(self) -> None:
        # Not a blocking acquire: a signal handler may run inside close(), in the thread that holds the lock.
        if self._lock.acquire(blocking=False):
            try:
                if self._open:
                    os.write(self._writing, b"x")
            except BlockingIOError:
                pass
            finally:
                self._lock.release()

    def close(self) -> None:
        with self._lock:
            self._open = False
            os.close(self.reading)
            os.close(self._writing)


class Ending:
    """How the tree of a child was stopped."""

    def __init__(self) -> None:
        self.signal = 0  # the last one sent
        self.seconds = 0.0  # from SIGTERM to the end of the last member
        self.survivors: list[int] = []  # pids that are still alive
        self.denied: list[int] = []  # pids that we may not signal
        self.stuck = False  # the child itself did not go: uninterruptible sleep, or another user's


class Supervision:
    """Waits for a child, moves its input and output, and stops its tree.

    `pipes` False leaves the pipes of the child alone (for `wait`). A context manager; leaving it closes what
    was opened here, not the child's pipes.
    """

    def __init__(
        self,
        child: subprocess.Popen[Any],
        tree: Tree,
        bound: Bound,
        *,
        input: bytes | None = None,
        pipes: bool = True,
        max_output: int | None = None,
    ) -> None:
        self.child = child
        self._owns_pipes = pipes
        self.tree = tree
        self.bound = bound
        self.exited = child.returncode is not None
        self._reaped = self.exited
        self.woken = False
        self._input = memoryview(input or b"")
        self.captures: dict[str, Capture] = {}
        self._last_data = 0.0
        self._open_pipes = 0
        self._selector = _Selector()
        self._pidfd = self._open_pidfd()
        if pipes:
            self._register_pipes(max_output)
        self._waker: Waker | None = None
        if bound.budget is not None:
            self._waker = Waker()
            self._selector.register(self._waker.reading, selectors.EVENT_READ, "wake")
            self._registration = bound.budget.on_cancel(self._waker.wake)

    def __enter__(self) -> Supervision:
        return self

    def __exit__(self, *exc_info: object) -> None:
        if self._waker is not None:
            self._registration.close()
            self._waker.close()
        if self._pidfd is not None:
            os.close(self._pidfd)
        self._selector.close()

    def _open_pidfd(self) -> int | None:
        if self.exited or not hasattr(os, "pidfd_open"):
            return None
        try:
            fd = os.pidfd_open(self.child.pid)
        except OSError:  # an old kernel, or somebody else has reaped the child
            return None
        self._selector.register(fd, selectors.EVENT_READ, "exit")
        return fd

    def _register_pipes(self, max_output: int | None) -> None:
        child = self.child
        for name, stream in (("stdout", child.stdout), ("stderr", child.stderr)):
            if stream is not None:
                self.captures[name] = Capture(max_output)
                if not stream.closed:
                    self._selector.register(stream, selectors.EVENT_READ, name)
                    self._open_pipes += 1
        if child.stdin is not None and not child.stdin.closed:
            self._open_stdin(child.stdin)

    def _open_stdin(self, stdin: IO[Any]) -> None:
        with contextlib.suppress(BrokenPipeError):
            stdin.flush()
        if not self._input:
            _close(stdin)
            return
        os.set_blocking(stdin.fileno(), False)
        self._selector.register(stdin, selectors.EVENT_WRITE, "stdin")

    # --- the loop ------------------------------------------------------------------------------------------

    def pump(self, until: float | None, done: Callable[[], bool], tick: float = TICK) -> None:
        """Move data and notice the exit, until `done()` or the monotonic time `until`."""
        if self._pidfd is None:
            tick = min(tick, POLL)
        while not done():
            timeout = tick
            if until is not None:
                timeout = min(tick, until - time.monotonic())
                if timeout <= 0:
                    return
            if not self._selector.get_map():  # nothing to wait for (select would refuse that on Windows)
                time.sleep(timeout)
            for key, _ in self._selector.select(timeout):
                self._handle(key)
            if self._pidfd is None:
                self._poll_exit()

    def _handle(self, key: selectors.SelectorKey) -> None:
        if key.data == "exit":
            self.exited = True
            self._selector.unregister(key.fileobj)
        elif key.data == "wake":
            self.woken = True
            self._selector.unregister(key.fileobj)
        elif key.data == "stdin":
            self._feed(key)
        else:
            data = os.read(key.fd, 65536)
            if data:
                self.captures[key.data].add(data)
                self._last_data = time.monotonic()
            else:
                self._close_pipe(key.fileobj)

    def _feed(self, key: selectors.SelectorKey) -> None:
        try:
            self._input = self._input[os.write(key.fd, self._input[:65536]) :]
        except BlockingIOError:
            return
        except BrokenPipeError:
            self._input = self._input[:0]  # as Popen.communicate: the child does not want the rest
        if not self._input:
            self._selector.unregister(key.fileobj)
            _close(key.fileobj)

    def _close_pipe(self, stream: Any) -> None:
        self._selector.unregister(stream)
        self._open_pipes -= 1
        _close(stream)

    def _poll_exit(self) -> None:
        if self.exited:
            return
        if hasattr(os, "waitid"):
            # Not reaped here: as long as the zombie is there its number, and so its group's, is not given
            # away.
            try:
                found = os.waitid(os.P_PID, self.child.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                self.child.poll()
                self.exited = self._reaped = True
            else:
                self.exited = found is not None
        elif self.child.poll() is not None:
            self.exited = self._reaped = True

    # --- the parts of a run --------------------------------------------------------------------------------

    def wait_for_exit(self) -> bool:
        """True when the child has ended; False when it was cancelled or its time is over first."""
        self.pump(self.bound.end, lambda: self.woken or self.exited)
        if not self.exited:
            self._poll_exit()  # it may have ended at the deadline: nothing was cut short then
        return self.exited

    def drain(self, total: float = DRAIN) -> None:
        """Read what the pipes still hold after the exit, until something that lives on has held them too long."""
        if not self._open_pipes:
            return
        now = time.monotonic()
        self._last_data = max(self._last_data, now)
        if self.bound.end is not None:
            total = min(total, max(DRAIN_IDLE, self.bound.end - now))
        self.pump(
            now + total,
            lambda: not self._open_pipes or time.monotonic() - self._last_data >= DRAIN_IDLE,
            tick=0.05,
        )

    def close_pipes(self) -> None:
        """Close our ends of the child's pipes, unless they were to be left alone."""
        if not self._owns_pipes:
            return
        for key in list(self._selector.get_map().values()):
            if key.data in ("stdin", "stdout", "stderr"):
                self._selector.unregister(key.fileobj)
        self._open_pipes = 0
        for stream in (self.child.stdin, self.child.stdout, self.child.stderr):
            if stream is not None:
                _close(stream)

    def reap(self) -> bool:
        """Take the exit status, without waiting for it; True where there was one."""
        if self.child.poll() is not None:
            self._reaped = self.exited = True
        return self._reaped

    def stop(self, grace: float) -> Ending:
        """SIGTERM to the tree, `grace` seconds, SIGKILL until nothing is left, reap; bounded, come what may."""
        ending = Ending()
        began = time.monotonic()
        try:
            if grace > 0:
                self._signal(TERM, ending)
                if CONT:
                    self.tree.send(CONT, child_alive=not self._reaped)  # a stopped process gets SIGTERM only then
                self._pump_until_empty(self._cut(began + grace))
            self._kill(ending)
        except BaseException:
            self._kill(ending)  # a second Ctrl-C: no more grace, but still nothing left behind
            raise
        finally:
            ending.seconds = time.monotonic() - began
            ending.denied = sorted(self.tree.denied)
        return ending

    def _cut(self, end: float) -> float:
        kill_by = self.bound.kill_by
        return end if kill_by is None else min(end, kill_by)

    def _signal(self, number: int, ending: Ending) -> None:
        ending.signal = int(number)
        self.tree.send(number, child_alive=not self._reaped)

    def _pump_until_empty(self, until: float) -> bool:
        tick = 0.005
        while True:
            if self._gone():
                return True
            if time.monotonic() >= until:
                return False
            # Until the child is gone its exit wakes us; looks at the rest of the tree cost a walk of /proc
            # each.
            done = _never if self.exited else self._has_exited
            self.pump(min(until, time.monotonic() + tick), done, tick=tick)
            tick = min(tick * 2, 0.05)

    def _has_exited(self) -> bool:
        return self.exited

    def _gone(self) -> bool:
        return self.exited and self.tree.empty()

    def _kill(self, ending: Ending) -> None:
        end = time.monotonic() + KILL_WAIT
        while not self._gone() and time.monotonic() < end:
            # Again and again: a process that forks while it is killed leaves a child that the signal did not
            # reach.
            if HAS_PROC:
                self.tree.freeze()
            self._signal(KILL, ending)
            self._pump_until_empty(min(end, time.monotonic() + 0.02))
        if HAS_PROC and not self._gone():
            ending.survivors = sorted(self.tree.members())
        self.drain(2 * DRAIN_IDLE)
        if not self.reap():
            ending.stuck = True
            # It is reaped when it goes; a daemon thread, so that it does not keep the interpreter.
            threading.Thread(target=self.child.wait, name="deadlint-reaper", daemon=True).start()

    def sweep(self, grace: float) -> Ending | None:
        """After a normal exit: stop what the child left in its group. None where nothing was left."""
        if self.tree.group_empty():
            return None
        # Whoever held a pipe through the drain has had that time already.
        if not self._open_pipes and self._settled(time.monotonic() + DRAIN_IDLE):
            return None
        return self.stop(grace)

    def _settled(self, until: float) -> bool:
        while time.monotonic() < until:
            if self.tree.group_empty():
                return True
            self.pump(time.monotonic() + 0.01, _never, tick=0.01)
        return False

    def output(self, name: str, *, lenient: bool = False) -> str | bytes | None:
        """What the pipe `name` said, as text where the child was opened for text.

        `lenient` replaces what does not decode: output that was cut short may end in the middle of a
        character.
        """
        capture = self.captures.get(name)
        if capture is None:
            return None
        data = capture.value()
        stream: Any = getattr(self.child, name)
        encoding = getattr(stream, "encoding", None)
        if encoding is None:
            return data
        text = data.decode(encoding, "replace" if lenient else stream.errors)
        return text.replace("\r\n", "\n").replace("\r", "\n")

    @property
    def dropped(self) -> int:
        return sum(capture.dropped for capture in self.captures.values())


def _never() -> bool:
    return False


def _close(stream: Any) -> None:
    try:
        stream.close()
    except BrokenPipeError:
        pass
    except OSError as error:
        if sys.platform != "win32" or error.errno != 22:
            raise
