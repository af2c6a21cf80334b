"""The runner: what comes of many files, in one process and in several, good files and bad."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
from deadlint import work
from deadlint.config import Overrides
from deadlint.errors import UserError
from deadlint.model import FileProblem, Level, Safety
from deadlint.result import ExitStatus, RunResult
from deadlint.run import Request, run, run_text

pytestmark = pytest.mark.usefixtures("project")

FETCH = "import slowlib\nslowlib.fetch()\n"
SEND = "import slowlib\nslowlib.send()\n"
FIX = frozenset({Safety.SAFE})
PLAIN = Request(use_cache=False)


def plant(name: str, text: str | bytes = FETCH) -> Path:
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def check(*paths: str, **changes: object) -> RunResult:
    return run(replace(PLAIN, paths=paths or (".",), **changes))  # type: ignore[arg-type]


def found(result: RunResult) -> list[str]:
    return [f"{one.path}:{one.span.line} {one.code}" for one in result.open_findings]


def test_findings_come_in_the_order_of_paths_and_places() -> None:
    plant("b.py", "import slowlib\nslowlib.fetch()\nslowlib.fetch(slowlib.fetch())\n")
    plant("a/z.py")
    result = check()
    assert found(result) == ["a/z.py:2 ZZ101", "b.py:2 ZZ101", "b.py:3 ZZ101", "b.py:3 ZZ101"]
    assert result.files == 2
    assert result.exit_status is ExitStatus.FINDINGS


def test_a_clean_tree_is_clean() -> None:
    plant("a.py", "import slowlib\nslowlib.fetch(limit=3)\n")
    plant("b.py", "")
    result = check()
    assert result.exit_status is ExitStatus.CLEAN
    assert not result.findings


def test_strict_findings_are_shown_at_strict_only() -> None:
    plant("a.py", FETCH + "slowlib.send()\n")
    assert found(check()) == ["a.py:2 ZZ101"]
    assert found(check(overrides=Overrides(level=Level.STRICT))) == ["a.py:2 ZZ101", "a.py:3 ZZ102"]


def test_in_test_files_all_findings_are_strict() -> None:
    for name in ("tests/a.py", "test_b.py", "c_test.py", "conftest.py", "x/test/d.py"):
        plant(name)
    plant("attest.py")
    assert found(check()) == ["attest.py:2 ZZ101"]
    assert len(found(check(overrides=Overrides(level=Level.STRICT)))) == 6


def test_which_files_are_tests_is_configured() -> None:
    plant("tests/a.py")
    plant("checks/b.py")
    plant("deadlint.toml", 'tests = ["checks/", "!**/tests/**"]')
    assert found(check()) == ["tests/a.py:2 ZZ101"]


def test_rules_are_selected_and_ignored_by_code_prefix_and_name() -> None:
    plant("a.py", FETCH + "slowlib.send()\nx = 1  # noqa: ZZ101\n")

    def codes(**choice: tuple[str, ...]) -> list[str]:
        return [one.code for one in check(overrides=Overrides(level=Level.STRICT, **choice)).findings]  # type: ignore[arg-type]

    assert codes() == ["ZZ101", "ZZ102", "DL002"]
    assert codes(select=("ZZ",)) == ["ZZ101", "ZZ102"]
    assert codes(select=("ZZ",), ignore=("fetch-without-limit",)) == ["ZZ102"]
    assert codes(select=("send-without-limit",), extend_select=("DL0",)) == ["ZZ102"]
    assert codes(ignore=("DL", "ZZ102")) == ["ZZ101"]


def test_rules_are_ignored_for_the_files_of_a_pattern() -> None:
    plant("scripts/a.py")
    plant("b.py", "import slowlib\nslowlib.fetch()  # noqa: ZZ101\n")
    plant("scripts/c.py", "x = 1  # noqa: ZZ101\n")
    plant("deadlint.toml", 'select = ["ZZ101", "DL0"]\n[per-file-ignores]\n"scripts/" = ["ZZ1"]')
    assert found(check()) == []


def test_each_file_is_checked_under_its_own_configuration() -> None:
    plant("a.py")
    plant("sub/b.py", FETCH + "slowlib.send()\n")
    plant("sub/deadlint.toml", 'level = "strict"\nignore = ["ZZ101"]')
    assert found(check()) == ["a.py:2 ZZ101", "sub/b.py:3 ZZ102"]


def test_suppressed_findings_stay_marked_and_do_not_count() -> None:
    plant("a.py", "import slowlib\nslowlib.fetch()  # deadlint: ignore[ZZ101] it is quick\n")
    result = check()
    assert result.exit_status is ExitStatus.CLEAN
    (finding,) = result.findings
    assert finding.suppressed is not None
    assert finding.suppressed.reason == "it is quick"


def test_a_comment_for_a_strict_finding_is_no_unused_one() -> None:
    plant("a.py", "import slowlib\nslowlib.send()  # noqa: ZZ102\n")
    assert not check().findings


def test_a_comment_without_effect_is_found_in_a_file_of_no_other_interest() -> None:
    plant("a.py", "x = 1  # noqa: DL201\n")
    assert found(check()) == ["a.py:1 DL002"]


# --- fixing -------------------------------------------------------------------------------------------------


def test_safe_fixes_are_applied_and_written() -> None:
    path = plant("a.py", FETCH + "slowlib.send()\n")
    result = check(fix=FIX, write=True)
    assert path.read_text() == "import slowlib\nslowlib.fetch(limit=9)\nslowlib.send()\n"
    assert result.exit_status is ExitStatus.CLEAN
    assert [one.code for one in result.fixed] == ["ZZ101"]
    assert result.written


def test_what_is_not_shown_is_not_fixed() -> None:
    path = plant("a.py", SEND)
    check(fix=FIX | {Safety.UNSAFE}, write=True)
    assert path.read_text() == SEND
    check(fix=FIX | {Safety.UNSAFE}, write=True, overrides=Overrides(level=Level.STRICT))
    assert path.read_text() == "import slowlib\nslowlib.send(limit=9)\n"


def test_what_is_suppressed_is_not_fixed() -> None:
    text = "import slowlib\nslowlib.fetch()  # noqa: ZZ101\n"
    path = plant("a.py", text)
    check(fix=FIX, write=True)
    assert path.read_text() == text


def test_the_comment_that_a_fix_made_needless_goes_too() -> None:
    path = plant("a.py", "import slowlib\nslowlib.fetch(2)  # noqa: ZZ102\n")
    check(fix=FIX, write=True)
    assert path.read_text() == "import slowlib\nslowlib.fetch(2, limit=9)\n"


def test_showing_changes_writes_nothing_and_counts_as_finding() -> None:
    path = plant("a.py")
    result = check(fix=FIX)
    assert path.read_text() == FETCH
    assert result.exit_status is ExitStatus.FINDINGS
    assert [change.after for change in result.changes] == ["import slowlib\nslowlib.fetch(limit=9)\n"]
    assert result.source("a.py") == "import slowlib\nslowlib.fetch(limit=9)\n"


@pytest.mark.parametrize(
    "data",
    [
        b"\xef\xbb\xbfimport slowlib\r\nslowlib.fetch()  # caf\xc3\xa9\r\n",
        b"# coding: latin-1\nimport slowlib\nslowlib.fetch()  # caf\xe9\n",
        b"import slowlib\rslowlib.fetch()\r",
        b"\timport slowlib\n".lstrip() + b"if 1:\n\tslowlib.fetch()\t# tab\n",
        b"import slowlib\n\x0c\nslowlib.fetch()\n\x0c",
        b"import slowlib\r\nslowlib.fetch()\nx = '\\\r\n'\n",
        b"import slowlib; slowlib.fetch()",
    ],
)
def test_nothing_but_the_edit_changes_in_the_bytes(data: bytes) -> None:
    path = plant("a.py", data)
    check(fix=FIX, write=True)
    assert path.read_bytes() == data.replace(b"fetch()", b"fetch(limit=9)")


def test_a_file_that_changes_while_it_is_fixed_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    path = plant("a.py")
    plant("b.py")
    from deadlint import judge  # noqa: PLC0415 - the stand-ins must be installed first

    real = judge.replace_file

    def edited_first(before: judge.Snapshot, data: bytes) -> None:
        if before.path.endswith("a.py"):
            path.write_text("mine = 1\n")
        real(before, data)

    monkeypatch.setattr(judge, "replace_file", edited_first)
    result = check(fix=FIX, write=True)
    assert path.read_text() == "mine = 1\n"
    assert [one.path for one in result.changes] == ["b.py"]
    assert result.problems == (FileProblem("a.py", "has changed since it was read, so it was left alone; run again"),)


# --- bad input ----------------------------------------------------------------------------------------------


def problem_with(name: str, data: bytes) -> str:
    """What is said of a bad file; the good one beside it must be checked all the same."""
    plant(name, data)
    plant("good.py")
    result = check()
    assert "good.py:2 ZZ101" in found(result)
    assert result.exit_status is ExitStatus.ERROR
    (problem,) = result.problems
    assert problem.path == name
    assert "\n" not in problem.message
    return problem.message


def test_nul_bytes_are_said() -> None:
    assert "holds NUL bytes" in problem_with("a.py", b"import slowlib\n\0")


def test_binary_files_are_said() -> None:
    assert "is not valid utf-8" in problem_with("a.py", b"slowlib\n\x89PNG\r\n\x1a\n\xff\xfe")


def test_an_unknown_encoding_is_said() -> None:
    assert "encoding" in problem_with("a.py", b"# coding: klingon\nimport slowlib\n")


def test_a_wrong_encoding_is_said_with_its_line() -> None:
    assert "line 2 is not valid utf-8" in problem_with("a.py", b"import slowlib\n# caf\xe9\n")


@pytest.mark.parametrize("text", ["x = " + "(" * 3000 + ")" * 3000, "x = " + "-" * 100_000 + "1", "x" + ".y" * 100_000])
def test_deep_nesting_is_said(text: str) -> None:
    plant("a.py", f"import slowlib\n{text}\n")
    plant("good.py")
    result = check()
    assert "good.py:2 ZZ101" in found(result)
    said = [one.message for one in (*result.problems, *result.findings) if one.path == "a.py"]
    assert len(said) == 1
    assert "nested" in said[0]


def test_deep_nesting_after_a_syntax_error_does_not_end_the_process() -> None:
    """Such a file goes to LibCST's parser, whose recursion is the machine's."""
    plant("a.py", "import slowlib\nprint 'x'\nx = " + "-" * 20_000 + "1\n")
    plant("good.py")
    assert found(check()) == ["a.py:2 DL001", "good.py:2 ZZ101"]


def test_deep_expressions_do_not_stop_the_run() -> None:
    plant("a.py", "import slowlib\nx = " + "+".join(["slowlib.fetch()"] * 3000) + "\n")
    plant("good.py")
    assert "good.py:2 ZZ101" in found(check())


@pytest.mark.parametrize("text", ["print 'slowlib'\n", "import slowlib\ndef f(:\n", "slowlib = (\n"])
def test_what_python_cannot_parse_is_a_finding(text: str) -> None:
    plant("a.py", text)
    plant("good.py")
    result = check()
    assert [one.code for one in result.findings if one.path == "a.py"] == ["DL001"]
    assert "good.py:2 ZZ101" in found(result)
    assert not result.problems


def test_a_syntax_error_can_be_ignored() -> None:
    plant("a.py", "print 'slowlib'\n")
    assert not check(overrides=Overrides(ignore=("DL001",))).findings


def test_a_large_file_is_checked() -> None:
    line = f"x = '{'x' * 990}'\n"
    plant("a.py", "import slowlib\n" + line * 5_100 + "slowlib.fetch()\n")
    assert os.path.getsize("a.py") > 5_000_000
    assert found(check()) == ["a.py:5102 ZZ101"]


@pytest.mark.parametrize("name", ["a\nb.py", "{x}.py", "%s.py", b"caf\xe9.py".decode("utf-8", "surrogateescape")])
def test_odd_names_are_checked_and_fixed(name: str) -> None:
    path = plant(name)
    assert [one.path for one in check(fix=FIX, write=True).fixed] == [name]
    assert path.read_text() == "import slowlib\nslowlib.fetch(limit=9)\n"


def test_a_file_that_goes_after_it_was_found_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    path = plant("a.py")
    plant("good.py")
    real = work.installed_rules

    def gone_first() -> object:
        path.unlink(missing_ok=True)
        return real()

    monkeypatch.setattr(work, "installed_rules", gone_first)
    result = check()
    assert result.problems == (FileProblem("a.py", "cannot be read: No such file or directory"),)
    assert found(result) == ["good.py:2 ZZ101"]


def test_a_fault_of_a_rule_costs_one_line_and_one_file() -> None:
    message = problem_with("a.py", b'import slowlib\nslowlib.misbehave("fail")\n')
    assert "a fault of rule ZZ901 misbehaving-rule of standin_rules (RuntimeError: the rule has failed)" in message
    assert "--debug" in message


def test_a_fault_of_a_rule_comes_with_its_traceback_for_who_wants_it() -> None:
    plant("a.py", 'import slowlib\nslowlib.misbehave("fail")\n')
    (problem,) = check(debug=True).problems
    assert "Traceback" in problem.message


# --- several processes --------------------------------------------------------------------------------------


def many() -> None:
    for number in range(work.WORTH_A_POOL + 50):
        plant(f"p{number % 7}/m{number}.py", [FETCH, SEND, "x = 1\n", "\0", "print 'slowlib'"][number % 5])


def test_several_processes_give_what_one_gives() -> None:
    many()
    one, several = check(processes=1), check(processes=3)
    assert one == several
    assert len(one.findings) > 50
    assert len(one.problems) == 50
    assert one.exit_status == several.exit_status


def test_a_process_that_dies_costs_its_file_alone() -> None:
    many()
    plant("p1/dies.py", 'import slowlib\nslowlib.misbehave("die")\n')
    plant("p6/dies.py", 'import slowlib\nslowlib.misbehave("die")\n')
    whole = check(processes=3)
    Path("p1/dies.py").unlink()
    Path("p6/dies.py").unlink()
    rest = check(processes=1)
    assert whole.findings == rest.findings
    died = [one for one in whole.problems if one.path.endswith("dies.py")]
    assert [one.path for one in died] == ["p1/dies.py", "p6/dies.py"]
    assert "killed by SIGKILL" in died[0].message
    assert set(whole.problems) - set(died) == set(rest.problems)


def test_fixes_are_applied_in_several_processes() -> None:
    many()
    result = check(processes=3, fix=FIX, write=True)
    assert len(result.fixed) == 50
    assert not found(check(overrides=Overrides(select=("ZZ101",))))


def test_progress_ends_at_all_files() -> None:
    many()
    seen: list[tuple[int, int]] = []
    run(replace(PLAIN, processes=2), lambda done, total: seen.append((done, total)))
    assert seen[-1] == (len(seen), len(seen))
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)


def test_an_exception_on_the_way_leaves_no_process_behind() -> None:
    many()

    def stop(done: int, total: int) -> None:
        raise KeyboardInterrupt

    def children() -> set[str]:
        return set(Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split())

    before = children()
    with pytest.raises(KeyboardInterrupt):
        run(replace(PLAIN, processes=3), stop)
    assert not children() - before


# --- text that is in no file --------------------------------------------------------------------------------


def test_text_is_checked_as_if_it_were_the_file() -> None:
    plant("sub/deadlint.toml", 'level = "strict"')
    result = run_text(SEND.encode(), "sub/new.py", PLAIN)
    assert found(result) == ["sub/new.py:2 ZZ102"]
    assert result.source("sub/new.py") == SEND


def test_text_of_an_excluded_file_is_left_alone_if_asked() -> None:
    assert found(run_text(FETCH.encode(), "build/a.py", PLAIN)) == ["build/a.py:2 ZZ101"]
    assert not run_text(FETCH.encode(), "build/a.py", replace(PLAIN, force_exclude=True)).findings


def test_text_without_a_name_is_shown_as_standard_input() -> None:
    assert found(run_text(FETCH.encode(), None, PLAIN)) == ["-:2 ZZ101"]


def test_a_wrong_configuration_is_the_users_to_mend() -> None:
    plant("deadlint.toml", "levl = 1")
    plant("a.py")
    with pytest.raises(UserError, match="levl"):
        check()
