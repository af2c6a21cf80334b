"""The command line: options, exit statuses, where output goes, and how little is loaded for it."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import click
import pytest
from deadlint import __version__
from deadlint.cli import cli

from tests.lint.conftest import Deadlint

FETCH = "import slowlib\nslowlib.fetch()\n"
FIXED = "import slowlib\nslowlib.fetch(limit=9)\n"
SEND = "import slowlib\nslowlib.send()\n"


def plant(name: str, text: str = FETCH) -> Path:
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def test_findings_are_printed_and_end_with_one(deadlint: Deadlint) -> None:
    plant("a.py")
    done = deadlint("check", "--output-format=concise")
    assert done.returncode == 1
    assert done.stdout.splitlines()[0] == b"a.py:2:1: ZZ101 nothing limits this fetch"
    assert done.stderr == b""


def test_text_is_the_format_without_a_word_on_it(deadlint: Deadlint) -> None:
    plant("a.py")
    done = deadlint("check")
    assert b"ZZ101" in done.stdout
    assert b"slowlib.fetch()" in done.stdout
    assert b"\x1b[" not in done.stdout


def test_json_is_a_document(deadlint: Deadlint) -> None:
    plant("a.py")
    assert "ZZ101" in json.dumps(json.loads(deadlint("check", "--output-format=json").stdout))


def test_a_syntax_error_is_found_where_no_rule_looks(deadlint: Deadlint) -> None:
    """A file named on the command line is parsed whatever it holds, also when a run over many left it out."""
    plant("broken.py", "def f(:\n")
    for number in range(120):
        plant(f"clean{number}.py", "")
    assert deadlint("check", "--output-format=concise").returncode == 0
    named = deadlint("check", "--output-format=concise", "broken.py")
    assert named.returncode == 1
    assert named.stdout.startswith(b"broken.py:1:7: DL001")
    assert deadlint("check", "--output-format=concise", "broken.py").stdout == named.stdout
    assert deadlint("check", "-", stdin=b"def f(:\n").returncode == 1


def test_a_syntax_error_is_found_in_a_small_tree(deadlint: Deadlint) -> None:
    plant("pkg/broken.py", "print 'python 2'\n")
    assert b"DL001" in deadlint("check").stdout


def test_a_clean_tree_ends_with_zero(deadlint: Deadlint) -> None:
    plant("a.py", "")
    done = deadlint("check")
    assert (done.returncode, done.stderr) == (0, b"")
    assert deadlint("check", "--quiet").stdout == b""


def test_an_error_ends_with_two_and_the_rest_is_checked(deadlint: Deadlint) -> None:
    plant("a.py")
    done = deadlint("check", "a.py", "nowhere.py", "--output-format=concise")
    assert done.returncode == 2
    assert b"a.py:2:1: ZZ101" in done.stdout
    assert done.stderr == b"error: nowhere.py: does not exist; check the spelling and the working directory\n"


def test_exit_zero_forgives_findings_and_no_errors(deadlint: Deadlint) -> None:
    plant("a.py")
    assert deadlint("check", "--exit-zero").returncode == 0
    assert deadlint("check", "--exit-zero", "nowhere.py").returncode == 2


def test_a_directory_without_python_is_a_warning(deadlint: Deadlint) -> None:
    plant("docs/a.txt")
    done = deadlint("check", "docs")
    assert done.returncode == 0
    assert done.stderr.startswith(b"warning: docs: holds no Python file")
    assert deadlint("check", "docs", "-q").stderr == b""


def test_fix_writes_and_ends_with_zero_when_nothing_is_left(deadlint: Deadlint) -> None:
    path = plant("a.py")
    done = deadlint("check", "--fix")
    assert (done.returncode, path.read_text()) == (0, FIXED)
    assert b"Fixed 1 finding in 1 file" in done.stdout


def test_fix_ends_with_one_when_something_is_left(deadlint: Deadlint) -> None:
    path = plant("a.py", FETCH + "slowlib.send()\n")
    done = deadlint("check", "--fix", "--level=strict")
    assert (done.returncode, path.read_text()) == (1, FIXED + "slowlib.send()\n")


def test_unsafe_fixes_come_with_the_safe_ones(deadlint: Deadlint) -> None:
    path = plant("a.py", FETCH + "slowlib.send()\n")
    assert deadlint("check", "--unsafe-fixes", "--level=strict").returncode == 0
    assert path.read_text() == FIXED + "slowlib.send(limit=9)\n"


def test_diff_shows_what_git_can_apply_and_writes_nothing(deadlint: Deadlint) -> None:
    path = plant("a.py")
    done = deadlint("check", "--diff")
    assert (done.returncode, path.read_text()) == (1, FETCH)
    subprocess.run(["git", "apply", "-p0", "-"], input=done.stdout, check=True)
    assert path.read_text() == FIXED
    assert deadlint("check", "--diff").stdout == b""
    assert deadlint("check", "--diff").returncode == 0


@pytest.mark.parametrize(
    ("options", "codes"),
    [
        ((), ["ZZ101"]),
        (("--level", "strict"), ["ZZ101", "ZZ102"]),
        (("--select", "ZZ102", "--level", "strict"), ["ZZ102"]),
        (("--select", "ZZ102,fetch-without-limit", "--level", "strict"), ["ZZ101", "ZZ102"]),
        (("--select", "ZZ102", "--select", "ZZ1", "--level", "strict"), ["ZZ101", "ZZ102"]),
        (("--select", "ZZ102", "--extend-select", "ZZ101", "--level", "strict"), ["ZZ101", "ZZ102"]),
        (("--ignore", "ZZ1"), []),
        (("--ignore", " fetch-without-limit , DL0"), []),
        (("--isolated", "--config", "strict.toml"), ["ZZ101"]),
        (("--config", "strict.toml"), ["ZZ101", "ZZ102"]),
    ],
)
def test_rules_and_levels(deadlint: Deadlint, options: tuple[str, ...], codes: list[str]) -> None:
    plant("a.py", FETCH + "slowlib.send()\n")
    plant("strict.toml", 'level = "strict"')
    done = deadlint("check", "-q", "--output-format=concise", *options)
    assert [line.split()[1].decode() for line in done.stdout.splitlines()] == codes
    assert done.returncode == (1 if codes else 0)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("check", "--select", "ZZ999"), b"--select: no rule has the code or name 'ZZ999'"),
        (("check", "--config", "nowhere.toml"), b"nowhere.toml: cannot be read"),
        (("check", "--level", "loud"), b"'loud' is not one of"),
        (("check", "--fixx"), b"No such option"),
        (("check", "--jobs", "0"), b"0 is not in the range"),
        (("check", "-", "a.py"), b"`-` stands for standard input"),
        (("rule", "fetch-without-limits"), b"did you mean 'fetch-without-limit'?"),
        (("chek",), b"No such command"),
    ],
)
def test_a_wrong_request_ends_with_two_and_one_word_on_it(
    deadlint: Deadlint, arguments: tuple[str, ...], said: bytes
) -> None:
    plant("a.py")
    done = deadlint(*arguments)
    assert done.returncode == 2
    assert said in done.stderr
    assert b"Traceback" not in done.stderr
    assert done.stdout == b""


def test_a_wrong_configuration_ends_with_two(deadlint: Deadlint) -> None:
    plant("a.py")
    plant("pyproject.toml", "[tool.deadlint]\nselct = []\n")
    done = deadlint("check")
    assert done.returncode == 2
    assert done.stderr == (
        b"error: pyproject.toml: tool.deadlint.selct is no key that deadlint knows; did you mean 'select'?\n"
    )


def test_names_that_no_terminal_can_show_are_shown_all_the_same(deadlint: Deadlint) -> None:
    plant(b"caf\xe9\nb.py".decode("utf-8", "surrogateescape"))
    for form in ("text", "concise", "json"):
        done = deadlint("check", f"--output-format={form}")
        assert done.returncode == 1
        assert b"\xe9" not in done.stdout
    assert deadlint("check", "--fix").returncode == 0


def test_excluded_files_are_checked_when_named_unless_forced(deadlint: Deadlint) -> None:
    plant("build/a.py")
    assert deadlint("check", "build/a.py").returncode == 1
    assert deadlint("check", "--force-exclude", "build/a.py").returncode == 0


def test_show_files_lists_them_and_stops(deadlint: Deadlint) -> None:
    plant("b.py")
    plant("a/c.py")
    plant("build/d.py")
    done = deadlint("check", "--show-files")
    assert (done.returncode, done.stdout) == (0, b"a/c.py\nb.py\n")
    assert deadlint("check", "--show-files", "nowhere").returncode == 2


def test_statistics_count_each_rule(deadlint: Deadlint) -> None:
    plant("a.py", FETCH + "slowlib.fetch()\n")
    assert b"    2  ZZ101  fetch-without-limit" in deadlint("check", "--statistics").stdout


def test_timings_say_where_time_went(deadlint: Deadlint) -> None:
    plant("a.py")
    said = deadlint("check", "--debug-timings").stderr.decode()
    for step in ("discover", "read", "screen", "check"):
        assert any(line.endswith(f" {step}") for line in said.splitlines())


def test_the_cache_can_be_elsewhere_absent_and_cleaned(deadlint: Deadlint, tmp_path: Path) -> None:
    plant("a.py")
    deadlint("check", "--no-cache")
    assert not Path(".deadlint_cache").exists()
    deadlint("check", "--cache-dir", str(tmp_path / "there"))
    assert list((tmp_path / "there").glob("*.cache"))
    assert deadlint("clean", "--cache-dir", str(tmp_path / "there")).returncode == 0
    assert not (tmp_path / "there").exists()
    deadlint("check")
    assert Path(".deadlint_cache").is_dir()
    assert b"Removed" in deadlint("clean").stdout
    assert not Path(".deadlint_cache").exists()
    assert b"Nothing to remove" in deadlint("clean").stdout


# --- standard input -------------------------------------------------------------------------------------------


def test_standard_input_is_checked_under_the_name_given(deadlint: Deadlint) -> None:
    plant("sub/deadlint.toml", 'level = "strict"')
    done = deadlint("check", "-", "--stdin-filename", "sub/a.py", "--output-format=concise", stdin=SEND.encode())
    assert done.returncode == 1
    assert done.stdout.startswith(b"sub/a.py:2:1: ZZ102")
    assert not Path("sub/a.py").exists()


def test_standard_input_is_fixed_on_standard_output(deadlint: Deadlint) -> None:
    text = "# coding: latin-1\r\nimport slowlib\r\nslowlib.fetch()  # é\r\nslowlib.send()\r\n".encode("latin-1")
    done = deadlint("check", "-", "--fix", "--level=strict", "--output-format=concise", stdin=text)
    assert done.returncode == 1
    assert done.stdout == text.replace(b"fetch()", b"fetch(limit=9)")
    assert b"ZZ102" in done.stderr


def test_standard_input_that_is_clean_or_no_python_comes_out_as_it_went_in(deadlint: Deadlint) -> None:
    assert deadlint("check", "-", "--fix", "-q", stdin=FIXED.encode()).stdout == FIXED.encode()
    done = deadlint("check", "-", "--fix", stdin=b"slowlib \xff")
    assert (done.returncode, done.stdout) == (2, b"slowlib \xff")


def test_standard_input_is_shown_as_diff(deadlint: Deadlint) -> None:
    done = deadlint("check", "-", "--diff", stdin=FETCH.encode())
    assert done.returncode == 1
    assert b"+slowlib.fetch(limit=9)" in done.stdout


# --- rules ----------------------------------------------------------------------------------------------------


def test_a_rule_is_explained_by_code_and_name(deadlint: Deadlint) -> None:
    by_code, by_name = deadlint("rule", "DL002"), deadlint("rule", "unused-suppression")
    assert by_code.returncode == 0
    assert by_code.stdout == by_name.stdout
    assert by_code.stdout.startswith(b"# DL002 unused-suppression\n")
    assert b"What it does" in by_code.stdout


def test_rules_are_listed_as_text_and_json(deadlint: Deadlint) -> None:
    assert b"ZZ101  fetch-without-limit" in deadlint("rules").stdout
    listed = json.loads(deadlint("rules", "--output-format=json").stdout)
    assert {
        "code": "ZZ101",
        "name": "fetch-without-limit",
        "since": "1.0",
        "summary": "A fetch without a limit.",
    } in listed


def test_every_option_has_help(deadlint: Deadlint) -> None:
    silent = [
        parameter.name
        for command in cli.commands.values()
        for parameter in command.params
        if parameter.param_type_name == "option" and not getattr(parameter, "help", None)
    ]
    assert silent == []
    assert deadlint("check", "--help").returncode == 0


def test_the_documentation_names_every_option() -> None:
    text = (Path(__file__).parents[2] / "docs" / "cli.md").read_text(encoding="utf-8")
    options = [name for one in cli.commands["check"].params if one.param_type_name == "option" for name in one.opts]
    assert len(options) > 20
    assert not [name for name in options if name not in text and name not in ("--jobs", "--quiet")]


# --- start-up and ends ----------------------------------------------------------------------------------------


def test_the_version_is_printed(deadlint: Deadlint) -> None:
    first, python, libcst, platform, rules = deadlint("--version").stdout.decode().splitlines()
    assert first == f"deadlint {__version__}"
    assert python.startswith(f"Python {sys.version.split()[0]} (")
    assert re.fullmatch(r"libcst \d+(\.\w+)+", libcst)
    assert sys.platform in platform.lower()
    assert rules == f"rules from deadlint {__version__}, standin-rules 1.0"


@pytest.mark.parametrize(
    "command",
    [("rule", "DL9"), ("check", "--config=nowhere.toml"), ("vendor", "--check", "nowhere"), ("new-rule", "x", "y"),
     ("baseline", "check", "--config=nowhere.toml"), ("tree", "--config=nowhere.toml"),
     ("migrate", "--entry=a:b", "--deadline=1", "--config=nowhere.toml"), ("completion",)],
    ids=" ".join,
)  # fmt: skip
def test_every_command_shows_a_traceback_where_it_is_asked_for(
    deadlint: Deadlint, command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHELL", "none")
    plain = deadlint(*command)
    assert plain.returncode == 2
    assert b"Traceback" not in plain.stderr
    for arguments in ((*command, "--debug"), ("--debug", *command)):
        done = deadlint(*arguments)
        assert done.returncode == 2
        assert b"Traceback" in done.stderr
        assert done.stderr.endswith(plain.stderr)


def test_every_command_takes_debug() -> None:
    context = click.Context(cli)
    commands = [cli.get_command(context, name) for name in cli.list_commands(context)]
    assert len(commands) > 10
    for command in commands:
        assert command is not None
        inner = command.commands.values() if isinstance(command, click.Group) else [command]
        assert all(any("--debug" in option.opts for option in one.params) for one in inner), command.name


def loaded(*arguments: str) -> set[str]:
    """The modules that a run has loaded when it ends."""
    program = (
        "import sys, json\n"
        "from deadlint import cli\n"
        f"status = cli._status({list(arguments)!r})\n"
        "sys.stderr.write('\\n' + json.dumps([status, sorted(sys.modules)]))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    status, modules = json.loads(done.stderr.splitlines()[-1])
    assert status == 0
    return {name for name in modules if name.count(".") < 2}


HEAVY = {"libcst", "rich", "multiprocessing", "pathspec", "importlib.metadata", "tomli", "json", "deadlint_rules"}


@pytest.mark.usefixtures("project")
def test_little_is_loaded_when_all_is_known() -> None:
    plant("a.py", FIXED)
    time.sleep(2.1)  # a file as young as the cache is looked into again
    assert "deadlint_rules" in loaded("check", "a.py")
    modules = loaded("check", "a.py") - {"json"}  # the test itself uses it
    assert not modules & HEAVY
    assert not {"deadlint.check", "deadlint.judge", "deadlint.suppress", "deadlint.index"} & modules


@pytest.mark.usefixtures("project")
def test_next_to_nothing_is_loaded_for_the_version() -> None:
    modules = loaded("--version") - {"json", "importlib.metadata"}
    assert not modules & HEAVY
    assert not {"deadlint.run", "deadlint.config", "deadlint.discover"} & modules


@pytest.mark.usefixtures("project")
def test_few_files_are_checked_in_one_process() -> None:
    plant("a.py", FIXED)
    assert "multiprocessing" not in loaded("check", "--no-cache")


def test_ctrl_c_ends_all_processes_at_once(project: Path) -> None:
    for number in range(3000):
        plant(f"m{number}.py", "import slowlib\n" + "slowlib.fetch(limit=1)\n" * 400)
    command = [sys.executable, "-m", "deadlint", "check", "--no-cache", "-j", "3"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
    wait_for(lambda: len(members(process.pid)) >= 4)
    pressed = time.monotonic()
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=20)
    # The second is Python's own way where the key hits an import that runs generated code.
    assert process.returncode in (130, -signal.SIGINT)
    assert time.monotonic() - pressed < 5
    assert b"Traceback" not in err
    assert not members(process.pid)


def test_processes_end_with_a_parent_that_is_killed(project: Path) -> None:
    for number in range(600):
        plant(f"m{number}.py", "import slowlib\n" + "slowlib.fetch(limit=1)\n" * 400)
    command = [sys.executable, "-m", "deadlint", "check", "--no-cache", "-j", "3"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, start_new_session=True)
    wait_for(lambda: len(members(process.pid)) >= 4)
    process.kill()
    process.wait()
    wait_for(lambda: not members(process.pid))


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline, "it did not happen within 30 s"
        time.sleep(0.02)


def members(group: int) -> list[int]:
    """The living processes of a process group."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if fields[2] == str(group) and fields[0] != "Z":
            found.append(int(entry.name))
    return found


