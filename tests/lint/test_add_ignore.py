"""Comments that suppress what is found: where they go, and that nothing but comments is written."""

from __future__ import annotations

import ast
import io
import json
import shutil
import tokenize
from pathlib import Path

import pytest
from deadlint.add_ignore import with_comments
from deadlint.source import SourceFile
from deadlint.suppress import suppress
from hypothesis import given
from hypothesis import strategies as st

from tests.lint.conftest import Deadlint
from tests.lint.test_cli import FETCH, plant
from tests.lint.test_suppress import KNOWN, findings_of

FIXTURES = Path(__file__).parents[2] / "fixtures"
WHY = "the gateway cuts"
HERE = f"  # deadlint: ignore[DL201] {WHY}"


def ignored(text: str) -> str:
    """`text` with a comment for each call of `get`, `run` or `put` that none suppresses; the same at once again."""
    source = SourceFile("a.py", text)
    found = [one for one in suppress(source, findings_of(source), KNOWN, ()) if one.suppressed is None]
    made = with_comments(source, found, WHY, KNOWN).source.text
    again = suppress(SourceFile("a.py", made), findings_of(SourceFile("a.py", made)), KNOWN, KNOWN)
    assert not [one for one in again if one.suppressed is None]
    return made


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("get()\n", f"get(){HERE}\n"),
        ("get()", f"get(){HERE}"),
        ("get()   \n", f"get(){HERE}\n"),
        ("if x:\r\n\tget()\r\n", f"if x:\r\n\tget(){HERE}\r\n"),
        ("get(); x = 1\n", f"get(); x = 1{HERE}\n"),
        ("x = get(\n    1,\n)\n", f"x = get({HERE}\n    1,\n)\n"),
        ("x = [\n    1,\n    get(),\n]\n", f"x = [\n    1,\n    get(),{HERE}\n]\n"),
        ("get()  # by day\n", f"get()  # by day{HERE}\n"),
        ("get()  # type: ignore\n", f"get()  # type: ignore{HERE}\n"),
        ("get()  # noqa: E501\n", f"get()  # noqa: E501{HERE}\n"),
        ("get('# no comment')\n", f"get('# no comment'){HERE}\n"),
        ('get("""\ntext\n""")\n', f'get("""\ntext\n"""){HERE}\n'),
        ('get("""\ntext\n""",\n1)\n', f'get("""\ntext\n""",{HERE}\n1)\n'),
        ('x = f"""\n{get()}\n"""\n', f'x = f"""\n{{get()}}\n"""{HERE}\n'),
        ('x = """\n""" + get() + """\n"""\n', f'x = """\n""" + get() + """\n"""{HERE}\n'),
        ("x = \\\n    get() + \\\n    1\n", f"x = \\\n    get() + \\\n    1{HERE}\n"),
        ("get() if \\\n    x else (\n    1)\n", f"get() if \\\n    x else ({HERE}\n    1)\n"),
        ('x("""\n""", get(\n), """\n""")\n', f'x("""\n""", get({HERE}\n), """\n""")\n'),
        ("with get() as a, \\\n        b():\n    c()\n", f"with get() as a, \\\n        b():{HERE}\n    c()\n"),
        ("@get(\n    1)\ndef f():\n    pass\n", f"@get({HERE}\n    1)\ndef f():\n    pass\n"),
        ("def f(\n    a=get(),\n):\n    pass\n", f"def f(\n    a=get(),{HERE}\n):\n    pass\n"),
        ("\x0cget()\n", f"\x0cget(){HERE}\n"),
        ("é = '…'; get('é')\n", f"é = '…'; get('é'){HERE}\n"),
    ],
)
def test_where_the_comment_goes(before: str, after: str) -> None:
    assert ignored(before) == after


def test_one_comment_for_all_that_is_on_a_line() -> None:
    assert ignored("get(run())\n") == f"get(run())  # deadlint: ignore[DL101, DL201] {WHY}\n"


