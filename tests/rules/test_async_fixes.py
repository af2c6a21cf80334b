"""What the fixes of the rules about asyncio make of a call: before and after, one behaviour a test."""

from __future__ import annotations

from textwrap import dedent, indent

from deadlint.check import check_source
from deadlint.fix import fix_file
from deadlint.model import Finding, Safety
from deadlint.rule import all_rules
from deadlint.settings import Settings
from deadlint.source import SourceFile

APPLIED = (Safety.SAFE, Safety.UNSAFE)


def findings(text: str, *codes: str) -> list[Finding]:
    rules = tuple(rule for rule in all_rules() if rule.code in codes)
    return check_source(SourceFile("m.py", dedent(text)), Settings(), rules)


def fixed(text: str, *codes: str) -> str:
    rules = tuple(rule for rule in all_rules() if rule.code in codes)
    source = SourceFile("m.py", dedent(text))
    return fix_file(source, lambda s: check_source(s, Settings(), rules), APPLIED).source.text


def line(statement: str, *codes: str, parameters: str = "argv") -> str:
    """What becomes of a statement in a coroutine."""
    text = f"""\
import asyncio
import subprocess
import time

async def f({parameters}):
{indent(statement, "    ")}
"""
    return fixed(text, *(codes or ("DL501",))).rstrip("\n").rpartition("\n")[2].strip()


# --- DL501 -----------------------------------------------------------------------------------------------------


def test_a_sleep_is_awaited() -> None:
    assert line("time.sleep(5)  # why") == "await asyncio.sleep(5)  # why"


def test_a_sleep_needs_the_module_at_hand() -> None:
    before = """\
        import time

        async def f():
            time.sleep(5)
    """
    assert fixed(before, "DL501") == dedent(before)


def test_run_is_awaited_with_its_limit_as_want() -> None:
    assert line("subprocess.run(argv, timeout=60, check=True)") == "await run_async(argv, want=60, check=True)"


def test_an_attribute_of_the_result_needs_parentheses() -> None:
    assert line("return subprocess.run(argv, timeout=60).stdout") == "return (await run_async(argv, want=60)).stdout"


def test_a_limit_around_is_enough() -> None:
    before = "async with asyncio.timeout(60):\n    subprocess.run(argv)"
    assert line(before) == "await run_async(argv)"


def test_without_any_limit_a_constant_bounds_it() -> None:
    assert line("subprocess.run(argv)").startswith("await run_async(argv, want=")


def test_a_budget_in_scope_is_passed_on() -> None:
    assert line("subprocess.run(argv)", parameters="argv, budget") == "await run_async(argv, budget=budget)"


def test_the_import_is_added_once() -> None:
    before = """\
        import asyncio
        import subprocess


        async def f(argv):
            subprocess.run(argv, timeout=1)
            subprocess.run(argv, timeout=2)
    """
    after = """\
        import asyncio

        from deadlint_budget import run_async


        async def f(argv):
            await run_async(argv, want=1)
            await run_async(argv, want=2)
    """
    assert fixed(before, "DL501") == dedent(after)


def test_what_dl101_makes_of_it_is_awaited_too() -> None:
    assert line("subprocess.run(argv, timeout=60)", "DL101", "DL501") == "await run_async(argv, want=60)"


def test_unknown_keywords_are_only_shown() -> None:
    (finding,) = findings(
        """\
        import asyncio
        import subprocess

        async def f(argv, **options):
            subprocess.run(argv, **options)
        """,
        "DL501",
    )
    assert finding.fix is not None
    assert finding.fix.safety is Safety.DISPLAY


def test_a_function_that_is_no_coroutine_has_nothing_to_await_with() -> None:
    (finding,) = findings(
        """\
        import asyncio
        import subprocess

        async def f(argv):
            async with asyncio.timeout(5):
                build(argv)

        def build(argv):
            subprocess.run(argv)
        """,
        "DL501",
    )
    assert finding.fix is None


def test_no_await_is_put_into_a_generator() -> None:
    before = "return list(subprocess.run(a, timeout=1) for a in argv)"
    assert line(before) == before


# --- DL503 -----------------------------------------------------------------------------------------------------


def handler(body: str) -> str:
    """What becomes of the body of a handler that drops a cancellation in a loop."""
    text = f"""\
import asyncio

async def f(client, log):
    while True:
        try:
            await client.poll()
        except asyncio.CancelledError:
{indent(body, " " * 12)}
"""
    return dedent(fixed(text, "DL503").partition("CancelledError:\n")[2])


def test_raise_takes_the_place_of_pass() -> None:
    assert handler("pass  # why") == "raise  # why\n"


def test_raise_follows_a_log_line() -> None:
    assert handler("log.info('cancelled')  # why") == "log.info('cancelled')  # why\nraise\n"


def test_a_handler_of_more_than_the_cancellation_is_left_to_its_author() -> None:
    before = """\
        import asyncio

        async def f(client):
            while True:
                try:
                    await client.poll()
                except (asyncio.CancelledError, OSError):
                    pass
    """
    assert len(findings(before, "DL503")) == 1
    assert fixed(before, "DL503") == dedent(before)


def test_the_end_of_a_budget_is_raised_again() -> None:
    before = """\
        from deadlint_budget import DeadlineExceeded, http

        def f(url, publish):
            try:
                http.get(url, want=5)
            except DeadlineExceeded:
                pass
            publish()
    """
    assert fixed(before, "DL503") == dedent(before).replace("pass", "raise")
