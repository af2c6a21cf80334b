"""Start-up and a save under --watch: `python benchmarks/startup.py`. Medians, and ratios pair by pair."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from measure import cost

_PAIRS = 15
_FILES = 5_000
_CLEAN = "def f(x):\n    return x + 1\n"


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        clean = Path(folder, "clean.py")
        clean.write_text(_CLEAN)
        ours = [sys.executable, "-m", "deadlint", "check", "-q", f"--cache-dir={folder}/cache", str(clean)]
        cost(ours)
        compare("deadlint check clean.py, warm", ours, [sys.executable, "-c", "import click"], 2.5)
    bare = [sys.executable, "-S", "-c", "pass"]
    helpers = [sys.executable, "-c", "import deadlint_budget"]
    plain = [sys.executable, "-c", "pass"]
    pairs = [(cost(helpers).processor, cost(plain).processor) for _ in range(_PAIRS)]
    print(f"import deadlint_budget: {1000 * statistics.median(a - b for a, b in pairs):.1f} ms, goal 15 ms")
    compare("python, for scale", plain, bare, None)
    saves()


def compare(name: str, one: Sequence[str], other: Sequence[str], goal: float | None) -> None:
    """Print what two commands take, and the ratio."""
    pairs = [(cost(one).processor, cost(other).processor) for _ in range(_PAIRS)]
    ratio = statistics.median(a / b for a, b in pairs)
    wanted = f", goal {goal} x" if goal else ""
    print(f"{name}: {1000 * statistics.median(a for a, _ in pairs):.0f} ms of processors, {ratio:.2f} x{wanted}")


def saves() -> None:
    """How long after a save in a project of 5,000 files its report comes."""
    with tempfile.TemporaryDirectory() as folder:
        for number in range(_FILES):
            path = Path(folder, f"part{number % 50}", f"m{number}.py")
            path.parent.mkdir(exist_ok=True)
            path.write_text(_CLEAN)
        Path(folder, "deadlint.toml").write_text("")
        command = [sys.executable, "-m", "deadlint", "check", "--watch", "--output-format=concise"]
        watching = subprocess.Popen(
            command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, bufsize=1
        )
        try:
            waited = 1000 * statistics.median(_waits(watching, folder))
            print(f"a save in {_FILES:,} files, reported after {waited:.0f} ms, goal 100 ms")
        finally:
            watching.kill()
            watching.wait(timeout=10)


def _waits(watching: subprocess.Popen[str], folder: str) -> list[float]:
    assert watching.stdout is not None
    waits = []
    for line in watching.stdout:
        if "Watching" in line:
            break
    time.sleep(2)  # the watch begins after it says so
    for number in range(9):
        start = time.perf_counter()
        Path(folder, "part0", "m0.py").write_text(f"import requests\nrequests.get('http://x/{number}')\n")
        for line in watching.stdout:
            if line.startswith(("Found", os.path.join("part0", "m0.py"))):
                waits.append(time.perf_counter() - start)
                if line.startswith("Found"):
                    break
        time.sleep(0.3)
    return waits


if __name__ == "__main__":
    main()
