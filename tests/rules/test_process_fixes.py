"""What the fixes of DL101 to DL104 make of a process: before and after, one behaviour a test."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from textwrap import dedent

import pytest
from deadlint.check import check_source
from deadlint.fix import fix_file
from deadlint.model import Finding, Safety
from deadlint.rule import all_rules
from deadlint.settings import Constants, Settings, Wrappers
from deadlint.source import SourceFile

CODES = ("DL101", "DL102", "DL103", "DL104")
APPLIED = (Safety.SAFE, Safety.UNSAFE)


def findings(text: str, settings: Settings | None = None, *codes: str) -> list[Finding]:
    rules = tuple(rule for rule in all_rules() if rule.code in (codes or CODES))
    return check_source(SourceFile("m.py", dedent(text)), settings or Settings(), rules)


def fixed(text: str, settings: Settings | None = None, *codes: str) -> str:
    rules = tuple(rule for rule in all_rules() if rule.code in (codes or CODES))
    source = SourceFile("m.py", dedent(text))
    return fix_file(source, lambda s: check_source(s, settings or Settings(), rules), APPLIED).source.text


def last_line(text: str, settings: Settings | None = None) -> str:
    return fixed(text, settings).rstrip("\n").rpartition("\n")[2].strip()


def safety(text: str) -> list[Safety | None]:
    return [f.fix.safety if f.fix else None for f in findings(text)]


# --- run and its kin -------------------------------------------------------------------------------------------


def test_a_limited_run_goes_to_the_helper() -> None:
    before = """\
        import subprocess

        subprocess.run(["gdalwarp", "a", "b"], timeout=60, check=True)  # why
    """
    after = """\
        from deadlint_budget import run

        run(["gdalwarp", "a", "b"], want=60, check=True)  # why
    """
    assert fixed(before) == dedent(after)


def test_an_unlimited_run_gets_a_named_limit() -> None:
    before = """\
        import subprocess

        subprocess.run(["gdalwarp", "a", "b"], check=True)
    """
    after = """\
        from deadlint_budget import run

        PROCESS_LIMIT_S = 3600

        run(["gdalwarp", "a", "b"], check=True, want=PROCESS_LIMIT_S)
    """
    assert fixed(before) == dedent(after)


def test_the_configured_constant_is_used() -> None:
    text = fixed(
        "import subprocess\nsubprocess.run(['gdalwarp'])\n", Settings(constants=Constants(process=("LONG", "900")))
    )
    assert "LONG = 900\n" in text
    assert text.endswith("run(['gdalwarp'], want=LONG)\n")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("subprocess.call(x, timeout=5)", "run(x, want=5)"),
        ("print(subprocess.call(x, timeout=5))", "print(run(x, want=5).returncode)"),
        ("subprocess.check_call(x, timeout=5)", "run(x, want=5, check=True)"),
        ("code = subprocess.check_call(x, timeout=5)", "code = run(x, want=5, check=True).returncode"),
        ("print(subprocess.check_output(x, timeout=5, text=True))", "print(check_output(x, want=5, text=True))"),
        ("subprocess.run(args=x, timeout=5)", "run(args=x, want=5)"),
        ("subprocess.run(x, timeout=LIMIT * 2)", "run(x, want=LIMIT * 2)"),
        ("subprocess.run(x, timeout=None, cwd=y)", "run(x, want=PROCESS_LIMIT_S, cwd=y)"),
        ("subprocess.run(x for x in y)", "run((x for x in y), want=PROCESS_LIMIT_S)"),
        ("subprocess.run(x,)", "run(x, want=PROCESS_LIMIT_S,)"),
        ("os.system('ogr2ogr x y')", "run('ogr2ogr x y', shell=True, want=PROCESS_LIMIT_S)"),
    ],
)
def test_each_call_has_its_equal(before: str, after: str) -> None:
    assert last_line(f"import os, subprocess\n{before}\n").replace(",)", ")") == after.replace(",)", ")")


def test_a_budget_is_passed_on_with_the_limit_and_without() -> None:
    assert last_line("import subprocess\ndef f(x, budget):\n    subprocess.run(x, timeout=5)\n") == (
        "run(x, budget=budget, want=5)"
    )
    assert last_line("import subprocess\ndef f(x, budget):\n    subprocess.run(x)\n") == "run(x, budget=budget)"


def test_a_timeout_parameter_is_passed_on() -> None:
    assert last_line("import subprocess\ndef f(x, timeout: float):\n    subprocess.run(x)\n") == "run(x, want=timeout)"


def test_a_parameter_that_is_no_number_of_seconds_is_not() -> None:
    text = "import subprocess\ndef f(x, timeout: timedelta):\n    subprocess.run(x)\n"
    assert last_line(text) == "run(x, want=PROCESS_LIMIT_S)"


def test_a_limit_around_is_not_reached() -> None:
    text = """\
        import subprocess
        from prefect import task

        @task(timeout_seconds=600)
        def build(x):
            subprocess.run(x)
    """
    assert "\nBUILD_PROCESS_LIMIT_S = 480\n" in fixed(text)
    assert last_line(text) == "run(x, want=BUILD_PROCESS_LIMIT_S)"


def test_a_taken_name_gets_an_alias() -> None:
    assert last_line("from subprocess import run\nrun(['gdalwarp'], timeout=5)\n") == "budget_run(['gdalwarp'], want=5)"


def test_unknown_keywords_are_only_shown() -> None:
    assert safety("import subprocess\ndef f(x, **kw):\n    subprocess.run(x, timeout=5, **kw)\n") == [Safety.DISPLAY]


def test_what_the_helper_has_no_argument_for_is_not_offered() -> None:
    assert safety("import subprocess\nsubprocess.run(x, -1, timeout=5)\n") == [None]
    assert safety("import subprocess\nsubprocess.run(*x, timeout=5)\n") == [None]


def test_a_status_of_os_system_is_only_shown() -> None:
    assert safety("import os\nif os.system('ogr2ogr x y'):\n    pass\n") == [Safety.DISPLAY]


def test_a_limit_that_would_be_swallowed_is_only_shown() -> None:
    text = """\
        import subprocess
        try:
            subprocess.run(["gdalwarp"])
        except Exception:
            pass
    """
    assert safety(text) == [Safety.DISPLAY]


# --- Popen -----------------------------------------------------------------------------------------------------


def test_a_limited_wait_goes_to_the_helper_and_the_child_gets_a_session() -> None:
    before = """\
        from subprocess import Popen

        def f(x):
            proc = Popen(
                x,  # what
                cwd="/tmp",
            )
            proc.wait(timeout=5)
    """
    after = """\
        from subprocess import Popen

        from deadlint_budget import wait

        def f(x):
            proc = Popen(
                x,  # what
                cwd="/tmp",
                start_new_session=True,
            )
            wait(proc, want=5)
    """
    assert fixed(before) == dedent(after)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("proc.wait(5)", "wait(proc, want=5)"),
        ("proc.communicate(timeout=5)", "communicate(proc, want=5)"),
        ("proc.communicate(data, 5)", "communicate(proc, data, want=5)"),
        ("proc.communicate(input=data, timeout=5)", "communicate(proc, input=data, want=5)"),
        ("proc.communicate(data)", "communicate(proc, data, want=PROCESS_LIMIT_S)"),
        ("return proc.wait()", "return wait(proc, want=PROCESS_LIMIT_S)"),
        ("proc.wait(None)", "wait(proc, want=PROCESS_LIMIT_S)"),
    ],
)
def test_each_wait_has_its_equal(before: str, after: str) -> None:
    assert last_line(f"from subprocess import Popen\ndef f(x):\n    proc = Popen(x)\n    {before}\n") == after


@pytest.mark.parametrize("given", ["start_new_session=True", "process_group=0", "preexec_fn=os.setsid", "**options"])
def test_a_group_that_is_there_or_may_be_is_left_alone(given: str) -> None:
    text = "import os\nfrom subprocess import Popen\ndef f(x, **options):\n"
    text += f"    proc = Popen(x, {given})\n    proc.wait(5)\n"
    assert f"Popen(x, {given})" in fixed(text)


def test_what_the_handler_did_to_the_child_is_taken_out() -> None:
    before = """\
        import os, signal, subprocess

        def f(x):
            proc = subprocess.Popen(x, stdout=subprocess.PIPE)
            try:
                return proc.communicate(timeout=5)
            except subprocess.TimeoutExpired:
                print("slow")  # why
                os.killpg(proc.pid, signal.SIGKILL)
                proc.communicate()
                raise
    """
    after = """\
        import os, signal, subprocess

        from deadlint_budget import communicate

        def f(x):
            proc = subprocess.Popen(x, stdout=subprocess.PIPE, start_new_session=True)
            try:
                return communicate(proc, want=5)
            except subprocess.TimeoutExpired:
                print("slow")  # why
                raise
    """
    assert fixed(before) == dedent(after)


def test_an_emptied_handler_passes() -> None:
    text = """\
        import subprocess
        def f(x):
            proc = subprocess.Popen(x)
            try:
                proc.wait(timeout=5)
            except subprocess.TimeoutExpired:
                proc.kill()
                proc.wait()  # reap it
    """
    assert fixed(text).endswith("    except subprocess.TimeoutExpired:\n        pass  # reap it\n")


def test_output_that_a_handler_reads_after_the_kill_is_there() -> None:
    """The helper lets a later `communicate` return what it has read."""
    text = """\
        import subprocess
        def f(x):
            proc = subprocess.Popen(x, stdout=subprocess.PIPE)
            try:
                out, _ = proc.communicate(timeout=5)
            except subprocess.TimeoutExpired:
                proc.kill()
                out, _ = proc.communicate()
            return out
    """
    assert safety(text) == [Safety.UNSAFE]
    assert "out, _ = communicate(proc, want=5)\n" in fixed(text)
    assert "        out, _ = proc.communicate()\n" in fixed(text)


def test_a_broad_handler_of_more_than_the_wait_is_only_shown() -> None:
    text = """\
        import subprocess
        def f(x, parse):
            proc = subprocess.Popen(x, stdout=subprocess.PIPE)
            try:
                out, _ = proc.communicate(timeout=5)
                parse(out)
            except Exception:
                proc.kill()
                proc.wait()
                raise
    """
    assert safety(text) == [Safety.DISPLAY]


def test_a_name_that_goes_to_the_next_child_is_no_obstacle() -> None:
    text = """\
        import subprocess
        def f(x, y):
            proc = subprocess.Popen(x, stdout=subprocess.PIPE)
            proc.communicate()
            proc = subprocess.Popen(y, stdout=subprocess.PIPE)
            proc.communicate()
    """
    assert safety(text) == [Safety.UNSAFE, Safety.UNSAFE]


def test_a_guarded_kill_stays() -> None:
    text = """\
        import os, signal, subprocess
        def f(x):
            proc = subprocess.Popen(x)
            try:
                proc.wait(timeout=5)
            except subprocess.TimeoutExpired:
                if proc.poll() is None:
                    os.killpg(proc.pid, signal.SIGKILL)
                    proc.wait()
    """
    assert safety(text) == [Safety.UNSAFE]
    assert "        if proc.poll() is None:\n" in fixed(text)


# --- DL104 -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("handler", "after"),
    [
        ("pass", "raise"),
        ("continue  # next", "raise  # next"),
        ("log('slow')  # why", "log('slow')  # why\n            raise"),
    ],
)
def test_a_swallowed_expiry_is_raised(handler: str, after: str) -> None:
    text = f"""\
