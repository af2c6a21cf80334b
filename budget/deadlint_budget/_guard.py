"""What ends the children when this process is killed: a small shell that waits for our end of a pipe to close.

Children have sessions of their own, so whatever kills this process (SIGKILL, or SIGTERM and SIGHUP, for which
Python has no handler unless one was installed; a runner that signals our group) does not reach them.
PR_SET_PDEATHSIG would: but it needs a preexec_fn, reaches the direct child only, and fires when the *thread* that
spawned ends (measured). One shell for the life of this process costs 2 ms once. It reads whom to end from memory
that it shares with us, and only when we are gone: telling it of each child through the pipe cost 0.07 ms a child,
a tenth of what starting one costs (measured).
"""

from __future__ import annotations

import _thread
import mmap
import os
import select
import subprocess
import sys

# Standard input is the pipe, descriptor 4 the table: a line for each child, its number, or `new` and the number of its
# run while it is being started, or blanks. At the end of input, which is the end of this process: SIGTERM to the groups
# in the table, a second for them to go, SIGKILL. Signals that are meant for us do not end the shell: it has a session
# of its own.
_SCRIPT = """# deadlint: ends the children of process %(pid)d when that is killed
trap '' INT TERM HUP QUIT PIPE TSTP TTIN TTOU
while read -r line; do :; done
groups=
for entry in $(cat <&4); do
  case $entry in
    new*)
      for file in $(grep -lsz "^DEADLINT_RUN_%(pid)d_${entry#new}=" /proc/[0-9]*/environ); do
        leader=${file#/proc/}
        groups="$groups ${leader%%/environ}"
      done ;;
    *) groups="$groups $entry" ;;
  esac
done
[ -n "$groups" ] || exit 0
for g in $groups; do kill -s TERM -- "-$g"; kill -s CONT -- "-$g"; done
sleep 1
for g in $groups; do kill -s KILL -- "-$g"; done
"""
_LINE = 16  # a pid has at most ten digits, a run fewer than twelve
_ROOM = 4096  # children at one time; any beyond have no guard


class Guard:
    """The shell and the table. Without a shell at /bin/sh there is no guard, and `active` is False."""

    def __init__(self) -> None:
        self._lock = _thread.allocate_lock()
        self._pipe: int | None = None
        self._failed = sys.platform == "win32"
        self._table: mmap.mmap | None = None
        self._file = -1
        self._free: list[int] = []
        self._slots: dict[int, int] = {}

    @property
    def active(self) -> bool:
        return self._pipe is not None

    def begin(self) -> None:
        """Start the shell unless it is there: before the child, which is then never long without it."""
        if self._failed:
            return
        if self._pipe is None or _hung_up(self._pipe):
            with self._lock:
                self._restart()

    def reserve(self, run: int) -> int | None:
        """A line of the table for a child that is about to be started; None where there is no guard, or no room.

        Before the child: this process may be killed between starting it and learning its number (seen on a busy
        machine). The shell finds it by the variable of its run then.
        """
        if self._table is None or not self._free:
            return None
        slot = self._free.pop()
        self._write(slot, f"new{run}")
        return slot

    def assign(self, slot: int | None, group: int) -> None:
        """The child of that line leads this group."""
        if slot is not None:
            self._slots[group] = slot
            self._write(slot, str(group))

    def release(self, slot: int | None) -> None:
        """The child of that line was not started."""
        if slot is not None:
            self._write(slot, "")
            self._free.append(slot)

    def add(self, group: int) -> None:
        """A child that is there already."""
        self.assign(self.reserve(0), group)

    def remove(self, group: int) -> None:
        self.release(self._slots.pop(group, None))

    def _write(self, slot: int, text: str) -> None:
        if self._table is not None:
            self._table[slot : slot + _LINE] = text.encode().ljust(_LINE - 1) + b"\n"

    def _restart(self) -> None:
        if self._pipe is not None:
            if not _hung_up(self._pipe):
                return  # another thread was first
            self._close()  # somebody ended the shell: one more, with what the table holds
        try:
            self._start()
        except OSError as error:
            self._failed = True
            import logging  # noqa: PLC0415 - 10 ms, in the rare case only

            words = "children are not ended when this process is killed: the guard did not start (%s)"
            logging.getLogger("deadlint_budget").warning(words, error)

    def _start(self) -> None:
        if self._table is None:
            self._file = _shared_memory(_LINE * _ROOM)
            self._table = mmap.mmap(self._file, _LINE * _ROOM)
            self._table[:] = (b" " * (_LINE - 1) + b"\n") * _ROOM
            self._free = [_LINE * number for number in reversed(range(_ROOM))]
        reading, writing = os.pipe()
        try:
            # Started through a shell that ends at once, so that it is no child of ours: os.wait() in the program
            # would otherwise wait for it.
            start = f'exec 4</dev/fd/{self._file} 3<&0; /bin/sh -c "$0" <&3 3<&- >/dev/null 2>&1 &'
            subprocess.Popen(
                ["/bin/sh", "-c", start, _SCRIPT % {"pid": os.getpid()}],
                stdin=reading,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=(self._file,),
                start_new_session=True,
                cwd="/",
                env={"PATH": os.environ.get("PATH", os.defpath)},
            ).wait()
        except BaseException:
            os.close(writing)
            raise
        finally:
            os.close(reading)
        self._pipe = writing

    def _close(self) -> None:
        if self._pipe is not None:
            os.close(self._pipe)
            self._pipe = None

    def forget(self) -> None:
        """In a forked child: close the copies, so that our parent's end is still noticed. A guard of its own later."""
        self._lock = _thread.allocate_lock()
        self._close()
        self._table = None
        self._slots.clear()


def _shared_memory(size: int) -> int:
    """A descriptor of memory that another process can open by it."""
    if hasattr(os, "memfd_create"):
        fd = os.memfd_create("deadlint-guard")
    else:
        import tempfile  # noqa: PLC0415 - 10 ms, and not needed on Linux

        fd = os.dup(tempfile.TemporaryFile(buffering=0).fileno())  # noqa: SIM115 - the copy outlives it
    os.ftruncate(fd, size)
    return fd


def _hung_up(pipe: int) -> bool:
    """Whether the reading end of a pipe is gone."""
    if not hasattr(select, "poll"):
        return False
    look = select.poll()
    look.register(pipe, 0)
    return bool(look.poll(0))


guard = Guard()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=guard.forget)
