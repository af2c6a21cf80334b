"""deadlint as a plugin of flake8: the findings of its files under codes that begin with `DL`.

flake8 hands over one file after the other, in several processes; what bounds a call may stand in another file. So all
files of the run are checked at once where flake8 begins, and each is then answered from that.
"""

from __future__ import annotations

import argparse
import ast
import os
import re
from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import ClassVar

from deadlint import __version__
from deadlint.errors import UserError
from deadlint.model import Finding

_STANDARD_INPUT = "-"
_NOQA = re.compile(r"#\s*noqa\b", re.IGNORECASE)

Report = tuple[int, int, str, type]


class Plugin:
    """What flake8 makes for each file."""

    name = "deadlint"
    version = __version__
    _by_file: ClassVar[dict[str, list[Finding]] | None] = None  # None where flake8 reads standard input
    _noqa_counts: ClassVar[bool] = True

    @classmethod
    def parse_options(cls, options: argparse.Namespace) -> None:
        """Check all files of the run. Raises flake8's `ExecutionError` where a configuration is wrong."""
        cls._noqa_counts = not options.disable_noqa
        paths = tuple(options.filenames)
        cls._by_file = None if _STANDARD_INPUT in paths else _checked(paths or (".",))

    def __init__(self, tree: ast.AST, filename: str, lines: Sequence[str]) -> None:
        """`tree` says to flake8 that files are to be handed over whole; deadlint reads them itself."""
        self._filename = filename
        self._lines = lines

    def run(self) -> Iterator[Report]:
        """Line, column from 0, text and plugin of each finding, as flake8 wants them."""
        if self._by_file is None:
            found = _checked_text("".join(self._lines), self._filename)
        else:
            found = self._by_file.get(os.path.abspath(self._filename), [])
        for finding in found:
            if not self._is_suppressed(finding):
                yield finding.span.line, finding.span.column - 1, f"{finding.code} {finding.message}", type(self)

    def _is_suppressed(self, finding: Finding) -> bool:
        """Whether a comment silences a finding.

        flake8 looks for `noqa` as well, but in one physical line; here any line of the statement counts.
        """
        by = finding.suppressed
        return by is not None and (self._noqa_counts or _NOQA.match(by.text) is None)


def _checked(paths: tuple[str, ...]) -> dict[str, list[Finding]]:
    """The findings below `paths` by absolute path."""
    from deadlint.run import Request, run  # noqa: PLC0415 - flake8 loads its plugins to say their versions too

    found: dict[str, list[Finding]] = {}
    try:
        for finding in run(Request(paths)).findings:
            found.setdefault(os.path.abspath(finding.path), []).append(finding)
    except UserError as error:
        raise _refusal(error) from error
    return found


def _checked_text(text: str, filename: str) -> list[Finding]:
    from deadlint.run import Request, run_text  # noqa: PLC0415 - see `_checked`

    try:
        result = run_text(text.encode(), None if filename == "stdin" else filename, Request(force_exclude=True))
    except UserError as error:
        raise _refusal(error) from error
    return list(result.findings)


def _refusal(error: UserError) -> Exception:
    """The error that flake8 prints without a traceback."""
    made = import_module("flake8.exceptions").ExecutionError(f"deadlint: {error}")
    assert isinstance(made, Exception)
    return made
