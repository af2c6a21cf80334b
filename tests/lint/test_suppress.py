"""Suppression: which comments silence which findings, and what is said of those that silence none."""

from __future__ import annotations

import ast

import pytest
from deadlint.fix import fix_file
from deadlint.model import Finding, Safety, Suppression
from deadlint.source import SourceFile
from deadlint.suppress import suppress
from hypothesis import given
from hypothesis import strategies as st

KNOWN = (
    ("DL001", "syntax-error"),
    ("DL002", "unused-suppression"),
    ("DL101", "subprocess-timeout-leaves-tree"),
    ("DL201", "request-without-timeout"),
    ("DL202", "request-timeout-not-total"),
)
FOUND_BY = {"get": KNOWN[3], "run": KNOWN[2], "put": KNOWN[4]}


def findings_of(source: SourceFile) -> list[Finding]:
    """A finding for each call of `get`, `run` or `put`: what the rules would give."""
    found = []
    for node in ast.walk(ast.parse(source.text)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in FOUND_BY:
            code, name = FOUND_BY[node.func.id]
            found.append(Finding(code, name, "a.py", source.span(*source.extent(node)), "message", "remedy"))
    return found


def judge(text: str, active: tuple[tuple[str, str], ...] = KNOWN) -> list[Finding]:
    source = SourceFile("a.py", text)
    return suppress(source, findings_of(source), KNOWN, active)


def silent(text: str) -> bool:
    """Whether everything found is suppressed, DL002 included."""
    found = judge(text)
    assert found, "the test would hold for an empty list as well"
    return all(finding.suppressed for finding in found)


def unused(text: str, active: tuple[tuple[str, str], ...] = KNOWN) -> list[str]:
    return [finding.message for finding in judge(text, active) if finding.code == "DL002"]


def cleaned(text: str) -> str:
    """The text after the fixes of DL002, applied until nothing is left to fix."""

    def check(source: SourceFile) -> list[Finding]:
        return suppress(source, findings_of(source), KNOWN, KNOWN)

    result = fix_file(SourceFile("a.py", text), check, {Safety.SAFE})
    return result.source.text


@pytest.mark.parametrize(
    "text",
    [
        "get()  # noqa: DL201\n",
        "get()  # noqa:DL201\n",
        "get()  #noqa : DL201\n",
        "get()  # NOQA: dl201\n",
        "get()  # noqa: DL2\n",
        "get()  # noqa: E501, DL201\n",
        "get()  # noqa: DL201,E501\n",
        "get()  # noqa: E501 DL201 the gateway cuts\n",
        "get()  # noqa: request-without-timeout\n",
        "get()  # noqa\n",
        "get()  # noqa the gateway cuts\n",
        "get()  # type: ignore  # noqa: DL201\n",
        "get()  # noqa: E501  # deadlint: ignore[DL201] the gateway cuts\n",
        "get()  # deadlint: ignore[DL201]\n",
        "get(run())  # deadlint:ignore[ DL101 , DL201 ]\n",
        "get()  # deadlint: ignore[request-without-timeout] the gateway cuts\n",
        "get()  # deadlint: ignore\n",
        "get(\n    1,  # noqa: DL201\n)\n",
        "get(\n    1,\n)  # noqa: DL201\n",
        "x = [  # noqa: DL201\n    get(),\n]\n",
        "x = (\n    1,\n    get(),\n    # noqa: DL201\n)\n",
        'get("""\ntext\n""")  # noqa: DL201\n',
        "a = 1; get(); b = (  # noqa: DL201\n)\n",
        'a = """\n"""; b = get("""\n""")  # noqa: DL201\n',
        "if 1: get(\n)  # noqa: DL201\n",
        "with get(  # noqa: DL201\n) as x:\n    pass\n",
        "with get(\n) as x:  # noqa: DL201\n    pass\n",
        "@get()\n@get(  # noqa: DL201\n)\ndef f(\n    a,\n):\n    pass\n",
        "@get()\nclass A(  # noqa: DL201\n    B\n): x = 1\n",
        "match get(  # noqa: DL201\n):\n    case 1:\n        pass\n",
        "match 1:\n    case _ if get():  # noqa: DL201\n        pass\n",
        "try:\n    pass\nexcept get():  # noqa: DL201\n    get()  # noqa: DL201\nelse:\n    get()  # noqa\n",
        "class A:\n\tdef f(self):\n\t\treturn get()  # noqa: DL201\n",
        "def f():\r\n    get(\r\n    )  # noqa: DL201\r\n",
        "def f():\r    get(\r    )  # noqa: DL201\r",
        "\x0cx = 1\n\x0c\nget()  # noqa: DL201\n",
        "é = '…'; get('é')  # noqa: DL201\n",
        "# deadlint: ignore-file\nget()\nrun()\n",
        "get()\n\n\n# deadlint: ignore-file[DL201] generated\n",
        "'''text'''\n# deadlint: ignore-file[DL201, subprocess-timeout-leaves-tree]\nget()\nrun()\n",
        "get()  # noqa: DL201",
    ],
)  # fmt: skip
def test_it_is_suppressed(text: str) -> None:
    assert silent(text)


@pytest.mark.parametrize(
    "text",
    [
        "get()  # noqa: DL202\nput()  # noqa: DL202\n",
        "get()  # noqa: E501\n",
        "get()  # noqa: because\n",
        "get()  # flake8: noqa\n",
        "get()  # ruff: noqa\n",
        "get()  # noqa-file\n",
        "# noqa: DL201\nget()\n",
        "get()\n# noqa: DL201\n",
        "get('# noqa: DL201')\n",
        'get("""\n# noqa: DL201\n""")\n',
        '"""# deadlint: ignore-file"""\nget()\n',
        "x = 1  # noqa: DL201\nget()\n",
        "with get() as x:\n    # noqa: DL201\n    pass\n",
        "with get() as x:\n    pass  # noqa: DL201\n",
        "@get()\ndef f():\n    return 1  # noqa: DL201\n",
        "if get():\n    pass\nelse:  # noqa: DL201\n    pass\n",
        "get()  # deadlint: ignore-file[DL202]\n",
        "get()  # deadlint: ignore[]\n",
        "get()  # deadlint: ignroe[DL201]\n",
    ],
)
def test_it_is_not_suppressed(text: str) -> None:
    assert [finding.code for finding in judge(text) if not finding.suppressed and finding.code != "DL002"] == ["DL201"]


def test_what_suppresses_is_kept_with_the_finding() -> None:
    (finding,) = judge("x = 1\nget()  # deadlint: ignore[DL201]: the gateway cuts, see #12\n")
    text = "# deadlint: ignore[DL201]: the gateway cuts, see #12"
    assert finding.suppressed == Suppression(2, text, "the gateway cuts, see #12")
    (finding,) = judge("get()  # noqa: DL201 - the gateway cuts  # type: ignore\n")
    assert finding.suppressed == Suppression(1, "# noqa: DL201 - the gateway cuts", "the gateway cuts")


def test_findings_without_comments_are_returned_as_they_are() -> None:
    assert [finding.suppressed for finding in judge("get()\nrun()\n")] == [None, None]


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("x = 1  # noqa: DL201\n", "x = 1\n"),
        ("x = 1  # noqa: DL201 the gateway cuts\n", "x = 1\n"),
        ("x = 1  # noqa: DL201, DL202\n", "x = 1\n"),
        ("x = 1  # noqa: DL201, E501\n", "x = 1  # noqa: E501\n"),
        ("x = 1  # noqa: E501, DL201\n", "x = 1  # noqa: E501\n"),
        ("x = 1  # noqa: E501,DL201,F401 why\n", "x = 1  # noqa: E501,F401 why\n"),
        ("get()  # noqa: DL201, DL202\n", "get()  # noqa: DL201\n"),
        ("get()  # noqa: DL202, DL201\n", "get()  # noqa: DL201\n"),
        ("get()  # deadlint: ignore[DL202, DL201] why\n", "get()  # deadlint: ignore[DL201] why\n"),
        ("x = 1  # deadlint: ignore[DL201] why\n", "x = 1\n"),
        ("x = 1  # deadlint: ignore\n", "x = 1\n"),
        ("x = 1  # deadlint: ignore[DL999]\n", "x = 1\n"),
        ("x = 1  # type: ignore  # noqa: DL201\n", "x = 1  # type: ignore\n"),
        ("x = 1  # noqa: DL201  # type: ignore\n", "x = 1  # type: ignore\n"),
        ("x = 1  # deadlint: ignore[DL201] why  # noqa: E501\n", "x = 1  # noqa: E501\n"),
        ("def f():\n    # noqa: DL201\n    x = 1\n", "def f():\n    x = 1\n"),
        ("x = 1\r\n\t# noqa: DL201\r\ny = 1\r\n", "x = 1\r\ny = 1\r\n"),
        ("# deadlint: ignore-file[DL201]\nx = 1\n", "x = 1\n"),
        ("# deadlint: ignore-file[DL201, DL101]\nrun()\n", "# deadlint: ignore-file[DL101]\nrun()\n"),
        ("x = 1  # noqa: DL201", "x = 1"),
        ("x = (\n    1,  # noqa: DL201\n)\n", "x = (\n    1,\n)\n"),
        ("x = 'é'  # noqa: DL201 …\n", "x = 'é'\n"),
    ],
)
def test_a_comment_without_effect_is_reported_and_removed(text: str, after: str) -> None:
    assert unused(text)
    assert cleaned(text) == after
    assert not unused(after)


