"""Discovery: which files a run looks at, and what it says of paths that hold none."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path

import pytest
from click.testing import CliRunner
from deadlint.cli import cli
from deadlint.config import Configurations
from deadlint.discover import Discovery, discover
from deadlint.errors import UserError
from deadlint.model import Level


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def plant(*names: str) -> None:
    for name in names:
        path = Path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("", encoding="utf-8")


def look(*paths: str, force_exclude: bool = False) -> Discovery:
    return discover(paths or ["."], Configurations(lambda: ()), force_exclude=force_exclude)


def files(found: Discovery) -> list[str]:
    return [os.path.join(folder.shown, name) for folder in found.folders for name in folder.names]


def test_python_files_stubs_and_notebooks_are_found_sorted_by_directory() -> None:
    plant("b.py", "a.pyi", "a/z.py", "a/y.txt", "a/b/c.py", "n.ipynb", "n.ipy")
    assert files(look()) == ["a.pyi", "b.py", "n.ipynb", "a/z.py", "a/b/c.py"]


def test_each_file_is_found_once_however_often_it_is_named() -> None:
    plant("a/b.py", "a/c/d.py")
    assert files(look("a/b.py", "a", ".", "./a/../a/c", os.path.abspath("a/b.py"))) == ["a/b.py", "a/c/d.py"]


def test_paths_outside_the_working_directory_are_shown_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plant("a/x.py", "b/y.py")
    monkeypatch.chdir(tmp_path / "a")
    assert files(look(".", "../b")) == ["x.py", str(tmp_path / "b" / "y.py")]


@pytest.mark.parametrize(
    "name",
    [".git", ".venv", "venv", "node_modules", "__pycache__", ".tox", ".nox", "build", "dist", "site-packages",
     ".eggs", "x.egg-info"],
)  # fmt: skip
def test_directories_without_source_of_the_project_are_left_out(name: str) -> None:
    plant("a.py", f"{name}/b.py", f"src/{name}/c.py")
    assert files(look()) == ["a.py"]


def test_a_default_exclude_is_removed_by_the_configuration() -> None:
    plant("build/b.py", "dist/c.py")
    Path("deadlint.toml").write_text('exclude = ["!build/"]', encoding="utf-8")
    assert files(look()) == ["build/b.py"]


def test_exclude_is_relative_to_the_configuration_that_holds_it() -> None:
    plant("gen/a.py", "sub/gen/b.py", "sub/x/gen/c.py", "sub/keep.py")
    Path("sub/deadlint.toml").write_text('exclude = ["/gen/", "x/**/c.py"]', encoding="utf-8")
    assert files(look()) == ["gen/a.py", "sub/keep.py"]


def test_what_is_named_is_checked_though_excluded() -> None:
    plant("build/b.py", "build/build/c.py", ".venv/x.py")
    assert files(look("build", ".venv/x.py")) == [".venv/x.py", "build/b.py"]


def test_force_exclude_leaves_it_out_all_the_same() -> None:
    plant("build/b.py", "build/x/y/c.py", "a/vendor/d.py", "a/e.py", "ignored/g.py", "f.py")
    Path("deadlint.toml").write_text('exclude = ["vendor/"]', encoding="utf-8")
    Path(".git").mkdir()
    Path(".gitignore").write_text("ignored/\n", encoding="utf-8")
    named = ["build", "build/b.py", "build/x/y/c.py", "a/vendor/d.py", "a/e.py", "ignored/g.py", "f.py"]
    found = look(*named, force_exclude=True)
    assert files(found) == ["f.py", "a/e.py"]
    assert not found.problems
    assert not found.warnings


def test_force_exclude_does_not_judge_by_what_is_above_the_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant("build/project/deadlint.toml", "build/project/src/a.py")
    monkeypatch.chdir(tmp_path / "build" / "project")
    assert files(look("src/a.py", force_exclude=True)) == ["src/a.py"]


GITIGNORES = {
    ".gitignore": "*.gen.py\n/top.py\nlogs/\ndocs/*.py\n!keep.gen.py\n# comment\ntrailing.py   \n[bc]2.py\n",
    "sub/.gitignore": "!x.gen.py\ninner.py\n**/deep/z.py\n",
    "sub/more/.gitignore": "*\n!kept.py\n",
    ".git/info/exclude": "local.py\n!y.gen.py\n",
}  # fmt: skip
TREE = [
    "a.py", "a.gen.py", "keep.gen.py", "top.py", "sub/top.py", "logs/a.py", "sub/logs/b.py", "docs/a.py",
    "docs/in/a.py", "sub/x.gen.py", "sub/inner.py", "sub/q/inner.py", "sub/q/deep/z.py", "deep/z.py",
    "sub/more/kept.py", "sub/more/other.py", "sub/more/dir/kept.py", "y.gen.py", "trailing.py", "b2.py",
    "x2.py", "local.py",
]  # fmt: skip


def test_what_git_ignores_is_left_out_as_git_itself_does() -> None:
    subprocess.run(["git", "init", "-q", "."], check=True)
    plant(*TREE)
    for name, text in GITIGNORES.items():
        Path(name).write_text(text, encoding="utf-8")
    by_git = subprocess.run(
        ["git", "ls-files", "--others", "--exclude-standard", "*.py"],
        check=True,
        capture_output=True,
        text=True,
    )
    expected = sorted(by_git.stdout.split())
    assert sorted(files(look())) == expected
    assert sorted(files(look(*TREE, force_exclude=True))) == expected
    assert sorted(files(look("sub"))) == [name for name in expected if name.startswith("sub/")]
    assert 5 < len(expected) < len(TREE)


def test_without_a_repository_ignore_files_above_do_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plant("a/x.py", "a/b/y.py", "a/b/z.py")
    Path(".gitignore").write_text("*\n", encoding="utf-8")
    Path("a/.gitignore").write_text("z.py\n", encoding="utf-8")
    assert files(look("a")) == ["a/x.py", "a/b/y.py"]


def test_a_repository_inside_another_is_judged_by_its_own_rules() -> None:
    plant("inner/x.py", "x.py")
    Path(".git").mkdir()
    Path(".gitignore").write_text("x.py\n", encoding="utf-8")
    Path("inner/.git").write_text("gitdir: elsewhere\n", encoding="utf-8")
    assert files(look()) == ["inner/x.py"]
    assert files(look("inner")) == ["inner/x.py"]


def test_the_nearest_configuration_holds_for_each_file() -> None:
    plant("a.py", "sub/b.py", "sub/deeper/c.py")
    Path("sub/pyproject.toml").write_text('[tool.deadlint]\nlevel = "strict"', encoding="utf-8")
    levels = {folder.shown: folder.settings.level for folder in look().folders}
    assert levels == {"": Level.DEFAULT, "sub": Level.STRICT, "sub/deeper": Level.STRICT}


def test_a_wrong_configuration_deep_in_the_tree_is_an_error() -> None:
    plant("a.py", "sub/b.py")
    Path("sub/deadlint.toml").write_text("levl = 1", encoding="utf-8")
    with pytest.raises(UserError, match=r"^sub/deadlint\.toml: levl"):
        look()


def said(entries: Iterable[object]) -> list[str]:
    return [str(getattr(entry, "path", "")) + ": " + str(getattr(entry, "message", "")) for entry in entries]


def test_a_missing_path_is_said_and_the_rest_goes_on() -> None:
    plant("a.py")
    found = look("nowhere.py", "a.py", "no\0path")
    assert said(found.problems) == [
        "nowhere.py: does not exist; check the spelling and the working directory",
        "no\0path: is no path: it holds a NUL character",
    ]
    assert files(found) == ["a.py"]


def test_a_directory_without_python_is_a_warning() -> None:
    plant("docs/a.txt", "build/a.py")
    found = look("docs")
    assert [entry.path for entry in found.warnings] == ["docs"]
    assert "holds no Python file" in found.warnings[0].message
    assert not found.problems
    assert [entry.path for entry in look().warnings] == ["."]


def test_a_directory_found_before_is_no_warning() -> None:
    plant("src/a.py")
    assert not look("src", "src", ".").warnings


def test_links_to_directories_are_followed_only_where_they_are_named() -> None:
    plant("real/a.py")
    os.symlink("real", "alias")
    os.symlink(".", "real/loop")
    assert files(look()) == ["real/a.py"]
    assert files(look("alias")) == ["alias/a.py"]
    assert len(files(look("alias", "real"))) == 1


def test_a_link_to_a_file_is_followed_unless_the_file_is_found_itself() -> None:
    plant("real/a.py", "outside/c.txt")
    os.symlink("real/a.py", "b.py")
    os.symlink("outside/c.txt", "c.py")
    os.symlink("outside/c.txt", "d.py")
    assert files(look()) == ["c.py", "real/a.py"]
    assert files(look("b.py")) == ["b.py"]
    assert files(look("b.py", "real/a.py")) == ["real/a.py"]


def test_links_that_lead_nowhere_are_passed_over_but_said_where_named() -> None:
    plant("a.py")
    os.symlink("nowhere.py", ".#a.py")
    os.symlink("loop.py", "loop.py")
    found = look()
    assert files(found) == ["a.py"]
    assert not found.problems
    assert said(look("loop.py").problems) == [
        "loop.py: is a symbolic link that leads back to itself; name the file or directory itself"
    ]


def test_a_pipe_is_never_opened() -> None:
    plant("a.py")
    os.mkfifo("pipe.py")
    assert files(look()) == ["a.py"]
    assert said(look("pipe.py").problems) == ["pipe.py: is neither a file nor a directory; name one of these"]


def test_a_directory_named_like_a_module_is_walked() -> None:
    plant("x.py/a.py")
    assert files(look()) == ["x.py/a.py"]


@pytest.mark.parametrize(
    "name", ["a\nb.py", "{x}.py", "%s.py", " .py", b"caf\xe9.py".decode("utf-8", "surrogateescape")]
)
def test_odd_names_are_names(name: str) -> None:
    plant(f"dir {name}/{name}")
    assert files(look()) == [f"dir {name}/{name}"]


@pytest.fixture
def as_nobody() -> Iterator[Path]:
    """A directory of a user who may not read everything: root's rights would hide what is tested here."""
    directory = Path(tempfile.mkdtemp())
    directory.chmod(0o777)
    was = os.geteuid()
    try:
        if was == 0:
            os.seteuid(65534)
        yield directory
    finally:
        os.seteuid(was)
        shutil.rmtree(directory)


def test_an_unreadable_directory_is_said_and_the_rest_goes_on(as_nobody: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(as_nobody)
    plant("a.py", "shut/b.py")
    Path("shut").chmod(0)
    found = look()
    assert said(found.problems) == ["shut: cannot be read: permission denied; grant access or exclude it"]
    assert files(found) == ["a.py"]


def test_a_named_path_that_is_unreadable_does_not_end_the_run(as_nobody: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(as_nobody)
    monkeypatch.setattr(os, "access", partial(os.access, effective_ids=True))  # the real user is still root
    plant("a.py", "shut/b.py")
    Path("shut").chmod(0)
    done = CliRunner().invoke(cli, ["check", "--show-files", "shut", "a.py"], standalone_mode=False)
    assert "a.py" in done.output.splitlines()
    assert "shut: cannot be read: permission denied" in done.output
