"""Commands that are loaded when they are asked for: start-up is a figure to hold."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

# The command is the function of the same name (`-` as `_`) in the module of that name.
LAZY: dict[str, str] = {  # by name, with the line that `deadlint --help` shows of it
    "add-ignore": "Write comments that suppress what is found.",
    "baseline": "Keep a list of findings that are known and not reported.",
    "completion": "Print what makes a shell complete commands, options, rules and files.",
    "migrate": "Thread one budget from an entry point to every blocking call that it reaches.",
    "new-rule": "Write the skeleton of a rule and its cases.",
    "server": "Serve an editor (Language Server Protocol).",
    "tree": "Show the limits of flows, jobs, DAGs, tasks and `main` as a tree.",
}


def with_debug(command: click.Command) -> click.Command:
    """The command, which takes `--debug` as all of them do, also below it; `cli` looks for it among the arguments."""
    if not any(parameter.name == "debug" for parameter in command.params):
        option = click.Option(["--debug"], is_flag=True, expose_value=False, help="Tracebacks for what goes wrong.")
        command.params.append(option)
    if isinstance(command, click.Group):
        for one in command.commands.values():
            with_debug(one)
    return command


class Commands(click.Group):
    """The group of all commands. Help lists the lazy ones without loading them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All names, sorted."""
        return sorted({*super().list_commands(ctx), *LAZY})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name, loaded; None where there is none."""
        if cmd_name not in LAZY:
            command = super().get_command(ctx, cmd_name)
        else:
            name = cmd_name.replace("-", "_")
            command = getattr(import_module(f"{__name__}.{name}"), name)
            assert isinstance(command, click.Command)
        return command and with_debug(command)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """What may stand where `incomplete` does: commands, without loading the lazy ones, and options."""
        from click.shell_completion import CompletionItem  # noqa: PLC0415 - for shells only

        found = []
        for name in self.list_commands(ctx):
            if name.startswith(incomplete):
                command = None if name in LAZY else self.get_command(ctx, name)
                found.append(CompletionItem(name, help=command.get_short_help_str(90) if command else LAZY[name]))
        return [*found, *click.Command.shell_complete(self, ctx, incomplete)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands."""
        rows = []
        for name in self.list_commands(ctx):
            command = None if name in LAZY else self.get_command(ctx, name)
            rows.append((name, command.get_short_help_str(90) if command else LAZY[name]))
        with formatter.section("Commands"):
            formatter.write_dl(rows)
