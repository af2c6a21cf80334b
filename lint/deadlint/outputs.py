"""Where the reports of one run go: standard output, and any number of files beside it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

from deadlint.errors import UserError
from deadlint.model import NOTEBOOK
from deadlint.report import FORMATS

STANDARD_OUTPUT = "-"


@dataclass(frozen=True, slots=True)
class Output:
    """A report in one format; `file` is None for standard output."""

    format: str
    file: str | None = None


def outputs(given: Sequence[str], file: str | None) -> tuple[Output, ...]:
    """What `--output-format FORMAT[=FILE]`, any number of times, and `--output-file FILE` ask for.

    A FORMAT without a file is for standard output, `text` where none is given; `--output-file` takes it from there.
    Raises `UserError` where two reports would go to one place, or over a Python file.
    """
    asked = [_output(one) for one in given]
    shown = [one.format for one in asked if one.file is None]
    if len(shown) > 1:
        raise UserError(
            f"--output-format: {' and '.join(shown)} would both go to standard output; "
            f"give one of them a file, such as {shown[1]}=report.{shown[1]}"
        )
    main = Output(shown[0] if shown else "text", None if file == STANDARD_OUTPUT else file)
    every = (main, *(one for one in asked if one.file is not None))
    _check_files(every)
    return every


def _output(given: str) -> Output:
    name, named, file = given.partition("=")
    if name not in FORMATS:
        raise UserError(f"--output-format: {name!r} is no output format; one of {', '.join(FORMATS)}")
    if named and not file:
        raise UserError(f"--output-format: {given!r} names no file; write {name}=FILE, or {name} for standard output")
    return Output(name, None if file in ("", STANDARD_OUTPUT) else file)


def _check_files(every: Sequence[Output]) -> None:
    taken: dict[str, Output] = {}
    for one in every:
        if one.file is None:
            continue
        if one.file.endswith((".py", ".pyi", NOTEBOOK)) and os.path.exists(one.file):
            kind = "notebook" if one.file.endswith(NOTEBOOK) else "Python file"
            raise UserError(f"{one.file}: is a {kind}, which the {one.format} report would replace; name another")
        other = taken.setdefault(os.path.realpath(one.file), one)
        if other is not one:
            raise UserError(
                f"{one.file}: the reports in {other.format} and in {one.format} would go to one file; name another"
            )
