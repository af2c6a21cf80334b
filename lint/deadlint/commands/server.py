"""`deadlint server`: the language server on standard input and output."""

from __future__ import annotations

import sys

import click

from deadlint.errors import UserError


@click.command()
@click.option("--stdio", is_flag=True, help="The only way to talk to it; here because editors say so.")
@click.option("--debug", is_flag=True, help="Log what is said to standard error.")
def server(stdio: bool, debug: bool) -> None:
    """Serve an editor: findings as you type, fixes, hovers and hints (Language Server Protocol)."""
    import logging  # noqa: PLC0415 - only here

    try:
        from deadlint.server.app import make_server  # noqa: PLC0415 - an extra, and slow to load
    except ModuleNotFoundError as error:
        if error.name not in ("pygls", "lsprotocol"):
            raise
        raise UserError("`deadlint server` needs pygls; install it with `pip install 'deadlint[server]'`") from error
    if sys.stdin.isatty():
        raise UserError("an editor starts `deadlint server` and talks to it; docs/editors says how")
    logging.basicConfig(stream=sys.stderr, level=logging.DEBUG if debug else logging.CRITICAL)
    make_server().start_io()
