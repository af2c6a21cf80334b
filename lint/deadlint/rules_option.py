"""Options of commands that take rules: comma lists, repeated as often as one likes, completed by shells."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


def rules_option(name: str, text: str) -> Callable[[Any], Any]:
    """The option `name` with `text` as its help; the command gets a tuple of selectors."""
    return click.option(
        name, multiple=True, metavar="RULES", callback=_listed, shell_complete=complete_rules, help=text
    )


def complete_rules(_: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """What a shell offers where rules are named."""
    from deadlint.completion import rules  # noqa: PLC0415 - for shells only

    return rules(incomplete, several=parameter.multiple)


def _listed(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(entry for value in values for entry in (part.strip() for part in value.split(",")) if entry)
