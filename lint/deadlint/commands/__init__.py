"""Commands that are loaded when they are asked for: start-up is a figure to hold."""

from __future__ import annotations

from importlib import import_module

import click

# The command is the function of the same name (`-` as `_`) in the module of that name.
LAZY: dict[str, str] = {  # by name, with the line that `deadlint --help` shows of it
    "add-ignore": "Write comments that suppress what is found.",
    "baseline": "Keep a list of findings that are known and not reported.",
    "migrate": "Thread one budget from an entry point to every blocking call that it reaches.",
    "new-rule": "Write the skeleton of a rule and its cases.",
    "server": "Serve an editor (Language Server Protocol).",
    "tree": "Show the limits of flows, jobs, DAGs, tasks and `main` as a tree.",
}


class Commands(click.Group):
    """The group of all commands. Help lists the lazy ones without loading them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All names, sorted."""
        return sorted({*super().list_commands(ctx), *LAZY})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name, loaded; None where there is none."""
        if cmd_name not in LAZY:
            return super().get_command(ctx, cmd_name)
        name = cmd_name.replace("-", "_")
        command = getattr(import_module(f"{__name__}.{name}"), name)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands."""
        rows = []
        for name in self.list_commands(ctx):
            command = None if name in LAZY else self.get_command(ctx, name)
            rows.append((name, command.get_short_help_str(90) if command else LAZY[name]))
        with formatter.section("Commands"):
            formatter.write_dl(rows)
