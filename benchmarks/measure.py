"""What a command costs: seconds of wall clock and of processors, and the memory of all its processes together."""

from __future__ import annotations

import os
import resource
import subprocess
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Cost:
    """One run of a command. `memory` is the most that its processes held at once, in MB, shared pages counted once."""

    wall: float
    processor: float
    memory: float


def cost(command: Sequence[str]) -> Cost:
    """Run a command and measure it; raises `CalledProcessError` where it ends by a signal."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    peak = _Peak(process.pid)
    peak.start()
    status = process.wait()  # deadlint: ignore[DL103] the command under measurement takes what it takes
    wall = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    peak.join(1)
    if status < 0:
        raise subprocess.CalledProcessError(status, command)
    processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Cost(wall, processor, peak.most / 1024)


class _Peak(threading.Thread):
    """Looks ten times a second what a process and its children hold (Linux)."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self._pid = pid
        self.most = 0

    def run(self) -> None:
        while True:
            held = sum(map(_proportional, _family(self._pid)))
            if not held:
                return
            self.most = max(self.most, held)
            time.sleep(0.1)


def _family(pid: int) -> list[int]:
    try:
        below = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []
    return [pid, *(one for child in below for one in _family(int(child)))]


def _proportional(pid: int) -> int:
    """Kilobytes that a process holds, with its share of what forked processes have in common."""
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in text.splitlines() if line.startswith("Pss:")), 0)


def processors() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
