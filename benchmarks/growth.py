"""Time and memory from 1,000 files to all of the benchmark's tree, as a plot: `python benchmarks/growth.py`.

Writes docs/growth.svg. Time is that of processors, which other work on the machine disturbs least.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from cold import build
from measure import Cost, cost

_WIDTH, _HEIGHT, _LEFT, _BOTTOM = 640, 320, 60, 40


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tree", type=Path, default=Path(tempfile.gettempdir()) / "deadlint-benchmark")
    parser.add_argument("--to", type=Path, default=Path(__file__).parents[1] / "docs" / "growth.svg")
    parser.add_argument("--sizes", type=int, nargs="+", default=[1000, 2000, 5000, 10000, 20000, 30000])
    arguments = parser.parse_args()
    build(arguments.tree)
    files = sorted(path for path in arguments.tree.rglob("*.py") if path.is_file())
    random.Random(1).shuffle(files)
    points: list[tuple[int, Cost]] = []
    for size in sorted({min(size, len(files)) for size in arguments.sizes}):
        with tempfile.TemporaryDirectory() as folder:
            link(files[:size], arguments.tree, Path(folder))
            points.append((size, cost(command(folder))))
        number, spent = points[-1]
        print(f"{number:6,} files: {spent.processor:6.2f} s of processors, {spent.memory:4.0f} MB", flush=True)
    arguments.to.write_text(plot(points))


def command(folder: str) -> list[str]:
    """A cold run with all rules."""
    return [
        sys.executable, "-m", "deadlint", "check", "--isolated", "--exit-zero", "-q", "--no-cache",
        "--output-format=concise", folder,
    ]  # fmt: skip


def link(files: Sequence[Path], tree: Path, folder: Path) -> None:
    """A tree of some of the files, without a copy of any."""
    for path in files:
        target = folder / path.relative_to(tree)
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            os.link(path, target)
        except OSError:  # another filesystem
            target.write_bytes(path.read_bytes())


def plot(points: Sequence[tuple[int, Cost]]) -> str:
    """Both curves over the number of files, as SVG."""
    most = max(size for size, _ in points)
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" font-family="sans-serif"'
            ' font-size="12">',
            f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>',
            *_axis(most),
            *_curve([(size, one.processor) for size, one in points], most, "#1f6feb", "s of processors", 20),
            *_curve([(size, one.memory) for size, one in points], most, "#d1242f", "MB", 36),
            "</svg>\n",
        ]
    )


def _axis(most: int) -> Iterator[str]:
    bottom = _HEIGHT - _BOTTOM
    yield f'<path d="M{_LEFT} 10V{bottom}H{_WIDTH - 20}" fill="none" stroke="#444"/>'
    for part in range(5):
        size = most * part // 4
        yield f'<text x="{_x(size, most):.0f}" y="{bottom + 18}" text-anchor="middle">{size:,}</text>'
    yield f'<text x="{_WIDTH / 2:.0f}" y="{_HEIGHT - 6}" text-anchor="middle">files, cold, all rules</text>'


def _curve(values: Sequence[tuple[int, float]], most: int, colour: str, unit: str, line: int) -> Iterator[str]:
    top = max(value for _, value in values) or 1.0
    places = [(_x(size, most), _HEIGHT - _BOTTOM - value / top * (_HEIGHT - _BOTTOM - 60)) for size, value in values]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    yield f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>'
    for (x, y), (_, value) in zip(places, values, strict=True):
        yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>'
        beside = y + (line - 28) * 1.4  # above the one curve, below the other
        yield f'<text x="{x:.1f}" y="{beside:.1f}" text-anchor="middle" fill="{colour}">{value:.3g}</text>'
    yield f'<text x="{_LEFT + 12}" y="{line}" fill="{colour}">{unit}</text>'


def _x(size: int, most: int) -> float:
    return _LEFT + size / most * (_WIDTH - _LEFT - 40)


if __name__ == "__main__":
    main()
