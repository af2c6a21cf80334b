"""What ends the children when this process is killed: a small shell that waits for our end of a pipe to
close.

Children have sessions of their own, so whatever kills this process (SIGKILL, or SIGTERM and SIGHUP, for which
Python has no handler unless one was installed; a runner that signals our group) does not reach them.
PR_SET_PDEATHSIG would: but it needs a preexec_fn, reaches the direct child only, and fires when the *thread*
that spawned ends (measured). One shell for the life of this process costs 1-2 ms once, and a write of a few
bytes for each child.
"""

from __future__ import annotations

import _thread
import os
import subprocess
import sys

# Reads `+ PID` and `- PID`. At the end of input, which is the end of this process: SIGTERM to the groups that
# are still registered, a second for them to go, SIGKILL. Signals that are meant for us do not end it: it has
# a session of its own.
_SCRIPT = """# deadlint: ends the children of process %d when that is killed
trap '' INT TERM HUP QUIT PIPE TSTP TTIN TTOU
groups=
while read -r op group; do
  case $op in
    +) groups="$groups $group" ;;
    -) rest=; for g in $groups; do [ "$g" = "$group" ] || rest="$rest $g"; done; groups=$rest ;;
  esac
done
[ -n "$groups" ] || exit 0
for g in $groups; do kill -s TERM -- "-$g"; kill -s CONT -- "-$g"; done
sleep 1
for g in $groups; do kill -s KILL -- "-$g"; done
"""


class Guard:
    """The pipe to the shell. Without a shell at /bin/sh there is no guard, and `active` is False."""

    def __init__(self) -> None:
        self._lock = _thread.allocate_lock()
        self._pipe: int | None = None
        self._owner = 0
        self._failed = sys.platform == "win32"

    @property
    def active(self) -> bool:
        return self._pipe is not None and self._owner == os.getpid()

    def begin(self) -> None:
        """Start the shell unless it is there: before the child, which is then never long without it."""
        with self._lock:
            if self._pipe is None and not self._failed:
                self._start()

    def add(self, group: int) -> None:
        with self._lock:
            if not self._write(f"+ {group}\n") and not self._failed:
                self._start()  # somebody ended the shell: one more
                self._write(f"+ {group}\n")

    def remove(self, group: int) -> None:
        with self._lock:
            self._write(f"- {group}\n")

    def _write(self, line: str) -> bool:
        if self._pipe is None:
            return False
        try:
            os.write(self._pipe, line.encode())
        except BlockingIOError:
            return True  # the shell was stopped by somebody and its pipe is full: nothing better to do
        except OSError:
            os.close(self._pipe)
            self._pipe = None
            return False
        return True

    def _start(self) -> None:
        reading, writing = os.pipe()
        try:
            # Started through a shell that ends at once, so that it is no child of ours: os.wait() in the
            # program would otherwise wait for it.
            subprocess.Popen(
                ["/bin/sh", "-c", 'exec 3<&0; /bin/sh -c "$0" <&3 3<&- &', _SCRIPT % os.getpid()],
                stdin=reading,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                cwd="/",
                env={"PATH": os.environ.get("PATH", os.defpath)},
            ).wait()
        except OSError:
            self._failed = True
            os.close(writing)
        else:
            os.set_blocking(writing, False)
            self._pipe = writing
            self._owner = os.getpid()
        finally:
            os.close(reading)

    def forget(self) -> None:
        """In a forked child: close the copy of the pipe, so that our parent's end is still noticed."""
        self._lock = _thread.allocate_lock()
        if self._pipe is not None:
            os.close(self._pipe)
            self._pipe = None


guard = Guard()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=guard.forget)
