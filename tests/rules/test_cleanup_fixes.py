"""The fixes of DL505 and DL506, before and after."""

from __future__ import annotations

from textwrap import dedent

from deadlint.check import check_source
from deadlint.fix import fix_file
from deadlint.model import Safety
from deadlint.rule import all_rules
from deadlint.settings import Constants, Settings
from deadlint.source import SourceFile

SAFE = (Safety.SAFE,)
UNSAFE = (Safety.SAFE, Safety.UNSAFE)


def fixed(before: str, code: str, allowed: tuple[Safety, ...] = UNSAFE, settings: Settings | None = None) -> str:
    rules = tuple(rule for rule in all_rules() if rule.code == code)
    source = SourceFile("a.py", dedent(before))
    return fix_file(source, lambda s: check_source(s, settings or Settings(), rules), allowed).source.text


def test_a_close_moves_into_a_finally_and_that_is_safe() -> None:
    before = """\
        import psycopg2
        import requests


        def load(dsn, url):
            connection = psycopg2.connect(dsn)
            # what the server says
            rows = requests.get(url, timeout=10).json()

            connection.cursor().execute("SELECT %s", rows)
            connection.close()  # done
            return rows
    """
    after = """\
        import psycopg2
        import requests


        def load(dsn, url):
            connection = psycopg2.connect(dsn)
            try:
                # what the server says
                rows = requests.get(url, timeout=10).json()

                connection.cursor().execute("SELECT %s", rows)
            finally:
                connection.close()  # done
            return rows
    """
    assert fixed(before, "DL506", SAFE) == dedent(after)


def test_a_directory_is_removed_on_every_way_out_where_that_is_asked_for() -> None:
    before = """\
        import shutil
        import tempfile

        import requests


        def load(url):
            scratch = tempfile.mkdtemp()
            data = requests.get(url, timeout=10).content
            shutil.rmtree(scratch)
            return data
    """
    assert fixed(before, "DL506", SAFE) == dedent(before)
    assert "    finally:\n        shutil.rmtree(scratch)\n" in fixed(before, "DL506")


def test_a_text_of_several_lines_is_not_indented() -> None:
    before = """\
        import psycopg2
        import requests


        def load(dsn, url):
            connection = psycopg2.connect(dsn)
            connection.cursor().execute('''
                SELECT %s
            ''', requests.get(url, timeout=10).json())
            connection.close()
    """
    assert fixed(before, "DL506") == dedent(before)


def test_a_child_of_the_clean_up_gets_time_out_of_the_reserve() -> None:
    before = """\
        import subprocess

        from deadlint_budget import DeadlineExceeded, run


        def render(argv, name, budget):
            try:
                run(argv, budget=budget)
            except DeadlineExceeded:
                subprocess.run(["docker", "rm", "-f", name], check=False)
                raise
    """
    after = """\
        from deadlint_budget import DeadlineExceeded, run

        CLEANUP_LIMIT_S = 20


        def render(argv, name, budget):
            try:
                run(argv, budget=budget)
            except DeadlineExceeded:
                run(["docker", "rm", "-f", name], check=False, budget=budget.cleanup(CLEANUP_LIMIT_S))
                raise
    """
    assert fixed(before, "DL505") == dedent(after)


def test_without_a_budget_the_clean_up_gets_one_of_its_own() -> None:
    before = """\
        import subprocess


        def render(argv, name):
            try:
                subprocess.run(argv, timeout=60)
            except subprocess.TimeoutExpired:
                subprocess.call(["docker", "rm", "-f", name])
    """
    text = fixed(before, "DL505", settings=Settings(constants=Constants(cleanup=("GRACE_S", "5"))))
    assert 'run(["docker", "rm", "-f", name], budget=Budget.of(GRACE_S, "cleanup"))' in text
    assert "from deadlint_budget import Budget, run\n" in text
    assert "GRACE_S = 5\n" in text


def test_a_budget_of_a_caller_is_left_to_a_person() -> None:
    before = """\
        import subprocess


        def flow(argv, budget):
            render(argv)


        def render(argv):
            try:
                subprocess.run(argv, timeout=60)
            except subprocess.TimeoutExpired:
                subprocess.run(["docker", "rm", "-f", "x"])
    """
    assert fixed(before, "DL505") == dedent(before)
