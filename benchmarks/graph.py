"""How the joining of limits over files grows: projects of 1,000 files and more whose every file calls into others.

    python benchmarks/graph.py [--files 1000 3000 10000 30000]

Each project is made of chains of four files: a task with a limit, two that hand on, and one that runs a program under
a longer limit of its own, which is the finding. For each size it prints the calls from file to file, the processor time
of a run without a cache, in all and for each call, and that of a run after a single limit has changed. Linear growth is
a column that stays level: ends with exit status 1 where one size takes more than twice as long a call as another.
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
import tempfile
from pathlib import Path

from deadlint_budget import run

CHAIN = 4
LONG_AGO = 1_600_000_000  # a file written a moment ago may change again unseen, so every run would look into it
CALLS = 5  # functions in each file, each calling one of the next

FIRST = """\
from prefect import task
from {package}.m{following} import {names}
"""
TASK = """

@task(timeout_seconds={limit})
def step{number}_{call}(tile):
    work{following}_{call}(tile)
"""
HANDING_ON = """

def work{number}_{call}(tile):
    work{following}_{call}(tile)
"""
LAST = """

def work{number}_{call}(tile):
    subprocess.run(["gdalwarp", tile, "out.tif"], check=True, timeout=900)
"""


def main() -> int:
    """Measure each size; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, nargs="+", default=[1_000, 3_000, 10_000, 30_000])
    sizes = parser.parse_args().files
    print(f"{'files':>7} {'edges':>8} {'cold s':>8} {'µs/edge':>8} {'change s':>9} {'findings':>9}")
    each = []
    for files in sizes:
        with tempfile.TemporaryDirectory() as root:
            edges = _plant(Path(root), files)
            cold, findings = _run(root)
            _run(root)  # what was as young as the cache is looked into once more
            changed = Path(root, "area0", "m0.py")
            changed.write_text(changed.read_text().replace("timeout_seconds=600", "timeout_seconds=700"))
            change, _ = _run(root)
        each.append(cold / edges)
        print(f"{files:7} {edges:8} {cold:8.2f} {cold / edges * 1e6:8.0f} {change:9.2f} {findings:9}")
    return int(max(each) > 2 * min(each))


def _plant(root: Path, files: int) -> int:
    """Write a project of so many files; returns how many calls lead from file to file."""
    (root / ".git").mkdir()
    edges = 0
    for number in range(files):
        package = f"area{number // 100}"
        folder = root / package
        folder.mkdir(exist_ok=True)
        (folder / "__init__.py").touch()
        path = folder / f"m{number}.py"
        path.write_text(_module(package, number, last=number % CHAIN == CHAIN - 1))
        os.utime(path, (LONG_AGO, LONG_AGO))
        edges += CALLS if number % CHAIN < CHAIN - 1 else 0
    return edges


def _module(package: str, number: int, *, last: bool) -> str:
    following = number + 1
    if last:
        return "import subprocess\n" + "".join(LAST.format(number=number, call=call) for call in range(CALLS))
    names = ", ".join(f"work{following}_{call}" for call in range(CALLS))
    head = FIRST.format(package=package, following=following, names=names)
    body = TASK if number % CHAIN == 0 else HANDING_ON
    return head + "".join(
        body.format(number=number, following=following, call=call, limit=600) for call in range(CALLS)
    )


def _run(root: str) -> tuple[float, int]:
    """Check a project; returns the seconds of processor time, those of its processes included, and the findings."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "deadlint", "check", "--select", "DL401", "--output-format", "concise", "--quiet"]
    done = run(command, cwd=root, capture_output=True, text=True, want=3600)
    if done.returncode not in (0, 1):
        raise SystemExit(done.stderr)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return used, done.stdout.count(" DL401 ")


if __name__ == "__main__":
    sys.exit(main())