@pytest.mark.parametrize(
    "text",
    [
        "x = 1  # noqa\n",
        "x = 1  # NOQA because\n",
        "x = 1  # noqa: E501\n",
        "x = 1  # noqa: DL2001x\n",
        "x = 1  # noqa: DLX1\n",
        "x = 1  # noqa: DL002\n",
        "x = '# noqa: DL201'\n",
        "x = '''\n# deadlint: ignore[DL201]\n'''\n",
        "# deadlint: ignore-file\nx = 1\n",
        "# deadlint is a linter\n",
        "x = 1  # noqa: DL201, DL002\n",
    ],
)
def test_it_is_not_reported_as_unused(text: str) -> None:
    assert not [message for message in unused(text) if "DL002" not in message]


def test_only_codes_that_were_checked_can_be_unused() -> None:
    text = "x = 1  # noqa: DL201\ny = 1  # deadlint: ignore[DL101]\n"
    assert unused(text, active=(KNOWN[1], KNOWN[2])) == ["`# deadlint: ignore[DL101]` suppresses nothing"]
    assert not unused(text, active=KNOWN[2:])


def test_the_report_points_at_the_part_that_is_unused() -> None:
    (finding,) = [f for f in judge("get()  # noqa: DL201, DL202\n") if f.code == "DL002"]
    assert (finding.span.column, finding.span.end_column) == (23, 28)
    assert finding.message == "`# noqa: DL201, DL202` suppresses nothing: DL202 is not found here"
    assert finding.remedy == "remove DL202 from the list"


