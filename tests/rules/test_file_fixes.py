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
