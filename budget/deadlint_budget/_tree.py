"""The processes that a child has started: finding them, signalling them, seeing that they are gone."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from typing import NamedTuple


class Row(NamedTuple):
    """One process, as /proc/PID/stat has it."""

    state: str
    parent: int
    group: int
    session: int
    started: int  # in ticks since boot; with the pid it names a process for good


HAS_PROC = sys.platform.startswith("linux") and os.path.exists("/proc/self/stat")
_DEAD = "ZX"  # a zombie under a slow PID 1 keeps `killpg(group, 0)` true for seconds (measured): not alive


def read_row(pid: int) -> Row | None:
    """What /proc says of one process; None where it is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb", buffering=0) as file:
            text = file.read(1024)
    except OSError:
        return None
    # The name, in brackets, may hold spaces and brackets itself: the fields begin after the last one.
    fields = text[text.rfind(b")") + 2 :].split()
    if len(fields) < 20:
        return None
    return Row(fields[0].decode(), int(fields[1]), int(fields[2]), int(fields[3]), int(fields[19]))


def snapshot() -> dict[int, Row]:
    """All processes that /proc shows."""
    rows = {}
    for name in os.listdir("/proc"):
        if name.isdigit() and (row := read_row(int(name))) is not None:
            rows[int(name)] = row
    return rows


def _has_marker(pid: int, marker: bytes) -> bool:
    try:
        with open(f"/proc/{pid}/environ", "rb", buffering=0) as file:
            data = file.read()
    except OSError:
        return False
    return data.startswith(marker) or b"\0" + marker in data


class Tree:
    """A child, its group where it leads one, and what of its descendants has left that.

    `leads` says that the child leads a group of its own. `marker` is an environment variable (`NAME=`) that
    only this child's descendants have: it finds those that left the session *and* lost their parent (a double
    fork), which neither the group nor the chain of parents leads to. Both need Linux's /proc; elsewhere the
    group is all.
    """

    def __init__(self, pid: int, *, leads: bool, marker: bytes | None = None) -> None:
        self.pid = pid
        self.leads = leads
        self.marker = marker
        self.denied: set[int] = set()  # pids that we may not signal: they run as another user
        self._known: dict[int, int] = {}  # pid -> start time: members seen once, wherever their parents went

    def members(self) -> dict[int, Row]:
        """The live members, the child included until it is a zombie. Also remembers them for later calls."""
        rows = snapshot()
        found = {pid for pid, row in rows.items() if self._belongs(pid, row)}
        children: dict[int, list[int]] = {}
        for pid, row in rows.items():
            children.setdefault(row.parent, []).append(pid)
        pending = list(found | {self.pid})
        while pending:
            for child in children.get(pending.pop(), ()):
                if child not in found:
                    found.add(child)
                    pending.append(child)
        found.discard(os.getpid())
        live = {pid: rows[pid] for pid in found if rows[pid].state not in _DEAD}
        self._known = {pid: row.started for pid, row in live.items()}
        return live

    def _belongs(self, pid: int, row: Row) -> bool:
        if self._known.get(pid) == row.started or pid == self.pid:
            return True
        if self.leads and self.pid in (row.group, row.session):
            return True
        return self.marker is not None and row.state not in _DEAD and _has_marker(pid, self.marker)

    def empty(self) -> bool:
        """True when no member is alive, as far as this platform can tell."""
        if HAS_PROC:
            return not self.members()
        return not self._group_answers()

    def group_empty(self) -> bool:
        """True when the group has no live member: one system call where that is so, a walk of /proc else."""
        if not self._group_answers():
            return True
        if not HAS_PROC:
            return False
        return not any(row.group == self.pid and row.state not in _DEAD for row in snapshot().values())

    def _group_answers(self) -> bool:
        if not self.leads:
            return False
        try:
            os.killpg(self.pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            pass  # somebody is there, of another user
        return True

    def send(self, number: int, *, child_alive: bool) -> None:
        """Send a signal to every live member; a member that has ended meanwhile is no error.

        `child_alive` False: the child is reaped (or was never ours to signal) and its number may be somebody
        else's by now, so only members found by a walk are signalled.
        """
        members = self.members() if HAS_PROC else {}
        if self.leads and (child_alive or members or self._group_answers()):
            self._try(os.killpg, self.pid, number)
        elif child_alive and not members:
            self._try(os.kill, self.pid, number)
        for pid, row in members.items():
            if self.leads and row.group == self.pid:
                # killpg reports no error for a member that it may not signal as long as it reaches another
                # one.
                self._try(os.kill, pid, 0)
                continue
            if (now := read_row(pid)) is not None and now.started == row.started:
                self._try(os.kill, pid, number)

    def freeze(self) -> None:
        """Stop every member where it is, so that none forks between being found and being killed.

        A shell in a loop, whose sleeping child is killed a moment before it, starts another one that has no parent
        by the time of the next walk: without a group of its own nothing leads there (seen in a test).
        """
        frozen: set[int] = set()
        for _ in range(20):
            found = self.members().keys() - frozen
            if not found:
                return
            for pid in found:
                self._try(os.kill, pid, signal.SIGSTOP)
            frozen |= found

    def _try(self, call: Callable[[int, int], None], pid: int, number: int) -> None:
        try:
            call(pid, number)
        except ProcessLookupError:
            pass
        except PermissionError:
            self.denied.add(pid)


if sys.platform == "win32":
    KILL = TERM = signal.SIGTERM
    CONT = 0
else:
    TERM, KILL, CONT = signal.SIGTERM, signal.SIGKILL, signal.SIGCONT
