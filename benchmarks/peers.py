"""Other linters on a part of the tree where they can be run at all, one rule each: `python benchmarks/peers.py`.

Each is paired with deadlint (all rules, no cache) on the same files in the same minute; what is printed is the ratio of
the time of processors, pair by pair. A peer that is not installed is left out: `pip install bandit pylint flake8-async
fixit semgrep`.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import sys
import tempfile
from pathlib import Path

from cold import build
from measure import cost

_SEMGREP = """rules:
- {id: requests-without-timeout, languages: [python], severity: WARNING, message: no timeout,
   patterns: [{pattern: requests.get(...)}, {pattern-not: "requests.get(..., timeout=$T, ...)"}]}
"""
# What each is to beat, in times, by docs/performance.md.
GOALS = {"bandit": 20, "pylint": 20, "flake8-async": 20, "semgrep": 20, "fixit": 100}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tree", type=Path, default=Path(tempfile.gettempdir()) / "deadlint-benchmark")
    parser.add_argument("--package", default="luigi-3.6.0", help="the part of the tree")
    parser.add_argument("--pairs", type=int, default=3)
    arguments = parser.parse_args()
    build(arguments.tree)
    part = arguments.tree / arguments.package
    print(f"{arguments.package}: {len(list(part.rglob('*.py'))):,} files")
    with tempfile.TemporaryDirectory() as folder:
        for name, command in commands(part, Path(folder)).items():
            if shutil.which(command[0]) is None:
                print(f"{name}: not installed")
                continue
            pairs = [(cost(command), cost(ours(part))) for _ in range(arguments.pairs)]
            ratios = sorted(theirs.processor / mine.processor for theirs, mine in pairs)
            seconds = statistics.median(theirs.processor for theirs, _ in pairs)
            print(
                f"{name}: {seconds:.2f} s of processors, {statistics.median(ratios):.1f} x deadlint"
                f" ({ratios[0]:.1f} to {ratios[-1]:.1f}), goal {GOALS[name]} x",
                flush=True,
            )


def ours(part: Path) -> list[str]:
    """A cold run of deadlint."""
    return [
        sys.executable, "-m", "deadlint", "check", "--isolated", "--exit-zero", "-q", "--no-cache",
        "--output-format=concise", str(part),
    ]  # fmt: skip


def commands(part: Path, folder: Path) -> dict[str, list[str]]:
    """The peers, each with one rule that is nearest to ours."""
    scripts = Path(sys.executable).parent
    rules = folder / "rules.yaml"
    rules.write_text(_SEMGREP)
    return {
        "bandit": [str(scripts / "bandit"), "-q", "-r", "-t", "B113", str(part)],
        "pylint": [
            str(scripts / "pylint"), "-j", "2", "--disable=all", "--enable=missing-timeout", "--recursive=y", str(part)
        ],
        "flake8-async": [str(scripts / "flake8-async"), *(str(path) for path in part.rglob("*.py"))],
        "semgrep": [str(scripts / "semgrep"), "scan", "--metrics=off", "--config", str(rules), str(part)],
        "fixit": [str(scripts / "fixit"), "-q", "--rules", "fixit.rules.use_fstring:UseFstring", "lint", str(part)],
    }  # fmt: skip


if __name__ == "__main__":
    main()