def test_a_name_of_no_rule_is_said() -> None:
    assert unused("get()  # deadlint: ignore[DL201, request-timeout]\n") == [
        "request-timeout in `# deadlint: ignore[DL201, request-timeout]` is the code or name of no rule"
    ]


def test_a_directive_that_is_not_understood_is_said() -> None:
    assert unused("get()  # deadlint: ignroe[DL201]\n") == [
        "`# deadlint: ignroe[DL201]` is not understood, so it suppresses nothing"
    ]


def test_an_unused_comment_can_be_kept() -> None:
    (finding,) = [f for f in judge("x = 1  # noqa: DL201, DL002 until the move\n") if f.code == "DL002"]
    assert finding.suppressed is not None


def test_in_a_file_that_does_not_parse_no_comment_is_called_unused() -> None:
    source = SourceFile("a.py", "x = (  # noqa: DL201\n")
    error = Finding("DL001", "syntax-error", "a.py", source.span(0, 1), "message", "remedy")
    assert suppress(source, [error], KNOWN, KNOWN) == [error]


def test_a_file_that_does_not_parse_can_be_suppressed() -> None:
    source = SourceFile("a.py", "# deadlint: ignore-file\nprint 'x'\n")
    error = Finding("DL001", "syntax-error", "a.py", source.span(24, 25), "message", "remedy")
    (finding,) = suppress(source, [error], KNOWN, KNOWN)
    assert finding.suppressed is not None


_pieces = st.sampled_from(
    ["get()", "x = 1", "\n", "\r\n", "  ", "# noqa", ": ", "DL201", ", ", "E501", "# deadlint: ignore", "[",
     "]", "-file", '"""', "'", "#", " why", "(\n", ")", "if 1:", "\n    ", "\\\n", "\x0c", "é",
     "request-without-timeout"]
)  # fmt: skip


@given(st.lists(_pieces, max_size=14).map("".join))
def test_removing_comments_changes_no_code_and_ends(text: str) -> None:
    try:
        before = ast.dump(ast.parse(text))
    except (SyntaxError, ValueError):
        suppress(SourceFile("a.py", text), [], KNOWN, KNOWN)
        return
    after = cleaned(text)
    assert ast.dump(ast.parse(after)) == before
    assert not [f for f in judge(after) if f.code == "DL002" and f.fix and not f.suppressed]
