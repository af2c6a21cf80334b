"""The cache: what it spares, what makes it void, and that whatever is wrong with it costs time and nothing else."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from deadlint import cache_directory, codec, environment
from deadlint.cache import Cache
from deadlint.codec import BadRecord
from deadlint.config import Overrides
from deadlint.model import (
    Constant,
    Edit,
    Finding,
    Fix,
    Import,
    Level,
    Related,
    Safety,
    Span,
    Suppression,
)
from deadlint.result import RunResult
from deadlint.run import Request, run
from hypothesis import given
from hypothesis import strategies as st

FETCH = "import slowlib\nslowlib.fetch()\n"
CALM = "import slowlib\nslowlib.fetch(limit=3)\n"
CACHED = Request(processes=1)
LONG_AGO = 1_600_000_000


def plant(name: str, text: str = FETCH, *, aged: bool = True) -> Path:
    """A file; `aged` as if it had been written long before the cache."""
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture
def root(project: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project whose files count as old: else every run would look into what was written a moment ago.

    The source of the rules counts as unchanged, so that they can be edited while the tests run.
    """
    monkeypatch.setattr("deadlint.cache._TICK_NS", -3_600_000_000_000)
    monkeypatch.setattr(environment, "_content", lambda source: "unchanged")
    return project


def check(*paths: str, **changes: object) -> RunResult:
    return run(replace(CACHED, paths=paths or (".",), **changes))  # type: ignore[arg-type]


def found(result: RunResult) -> list[str]:
    return [f"{one.path}:{one.span.line} {one.code}" for one in result.open_findings]


def judged(result: RunResult) -> int:
    """How many files were not answered by the cache."""
    return result.files - result.cached


def cache_file() -> Path:
    (path,) = Path(".deadlint_cache").glob("*.cache")
    return path


def test_what_has_not_changed_is_not_looked_into_again(root: Path) -> None:
    plant("a.py")
    plant("b/c.py", CALM)
    first, second = check(), check()
    assert first == replace(second, cached=0)
    assert (judged(first), judged(second)) == (2, 0)
    assert found(second) == ["a.py:2 ZZ101"]


def test_findings_come_back_whole(root: Path) -> None:
    plant("a.py", "import slowlib\nslowlib.fetch()  # noqa: ZZ101 why\nslowlib.fetch()\nslowlib.send()\n")
    strict = Overrides(level=Level.STRICT)
    fresh = check(overrides=strict).findings
    again = check(overrides=strict)
    assert judged(again) == 0
    assert again.findings == fresh
    assert [one.fix for one in again.findings] == [one.fix for one in fresh]


def test_a_changed_file_alone_is_looked_into(root: Path) -> None:
    plant("a.py")
    plant("b.py")
    check()
    plant("a.py", CALM)
    result = check()
    assert (judged(result), found(result)) == (1, ["b.py:2 ZZ101"])
    assert judged(check()) == 0


@pytest.mark.parametrize("what", ["time", "inode"])
def test_the_same_content_under_another_status_is_recognised(root: Path, what: str) -> None:
    path = plant("a.py")
    check()
    if what == "time":
        os.utime(path, (LONG_AGO, LONG_AGO))
    else:
        copy = plant("copy", path.read_text())
        os.replace(copy, path)
    judgements: list[object] = []
    result = _counting_checks(judgements)
    assert judgements == []
    assert found(result) == ["a.py:2 ZZ101"]
    assert judged(check()) == 0


def _counting_checks(judgements: list[object]) -> RunResult:
    from deadlint import check as engine  # noqa: PLC0415 - the stand-ins must be installed first

    real = engine.check_source

    def counted(*arguments: object, **more: object) -> object:
        judgements.append(arguments)
        return real(*arguments, **more)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine, "check_source", counted)
        return check()


def test_an_edit_that_size_and_time_hide_is_seen(root: Path) -> None:
    path = plant("a.py", "import slowlib\nslowlib.fetch()  #\n")
    check()
    before = path.stat()
    with path.open("r+") as file:
        file.write("import slowlib\nslowlib.fetch(   )#\n"[: before.st_size])
    with path.open("r+") as file:
        file.write("import slowlib\nslowlib.other()  #\n")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert path.stat().st_size == before.st_size
    assert found(check()) == []


