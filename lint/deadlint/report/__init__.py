"""Printers: each turns a `RunResult` into one output format. Each is imported only when it is asked for."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Protocol, TextIO, cast

from deadlint.errors import UserError

if TYPE_CHECKING:
    from deadlint.result import RunResult

# Format names as the command line has them, and the module of each printer.
_MODULES = {
    "text": "text",
    "concise": "concise",
    "json": "as_json",
    "diff": "diff",
    "sarif": "sarif",
    "github": "github",
    "gitlab": "gitlab",
    "azure": "azure",
    "junit": "junit",
    "rdjson": "rdjson",
}
FORMATS = tuple(name for name in _MODULES if name != "diff")  # what `--output-format` takes


@dataclass(frozen=True, slots=True)
class Options:
    """What the user asked of a report, beyond its format."""

    quiet: bool = False  # the findings, and nothing around them
    statistics: bool = False  # counts for each rule, and where the time went


PLAIN = Options()


class Printer(Protocol):
    """Write `result` to `out`; the whole of it, newline at the end included."""

    def __call__(self, result: RunResult, out: TextIO, options: Options = PLAIN) -> None: ...


def printer(format_name: str) -> Printer:
    """The printer of a format. Raises `UserError` for a name that is none."""
    module = _MODULES.get(format_name)
    if module is None:
        raise UserError(f"no output format {format_name!r}; one of {', '.join(FORMATS)}")
    print_report = cast(Printer, import_module(f"deadlint.report.{module}").print_report)

    def place_and_print(result: RunResult, out: TextIO, options: Options = PLAIN) -> None:
        print_report(_placed(result, format_name), out, options)

    return place_and_print


def _placed(result: RunResult, format_name: str) -> RunResult:
    """The result with the places in notebooks as the format can say them; JSON and diffs do so themselves."""
    if format_name in ("json", "diff") or not result.in_notebooks:
        return result
    from deadlint.report.notebooks import by_cell, by_file  # noqa: PLC0415 - only where there are any

    return by_cell(result) if format_name in ("text", "concise") else by_file(result)
