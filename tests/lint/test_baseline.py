"""Baselines: what is known is not reported, and stays known while code moves; what is gone is told."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from deadlint import baseline_file
from deadlint.baseline_file import Entry
from deadlint.config import Overrides
from deadlint.errors import UserError
from deadlint.run import Request, run
from hypothesis import given
from hypothesis import strategies as st

from tests.lint.conftest import Deadlint
from tests.lint.test_cli import FETCH, plant

PIPELINES = Path(__file__).parents[2] / "fixtures" / "pipelines"
BASELINE = Path("deadlint-baseline.txt")
SEND = "slowlib.send()\n"


@pytest.fixture
def known(quick: Deadlint) -> Deadlint:
    """A project with two findings, both of them in its baseline."""
    plant("deadlint.toml", 'baseline = "deadlint-baseline.txt"\n')
    plant("a.py", "import slowlib\n\ndef get():\n    return slowlib.fetch()\n")
    plant("pkg/b.py")
    assert quick("baseline", "create").returncode == 0
    return quick


def found(deadlint: Deadlint, *arguments: str) -> list[str]:
    """Where something is reported."""
    done = deadlint("check", "-q", "--output-format=concise", *arguments)
    places = [line.split(" ")[0].rstrip(":") for line in done.stdout.decode().splitlines()]
    assert done.returncode == (1 if places else 0)
    return places


def lines(name: str = "deadlint-baseline.txt") -> list[str]:
    return [line for line in Path(name).read_text().splitlines() if not line.startswith("#")]


def test_what_is_known_is_not_reported(known: Deadlint) -> None:
    assert found(known) == []
    assert known("check").stdout == b"No findings in 2 files, 2 in the baseline.\n"
    assert found(known, "--no-baseline") == ["a.py:4:12", "pkg/b.py:2:1"]


def test_what_is_new_is_reported(known: Deadlint) -> None:
    plant("pkg/b.py", FETCH + "slowlib.fetch()\n")
    plant("c.py")
    assert found(known) == ["c.py:2:1", "pkg/b.py:3:1"]


def test_the_file_is_sorted_and_says_where(known: Deadlint) -> None:
    assert [line.rpartition(" ")[0] for line in lines()] == ["a.py: ZZ101", "pkg/b.py: ZZ101"]
    assert BASELINE.read_text().startswith("# deadlint baseline 1\n")


def test_it_is_named_on_the_command_line(quick: Deadlint) -> None:
    plant("a.py")
    done = quick("baseline", "create", "--baseline", "known/old.txt")
    assert b"give `--baseline known/old.txt`" in done.stdout
    assert found(quick) == ["a.py:2:1"]
    assert found(quick, "--baseline", "known/old.txt") == []


def test_lines_move(known: Deadlint) -> None:
    plant("a.py", "import slowlib\n\nX = 1\n\n\ndef get():\n    # by day\n    if X:\n        return slowlib.fetch( )\n")
    assert found(known) == []


@pytest.mark.parametrize("options", [(), ("c.py",)], ids=["all files", "the hook, that file alone"])
def test_files_are_renamed(known: Deadlint, options: tuple[str, ...]) -> None:
    os.rename("a.py", "c.py")
    assert found(known, *options) == []


def test_a_function_moves_to_another_file(known: Deadlint) -> None:
    plant("c.py", Path("a.py").read_text())
    assert found(known) == ["c.py:4:12"]
    plant("a.py", "from c import get\n")
    assert found(known) == []


def test_a_copy_in_another_file_does_not_use_up_what_is_known(known: Deadlint) -> None:
    """A hook sees the copy alone: the entry belongs to the file that is there still."""
    shutil.copy("a.py", "c.py")
    assert found(known, "c.py") == ["c.py:4:12"]


def test_reformatting_makes_nothing_new(known: Deadlint) -> None:
    pytest.importorskip("ruff", reason="no ruff to reformat with: pip install ruff")
    shutil.copytree(PIPELINES, "pipelines")
    os.unlink("pipelines/pyproject.toml")
    assert known("baseline", "update", "--add").returncode == 0
    listed = len(lines())
    assert listed > 30
    style = "line-length = 50\nformat.quote-style = 'single'\nformat.indent-style = 'tab'\n"
    plant("ruff.toml", style)
    subprocess.run([sys.executable, "-m", "ruff", "format", "-q", "pipelines"], check=True)
    assert found(known) == []
    assert known("baseline", "check").stdout == f"deadlint-baseline.txt: current, {listed} findings listed.\n".encode()


def test_what_is_gone_is_told(known: Deadlint) -> None:
    plant("a.py", "")
    os.unlink("pkg/b.py")
    done = known("check")
    assert done.returncode == 0
    assert done.stderr == (
        b"warning: deadlint-baseline.txt: 2 entries are stale: what they stand for is gone; "
        b"`deadlint baseline update` takes out what is stale\n"
    )
    done = known("baseline", "check")
    assert done.returncode == 1
    assert done.stdout.decode().splitlines()[0].startswith("deadlint-baseline.txt: stale: a.py: ZZ101 ")
    assert known("baseline", "update").stdout == b"deadlint-baseline.txt: 0 kept, 2 stale taken out.\n"
    assert (lines(), known("baseline", "check").returncode) == ([], 0)


def test_what_is_fixed_is_stale(known: Deadlint) -> None:
    done = known("check", "--fix", "a.py")
    assert done.returncode == 0
    assert b"1 entry is stale" in done.stderr


@pytest.mark.parametrize(
    ("options", "change"),
    [
        (("pkg",), lambda: os.unlink("a.py")),
        (("--select", "ZZ102"), lambda: plant("a.py", "")),
        (("--ignore", "ZZ101"), lambda: plant("a.py", "")),
        ((), lambda: plant("a.py", "def get(:\n")),
    ],
    ids=["not looked at", "other rules", "without the rule", "does not parse"],
)
def test_what_was_not_looked_at_is_not_called_stale(known: Deadlint, options: tuple[str, ...], change: object) -> None:
    assert callable(change)
    change()
    assert known("check", *options).stderr == b""
    if not any(option.startswith("--") for option in options):
        known("baseline", "update", *options)
        assert len(lines()) == 2


def test_a_strict_finding_is_not_stale_for_a_reader_who_does_not_see_it(known: Deadlint) -> None:
    plant("a.py", Path("a.py").read_text() + SEND)
    assert known("baseline", "update", "--add", "--level=strict").returncode == 0
    assert len(lines()) == 3
    assert known("check").stderr == b""
    assert known("check", "--level=strict").returncode == 0
    assert known("baseline", "update").returncode == 0
    assert len(lines()) == 3


def test_update_follows_and_takes_in_what_is_new_only_when_asked(known: Deadlint) -> None:
    os.rename("a.py", "c.py")
    plant("pkg/b.py", FETCH + "slowlib.fetch()\n")
    done = known("baseline", "update")
    assert done.stdout.decode().splitlines() == [
        "deadlint-baseline.txt: 2 kept, 1 of them moved.",
        "Not listed: 1 finding; `deadlint check` shows them, --add takes them in.",
    ]
    assert [line.split(":")[0] for line in lines()] == ["c.py", "pkg/b.py"]
    assert known("baseline", "update", "--add").stdout == b"deadlint-baseline.txt: 2 kept, 1 added.\n"
    assert lines()[2] == f"{lines()[1]} 2"
    assert found(known) == []


def test_create_replaces_nothing_unless_forced(known: Deadlint) -> None:
    before = BASELINE.read_text()
    plant("c.py")
    done = known("baseline", "create")
    assert (done.returncode, BASELINE.read_text()) == (2, before)
    assert b"`deadlint baseline update` keeps it current, --force makes it anew" in done.stderr
    assert known("baseline", "create", "--force").returncode == 0
    assert len(lines()) == 3


def test_create_replaces_nothing_that_is_no_baseline(known: Deadlint) -> None:
    before = Path("a.py").read_text()
    done = known("baseline", "create", "--force", "--baseline", "a.py")
    assert (done.returncode, Path("a.py").read_text()) == (2, before)
    assert b"a.py: is no baseline, so it is not replaced" in done.stderr


def test_a_pipe_is_no_baseline(known: Deadlint) -> None:
    os.mkfifo("pipe")
    done = known("check", "--baseline", "pipe")
    assert done.returncode == 2
    assert b"pipe: the baseline cannot be read: it is no file" in done.stderr


def test_the_page_shows_what_is_printed(quick: Deadlint) -> None:
    page = (PIPELINES.parents[1] / "docs" / "baseline.md").read_text(encoding="utf-8")
    plant("a.py", FETCH * 2)
    printed = (
        quick("baseline", "create").stdout.decode().replace("in 1 file ", "in 12 files ").replace("2 f", "41 f", 1)
    )
    assert f"$ deadlint baseline create\n{printed}```" in page


def test_paths_count_from_the_baseline(known: Deadlint, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("pkg")
    assert found(known) == []
    assert found(known, "..") == []
    assert known("baseline", "check", "..").stdout == b"../deadlint-baseline.txt: current, 2 findings listed.\n"


def test_each_configuration_has_its_own(known: Deadlint) -> None:
    plant("tiler/deadlint.toml", 'baseline = "known.txt"\n')
    plant("tiler/c.py")
    plant("tiler/known.txt", "# deadlint baseline 1\n")
    plant("other/deadlint.toml", "")
    plant("other/d.py")
    assert found(known) == ["other/d.py:2:1", "tiler/c.py:2:1"]
    assert known("baseline", "update", "--add").returncode == 0
    assert found(known) == ["other/d.py:2:1"]
    assert len(lines()) == 2
    assert "c.py: ZZ101" in Path("tiler/known.txt").read_text()


def test_create_leaves_out_what_another_configuration_holds_for(known: Deadlint) -> None:
    plant("other/deadlint.toml", "")
    plant("other/d.py")
    assert b"1 finding left out" in known("baseline", "create", "--force").stdout
    assert len(lines()) == 2


def test_a_comment_comes_before_the_baseline(known: Deadlint) -> None:
    plant("pkg/b.py", "import slowlib\nslowlib.fetch()  # noqa: ZZ101\n")
    done = known("check")
    assert done.stdout == b"No findings in 2 files, 1 suppressed, 1 in the baseline.\n"
    assert b"1 entry is stale" in done.stderr


def test_standard_input_is_compared_too(known: Deadlint) -> None:
    text = Path("a.py").read_bytes()
    assert known("check", "-", "--stdin-filename=a.py", stdin=text).returncode == 0
    changed = known("check", "-", "--stdin-filename=a.py", stdin=text + b"slowlib.fetch()\n")
    assert (changed.returncode, changed.stderr) == (1, b"")


def test_the_cache_remembers_the_same_whatever_the_baseline_says(
    known: Deadlint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("deadlint.cache._TICK_NS", -3_600_000_000_000)  # the files count as old
    monkeypatch.setattr("deadlint.environment._content", lambda source: "unchanged")

    def judged(baseline: str | None = None) -> tuple[int, int]:
        """How many files were not answered by the cache, and how many findings are open."""
        result = run(Request(processes=1, overrides=Overrides(baseline=baseline)))
        return result.files - result.cached, len(result.open_findings)

    assert judged() == (2, 0)
    assert judged() == judged(os.path.abspath(BASELINE)) == (0, 0)
    assert judged("") == (0, 2)
    plant("deadlint-baseline.txt", "# deadlint baseline 1\n")
    assert judged() == (0, 2)
    plant("deadlint.toml", "")
    assert judged() == (0, 2)
    plant("deadlint.toml", 'baseline = "deadlint-baseline.txt"\n')
    assert judged() == (0, 2)


def test_reports_say_what_the_baseline_knows(known: Deadlint) -> None:
    known("check", "--output-format=json=a.json", "--output-format=sarif=a.sarif", "--output-format=gitlab=a.gl")
    suppressed = [finding["suppressed"] for finding in json.loads(Path("a.json").read_text())["findings"]]
    assert {entry["by"] for entry in suppressed} == {"baseline"}
    assert suppressed[0]["text"] == "deadlint-baseline.txt"
    (run,) = json.loads(Path("a.sarif").read_text())["runs"]
    assert [entry["suppressions"] for entry in run["results"]] == [
        [{"kind": "external", "justification": "known in deadlint-baseline.txt"}]
    ] * 2
    assert json.loads(Path("a.gl").read_text()) == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "there is no such baseline; `deadlint baseline create` makes it"),
        ("# deadlint baseline 9\n", "is a baseline of version 9, and this deadlint has 1"),
        ("a.py DL101\n", "line 1 is no entry of a baseline: 'a.py DL101'; take it out"),
        ("# deadlint baseline 1\n<<<<<<< ours\n", "line 2 is the mark of a merge conflict"),
    ],
)
def test_a_baseline_that_is_none_is_an_error(known: Deadlint, text: str | None, said: str) -> None:
    os.unlink(BASELINE)
    if text is not None:
        plant("deadlint-baseline.txt", text)
    done = known("check")
    assert done.returncode == 2
    assert said in done.stderr.decode()


def test_nothing_is_fixed_where_the_baseline_cannot_be_read(known: Deadlint) -> None:
    plant("deadlint-baseline.txt", "<<<<<<< ours\n")
    before = Path("a.py").read_text()
    assert known("check", "--fix").returncode == 2
    assert Path("a.py").read_text() == before


def test_a_dependent_is_compared_with_its_own_baseline(quick: Deadlint) -> None:
    plant("deadlint.toml", 'baseline = "known.txt"\n')
    plant("flow.py", "from prefect import flow\nfrom tiles import t\n\n@flow(timeout_seconds=9)\ndef f():\n    t()\n")
    plant("tiles.py", "import deadlint_budget\n\ndef t():\n    deadlint_budget.run(['gdalwarp'], want=99)\n")
    assert quick("baseline", "create", "--baseline", "known.txt").returncode == 0
    assert lines("known.txt")
    assert found(quick, "--with-dependents", "flow.py") == []
    plant("known.txt", "# deadlint baseline 1\n")
    assert found(quick, "--with-dependents", "flow.py") == ["tiles.py:4:5"]


def test_without_a_baseline_there_is_nothing_to_keep(quick: Deadlint) -> None:
    plant("a.py")
    for verb in ("update", "check"):
        done = quick("baseline", verb)
        assert done.returncode == 2
        assert b"no baseline is named: give --baseline FILE" in done.stderr


def git(*arguments: str) -> subprocess.CompletedProcess[str]:
    identity = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
    return subprocess.run(["git", *identity, *arguments], check=False, capture_output=True, text=True)


@pytest.mark.parametrize("attributes", ["", "deadlint-baseline.txt merge=union\n"])
def test_two_branches_merge(known: Deadlint, attributes: str) -> None:
    """One takes the neighbours of what the other takes; `update` mends the conflict that this gives without union."""
    plant(".gitattributes", attributes)
    for name in ("c.py", "d.py"):
        plant(name)
    known("baseline", "update", "--add")
    git("init", "-q", "-b", "main")
    git("add", ".")
    git("commit", "-qm", "start")
    git("checkout", "-qb", "mended")
    plant("c.py", "")
    known("baseline", "update")
    git("commit", "-qam", "mend c")
    git("checkout", "-q", "main")
    plant("d.py", "")
    plant("e.py")
    known("baseline", "update", "--add")
    git("add", ".")
    git("commit", "-qm", "mend d, add e")
    merged = git("merge", "-q", "mended")
    assert (merged.returncode == 0) == bool(attributes)
    assert known("check").returncode == (0 if attributes else 2)
    assert known("baseline", "update").returncode == 0
    assert [line.split(":")[0] for line in lines()] == ["a.py", "e.py", "pkg/b.py"]
    assert known("baseline", "check").returncode == 0


_names = st.text(st.characters(exclude_characters="/\0"), min_size=1, max_size=12)


@given(st.lists(st.tuples(_names, st.sampled_from(["DL101", "DL2"]), st.sampled_from(["0" * 24, "a1" * 12]))))
def test_what_is_written_is_read_again(
    tmp_path_factory: pytest.TempPathFactory, made: list[tuple[str, str, str]]
) -> None:
    entries = sorted(Entry(os.fsdecode(os.fsencode(n)), code, name) for n, code, name in made if _is_name(n))
    path = tmp_path_factory.mktemp("baseline") / "known.txt"
    baseline_file.write(str(path), reversed(entries))
    assert baseline_file.read(str(path)) == entries


def _is_name(text: str) -> bool:
    try:
        os.fsencode(text)
    except UnicodeEncodeError:
        return False
    return True


@given(st.lists(st.sampled_from(["<<<<<<< a", "a.py: DL101 " + "0" * 24, "=======", "", "# x", "nonsense", ": DL1 "])))
def test_reading_never_fails_otherwise(tmp_path_factory: pytest.TempPathFactory, text: list[str]) -> None:
    path = tmp_path_factory.mktemp("baseline") / "known.txt"
    path.write_text("\n".join(text))
    try:
        assert len(baseline_file.read(str(path), merging=True)) <= 1
    except UserError:
        assert {"nonsense", ": DL1 "} & set(text)
