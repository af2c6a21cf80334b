"""Cold and warm runs over a large tree, paired with ruff in the same minute: `python benchmarks/cold.py`.

Machines are noisy, so what counts is the ratio, pair by pair. The tree is built from pinned packages of the package
index (about 28,000 files, 280 MB), unpacked once into `--tree`; give a tree of your own instead with the same option.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from pathlib import Path

from deadlint_budget import run

PACKAGES = (
    "homeassistant==2024.3.3",
    "salt==3008.5",

    "ansible-core==2.17.14",
    "apache-airflow-core==3.0.2",
    "prefect==3.4.0",
    "dagster==1.10.0",
    "django==5.2",
    "sympy==1.13.3",
    "pandas==2.2.3",
    "scipy==1.15.3",
    "scikit-learn==1.6.1",
    "matplotlib==3.10.3",
    "sqlalchemy==2.0.41",
    "distributed==2025.5.0",
    "celery==5.5.2",
    "eodag==3.4.0",
    "luigi==3.6.0",
    "pygeoapi==0.20.0",
    "buildbot==4.2.1",
    "botocore==1.38.0",
    "networkx==3.4.2",
    "statsmodels==0.14.4",
    "twisted==24.11.0",
    "jupyter-server==2.16.0",
    "transformers==4.51.3",
    "torch-geometric==2.6.1",
    "kubernetes==32.0.1",

    "mlflow==2.22.0",
    "great-expectations==1.4.0",
)
RUFF_RULES = "S113,PLW1510,ASYNC"
CORE = "DL1,DL2,DL3,DL401,DL402"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tree", type=Path, default=Path(tempfile.gettempdir()) / "deadlint-benchmark")
    parser.add_argument("--pairs", type=int, default=5)
    arguments = parser.parse_args()
    build(arguments.tree)
    files = [p for p in arguments.tree.rglob("*.py") if p.is_file()]
    print(f"{len(files):,} files, {sum(p.stat().st_size for p in files) / 1e6:,.0f} MB, {os.cpu_count()} processors")
    scripts = Path(sys.executable).parent
    deadlint, ruff = [str(scripts / "deadlint"), "check"], [str(scripts / "ruff"), "check"]
    quiet = ["--isolated", "--exit-zero", "-q", "--output-format", "concise"]
    with tempfile.TemporaryDirectory() as cache:
        ours, theirs = [f"--cache-dir={cache}/deadlint"], [f"--cache-dir={cache}/ruff"]
        tree, selected = [str(arguments.tree)], ["--select", RUFF_RULES]
        for name, one, other in (
            (
                "cold, the five core families",
                [*deadlint, *quiet, "--no-cache", "--select", CORE, *tree],
                [*ruff, *quiet, "--no-cache", *selected, *tree],
            ),
            (
                "cold, all rules",
                [*deadlint, *quiet, "--no-cache", *tree],
                [*ruff, *quiet, "--no-cache", *selected, *tree],
            ),
            ("warm, nothing changed", [*deadlint, *quiet, *ours, *tree], [*ruff, *quiet, *theirs, *selected, *tree]),
        ):
            compare(name, one, other, arguments.pairs)


def build(tree: Path) -> None:
    """Unpack the packages into `tree`, unless something is there."""
    if tree.is_dir() and any(tree.iterdir()):
        return
    tree.mkdir(parents=True, exist_ok=True)
    for package in PACKAGES:
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", folder, package]
            if run(command, want=1800, stderr=subprocess.DEVNULL).returncode:
                print(f"{package}: not available for this Python, left out")
                continue
            (archive,) = Path(folder).iterdir()
            unpack(archive, tree / package.replace("==", "-"))


def unpack(archive: Path, target: Path) -> None:
    """The Python files of a wheel or source distribution."""
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            wheel.extractall(target, [name for name in wheel.namelist() if name.endswith(".py")])
    else:
        with tarfile.open(archive) as source:
            source.extractall(target, [m for m in source if m.name.endswith(".py")], filter="data")


def compare(name: str, one: list[str], other: list[str], pairs: int) -> None:
    """Run two commands in turn and print their median times, the ratio pair by pair, and our memory."""
    measured(one), measured(other)
    times = [(measured(one), measured(other)) for _ in range(pairs)]
    ratios = sorted(a / b for a, b in times)
    memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(
        f"{name}: deadlint {statistics.median(a for a, _ in times):.2f} s, ruff"
        f" {statistics.median(b for _, b in times):.2f} s, ratio {statistics.median(ratios):.2f}"
        f" ({ratios[0]:.2f} to {ratios[-1]:.2f}), largest process so far {memory:,.0f} MB"
    )


def measured(command: list[str]) -> float:
    """Seconds that a command takes."""
    start = time.perf_counter()
    run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, want=3600)
    return time.perf_counter() - start


if __name__ == "__main__":
    if shutil.which("ruff", path=str(Path(sys.executable).parent)) is None:
        sys.exit("ruff is not installed beside this Python: pip install -e '.[dev]'")
    main()
