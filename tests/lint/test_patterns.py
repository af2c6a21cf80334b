"""Patterns answer as pathspec does, whichever short cut they take."""

from __future__ import annotations

import pathspec
import pytest
from deadlint.patterns import Patterns
from hypothesis import example, given
from hypothesis import strategies as st

_parts = st.sampled_from(["a", "b", "a.py", "*.py", "*", "**", "?", "[ab]", "build", "*.egg-info", "a*", "*a", "a b"])
_lines = st.builds(
    lambda negate, rooted, parts, directory, end: negate + rooted + "/".join(parts) + directory + end,
    st.sampled_from(["", "", "!"]),
    st.sampled_from(["", "", "/"]),
    st.lists(_parts, min_size=1, max_size=3),
    st.sampled_from(["", "", "/"]),
    st.sampled_from(["", "", " ", "\\ "]),
)
_paths = st.lists(st.sampled_from(["a", "b", "a.py", "b.pyi", "build", "x.egg-info", "a b"]), min_size=1, max_size=3)


@given(st.lists(_lines, max_size=4), _paths, st.booleans())
@example(["**/a/b"], ["x", "a", "b"], False)
@example(["build/ "], ["x", "build"], True)
@example(["*.py", "!a.py"], ["a.py"], False)
@example(["# a"], ["# a"], False)
@example(["a", "!a"], ["a", "b"], False)
def test_a_verdict_is_that_of_pathspec(lines: list[str], parts: list[str], directory: bool) -> None:
    """Where nothing above is ignored: what is below an ignored directory is never asked for."""
    exact = pathspec.GitIgnoreSpec.from_lines(lines)
    above = ("/".join(parts[:n]) + "/" for n in range(1, len(parts)))
    if any(exact.match_file(path) for path in above):
        return
    path = "/".join(parts)
    expected = exact.check_file(path + "/" if directory else path).include
    verdict = Patterns("/root", lines).verdict(f"/root/{path}", parts[-1], directory)
    # Where a directory above was let in again, pathspec lets in what is below; Git has no opinion on that.
    assert verdict == expected or (verdict is None and expected is False)


@pytest.mark.parametrize(
    ("path", "covered"),
    [
        ("/root/tests/unit/a.py", True),
        ("/root/src/tests/a.py", True),
        ("/root/src/test_a.py", True),
        ("/root/src/a.py", False),
        ("/tests/a.py", True),
    ],
)
def test_a_file_is_covered_with_a_directory_above_it(path: str, covered: bool) -> None:
    assert Patterns("/root", ["**/tests/**", "**/test_*.py"]).covers(path) is covered


def test_a_root_of_its_own_covers_what_is_below() -> None:
    assert Patterns("/", ["/etc/"]).covers("/etc/a.py")


def test_a_line_that_is_no_pattern_is_passed_over() -> None:
    patterns = Patterns("/root", ["!", "a\\", "x.py"])
    assert patterns.verdict("/root/x.py", "x.py", False) is True
