"""`deadlint tree`: the limits of a program as a tree."""

from __future__ import annotations

import io
import sys
from typing import TextIO

import click

FORMATS = ("text", "json", "mermaid", "html")


@click.command()
@click.argument("paths", nargs=-1, type=click.Path(readable=False))
@click.option("--entry", metavar="MODULE:FUNCTION", help="Only this function: pkg.module:function or path.py:function.")
@click.option("--depth", type=click.IntRange(min=0), metavar="N", help="No more than N levels below an entry.")
@click.option("--output-format", type=click.Choice(FORMATS), default="text", help="How to show it.")
@click.option(
    "--source-url",
    metavar="URL",
    default="file",
    help="Where places lead in html: file, vscode, or a URL with {path}, {relative}, {line}, {column}.",
)
@click.option("--config", type=click.Path(), metavar="FILE", help="This configuration for all files.")
@click.option("--isolated", is_flag=True, help="No configuration at all.")
@click.option("--debug", is_flag=True, help="Tracebacks for faults of deadlint itself.")
def tree(
    paths: tuple[str, ...],
    entry: str | None,
    depth: int | None,
    output_format: str,
    source_url: str,
    config: str | None,
    isolated: bool,
    debug: bool,
) -> int:
    """Show the limits of flows, jobs, DAGs, tasks and commands as a tree, with the worst case of each branch.

    Exit status: 0 shown, 2 error.
    """
    from deadlint.config import Configurations  # noqa: PLC0415 - `deadlint --help` needs none of it
    from deadlint.memory import Memory  # noqa: PLC0415
    from deadlint.tree.grow import tree_of  # noqa: PLC0415
    from deadlint.tree.links import template_of  # noqa: PLC0415

    template = template_of(source_url)
    known = Memory(None).known_rules
    grown = tree_of(paths or (".",), entry, Configurations(known, file=config, isolated=isolated))
    for problem in grown.problems:
        click.echo(f"warning: {problem}", err=True)
    if not grown.roots:
        click.echo("no flow, job, DAG, task, command or main in sight; name a function with --entry", err=True)
    if output_format in ("html", "mermaid"):
        _as_utf8(sys.stdout)
    match output_format:
        case "json":
            from deadlint.tree.as_json import print_json  # noqa: PLC0415 - each format is loaded where it is asked for

            print_json(grown, sys.stdout, depth)
        case "mermaid":
            from deadlint.tree.as_mermaid import print_mermaid  # noqa: PLC0415

            print_mermaid(grown, sys.stdout, depth)
        case "html":
            from deadlint.tree.as_html import print_html  # noqa: PLC0415

            print_html(grown, sys.stdout, depth, template)
        case _:
            from deadlint.tree.as_text import print_tree  # noqa: PLC0415

            print_tree(grown, sys.stdout, depth)
    return 0


def _as_utf8(out: TextIO) -> None:
    """Write as UTF-8, as such files are read, whatever the terminal has."""
    if isinstance(out, io.TextIOWrapper):
        out.reconfigure(encoding="utf-8")
