"""A copy of the pipelines, and deadlint's command line on it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PIPELINES = Path(__file__).parents[2] / "fixtures" / "pipelines"
CODES = "DL101,DL102,DL103,DL104,DL201,DL202,DL301,DL302,DL303,DL304,DL401,DL402"
CHECK_LIMIT_S = 60


@dataclass(frozen=True)
class Checked:
    """What one run of `deadlint check` said."""

    status: int
    output: str
    errors: str

    @property
    def report(self) -> Any:
        """The output, where it is JSON."""
        return json.loads(self.output)

    @property
    def findings(self) -> list[dict[str, Any]]:
        """What is left after fixing."""
        return list(self.report["findings"])

    @property
    def count(self) -> Counter[str]:
        """How many findings of each code."""
        return Counter(finding["code"] for finding in self.findings)


class Project:
    """The pipelines in a folder of their own."""

    def __init__(self, folder: Path, source: Path = PIPELINES) -> None:
        self.folder = folder
        shutil.copytree(source, folder, ignore=shutil.ignore_patterns("__pycache__"))

    def check(self, *options: str, select: str = CODES, output: str = "json") -> Checked:
        """`deadlint check` of the whole project, as a person runs it in its folder."""
        command = [sys.executable, "-m", "deadlint", "check", ".", "--output-format", output, "--no-cache"]
        done = subprocess.run(
            [*command, "--select", select, *options],
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=CHECK_LIMIT_S,
        )
        assert "Traceback" not in done.stderr, done.stderr
        return Checked(done.returncode, done.stdout, done.stderr)

    def files(self) -> dict[str, bytes]:
        """What is in the folder, by relative path."""
        return contents(self.folder)


def contents(folder: Path) -> dict[str, bytes]:
    """The files below a folder, by relative path; what Python caches is left out."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    }
