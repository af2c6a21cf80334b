"""One call of a pipeline in a process of its own, watched from outside.

What it started is known by a mark in the environment, which every descendant has, whatever group, session or parent it
ends up in.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
START_LIMIT_S = 30.0  # importing a pipeline takes a second where the machine is busy


@dataclass(frozen=True)
class Outcome:
    """How a call ended: after how long, with what value (its `repr`) or which exception."""

    seconds: float
    value: str
    raised: tuple[str, ...]
    words: str


class Running:
    """A call. `folder` is its working directory, `code` is run before it."""

    def __init__(self, project: Path, folder: Path, code: str, call: str, environment: Mapping[str, str]) -> None:
        self.folder = folder
        self._mark = uuid.uuid4().hex
        path = os.pathsep.join([str(HERE / "standins"), *filter(None, [os.environ.get("PYTHONPATH")])])
        inherited = {**os.environ, "PYTHONPATH": path, **environment, "DEADLINT_TEST_MARK": self._mark}
        self._report, theirs = os.pipe()
        try:
            with (folder / "stdout").open("wb") as out, (folder / "stderr").open("wb") as err:
                self._driver = subprocess.Popen(
                    [sys.executable, HERE / "driver.py", project, str(theirs), code, call],
                    cwd=folder,
                    env=inherited,
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=err,
                    pass_fds=[theirs],
                    start_new_session=True,
                )
        finally:
            os.close(theirs)
        self._said = b""

    def begun(self) -> None:
        """Come back when the call has begun: its modules are imported."""
        assert self._lines(1, START_LIMIT_S), f"did not begin: {self.stderr}"

    def outcome(self, within: float) -> Outcome | None:
        """How the call ended; None where it still runs after `within` seconds."""
        if not self._lines(2, within):
            return None
        self._driver.wait(timeout=10)
        said = json.loads(self._said.splitlines()[1])
        return Outcome(said["seconds"], said["value"], tuple(said["raised"]), said["words"])

    @property
    def stdout(self) -> str:
        """What the pipeline and its children printed."""
        return (self.folder / "stdout").read_text()

    @property
    def stderr(self) -> str:
        """What went to standard error, logging included."""
        return (self.folder / "stderr").read_text()

    def descendants(self) -> dict[int, str]:
        """What the call started and is alive: process ids and command lines."""
        mark = f"DEADLINT_TEST_MARK={self._mark}".encode()
        found = {}
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and int(entry.name) != self._driver.pid:
                try:
                    if mark in (entry / "environ").read_bytes():
                        found[int(entry.name)] = (entry / "cmdline").read_text().replace("\0", " ").strip()
                except (FileNotFoundError, ProcessLookupError, PermissionError):
                    continue
        return found

    def works(self) -> bool:
        """Whether a program that is stuck has come as far as its child."""
        return any("sleep 3600" in command for command in self.descendants().values())

    def stop(self, number: signal.Signals) -> None:
        """Signal the call's process group, as a terminal or a service manager does, and wait for its end."""
        os.killpg(self._driver.pid, number)
        self._driver.wait(timeout=10)

    def kill(self) -> None:
        """End the call itself, as an impatient operator would; what it started is left."""
        self._driver.kill()
        self._driver.wait(timeout=10)

    def close(self) -> None:
        """End whatever is left, by its process id."""
        self.kill()
        os.close(self._report)
        end = time.monotonic() + 10
        while (left := self.descendants()) and time.monotonic() < end:
            for pid in left:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    continue
            time.sleep(0.01)
        assert not left, f"could not be ended: {left}"

    def _lines(self, count: int, within: float) -> bool:
        """Whether so many lines were reported within so many seconds."""
        end = time.monotonic() + within
        while self._said.count(b"\n") < count:
            ready, _, _ = select.select([self._report], [], [], max(0.0, end - time.monotonic()))
            more = os.read(self._report, 65536) if ready else b""
            if not more:
                return False
            self._said += more
        return True
