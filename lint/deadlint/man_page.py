"""The man page, made from the commands themselves: `python -m deadlint.man_page > docs/deadlint.1`.

`click-man` makes a page for each command, with the date of the day in it; this is one page, and the same on any day.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterable, Iterator

import click

from deadlint import __version__
from deadlint.cli import cli

_CODE = re.compile(r"`([^`]+)`")

_DESCRIPTION = (
    "`deadlint` finds the timeout and cancellation faults of Python data and geospatial pipelines, and repairs them:"
    " children that outlive their timeout, requests that nothing bounds, database statements that go on after their"
    " client is gone, limits that are longer than the one around them. `deadlint rules` lists what it finds,"
    " `deadlint rule DL101` explains it.\n\n"
    "Without a configuration and without options, `deadlint check` checks the Python files and notebooks below the"
    " working directory, with what Git ignores left out."
)

_STATUS = (
    ("0", "Nothing was found, or all of it was fixed."),
    ("1", "Findings are left, or a diff would change something."),
    ("2", "Something could not be checked, or an option or a configuration is wrong; the rest has been checked."),
    ("130", "Stopped by Ctrl-C."),
)
_FILES = (
    ("deadlint.toml, pyproject.toml", "The configuration, from the nearest directory upward of each checked file."),
    (".deadlint_cache", "What is known of unchanged files; at the root of the project. `deadlint clean` removes it."),
)
_ENVIRONMENT = (
    ("NO_COLOR, FORCE_COLOR", "Never, or always, colour the report for a reader."),
    ("COLUMNS", "How wide it may be where there is no terminal to ask."),
)
_EXAMPLES = (
    ("deadlint check --diff --unsafe-fixes", "What the fixes would change."),
    ("deadlint check --select DL2 --level strict src", "HTTP alone, and what depends on taste too."),
    ("deadlint check --output-format sarif=deadlint.sarif", "For a reader, and for code scanning."),
)


def man_page() -> str:
    """The page as roff."""
    return "\n".join(_page()) + "\n"


def _page() -> Iterator[str]:
    yield '.\\" Made by `python -m deadlint.man_page` from the commands; change it there.'
    yield f'.TH DEADLINT 1 "" "deadlint {__version__}" "User Commands"'
    yield ".SH NAME"
    yield "deadlint \\- find and repair timeout and cancellation faults in Python pipelines"
    yield ".SH SYNOPSIS"
    context = click.Context(cli, info_name="deadlint", help_option_names=["-h", "--help"])
    commands = list(_commands(cli, context))
    for command, inner in commands:
        usage = " ".join(command.collect_usage_pieces(inner))
        yield f".B {_roff(inner.command_path)}"
        yield f"{_roff(usage)}"
        yield ".br"
    yield ".SH DESCRIPTION"
    yield from _paragraphs(_DESCRIPTION)
    yield ".SH OPTIONS"
    yield from _options(context, cli.get_params(context))
    yield ".SH COMMANDS"
    for command, inner in commands:
        yield f".SS {_roff(inner.command_path)}"
        yield from _paragraphs(inspect.cleandoc(command.help or ""))
        yield from _options(inner, [one for one in command.params if isinstance(one, click.Option)])
    for title, entries in (("EXIT STATUS", _STATUS), ("FILES", _FILES), ("ENVIRONMENT", _ENVIRONMENT)):
        yield f".SH {title}"
        yield from _entries(entries)
    yield ".SH EXAMPLES"
    yield from _entries(_EXAMPLES)
    yield ".SH SEE ALSO"
    yield "\\fBruff\\fR(1), \\fBflake8\\fR(1), \\fBgit\\fR(1)"


def _commands(group: click.Group, context: click.Context) -> Iterator[tuple[click.Command, click.Context]]:
    """The commands of a group and of those in it, each with its context."""
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if command is None or command.hidden:
            continue
        inner = click.Context(command, info_name=name, parent=context)
        if isinstance(command, click.Group):
            yield from _commands(command, inner)
        else:
            yield command, inner


def _options(context: click.Context, parameters: Iterable[click.Parameter]) -> Iterator[str]:
    """Options with their help. `--help` is among those of the group alone: every command has it."""
    found = [parameter.get_help_record(context) for parameter in parameters]
    return _entries(record for record in found if record is not None)


def _entries(entries: Iterable[tuple[str, str]]) -> Iterator[str]:
    for term, text in entries:
        yield ".TP"
        yield f".B {_roff(term)}"
        yield _roff(text)


def _paragraphs(text: str) -> Iterator[str]:
    """Paragraphs as click reads them: one that begins with a line of `\\b` keeps its lines."""
    for paragraph in text.split("\n\n"):
        first, _, rest = paragraph.partition("\n")
        yield ".PP"
        if first.strip() == "\b":
            yield from (".nf", *map(_roff, rest.split("\n")), ".fi")
        else:
            yield _roff(" ".join(paragraph.split()))


def _roff(text: str) -> str:
    """A line of text, in which nothing is taken for a request or an escape; code in bold."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-")
    escaped = _CODE.sub(r"\\fB\1\\fR", escaped)
    return "\\&" + escaped if escaped.startswith((".", "'")) else escaped


if __name__ == "__main__":
    sys.stdout.write(man_page())
