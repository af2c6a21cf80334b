"""Imports whose last use goes with a fix."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from deadlint.cli import cli

RUN = 'subprocess.run(["gdalwarp", "a", "b"], timeout=60)\n'


def fixed(tmp_path: Path, text: str, name: str = "job.py") -> str:
    path = tmp_path / name
    path.write_text(text)
    CliRunner().invoke(cli, ["check", str(path), "--isolated", "--select", "DL101", "--unsafe-fixes", "--fix"])
    return path.read_text()


CASES = {
    "alone": (
        f"import subprocess\n\n{RUN}",
        'from deadlint_budget import run\n\nrun(["gdalwarp", "a", "b"], want=60)\n',
    ),
    "among others": (
        f"import os\nimport subprocess\nimport sys\n\n{RUN}",
        'import os\nimport sys\n\nfrom deadlint_budget import run\n\nrun(["gdalwarp", "a", "b"], want=60)\n',
    ),
    "last of its group": (
        f"import subprocess\n\nimport click\n\n{RUN}",
        'import click\nfrom deadlint_budget import run\n\nrun(["gdalwarp", "a", "b"], want=60)\n',
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_goes_where_the_last_use_goes(tmp_path: Path, name: str) -> None:
    before, after = CASES[name]
    assert fixed(tmp_path, before) == after


KEPT = {
    "another use": f"import subprocess\n\n{RUN}print(subprocess.DEVNULL)\n",
    "named in a text": f'import subprocess\n\n{RUN}print("job.subprocess.run")\n',
    "a comment": f"import subprocess  # for children\n\n{RUN}",
    "several": f"import os, subprocess\n\n{RUN}",
    "another name": f"import subprocess as sp\n\nsp{RUN.removeprefix('subprocess')}",
    "in a try": f"try:\n    import subprocess\nexcept ImportError:\n    pass\n\n{RUN}",
    "exports": f'import subprocess\n\n__all__ = ["main"]\n{RUN}',
    "unused before": f"import os\nimport subprocess\n\n{RUN}print(subprocess)\n",
}


@pytest.mark.parametrize("name", KEPT)
def test_stays_where_it_may_be_needed(tmp_path: Path, name: str) -> None:
    lines = [line for line in KEPT[name].splitlines() if line.strip().startswith("import ")]
    after = fixed(tmp_path, KEPT[name])
    assert "deadlint_budget" in after
    assert [line for line in after.splitlines() if line.strip().startswith("import ")] == lines


def test_stays_in_a_package_that_is_imported_from(tmp_path: Path) -> None:
    assert fixed(tmp_path, f"import subprocess\n\n{RUN}", "__init__.py").startswith("import subprocess\n")


def test_keeps_the_newlines_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "job.py"
    path.write_bytes(f"import os\nimport subprocess\n\nprint(os)\n{RUN}".replace("\n", "\r\n").encode())
    CliRunner().invoke(cli, ["check", str(path), "--isolated", "--select", "DL101", "--unsafe-fixes", "--fix"])
    data = path.read_bytes()
    assert b"import subprocess" not in data
    assert data.count(b"\r\n") == data.count(b"\n")
