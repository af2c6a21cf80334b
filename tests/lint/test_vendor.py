"""A copy of the helpers in the user's own tree."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from deadlint.cli import cli


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(cli, ["vendor", *arguments], standalone_mode=False)
    if result.exception is not None:
        return 2, str(result.exception)
    return result.return_value, result.output


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    target = tmp_path / "pkg" / "limits"
    status, _ = run(str(target))
    assert status == 0
    return target


def test_the_copy_works_alone_under_another_name(copy: Path) -> None:
    code = (
        "import sys; from pkg.limits import Budget, run\n"
        "run([sys.executable, '-c', 'pass'], check=True, budget=Budget.of(60))\n"
        "assert not [m for m in sys.modules if m.startswith('deadlint')], 'the copy reaches for the original'\n"
    )
    (copy.parent / "__init__.py").touch()
    subprocess.run([sys.executable, "-S", "-c", code], check=True, cwd=copy.parents[1], timeout=60)


def test_a_new_copy_is_unmodified_and_current(copy: Path) -> None:
    status, output = run(str(copy), "--check")
    assert status == 0
    assert "unmodified and current" in output


def test_a_changed_file_is_told_and_not_overwritten(copy: Path) -> None:
    changed = copy / "_budget.py"
    changed.write_text(changed.read_text() + "# mine\n")
    (copy / "extra.py").touch()
    (copy / "NOTES.md").touch()
    status, output = run(str(copy), "--check")
    assert status == 1
    assert "_budget.py: differs" in output
    assert "extra.py: differs" in output
    assert "NOTES.md: differs" in output
    status, error = run(str(copy))
    assert status == 2
    assert "_budget.py" in error
    assert changed.read_text().endswith("# mine\n")
    assert run(str(copy), "--force")[0] == 0
    assert run(str(copy), "--check")[0] == 0


def test_nothing_is_found_in_a_copy(copy: Path) -> None:
    (copy.parent / "__init__.py").touch()
    result = CliRunner().invoke(cli, ["check", "--isolated", "--no-cache", str(copy.parent)])
    assert "No findings in" in result.output


def test_an_older_copy_is_told_and_renewed(copy: Path) -> None:
    manifest = copy / "VENDORED.json"
    text = (copy / "_budget.py").read_text()
    (copy / "_budget.py").write_text(text + "# older\n")
    data = json.loads(manifest.read_text())
    data["version"] = "0.0.1"
    data["sha256"]["_budget.py"] = hashlib.sha256((text + "# older\n").encode()).hexdigest()
    manifest.write_text(json.dumps(data))
    status, output = run(str(copy), "--check")
    assert (status, "holds 0.0.1" in output) == (1, True)
    assert run(str(copy))[0] == 0
    assert run(str(copy), "--check")[0] == 0


def test_another_folder_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "work.py").write_text("x = 1\n")
    status, error = run(str(tmp_path / "mine"))
    assert (status, "is no copy" in error) == (2, True)
    assert [p.name for p in (tmp_path / "mine").iterdir()] == ["work.py"]
    for there in (tmp_path / "mine", tmp_path / "mine" / "work.py"):
        status, error = run(str(there), "--force")
        assert (status, "is no copy" in error) == (2, True)
    assert (tmp_path / "mine" / "work.py").read_text() == "x = 1\n"
    status, error = run(str(tmp_path / "none"), "--check")
    assert (status, "no copy of deadlint_budget is here" in error) == (2, True)


def test_a_place_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "file.py").write_text("x = 1\n")
    status, error = run(str(tmp_path / "file.py" / "limits"))
    assert (status, "cannot be written" in error) == (2, True)
    assert (tmp_path / "file.py").read_text() == "x = 1\n"
