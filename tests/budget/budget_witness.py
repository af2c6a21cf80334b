"""What the tests look with: services, servers, marked processes, a clock to wind."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path

from tests.services import (
    PG_BIN,
    REQUIRED,
    Cluster,
    as_user,
    free_port,
    missing,
    need_module,
    need_program,
    private_cluster,
)

__all__ = [
    "PG_BIN",
    "REQUIRED",
    "Cluster",
    "Mark",
    "Server",
    "WoundClock",
    "alive",
    "as_user",
    "eventually",
    "free_port",
    "missing",
    "need_module",
    "need_program",
    "pids_with",
    "private_cluster",
]

class WoundClock:
    """A clock that goes on when told to, and when slept with."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    advance = sleep


# --- processes ---------------------------------------------------------------------------------------------


def alive(pid: int) -> bool:
    """Whether a process runs; a zombie does not."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return text.rpartition(")")[2].split()[0] not in "ZX"


def pids_with(mark: str) -> list[int]:
    """The live processes whose command line has `mark` in it."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                command = (entry / "cmdline").read_bytes()
            except (FileNotFoundError, ProcessLookupError):
                continue
            if mark.encode() in command and alive(int(entry.name)):
                found.append(int(entry.name))
    return found


def eventually(true: Callable[[], bool], within: float = 2.0) -> bool:
    """Whether `true()` becomes so; for what another process does in its own time."""
    end = time.monotonic() + within
    while time.monotonic() < end:
        if true():
            return True
        time.sleep(0.01)
    return true()


class Mark:
    """A number of seconds to sleep that no other process sleeps: what a test's own sleepers are known by."""

    def __init__(self, seconds: int) -> None:
        self.sleep = f"{seconds}"

    def pids(self) -> list[int]:
        return pids_with(f"sleep\0{self.sleep}")

    def count(self) -> int:
        return len(self.pids())


# --- HTTP --------------------------------------------------------------------------------------------------


class Server:
    """A TCP server on loopback that runs `talk(connection)` in a thread for each connection."""

    def __init__(self, talk: Callable[[socket.socket], None]) -> None:
        self._talk = talk
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        self.connections = 0
        self.open = 0
        self.stopping = threading.Event()
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                conn, _ = self._listening.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._one, args=(conn,), daemon=True).start()

    def _one(self, conn: socket.socket) -> None:
        self.open += 1
        try:
            with conn:
                self._talk(conn)
        except OSError:
            pass
        finally:
            self.open -= 1

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    def close(self) -> None:
        self.stopping.set()
        self._listening.close()
