"""Repositories for the tests of the hooks: one that offers them, and one that uses them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
MANIFEST = ".pre-commit-hooks.yaml"
WAIT_S = 300  # a first run makes environments, and other tests may use the processors


@dataclass(frozen=True, slots=True)
class Shell:
    """Runs programs in a directory, with nothing of this machine's Git configuration."""

    directory: Path
    environment: dict[str, str]

    def __call__(self, *command: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            command,
            cwd=self.directory,
            env=self.environment,
            check=False,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=WAIT_S,
        )
        if check and done.returncode:
            raise AssertionError(f"{command} ended with {done.returncode}:\n{done.stdout}")
        return done

    def write(self, name: str, text: str) -> Path:
        """Write a file below the directory."""
        path = self.directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def commit(self, subject: str) -> None:
        """Commit everything, past the hooks."""
        self("git", "add", "--all")
        self("git", "commit", "--quiet", "--no-verify", "--message", subject)


def shell(directory: Path, home: Path) -> Shell:
    """A shell in a new repository; pre-commit keeps its environments in `home`."""
    directory.mkdir(parents=True, exist_ok=True)
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("GIT_", "PRE_COMMIT"))}
    environment |= {
        "PATH": os.pathsep.join([str(BIN), os.environ["PATH"]]),
        "PRE_COMMIT_HOME": str(home),
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        **{f"GIT_{who}_{what}": "a@b.c" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
    }
    made = Shell(directory, environment)
    made("git", "init", "--quiet", "--initial-branch=main")
    return made


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where pre-commit keeps its environments."""
    pytest.importorskip("pre_commit", reason="no pre-commit: pip install pre-commit")
    if shutil.which("git") is None:
        pytest.skip("no git: apt install git")
    return tmp_path_factory.mktemp("pre-commit")


@pytest.fixture(scope="session")
def installed_hooks(home: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository that offers our hooks, run by the deadlint that is installed here: no test waits for pip."""
    offering = shell(tmp_path_factory.mktemp("hooks"), home)
    text = (ROOT / MANIFEST).read_text(encoding="utf-8")
    offering.write(MANIFEST, text.replace("language: python", "language: system"))
    offering.commit("offer hooks")
    return offering.directory


@pytest.fixture(scope="session")
def source_of_hooks(home: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with what a clone of this one has, as far as it is installed from it."""
    offering = shell(tmp_path_factory.mktemp("deadlint"), home)
    for name in (MANIFEST, "pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md"):
        shutil.copy(ROOT / name, offering.directory)
    for name in ("lint", "rules", "budget"):
        shutil.copytree(ROOT / name, offering.directory / name, ignore=shutil.ignore_patterns("__pycache__"))
    offering.commit("offer deadlint")
    return offering.directory


@pytest.fixture
def repository(home: Path, tmp_path: Path) -> Shell:
    """An empty repository that uses no hooks yet."""
    return shell(tmp_path / "project", home)