from subprocess import TimeoutExpired, run
from logging import warning as log
def f(xs):
    for x in xs:
        try:
            run(x, timeout=5)
        except TimeoutExpired:
            {handler}
"""
    assert fixed(text, None, "DL104") == text.replace(handler, after)


@pytest.mark.parametrize("caught", ["(OSError, TimeoutExpired)", "SubprocessError", "Exception"])
def test_a_handler_of_more_than_the_expiry_is_left_to_a_person(caught: str) -> None:
    text = "from subprocess import *\nfrom subprocess import run, TimeoutExpired, SubprocessError\n"
    text += f"try:\n    run(['x'], timeout=5)\nexcept {caught}:\n    pass\n"
    assert [f.fix for f in findings(text, None, "DL104")] == [None]


# --- settings --------------------------------------------------------------------------------------------------


def test_a_wrapper_that_stops_the_group_is_left_alone() -> None:
    text = "import subprocess\ndef stop_group(x):\n    subprocess.run(x, timeout=5)\n"
    assert [f.code for f in findings(text)] == ["DL101"]
    assert not findings(text, Settings(wrappers=Wrappers(processes=("project.sh.stop_group",))))


def test_program_lists_decide_the_level() -> None:
    text = "import subprocess\nsubprocess.run(['tile-it'], timeout=5)\nsubprocess.run(['tile-it'])\n"
    assert [f.level.value for f in findings(text)] == ["default", "strict"]
    own = Settings(read_only=("tile-*",), long_running=("tile-*",))
    assert [f.level.value for f in findings(text, own)] == ["strict", "default"]


# --- the fixed code runs ---------------------------------------------------------------------------------------

TREE = "sleep 31 2>/dev/null & echo $! > {pid}; wait"


def test_the_tree_that_survived_is_gone_after_the_fix(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    before = dedent(
        f"""\
        import subprocess

        def build():
            proc = subprocess.Popen({TREE.format(pid=pid)!r}, shell=True, stdout=subprocess.PIPE)
            try:
                return proc.communicate(timeout=0.5)
            except subprocess.TimeoutExpired:
                proc.kill()
                proc.wait()
                print("expired")

        build()
        """
    )
    assert _run(before) == "expired\n"
    assert _alive(pid), "the fault is not there to be mended"
    os.kill(int(pid.read_text()), 9)
    assert _run(fixed(before)) == "expired\n"
    assert not _alive(pid)


def _run(text: str) -> str:
    return subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True, timeout=20).stdout


def _alive(path: Path) -> bool:
    """Whether the process is there, and not as a zombie that nobody has reaped yet."""
    time.sleep(0.1)
    stat = Path(f"/proc/{path.read_text().strip()}/stat")
    return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] != "Z"
