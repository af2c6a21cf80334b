"""Make the README's picture, `docs/finding.svg`, from what `deadlint check` prints at a terminal."""

from __future__ import annotations

import io
import os
import re
import sys
from pathlib import Path

from deadlint_budget import run
from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

ROOT = Path(__file__).parents[1]
COLUMNS = 92  # fits the width of a page on a code host without being scaled down
COMMAND = ("check", "--select", "DL101,DL401", "fixtures/pipelines/mosaic/flow.py")

# Light text on a dark ground, each colour with a contrast of at least 4.5 to 1 against it.
THEME = TerminalTheme(
    (24, 27, 33),
    (214, 218, 225),
    [(90, 96, 107), (240, 113, 120), (135, 200, 120), (232, 190, 100), (110, 170, 240), (200, 150, 230),
     (95, 200, 205), (214, 218, 225)],
    [(140, 147, 160), (250, 135, 140), (155, 220, 140), (250, 210, 125), (140, 190, 250), (215, 170, 245),
     (125, 220, 225), (245, 247, 250)],
)  # fmt: skip
FONTS = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"
# rich's own template loads a font from another host, which code hosts do not allow.
_REMOTE_FONT = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)


def printed() -> str:
    """What the command prints on a colour terminal."""
    surroundings = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
    surroundings |= {"FORCE_COLOR": "1", "TERM": "xterm-256color", "COLUMNS": str(COLUMNS)}
    command = [sys.executable, "-m", "deadlint", *COMMAND, "--no-cache"]
    done = run(command, cwd=ROOT, env=surroundings, capture_output=True, encoding="utf-8", check=False, want=60)
    if done.returncode != 1:
        raise SystemExit(f"{' '.join(command)}: exit status {done.returncode} instead of 1\n{done.stderr}")
    return str(done.stdout)


def picture(text: str) -> str:
    """An SVG of a terminal that shows `text`."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True)
    console.print(Text(f"$ deadlint {' '.join(COMMAND)}\n", style="bold"))
    console.print(Text.from_ansi(text.strip("\n")))
    svg = console.export_svg(title="deadlint", theme=THEME, unique_id="deadlint")
    svg = _REMOTE_FONT.sub("", svg)
    return svg.replace("Fira Code, monospace", FONTS)


if __name__ == "__main__":
    (ROOT / "docs" / "finding.svg").write_text(picture(printed()), encoding="utf-8", newline="\n")
