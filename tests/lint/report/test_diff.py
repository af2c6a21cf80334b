"""The diff of fixes is one that patch and git take, and that gives the very bytes of the fixed file."""

from __future__ import annotations

import io
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from deadlint.report import printer
from deadlint.result import Change, RunResult
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.lint.report.made_by_hand import shown


def diff_bytes(*changes: Change) -> bytes:
    """What a pipe gets."""
    raw = io.BytesIO()
    out = io.TextIOWrapper(raw, encoding="utf-8")
    printer("diff")(RunResult(changes=changes), out)
    out.flush()
    return raw.getvalue()


def applied(directory: Path, before: bytes, diff: bytes, command: list[str], name: str = "a.py") -> bytes:
    """The file after a tool applied the diff."""
    file = directory / name
    file.write_bytes(before)
    done = subprocess.run(command, input=diff, cwd=directory, capture_output=True, timeout=60, check=False)
    assert done.returncode == 0, (done.stdout + done.stderr, diff)
    return file.read_bytes()


APPLY = [
    pytest.param(["git", "apply", "-p0", "--whitespace=nowarn", "-"], id="git"),
    pytest.param(
        ["patch", "-p0", "--binary"],
        id="patch",
        marks=pytest.mark.skipif(not shutil.which("patch"), reason="no patch: apt-get install patch"),
    ),
]
TEXTS = [
    pytest.param("a = 1\nb = 2\n", "a = 1\nb = 3\n", id="plain"),
    pytest.param("a = 1\nb = 2", "a = 1\nb = 3", id="no newline at the end"),
    pytest.param("a = 1", "a = 1\n", id="a newline that is added at the end"),
    pytest.param("a = 1\r\nb = 2\r\n", "a = 1\r\nb = 3\r\n", id="CRLF"),
    pytest.param("a = 1\r\nb = 2", "import x\r\na = 1\r\nb = 2", id="CRLF and no newline at the end"),
    pytest.param("a = 1\n\x0cb = 2\u2028 # x\n", "a = 2\n\x0cb = 2\u2028 # x\n", id="what other tools take for lines"),
    pytest.param("a = '日本'\nb = 2\n", "a = '日本'\nb = 3\n", id="wide characters"),
    pytest.param("", "import x\n", id="an empty file"),
]


@pytest.mark.parametrize("command", APPLY)
@pytest.mark.parametrize(("before", "after"), TEXTS)
def test_the_diff_applies(tmp_path: Path, before: str, after: str, command: list[str]) -> None:
    diff = diff_bytes(Change("a.py", before, after))
    assert applied(tmp_path, before.encode(), diff, command) == after.encode()


@pytest.mark.parametrize("command", APPLY)
def test_a_file_in_another_encoding_is_patched_in_it(tmp_path: Path, command: list[str]) -> None:
    before, after = "# coding: latin-1\na = 'ü'\nb = 2\n", "# coding: latin-1\na = 'ü'\nb = 3\n"
    diff = diff_bytes(Change("a.py", before, after))
    assert applied(tmp_path, before.encode("latin-1"), diff, command) == after.encode("latin-1")


@pytest.mark.parametrize("name", ["a b.py", 'a"b.py', "a\\b.py", "a\nb.py", "a\tb.py", "日本.py"])
def test_names_that_need_quotes(tmp_path: Path, name: str) -> None:
    diff = diff_bytes(Change(name, "a = 1\n", "a = 2\n"))
    command = ["git", "apply", "-p0", "-"]
    assert applied(tmp_path, b"a = 1\n", diff, command, name) == b"a = 2\n"


@settings(deadline=None)
@given(
    st.lists(st.sampled_from(["a\n", "b\n", "c\r\n", "\r", "d", "\x0c\n", " "])),
    st.integers(0, 20),
    st.text("xy\n"),
)
def test_any_edit_can_be_read_back(parts: list[str], at: int, text: str) -> None:
    before = "".join(parts)
    after = before[:at] + text + before[at:]
    diff = diff_bytes(Change("a.py", before, after)).decode()
    assert patched(before, diff) == after


def patched(before: str, diff: str) -> str:
    """Apply a unified diff by the book."""
    source, out, at, previous = before.split("\n"), [], 0, ""
    source = [line + "\n" for line in source[:-1]] + ([source[-1]] if source[-1] else [])
    lines = iter(diff.split("\n")[:-1])
    for line in lines:
        match line[:1]:
            case "@":
                first, _, count = line.split()[1][1:].partition(",")
                start = int(first) - (count != "0")
                out += source[at:start]
                at = start
            case " ":
                out.append(source[at])
                at += 1
            case "-" if not line.startswith("---"):
                at += 1
            case "+" if not line.startswith("+++"):
                out.append(line[1:] + "\n")
            case "\\" if out:
                last = out[-1]
                # The mark belongs to the line above it: to what was added, unless that was one that went.
                if previous[:1] != "-":
                    out[-1] = last.removesuffix("\n")
        previous = line
    return "".join(out + source[at:])


def test_a_stream_without_bytes_gets_text() -> None:
    printed = shown(RunResult(changes=(Change("a.py", "a = 1\n", "a = 2\n"),)), "diff")
    assert printed == "--- a.py\n+++ a.py\n@@ -1 +1 @@\n-a = 1\n+a = 2\n"


def test_nothing_to_change_is_nothing_to_print() -> None:
    assert diff_bytes() == b""


@pytest.mark.parametrize("command", APPLY)
def test_the_diff_of_a_file_with_a_byte_order_mark_applies(tmp_path: Path, command: list[str]) -> None:
    before = b"\xef\xbb\xbfimport requests\r\n\r\nrequests.get('x')\r\n"
    (tmp_path / "a.py").write_bytes(before)
    check = [sys.executable, "-m", "deadlint", "check", "--isolated", "--no-cache", "--unsafe-fixes", "a.py"]
    diff = subprocess.run([*check, "--diff"], cwd=tmp_path, stdout=subprocess.PIPE, check=False).stdout
    by_diff = applied(tmp_path, before, diff, command)
    (tmp_path / "a.py").write_bytes(before)
    subprocess.run(check, cwd=tmp_path, stdout=subprocess.DEVNULL, check=True)
    assert by_diff == (tmp_path / "a.py").read_bytes() != before
