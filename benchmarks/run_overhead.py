"""What `deadlint_budget.run` costs over `subprocess.run`: one table, in milliseconds a call.

    python benchmarks/run_overhead.py [--calls 400]

The two are called in turn, so that what else the machine does falls on both; the medians are compared.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import time
from collections.abc import Callable
from typing import Any

from deadlint_budget import Budget, run

CASES: dict[str, tuple[list[str], dict[str, Any]]] = {
    "true": (["true"], {}),
    "true, with a limit": (["true"], {"timeout": 60}),
    "true, output captured": (["true"], {"capture_output": True}),
    "true, captured, with a limit": (["true"], {"capture_output": True, "timeout": 60}),
    "20 ms of work": (["sleep", "0.02"], {}),
    "20 ms of work, with a limit": (["sleep", "0.02"], {"timeout": 60}),
}


def seconds(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def medians(args: list[str], options: dict[str, Any], calls: int) -> tuple[float, float, float]:
    """Milliseconds of `subprocess.run`, of `run`, and of `run` under a budget."""
    budget = Budget.of(3600)
    under = {name: value for name, value in options.items() if name != "timeout"}
    ways: list[Callable[[], object]] = [
        lambda: subprocess.run(args, check=False, **options),
        lambda: run(args, **options),
        lambda: run(args, budget=budget, **under),
    ]
    times: list[list[float]] = [[], [], []]
    for _ in range(calls):
        for way, measured in zip(ways, times, strict=True):
            measured.append(seconds(way))
    first, second, third = (statistics.median(each) * 1000 for each in times)
    return first, second, third


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--calls", type=int, default=400)
    calls = parser.parse_args().calls
    run(["true"])  # starts the guard, once for the life of the process
    print(f"{'':32}{'subprocess.run':>16}{'run':>10}{'':>8}{'under a budget':>18}")
    for name, (args, options) in CASES.items():
        plain, ours, budgeted = medians(args, options, max(20, calls // (5 if "work" in name else 1)))
        print(
            f"{name:32}{plain:13.2f} ms{ours:7.2f} ms{100 * (ours / plain - 1):+7.0f}%"
            f"{budgeted:9.2f} ms{100 * (budgeted / plain - 1):+5.0f}%"
        )


if __name__ == "__main__":
    main()
