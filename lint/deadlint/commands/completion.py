"""`deadlint completion`: what makes a shell complete deadlint's commands, options, rules and files."""

from __future__ import annotations

import os

import click

from deadlint.errors import UserError


@click.command(short_help="Print what makes a shell complete commands, options, rules and files.")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]), required=False)
def completion(shell: str | None) -> None:
    """Print what SHELL is to read at its start; without SHELL, for the one that is in use.

    \b
    bash  echo 'eval "$(deadlint completion bash)"' >> ~/.bashrc
    zsh   echo 'eval "$(deadlint completion zsh)"' >> ~/.zshrc
    fish  deadlint completion fish > ~/.config/fish/completions/deadlint.fish
    """
    from deadlint.completion import SHELLS, script  # noqa: PLC0415 - loads more of click

    wanted = shell or os.path.basename(os.environ.get("SHELL", ""))
    if wanted not in SHELLS:
        raise UserError(f"no completion for {wanted or 'an unknown shell'}; name one of {', '.join(SHELLS)}")
    click.echo(script(wanted))