def test_a_file_as_young_as_the_cache_is_looked_into(project: Path) -> None:
    """Without the fixture that makes files old: a second edit within the clock's tick would not show."""
    plant("a.py")
    check()
    judgements: list[object] = []
    assert judged(result := check()) == 1
    assert found(result) == ["a.py:2 ZZ101"]
    _counting_checks(judgements)
    assert judgements == []


def test_a_file_from_the_future_is_looked_into(project: Path) -> None:
    """As after a clock that went back."""
    path = plant("a.py")
    later = time.time() + 86_400
    os.utime(path, (later, later))
    check()
    assert judged(check()) == 1


def test_removed_files_are_forgotten_and_new_ones_found(root: Path) -> None:
    plant("a.py")
    plant("b.py")
    check()
    Path("a.py").unlink()
    plant("c.py")
    assert found(check()) == ["b.py:2 ZZ101", "c.py:2 ZZ101"]
    assert judged(check()) == 0


def test_a_part_of_the_project_keeps_what_is_known_of_the_rest(root: Path) -> None:
    plant("a.py")
    plant("b.py", CALM)
    plant("sub/c.py")
    check()
    plant("b.py")
    assert found(check("b.py")) == ["b.py:2 ZZ101"]
    assert judged(check("a.py")) == 0
    assert judged(check()) == 0


