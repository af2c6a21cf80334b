"""What the rules about nested limits say: the number, whose default it is, and the way from one limit to the other."""

from __future__ import annotations

from textwrap import dedent

from deadlint.check import check_source
from deadlint.model import Level
from deadlint.rule import all_rules
from deadlint.settings import Settings
from deadlint.source import SourceFile


def message(text: str, code: str) -> str:
    """The message of the one finding of a rule."""
    rules = [rule for rule in all_rules() if rule.code == code]
    (finding,) = check_source(SourceFile.decode("pipeline.py", dedent(text).encode()), Settings(), rules)
    assert finding.level is Level.DEFAULT
    return finding.message


def test_the_default_of_a_setting_is_called_one() -> None:
    text = """\
        import os
        import subprocess

        from prefect import task

        LIMIT_S = float(os.environ.get("WARP_LIMIT_S", "900"))


        @task(timeout_seconds=int(os.getenv("TASK_LIMIT_S", "600")))
        def warp(tile):
            subprocess.run(["gdalwarp", tile], check=True, timeout=LIMIT_S)
        """
    said = message(text, "DL401")
    assert "may run default 900 s (of `WARP_LIMIT_S`)" in said
    assert "ends at default 600 s (of `TASK_LIMIT_S`)" in said


def test_a_limit_that_is_passed_on_comes_with_its_way() -> None:
    text = """\
        import subprocess

        from prefect import task


        @task(timeout_seconds=600)
        def build(tile):
            warp(tile, 900)


        def warp(tile, seconds):
            call(tile, limit=seconds)


        def call(tile, limit):
            subprocess.run(["gdalwarp", tile], check=True, timeout=limit)
        """
    assert message(text, "DL401").startswith(
        "`subprocess.run` may run 900 s inside task `build`, which ends at 600 s, reached through `warp` → `call`"
    )


def test_attempts_are_multiplied_in_words() -> None:
    text = """\
        import os

        from prefect import flow, task


        @task(retries=3, retry_delay_seconds=60, timeout_seconds=int(os.environ.get("TILE_S", "600")))
        def build_tile(tile):
            pass


        @flow(timeout_seconds=1200)
        def build_mosaic(tile):
            build_tile(tile)
        """
    assert "4 attempts × 600 s (default of `TILE_S`) + 180 s of pauses = 2,580 s" in message(text, "DL403")


def test_a_sequence_is_added_up_in_words() -> None:
    text = """\
        import subprocess

        from prefect import task


        @task(timeout_seconds=900)
        def build(tile):
            subprocess.run(["gdalwarp", tile], check=True, timeout=600)
            for level in range(2):
                subprocess.run(["gdaladdo", tile, level], check=True, timeout=200)
        """
    said = message(text, "DL410")
    assert said.startswith("`subprocess.run` (600 s) + `subprocess.run` (2 × 200 s) in sequence are 1,000 s inside task")
