"""Fixes of the rules about nested limits: what is written, before and after."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

from deadlint.check import check_source
from deadlint.fix import fix_file
from deadlint.model import Safety
from deadlint.rule import all_rules
from deadlint.settings import Settings
from deadlint.source import SourceFile


def fixed(text: str, code: str, *, allowed: tuple[Safety, ...] = (Safety.SAFE, Safety.UNSAFE)) -> str:
    rules = [rule for rule in all_rules() if rule.code == code]
    source = SourceFile.decode(str(Path("pipeline.py")), dedent(text).encode())
    return fix_file(source, lambda s: check_source(s, Settings(), rules), allowed).source.text


def test_a_reserve_is_named_after_its_function() -> None:
    before = """\
        from deadlint_budget import Budget
        from prefect import flow


        @flow(timeout_seconds=1200)
        def build_mosaic(tiles):
            return Budget.of(
                1200,
                "mosaic",  # the whole of it
            )
        """
    after = """\
        from deadlint_budget import Budget
        from prefect import flow

        BUILD_MOSAIC_RESERVE_S = 120


        @flow(timeout_seconds=1200)
        def build_mosaic(tiles):
            return Budget.of(
                1200,
                "mosaic",  # the whole of it
                reserve=BUILD_MOSAIC_RESERVE_S,
            )
        """
    assert fixed(before, "DL407") == dedent(after)
    assert fixed(before, "DL407", allowed=(Safety.SAFE,)) == dedent(before)


def test_no_reserve_where_a_function_has_two_budgets() -> None:
    before = """\
        import asyncio

        from deadlint_budget import Budget


        async def build():
            async with asyncio.timeout(60):
                Budget.of(60)
            async with asyncio.timeout(30):
                Budget.of(30)
        """
    assert fixed(before, "DL407") == dedent(before)


def test_a_local_deadline_goes_to_the_monotonic_clock() -> None:
    before = """\
        import time


        def wait_for(path, timeout):
            deadline = time.time() + timeout  # when to give up
            while time.time() < deadline:
                time.sleep(min(1, deadline - time.time()))
            print(time.time())
        """
    after = """\
        import time


        def wait_for(path, timeout):
            deadline = time.monotonic() + timeout  # when to give up
            while time.monotonic() < deadline:
                time.sleep(min(1, deadline - time.monotonic()))
            print(time.time())
        """
    assert fixed(before, "DL409", allowed=(Safety.SAFE,)) == dedent(after)


def test_an_imported_clock_is_imported_too() -> None:
    before = """\
        from time import sleep, time


        def wait_for(path, timeout):
            start = time()
            while time() - start < timeout:
                sleep(1)
        """
    after = """\
        from time import monotonic, sleep, time


        def wait_for(path, timeout):
            start = monotonic()
            while monotonic() - start < timeout:
                sleep(1)
        """
    assert fixed(before, "DL409", allowed=(Safety.SAFE,)) == dedent(after)


def test_the_clock_stays_where_the_point_in_time_goes_elsewhere() -> None:
    for use in (
        "print(deadline)",
        "return deadline",
        "store(deadline)",
        "x = deadline",
        "return lambda: deadline - time.time()",
    ):
        before = f"""\
            import time


            def wait_for(path, timeout):
                deadline = time.time() + timeout
                while time.time() < deadline:
                    path.touch()
                {use}
            """
        assert fixed(before, "DL409") == dedent(before), use


def test_all_of_the_seconds_are_taken() -> None:
    before = """\
        from datetime import datetime


        def wait(start: datetime, limit):
            return (datetime.now() - start).seconds > limit  # so long
        """
    after = """\
        from datetime import datetime


        def wait(start: datetime, limit):
            return (datetime.now() - start).total_seconds() > limit  # so long
        """
    assert fixed(before, "DL412") == dedent(after)
    assert fixed(before, "DL412", allowed=(Safety.SAFE,)) == dedent(before)


def test_a_literal_becomes_a_slice_of_the_budget() -> None:
    before = """\
        import asyncio

        from deadlint_budget import Budget


        async def fetch(job, budget: Budget):
            await asyncio.wait_for(
                job(),
                timeout=30,  # was enough so far
            )
        """
    after = """\
        import asyncio

        from deadlint_budget import Budget


        async def fetch(job, budget: Budget):
            await asyncio.wait_for(
                job(),
                timeout=budget.slice(30),  # was enough so far
            )
        """
    assert fixed(before, "DL404") == dedent(after)
    assert fixed(before, "DL404", allowed=(Safety.SAFE,)) == dedent(before)


def test_a_budget_is_passed_on() -> None:
    before = """\
        from deadlint_budget import Budget


        def warp(tile, budget: Budget | None = None): ...


        class Mosaic:
            def __init__(self, budget: Budget):
                self.budget = budget

            def build(self, tile):
                warp(tile)
        """
    after = before.replace("                warp(tile)\n", "                warp(tile, budget=self.budget)\n")
    assert fixed(before, "DL405") == dedent(after)
    assert fixed(before, "DL405", allowed=(Safety.SAFE,)) == dedent(before)