def test_a_comment_of_ours_with_that_reason_gets_the_code() -> None:
    before = f"get(run())  # deadlint: ignore[DL101] {WHY}  # noqa: E501\n"
    assert ignored(before) == f"get(run())  # deadlint: ignore[DL101, DL201] {WHY}  # noqa: E501\n"


def test_a_comment_of_ours_with_another_reason_keeps_it() -> None:
    before = "get(run())  # deadlint: ignore[DL101] a leaf\n"
    assert ignored(before) == f"get(run())  # deadlint: ignore[DL101] a leaf{HERE}\n"


_comments = st.sampled_from(["", "  # why", "  # noqa: E501", f"  # deadlint: ignore[DL202] {WHY}, DL002", "   "])
_expressions = st.recursive(
    st.sampled_from(["get()", "run()", "1", "'#'", '"""\n# a\n"""', "'é'"]),
    lambda inner: st.one_of(
        st.builds("get({}, {})".format, inner, inner),
        st.builds("[  # a\n    {},\n    {},{}\n]".format, inner, inner, _comments),
        st.builds("({} + \\\n    {})".format, inner, inner),
        st.builds("({}\n\n    ,)".format, inner),
        st.builds('f"""\n{{{}}}"""'.format, st.sampled_from(["get()", "1"])),
    ),
    max_leaves=6,
)
_statements = st.one_of(
    st.builds("{}{}\n".format, _expressions, _comments),
    st.builds("x = {}; y = {}{}\n".format, _expressions, _expressions, _comments),
    st.builds("with {} as a:{}\n    b = {}{}\n".format, _expressions, _comments, _expressions, _comments),
    st.builds("@f({})\n@g(\n    {},{}\n)\ndef h():\n    pass\n".format, _expressions, _expressions, _comments),
    st.builds("x = \\\n    {}{}\n".format, _expressions, _comments),
)


@given(st.lists(_statements, min_size=1, max_size=4).map("".join), st.sampled_from(["\n", "\r\n", "\r"]))
def test_nothing_but_comments_is_written(text: str, newline: str) -> None:
    source = SourceFile("a.py", text.replace("\n", newline))
    found = [one for one in suppress(source, findings_of(source), KNOWN, ()) if one.suppressed is None]
    made = with_comments(source, found, WHY, KNOWN).source
    assert ast.dump(ast.parse(made.text)) == ast.dump(ast.parse(source.text))
    assert len(made.line_starts) == len(source.line_starts)
    assert not [one for one in suppress(made, findings_of(made), KNOWN, ()) if one.suppressed is None]


def test_every_case_of_the_rules_can_be_ignored(quick: Deadlint) -> None:
    """All that the rules find, with the comments, strings and continuations of those files."""
    shutil.copytree(FIXTURES / "cases", "cases")
    done = quick("add-ignore", "--reason", WHY, "--level=strict", "--isolated", "--no-cache")
    assert (done.returncode, done.stderr) == (0, b"")
    found = quick("check", "--level=strict", "--isolated", "--no-cache", "--output-format=json")
    document = json.loads(found.stdout)
    assert document["statistics"]["findings"] == 0
    assert document["statistics"]["suppressed"] > 500


def test_comments_are_written_once(quick: Deadlint) -> None:
    path = plant("pkg/a.py", FETCH + "slowlib.fetch(  # by day\n)\n")
    done = quick("add-ignore", "--reason", "ours: it answers", "pkg")
    assert (done.returncode, done.stdout) == (0, b"Wrote 2 comments for 2 findings in 1 file.\n")
    text = path.read_text()
    assert text == (
        "import slowlib\nslowlib.fetch()  # deadlint: ignore[ZZ101] ours: it answers\n"
        "slowlib.fetch(  # by day  # deadlint: ignore[ZZ101] ours: it answers\n)\n"
    )
    assert quick("check").returncode == 0
    done = quick("add-ignore", "--reason", "ours: it answers")
    assert (done.returncode, done.stdout, path.read_text()) == (0, b"Nothing to ignore.\n", text)


