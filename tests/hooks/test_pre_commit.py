"""The hooks, run by the real pre-commit in real repositories."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from tests.hooks.conftest import MANIFEST, ROOT, WAIT_S, Shell

FAULT = 'import requests\n\n\ndef catalogue(url):\n    return requests.get(f"{url}/catalogue").json()\n'
SOUND = FAULT.replace('catalogue")', 'catalogue", timeout=(3, 5))')
# The driver binds the value on the server, where SET takes none; `set_config` does, so the fix is a safe one.
REPAIRABLE = """\
import psycopg


def shorten(dsn, limit_s):
    with psycopg.connect(dsn, options="-c statement_timeout=60s") as conn:
        conn.execute("SET LOCAL statement_timeout = %s", (limit_s * 1000,))
        conn.execute("SELECT 1")
"""


def use(repository: Shell, hooks: Path, *names: str, more: str = "") -> None:
    """Configure hooks of the repository at `hooks`."""
    revision = subprocess.run(
        ["git", "-C", str(hooks), "rev-parse", "HEAD"], check=True, capture_output=True, text=True
    ).stdout.strip()
    listed = "".join(f"      - id: {name}\n{more}" for name in names)
    text = f"repos:\n  - repo: {hooks}\n    rev: {revision}\n    hooks:\n{listed}"
    repository.write(".pre-commit-config.yaml", text)
    repository.write(".gitignore", ".deadlint_cache/\n")
    repository.commit("use hooks")


@pytest.fixture
def checking(repository: Shell, installed_hooks: Path) -> Shell:
    """A repository with the checking hook."""
    use(repository, installed_hooks, "deadlint")
    return repository


@pytest.fixture
def fixing(repository: Shell, installed_hooks: Path) -> Shell:
    """A repository with the hook that fixes."""
    use(repository, installed_hooks, "deadlint-fix")
    return repository


def test_the_manifest_is_one(repository: Shell) -> None:
    repository("pre-commit", "validate-manifest", str(ROOT / MANIFEST))


def test_a_commit_with_a_finding_is_refused_and_one_without_is_made(checking: Shell) -> None:
    checking("pre-commit", "install")
    checking.write("fetch.py", FAULT)
    checking("git", "add", "fetch.py")
    refused = checking("git", "commit", "-m", "fetch", check=False)
    assert refused.returncode == 1
    assert "fetch.py:5:12: DL201" in refused.stdout
    checking.write("fetch.py", SOUND)
    checking("git", "add", "fetch.py")
    made = checking("git", "commit", "-m", "fetch")
    assert "Passed" in made.stdout
    assert checking("git", "show", "--format=%s", "--name-only").stdout.split() == ["fetch", "fetch.py"]


def test_files_that_are_no_python_do_not_start_it(checking: Shell) -> None:
    checking.write("notes.txt", "requests.get(url)\n")
    checking("git", "add", ".")
    assert "(no files to check)Skipped" in checking("pre-commit", "run").stdout


def test_a_fix_is_made_and_left_to_be_staged(fixing: Shell) -> None:
    fixing.write("shorten.py", REPAIRABLE)
    fixing("git", "add", ".")
    first = fixing("pre-commit", "run", check=False)
    assert first.returncode == 1
    assert "files were modified by this hook" in first.stdout
    assert "set_config('statement_timeout', %s, true)" in (fixing.directory / "shorten.py").read_text()
    fixing("git", "add", ".")
    assert "Passed" in fixing("pre-commit", "run").stdout


def test_what_is_staged_is_judged_and_not_what_is_beside_it(checking: Shell) -> None:
    checking.write("fetch.py", FAULT)
    checking("git", "add", ".")
    checking.write("fetch.py", SOUND)
    staged = checking("pre-commit", "run", check=False)
    assert "fetch.py:5:12: DL201" in staged.stdout
    assert (checking.directory / "fetch.py").read_text() == SOUND
    checking("git", "add", ".")
    checking.write("fetch.py", FAULT)
    assert "Passed" in checking("pre-commit", "run").stdout
    assert (checking.directory / "fetch.py").read_text() == FAULT
    assert "DL201" in checking("deadlint", "check", check=False).stdout


def test_a_fix_leaves_what_is_not_staged(fixing: Shell) -> None:
    text = REPAIRABLE + "\n\nLAYERS = [\n" + "    'roads',\n" * 20 + "]\n"
    fixing.write("shorten.py", text)
    fixing("git", "add", ".")
    fixing.write("shorten.py", text + "print('not staged')\n")
    assert fixing("pre-commit", "run", check=False).returncode == 1
    after = (fixing.directory / "shorten.py").read_text()
    assert "set_config(" in after
    assert after.endswith("]\nprint('not staged')\n")


def test_a_fix_beside_what_is_not_staged_is_taken_back_and_nothing_is_lost(fixing: Shell) -> None:
    fixing.write("shorten.py", REPAIRABLE)
    fixing("git", "add", ".")
    changed = REPAIRABLE + "print('not staged')\n"
    fixing.write("shorten.py", changed)
    done = fixing("pre-commit", "run", check=False)
    assert done.returncode == 1
    assert "conflicted with hook auto-fixes" in done.stdout
    assert (fixing.directory / "shorten.py").read_text() == changed


def test_a_renamed_file_keeps_its_place_in_the_baseline(checking: Shell) -> None:
    checking.write("fetch.py", FAULT)
    checking.write("other.py", FAULT.replace("catalogue(", "index("))
    checking.write("deadlint.toml", 'baseline = "deadlint-baseline.txt"\n')
    checking("deadlint", "baseline", "create")
    checking.commit("start")
    checking("git", "mv", "fetch.py", "catalogue.py")
    assert "Passed" in checking("pre-commit", "run").stdout
    checking.write("catalogue.py", FAULT + FAULT.replace("catalogue(", "again("))
    checking("git", "add", ".")
    assert "catalogue.py:10:12: DL201" in checking("pre-commit", "run", check=False).stdout


def test_a_deleted_file_is_no_error(checking: Shell) -> None:
    checking.write("fetch.py", FAULT)
    checking.write("use.py", "from fetch import catalogue\n\nprint(catalogue('http://a'))\n")
    checking.commit("start")
    checking("git", "rm", "--quiet", "fetch.py")
    checking.write("use.py", "print('gone')\n")
    checking("git", "add", ".")
    assert "Passed" in checking("pre-commit", "run").stdout


def test_all_files_are_checked_but_for_those_that_are_excluded(checking: Shell) -> None:
    checking.write("deadlint.toml", 'exclude = ["vendored/"]\n')
    for name in ("a.py", "pkg/b.py", "vendored/c.py", "typed.pyi"):
        checking.write(name, FAULT)
    checking.commit("start")
    done = checking("pre-commit", "run", "--all-files", check=False)
    assert done.returncode == 1
    assert [name for name in ("a.py", "pkg/b.py", "vendored/c.py") if f"{name}:5" in done.stdout] == [
        "a.py",
        "pkg/b.py",
    ]


def test_notebooks_are_checked(checking: Shell) -> None:
    cell = {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None, "source": FAULT}
    checking.write("look.ipynb", json.dumps({"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))
    checking("git", "add", ".")
    assert "look.ipynb:1:5:12: DL201" in checking("pre-commit", "run", check=False).stdout


def test_a_changed_file_is_judged_with_the_project_in_view(checking: Shell) -> None:
    checking.write(
        "flows.py",
        "from prefect import task\nfrom tiles import build\n\n\n"
        "@task(timeout_seconds=600)\ndef mosaic(source):\n    build(source)\n",
    )
    tiles = "import deadlint_budget\n\n\ndef build(source):\n    deadlint_budget.run(['rio', source], want={})\n"
    checking.write("tiles.py", tiles.format(300))
    checking.commit("start")
    checking.write("tiles.py", tiles.format(900))
    checking("git", "add", ".")
    done = checking("pre-commit", "run", check=False)
    assert "tiles.py:5:5: DL401" in done.stdout
    assert "600 s" in done.stdout


def test_runs_at_the_same_time_share_a_cache(checking: Shell, installed_hooks: Path) -> None:
    for number in range(40):
        checking.write(f"pkg/m{number}.py", FAULT.replace("catalogue(", f"catalogue_{number}("))
    # The user's configuration may lift `require_serial`: then pre-commit itself starts several at a time.
    use(checking, installed_hooks, "deadlint", more="        require_serial: false\n")
    command = ["pre-commit", "run", "--all-files", "--verbose"]
    running = [
        subprocess.Popen(command, cwd=checking.directory, env=checking.environment, stdout=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    for process in running:
        out, _ = process.communicate(timeout=WAIT_S)
        assert process.returncode == 1
        assert out.count(": DL201") == 40
        assert "error" not in out
    warm = checking("deadlint", "check", "--output-format=concise", "--statistics", check=False)
    assert warm.stdout.count(": DL201") == 40
    assert not list(checking.directory.glob(".deadlint_cache/*.tmp"))


def test_it_can_be_tried_without_a_configuration(repository: Shell, installed_hooks: Path) -> None:
    repository.write("fetch.py", FAULT)
    repository.commit("start")
    done = repository("pre-commit", "try-repo", str(installed_hooks), "deadlint", "--files", "fetch.py", check=False)
    assert done.returncode == 1
    assert "fetch.py:5:12: DL201" in done.stdout


def snippets() -> list[str]:
    """The configurations that the page shows, those without a beginning put under one."""
    page = (ROOT / "docs" / "pre-commit.md").read_text(encoding="utf-8")
    found = re.findall(r"(?m)^```yaml\n(.*?)^```$", page, re.DOTALL)
    first = found[0]
    under = {"repos": "", "  - repo": "repos:\n", "      - id": first[: first.index("      - id")]}
    return [under[text.partition(":")[0]] + text for text in found]


@pytest.mark.parametrize("number", range(len(snippets())))
def test_the_configurations_of_the_page_are_valid(repository: Shell, number: int) -> None:
    path = repository.write(".pre-commit-config.yaml", snippets()[number])
    repository("pre-commit", "validate-config", str(path))


def test_the_deadlint_of_the_project_is_run_as_the_page_says(repository: Shell) -> None:
    (local,) = (text for text in snippets() if "repo: local" in text)
    repository.write(".pre-commit-config.yaml", local)
    repository.write("fetch.py", FAULT)
    repository.commit("start")
    assert "fetch.py:5:12: DL201" in repository("pre-commit", "run", "--all-files", check=False).stdout


UNREACHABLE = ("Could not find a version", "No matching distribution", "Connection", "Temporary failure", "timed out")


def test_it_installs_itself_from_its_repository(repository: Shell, source_of_hooks: Path) -> None:
    """As users have it: pre-commit clones, makes an environment and lets pip install deadlint into it."""
    repository.write("fetch.py", FAULT)
    use(repository, source_of_hooks, "deadlint")
    done = repository("pre-commit", "run", "--all-files", "--verbose", check=False)
    if any(words in done.stdout for words in UNREACHABLE) and "DL201" not in done.stdout:
        pytest.skip("pip reaches no package index for what deadlint depends on")
    assert done.returncode == 1, done.stdout
    assert "fetch.py:5:12: DL201" in done.stdout
