"""What the fixes of DL601 and DL602 make of how a file is published: before and after, one behaviour a test."""

from __future__ import annotations

from textwrap import dedent

from deadlint.check import check_source
from deadlint.fix import fix_file
from deadlint.model import Finding, Safety
from deadlint.rule import all_rules
from deadlint.settings import Settings
from deadlint.source import SourceFile

CODES = ("DL601", "DL602")
APPLIED = (Safety.SAFE, Safety.UNSAFE)
RULES = tuple(rule for rule in all_rules() if rule.code in CODES)


def findings(text: str) -> list[Finding]:
    return check_source(SourceFile("m.py", dedent(text)), Settings(), RULES)


def fixed(text: str) -> str:
    source = SourceFile("m.py", dedent(text))
    return fix_file(source, lambda s: check_source(s, Settings(), RULES), APPLIED).source.text


# --- DL602 -----------------------------------------------------------------------------------------------------


def test_a_removal_and_a_rename_become_one_step() -> None:
    before = """\
        import os


        def publish(new, old):
            print(new)
            os.remove(old)
            os.rename(new, old)  # done
    """
    after = """\
        import os


        def publish(new, old):
            print(new)
            os.replace(new, old)  # done
    """
    assert fixed(before) == dedent(after)


def test_a_test_that_the_file_exists_goes_as_well() -> None:
    before = """\
        import os

        if os.path.exists("a"):
            os.remove("a")
        os.replace("b", "a")
    """
    assert fixed(before) == 'import os\n\nos.replace("b", "a")\n'


def test_a_comment_behind_the_removal_is_not_lost() -> None:
    text = """\
        import os

        os.remove("a")  # Windows refuses otherwise
        os.rename("b", "a")
    """
    assert [f.fix for f in findings(text)] == [None]


# --- DL601 -----------------------------------------------------------------------------------------------------


def test_a_program_writes_into_a_part() -> None:
    before = """\
        import subprocess


        def warp(source, target):
            subprocess.run(
                ["gdalwarp", "-overwrite", source, target],  # both
                check=True,
                timeout=600,
            )
            return target
    """
    after = """\
        import subprocess

        from deadlint_budget import atomic_output


        def warp(source, target):
            with atomic_output(target) as part:
                subprocess.run(
                    ["gdalwarp", "-overwrite", source, part],  # both
                    check=True,
                    timeout=600,
                )
            return target
    """
    assert fixed(before) == dedent(after)


def test_a_path_as_text_and_a_command_before_the_call() -> None:
    before = """\
        import subprocess


        def warp(source, target):
            command = ["gdalwarp", "-overwrite", source, str(target)]
            subprocess.run(command, check=True, timeout=600)
            return target


        def shrink(source, target):
            subprocess.run(["gdal_translate", str(source), str(target)], check=True, timeout=600)
    """
    after = """\
        import subprocess

        from deadlint_budget import atomic_output


        def warp(source, target):
            with atomic_output(target) as part:
                command = ["gdalwarp", "-overwrite", source, str(part)]
                subprocess.run(command, check=True, timeout=600)
            return target


        def shrink(source, target):
            with atomic_output(target) as part:
                subprocess.run(["gdal_translate", str(source), str(part)], check=True, timeout=600)
    """
    assert fixed(before) == dedent(after)


def test_a_budget_is_handed_on_and_gdal_gets_a_text() -> None:
    before = """\
        from osgeo import gdal


        def warp(source, target, budget):
            gdal.Warp(target, source)
    """
    after = """\
        from deadlint_budget import atomic_output
        from osgeo import gdal


        def warp(source, target, budget):
            with atomic_output(target, budget) as part:
                gdal.Warp(str(part), source)
    """
    assert fixed(before) == dedent(after)


def test_a_warp_into_a_file_that_may_be_meant_is_only_shown() -> None:
    text = """\
        import subprocess

        subprocess.run(["gdalwarp", "a.tif", "b.tif"], check=True, timeout=60)
    """
    assert [f.fix.safety for f in findings(text) if f.fix] == [Safety.DISPLAY]


def test_there_is_no_fix_where_a_failure_does_not_raise_or_the_dataset_lives_on() -> None:
    text = """\
        import subprocess

        from osgeo import gdal

        subprocess.run(["gdal_translate", "a.tif", "b.tif"], timeout=60)
        dataset = gdal.Translate("c.tif", "a.tif")
    """
    assert [f.fix for f in findings(text)] == [None, None]