def test_a_reader_that_has_enough_is_no_error(project: Path) -> None:
    plant("a.py", "import slowlib\n" + "slowlib.fetch()\n" * 5000)
    command = f"{sys.executable} -m deadlint check --output-format=concise | head -1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, check=False)
    assert done.stdout.count(b"\n") == 1
    assert done.stderr == b""


def test_a_fault_of_our_own_is_said_in_a_line(project: Path) -> None:
    program = (
        "from deadlint import cli, run\n"
        "def broken(*_): raise RuntimeError('a\\nb')\n"
        "run.run = broken\n"
        "import sys; sys.exit(cli._status(sys.argv[1:]))\n"
    )
    done = subprocess.run([sys.executable, "-c", program, "check"], capture_output=True, check=False)
    assert done.returncode == 2
    assert b"Traceback" not in done.stderr
    assert b"RuntimeError" in done.stderr
    done = subprocess.run([sys.executable, "-c", program, "check", "--debug"], capture_output=True, check=False)
    assert done.returncode == 2
    assert b"Traceback" in done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full, which Linux has")
@pytest.mark.parametrize("arguments", [("check",), ("check", "--output-format", "concise", "-q"), ("rules",)])
def test_a_full_disk_under_the_output_is_no_fault_of_deadlint(project: Path, arguments: tuple[str, ...]) -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "deadlint", *arguments], stdout=full, stderr=subprocess.PIPE, check=False
        )
    assert done.returncode == 2
    assert done.stderr.decode().splitlines() == [
        "error: standard output: No space left on device; make room, or write elsewhere"
    ]


@pytest.mark.skipif(os.name == "nt", reason="closes a descriptor by the shell's `>&-`")
def test_a_closed_output_leaves_the_exit_status(project: Path) -> None:
    (project / "late.py").write_text("import requests\nrequests.get('x')\n")
    command = f"{shlex.quote(sys.executable)} -m deadlint check --isolated late.py >&-"
    done = subprocess.run(command, shell=True, stderr=subprocess.PIPE, check=False)
    assert (done.returncode, done.stderr) == (1, b"")