def test_rules_and_levels_are_chosen(quick: Deadlint) -> None:
    path = plant("a.py", FETCH + "slowlib.send()\n")
    assert quick("add-ignore", "--reason=later", "--select=ZZ102").stdout == b"Nothing to ignore.\n"
    assert quick("add-ignore", "--reason=later", "--select=ZZ102", "--level=strict").returncode == 0
    assert path.read_text() == FETCH + "slowlib.send()  # deadlint: ignore[ZZ102] later\n"


def test_a_diff_changes_nothing(quick: Deadlint) -> None:
    path = plant("a.py")
    done = quick("add-ignore", "--reason=later", "--diff")
    assert (done.returncode, path.read_text()) == (1, FETCH)
    assert b"+slowlib.fetch()  # deadlint: ignore[ZZ101] later\n" in done.stdout
    assert done.stderr == b"Would write 1 comment for 1 finding in 1 file.\n"


def test_what_the_baseline_knows_gets_no_comment(quick: Deadlint) -> None:
    plant("deadlint.toml", 'baseline = "deadlint-baseline.txt"\n')
    path = plant("a.py")
    quick("baseline", "create")
    assert quick("add-ignore", "--reason=later").stdout == b"Nothing to ignore.\n"
    assert path.read_text() == FETCH


def test_what_a_comment_is_not_for_is_left_and_said(quick: Deadlint) -> None:
    plant("a.py", FETCH + "x = 1  # deadlint: ignore[ZZ101]\n")
    plant("b.py", "def f(:\n")
    done = quick("add-ignore", "--reason=later")
    assert done.returncode == 1
    assert [line.split(b" ")[1] for line in done.stderr.splitlines()[:2]] == [b"DL002", b"DL001"]
    assert done.stderr.splitlines()[2] == (
        b"2 findings left: a file with a syntax error is to be mended or excluded; "
        b"`deadlint check --fix` takes out a comment without effect."
    )


def test_an_encoding_that_cannot_hold_the_reason_leaves_the_file(quick: Deadlint) -> None:
    path = Path("a.py")
    text = ("# coding: latin-1\n" + FETCH + "x = 'é'\n").encode("latin-1")
    path.write_bytes(text)
    done = quick("add-ignore", "--reason=waits for 日本")
    assert (done.returncode, path.read_bytes()) == (2, text)
    assert b"error: a.py: cannot hold the comments" in done.stderr
    assert quick("add-ignore", "--reason=waits for Orléans").returncode == 0
    assert "[ZZ101] waits for Orléans\n".encode("latin-1") in path.read_bytes()


def test_a_notebook_gets_its_comments_in_the_cell(quick: Deadlint) -> None:
    cell = {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None, "source": FETCH.rstrip()}
    document = {"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    path = plant("a.ipynb", json.dumps(document))
    assert quick("add-ignore", "--reason=later").returncode == 0
    (cell,) = json.loads(path.read_text())["cells"]
    assert "".join(cell["source"]) == FETCH.rstrip() + "  # deadlint: ignore[ZZ101] later"


@pytest.mark.parametrize("reason", ["", "  ", ":", "two\nlines", "see # noqa", "\x1b[31m"])
def test_a_reason_that_no_comment_can_hold_is_refused(quick: Deadlint, reason: str) -> None:
    plant("a.py")
    done = quick("add-ignore", "--reason", reason)
    assert done.returncode == 2
    assert b"error: --reason" in done.stderr


def test_there_is_no_comment_without_a_reason(quick: Deadlint) -> None:
    plant("a.py")
    assert quick("add-ignore").returncode == 2


def test_the_comments_are_comments() -> None:
    made = ignored('x = f"""\n{get()}\n""" + run("""#""")\n')
    comments = [
        token.string for token in tokenize.generate_tokens(io.StringIO(made).readline) if token.type == tokenize.COMMENT
    ]
    assert comments == [f"# deadlint: ignore[DL101, DL201] {WHY}"]
