"""Where reports go: standard output, a file in its place, and files beside it."""

from __future__ import annotations

import json
import os
import stat
import threading
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.lint.conftest import Deadlint
from tests.lint.test_cli import plant


def test_one_run_writes_several_reports(quick: Deadlint) -> None:
    plant("a.py")
    done = quick(
        "check", "--output-format=concise", "--output-format", "sarif=out/scan.sarif", "--output-format=junit=out/j.xml"
    )
    assert done.returncode == 1
    assert done.stdout.startswith(b"a.py:2:1: ZZ101")
    (run,) = json.loads(Path("out/scan.sarif").read_bytes())["runs"]
    assert [result["ruleId"] for result in run["results"]] == ["ZZ101"]
    assert ElementTree.parse("out/j.xml").getroot().get("failures") == "1"


def test_beside_files_the_terminal_shows_the_text(quick: Deadlint) -> None:
    plant("a.py")
    done = quick("check", "--output-format=json=findings.json")
    assert b"slowlib.fetch()" in done.stdout
    assert len(json.loads(Path("findings.json").read_bytes())["findings"]) == 1


def test_an_output_file_takes_the_place_of_standard_output(quick: Deadlint) -> None:
    plant("a.py")
    done = quick("check", "--output-format=concise", "--output-file=found.txt")
    assert (done.returncode, done.stdout, done.stderr) == (1, b"", b"")
    assert Path("found.txt").read_text().startswith("a.py:2:1: ZZ101")


def test_a_run_that_finds_nothing_writes_its_reports_too(quick: Deadlint) -> None:
    plant("a.py", "")
    Path("found.txt").write_text("what was found the last time\n")
    done = quick("check", "--output-file=found.txt", "--output-format=gitlab=quality.json")
    assert done.returncode == 0
    assert Path("found.txt").read_text() == "No findings in 1 file.\n"
    assert Path("quality.json").read_text() == "[]\n"


def test_a_dash_is_standard_output(quick: Deadlint) -> None:
    plant("a.py")
    assert quick("check", "--output-format=concise=-", "--output-file=-").stdout.startswith(b"a.py:2:1: ZZ101")


def test_a_diff_goes_to_the_output_file_and_the_other_reports_stay_reports(quick: Deadlint) -> None:
    plant("a.py")
    done = quick("check", "--diff", "--output-file=a.patch", "--output-format=json=left.json")
    assert (done.returncode, done.stdout) == (1, b"")
    assert Path("a.patch").read_text().startswith("--- a.py\n+++ a.py\n")
    assert json.loads(Path("left.json").read_bytes())["changes"] == [{"path": "a.py", "written": False}]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--output-format=xml"], "'xml' is no output format; one of text, concise"),
        (["--output-format=sarif="], "names no file; write sarif=FILE, or sarif for standard output"),
        (["--output-format=json", "--output-format=sarif"], "json and sarif would both go to standard output"),
        (["--output-format=json=a", "--output-format=sarif=./a"], "reports in json and in sarif would go to one file"),
        (["--output-file=a", "--output-format=json=a"], "reports in text and in json would go to one file"),
        (["--output-file", "a.py"], "a.py: is a Python file, which the text report would replace"),
    ],
)
def test_what_cannot_be_meant_is_said_before_anything_is_checked(
    quick: Deadlint, options: list[str], said: str
) -> None:
    path = plant("a.py")
    before = path.read_text()
    done = quick("check", *options)
    assert (done.returncode, done.stdout, path.read_text()) == (2, b"", before)
    assert said in done.stderr.decode()


def test_a_report_that_cannot_be_written_is_an_error(quick: Deadlint) -> None:
    plant("a.py")
    Path("taken").write_text("")
    done = quick("check", "--output-format=sarif=taken/out.sarif")
    assert done.returncode == 2
    assert b"error: taken/out.sarif: cannot be written: Not a directory" in done.stderr


def test_a_report_keeps_the_mode_and_the_link_of_what_it_replaces(quick: Deadlint) -> None:
    plant("a.py")
    Path("real.txt").write_text("old")
    Path("real.txt").chmod(0o640)
    Path("link.txt").symlink_to("real.txt")
    quick("check", "--output-file=link.txt")
    assert Path("link.txt").is_symlink()
    assert "ZZ101" in Path("real.txt").read_text()
    assert stat.S_IMODE(Path("real.txt").stat().st_mode) == 0o640
    assert sorted(os.listdir()) == [".deadlint_cache", "a.py", "link.txt", "real.txt"]


def test_a_report_goes_into_a_pipe(quick: Deadlint) -> None:
    plant("a.py")
    os.mkfifo("pipe")
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(Path("pipe").read_text()))
    reader.start()
    quick("check", "--output-format=concise=pipe")
    reader.join(timeout=10)
    assert read[0].startswith("a.py:2:1: ZZ101")


def test_the_text_of_standard_input_is_reported_into_files_too(quick: Deadlint) -> None:
    text = b"import slowlib\nslowlib.fetch()\n"
    done = quick("check", "-", "--stdin-filename=b.py", "--output-format=json=out.json", stdin=text)
    assert done.returncode == 1
    assert json.loads(Path("out.json").read_bytes())["findings"][0]["path"] == "b.py"
