"""The extension for VS Code: its own tests, and what its package holds."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.services import missing, need_program

EXTENSION = Path(__file__).parents[2] / "editors" / "vscode"


@pytest.fixture
def node() -> str:
    """Node, with what the extension needs beside it."""
    program = need_program("node", "nodejs")
    if not (EXTENSION / "node_modules").is_dir():
        missing("what the extension for VS Code needs", "cd editors/vscode && npm ci")
    return program


def run(*command: str | Path, cwd: Path = EXTENSION) -> str:
    """What a program prints on its standard output."""
    done = subprocess.run(
        command,
        cwd=cwd,
        env={**os.environ, "DEADLINT_PYTHON": sys.executable},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_extension_starts_the_server_and_talks_to_it(node: str) -> None:
    tests = sorted(str(path) for path in (EXTENSION / "test").glob("*.test.js"))
    assert len(tests) == 2
    assert "# fail 0" in run(node, "--test", "--test-reporter=tap", *tests)
    assert json.loads((EXTENSION / "package.json").read_text())["scripts"]["test"].split()[2:] == [
        path.removeprefix(f"{EXTENSION}/") for path in tests
    ]


def test_the_package_holds_all_that_the_extension_needs(node: str, tmp_path: Path) -> None:
    package = tmp_path / "deadlint.vsix"
    copy = tmp_path / "vscode"  # vsce writes into the folder that it packages
    shutil.copytree(EXTENSION, copy, symlinks=True)
    run(node, copy / "node_modules/@vscode/vsce/vsce", "package", "--allow-missing-repository", "--out", package, cwd=copy)
    with zipfile.ZipFile(package) as archive:
        archive.extractall(tmp_path / "installed")
        names = archive.namelist()
    assert "extension/extension.js" in names
    assert not [name for name in names if name.startswith("extension/test/") or ".npmrc" in name]
    assert package.stat().st_size < 2_000_000
    loaded = run(node, EXTENSION / "test/load.js", tmp_path / "installed/extension/extension.js")
    assert loaded.split() == ["activate", "deactivate"]


def test_the_extension_has_the_settings_of_the_server() -> None:
    """Those that `docs/editors` names, and the command beside them."""
    manifest = json.loads((EXTENSION / "package.json").read_text())
    settings = {name.removeprefix("deadlint.") for name in manifest["contributes"]["configuration"]["properties"]}
    table = (EXTENSION.parents[1] / "docs/editors/README.md").read_text()
    documented = {
        name.strip("` ")
        for line in table.splitlines()
        if line.startswith("| `") and not line.startswith("| `source")
        for name in line.split("|")[1].split(",")
    }
    assert settings == documented | {"path"}