def test_what_is_shown_of_a_path_depends_on_where_one_stands(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plant("deadlint.toml", "")
    plant("sub/a.py")
    check()
    monkeypatch.chdir("sub")
    assert found(check()) == ["a.py:2 ZZ101"]


# --- what else findings depend on -----------------------------------------------------------------------------


def test_another_level_needs_no_new_look(root: Path) -> None:
    plant("a.py", "import slowlib\nslowlib.send()\n")
    assert found(check()) == []
    result = check(overrides=Overrides(level=Level.STRICT))
    assert (judged(result), found(result)) == (0, ["a.py:2 ZZ102"])


def test_other_settings_need_one(root: Path) -> None:
    plant("a.py")
    check()
    plant("deadlint.toml", 'ignore = ["ZZ101"]')
    assert found(check()) == []
    plant("deadlint.toml", "[per-file-ignores]\n'a.py' = ['ZZ101']")
    assert found(check()) == []
    plant("deadlint.toml", "")
    assert found(check()) == ["a.py:2 ZZ101"]


def test_rules_chosen_on_the_command_line_do_not_undo_each_others_work(root: Path) -> None:
    plant("a.py")
    check()
    assert found(check(overrides=Overrides(ignore=("ZZ101",)))) == []
    assert judged(check()) == 0
    assert judged(check(overrides=Overrides(ignore=("ZZ101",)))) == 0


def test_a_changed_rule_needs_a_new_look(root: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    plant("a.py")
    check()
    monkeypatch.setattr(environment, "_content", lambda source: "changed")
    assert judged(check()) == 1


def test_the_source_of_rules_is_told_from_another(tmp_path: Path) -> None:
    package = tmp_path / "rules"
    (package / "more").mkdir(parents=True)
    seen = set()
    for name, text in (("a.py", "1"), ("more/b.py", "1"), ("more/b.py", "22"), ("a.py", "")):
        (package / name).write_text(text)
        seen.add(environment._content(str(package)))
    (package / "more" / "b.py").unlink()
    seen.add(environment._content(str(package)))
    assert len(seen) == 5


def test_an_installation_needs_a_new_look(root: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    plant("a.py")
    site = tmp_path / "site"
    site.mkdir()
    monkeypatch.syspath_prepend(str(site))
    check()
    assert judged(check()) == 0
    (site / "more_rules-1.dist-info").mkdir()
    assert judged(check()) == 1


def test_a_constant_two_files_away_counts(root: Path) -> None:
    plant("pipeline/__init__.py", "")
    plant("pipeline/numbers.py", "LIMIT = 90\n")
    plant("pipeline/limits.py", "from pipeline.numbers import LIMIT\n")
    plant("pipeline/main.py", "import slowlib\nfrom pipeline.limits import LIMIT\nslowlib.wait(LIMIT)\n")
    assert found(check()) == []
    assert judged(check()) == 0
    plant("pipeline/numbers.py", "LIMIT = 900\n")
    assert found(check()) == ["pipeline/main.py:3 ZZ201"]
    assert judged(check()) == 0
    os.utime("pipeline/numbers.py", (LONG_AGO, LONG_AGO))
    judgements: list[object] = []
    _counting_checks(judgements)
    assert judgements == []


def test_a_module_that_comes_and_goes_counts(root: Path) -> None:
    plant("main.py", "import slowlib\nfrom limits import LIMIT\nslowlib.wait(LIMIT)\n")
    assert found(check()) == []
    assert judged(check()) == 0
    plant("limits/__init__.py", "from .numbers import LIMIT\n")
    plant("limits/numbers.py", "LIMIT = 900\n")
    assert found(check("main.py")) == ["main.py:3 ZZ201"]
    plant("limits.py", "LIMIT = 9\n")
    fresh = found(check("main.py", use_cache=False))
    assert found(check("main.py")) == fresh
    Path("limits.py").unlink()
    Path("limits/numbers.py").unlink()
    assert found(check("main.py")) == []
    assert judged(check("main.py")) == 0


def test_a_file_that_becomes_part_of_a_package_counts(root: Path) -> None:
    plant("limits.py", "LIMIT = 900\n")
    plant("a/b/limits.py", "LIMIT = 9\n")
    plant("a/b/main.py", "import slowlib\nfrom limits import LIMIT\nslowlib.wait(LIMIT)\n")
    assert found(check()) == []
    plant("a/b/__init__.py", "")
    plant("a/__init__.py", "")
    assert found(check()) == found(check(use_cache=False)) == ["a/b/main.py:3 ZZ201"]


# --- fixing -----------------------------------------------------------------------------------------------------


def test_fixes_are_made_from_the_file_never_from_the_cache(root: Path) -> None:
    path = plant("a.py")
    plant("b.py", CALM)
    check()
    result = check(fix=frozenset({Safety.SAFE}), write=True)
    assert judged(result) == 1
    assert path.read_text() == "import slowlib\nslowlib.fetch(limit=9)\n"
    assert found(check()) == []


def test_showing_changes_is_not_remembered(root: Path) -> None:
    plant("a.py")
    check()
    check(fix=frozenset({Safety.SAFE}))
    assert found(check()) == ["a.py:2 ZZ101"]


# --- a cache that cannot be trusted -----------------------------------------------------------------------------


def test_any_torn_or_altered_file_is_ignored(root: Path) -> None:
    plant("a.py")
    plant("sub/b.py", CALM)
    expected = replace(check(), cached=0)
    whole = cache_file().read_bytes()
    chance = random.Random(20)
    altered = [whole[: chance.randrange(len(whole))] for _ in range(20)]
    for _ in range(40):
        at = chance.randrange(len(whole))
        altered.append(whole[:at] + bytes([whole[at] ^ (1 << chance.randrange(8))]) + whole[at + 1 :])
    altered += [b"", b"\0" * 100, whole + b"x", whole[::-1]]
    for data in altered:
        cache_file().write_bytes(data)
        assert replace(check(), cached=0) == expected


def test_a_file_with_a_right_checksum_and_wrong_content_is_ignored(root: Path) -> None:
    """Someone may have made it with intent; then it may hide findings, as it may change the configuration."""
    plant("a.py")
    expected = found(check())
    whole = cache_file().read_bytes()
    chance = random.Random(21)
    for _ in range(60):
        body = bytearray(whole[21:])
        for _ in range(chance.randrange(1, 4)):
            body[chance.randrange(len(body))] = chance.randrange(256)
        cache_file().write_bytes(_sealed(bytes(body[: chance.randrange(len(body) // 2, len(body) + 1)])))
        assert set(found(check())) <= {*expected} | {"a.py:2 ZZ101"}


def _sealed(body: bytes) -> bytes:
    from zlib import crc32  # noqa: PLC0415 - as the cache does

    return b"deadlint cache 2\n" + crc32(body).to_bytes(4, "little") + body


def test_a_file_of_another_version_is_ignored_and_replaced(root: Path) -> None:
    plant("a.py")
    check()
    path = cache_file()
    path.write_bytes(path.read_bytes().replace(b"deadlint cache 2", b"deadlint cache 9"))
    assert judged(check()) == 1
    assert judged(check()) == 0


@pytest.mark.parametrize("kind", ["directory", "pipe", "link", "link to nothing"])
def test_something_else_in_its_place_is_left_alone(root: Path, kind: str, tmp_path: Path) -> None:
    plant("a.py")
    check()
    path = cache_file()
    path.unlink()
    precious = tmp_path / "precious"
    precious.write_text("mine")
    if kind == "directory":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to(precious if kind == "link" else "nowhere")
    assert found(check()) == ["a.py:2 ZZ101"]
    assert precious.read_text() == "mine"


def test_a_link_in_place_of_the_directory_is_not_followed(root: Path, tmp_path: Path) -> None:
    """A checkout that someone else made must not choose where we write."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    Path(".deadlint_cache").symlink_to(elsewhere)
    plant("a.py")
    assert found(check()) == ["a.py:2 ZZ101"]
    assert os.listdir(elsewhere) == []
    assert not cache_directory.clean(".deadlint_cache")


def test_a_file_in_place_of_the_directory_does_no_harm(root: Path) -> None:
    Path(".deadlint_cache").write_text("mine")
    plant("a.py")
    assert found(check()) == ["a.py:2 ZZ101"]
    assert Path(".deadlint_cache").read_text() == "mine"


@pytest.mark.parametrize("failing", ["open", "mkdir", "replace", "write"])
def test_a_full_disk_or_a_read_only_directory_does_no_harm(
    root: Path, failing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant("a.py")

    def refused(*_: object, **__: object) -> object:
        raise OSError(30 if failing in ("open", "mkdir") else 28, "no")

    if failing == "open":
        monkeypatch.setattr(cache_directory, "open", refused, raising=False)
    elif failing == "mkdir":
        monkeypatch.setattr(os, "makedirs", refused)
    elif failing == "replace":
        monkeypatch.setattr(os, "replace", refused)
    else:
        monkeypatch.setattr(cache_directory.Temporary, "write", refused)
    assert found(check()) == ["a.py:2 ZZ101"]
    assert not list(Path(".").glob(".deadlint_cache/*.tmp"))
    monkeypatch.undo()


def test_writers_at_the_same_time_leave_a_whole_file(project: Path) -> None:
    for number in range(30):
        plant(f"m{number}.py", FETCH if number % 2 else CALM)
    command = [sys.executable, "-m", "deadlint", "check", "-q", "--output-format=concise", "--no-cache"]
    expected = subprocess.run(command, capture_output=True, check=False).stdout
    assert expected
    running = [subprocess.Popen(command[:-1], stdout=subprocess.PIPE) for _ in range(6)]
    assert {process.communicate(timeout=60)[0] for process in running} == {expected}
    assert len(list(Path(".deadlint_cache").iterdir())) == 3
    assert subprocess.run(command[:-1], capture_output=True, check=False).stdout == expected


def test_kills_at_any_moment_do_no_harm(project: Path) -> None:
    for number in range(30):
        plant(f"m{number}.py", FETCH if number % 2 else CALM)
    command = [sys.executable, "-m", "deadlint", "check", "-q", "--output-format=concise"]
    expected = subprocess.run([*command, "--no-cache"], capture_output=True, check=False).stdout
    chance = random.Random(22)
    for _ in range(12):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        time.sleep(chance.uniform(0.05, 0.4))  # the moment is the test
        process.send_signal(signal.SIGKILL)
        process.wait()
        plant(f"m{chance.randrange(30)}.py", chance.choice([FETCH, CALM]))
        expected = subprocess.run([*command, "--no-cache"], capture_output=True, check=False).stdout
        assert subprocess.run(command, capture_output=True, check=False).stdout == expected


def test_what_dead_writers_left_is_swept(root: Path) -> None:
    plant("a.py")
    check()
    for name, age in (("1-2.tmp", 7200), ("3-4.tmp", 60), ("old.cache", 40 * 86_400), ("mine.txt", 40 * 86_400)):
        path = plant(f".deadlint_cache/{name}")
        os.utime(path, (time.time() - age, time.time() - age))
    plant("b.py")
    check()
    left = {path.name for path in Path(".deadlint_cache").iterdir()}
    assert {"3-4.tmp", "mine.txt"} < left
    assert not {"1-2.tmp", "old.cache"} & left


# --- where it is ------------------------------------------------------------------------------------------------


def test_it_keeps_itself_out_of_version_control(root: Path) -> None:
    subprocess.run(["git", "init", "-q"], check=True)
    plant("a.py")
    check()
    status = subprocess.run(["git", "status", "--porcelain", "-uall"], capture_output=True, check=True, text=True)
    assert status.stdout == "?? a.py\n"


def test_it_lies_at_the_root_of_the_project(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plant("deadlint.toml", "")
    plant("sub/a.py")
    monkeypatch.chdir("sub")
    check()
    assert (root / ".deadlint_cache").is_dir()
    assert not Path(".deadlint_cache").exists()


def test_it_can_lie_elsewhere_and_leaves_what_else_is_there(root: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / ".gitignore").write_text("mine")
    plant("a.py")
    check(cache_directory=str(other))
    assert judged(check(cache_directory=str(other))) == 0
    assert not Path(".deadlint_cache").exists()
    assert cache_directory.clean(str(other))
    assert os.listdir(other) == [".gitignore"]


def test_without_a_cache_nothing_is_read_or_written(root: Path) -> None:
    plant("a.py")
    assert judged(check(use_cache=False)) == 1
    assert not Path(".deadlint_cache").exists()
    check()
    assert judged(check(use_cache=False)) == 1


def test_cleaning_removes_it_whole(root: Path) -> None:
    plant("a.py")
    check()
    assert cache_directory.clean(str(root / ".deadlint_cache"))
    assert not Path(".deadlint_cache").exists()
    assert not cache_directory.clean(str(root / ".deadlint_cache"))


# --- findings as text -------------------------------------------------------------------------------------------

_spans = st.builds(Span, *[st.integers(1, 9)] * 4)
_text = st.sampled_from(["", "text", "é\n\0", "\udce9"])
_fixes = st.builds(
    Fix,
    _text,
    st.sampled_from(Safety),
    st.lists(st.builds(Edit, st.integers(0, 9), st.integers(0, 9), _text), max_size=2).map(tuple),
    st.lists(st.builds(Import, _text, _text, st.none() | _text), max_size=2).map(tuple),
    st.lists(st.builds(Constant, _text, _text), max_size=2).map(tuple),
)
_findings = st.builds(
    Finding,
    _text,
    _text,
    st.just("a.py"),
    _spans,
    _text,
    _text,
    st.sampled_from(Level),
    st.lists(st.builds(Related, st.sampled_from(["a.py", "b.py"]), _spans, _text), max_size=2).map(tuple),
    st.none() | _fixes,
    st.none() | st.builds(Suppression, st.integers(1, 9), _text, _text),
)


@given(st.lists(_findings, max_size=3))
def test_findings_survive_being_written(findings: list[Finding]) -> None:
    again = codec.decode(codec.encode(findings), "a.py")
    assert again == tuple(findings)
    assert [one.fix for one in again] == [one.fix for one in findings]


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=9) | st.dictionaries(st.text(max_size=2), inner, max_size=2),
    max_leaves=20,
)


@given(_json)
def test_other_text_is_refused(value: object) -> None:
    import json  # noqa: PLC0415 - as the codec does

    try:
        found = codec.decode(json.dumps(value).encode(), "a.py")
    except BadRecord:
        return
    assert found == ()
    assert not value


def test_a_cache_that_is_not_there_is_empty(tmp_path: Path) -> None:
    assert Cache.open(str(tmp_path / "nowhere"), "x").section("/a") is None
