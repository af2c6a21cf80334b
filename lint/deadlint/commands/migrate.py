"""`deadlint migrate`: one budget from an entry point down to every blocking call that it reaches."""

from __future__ import annotations

import os
import sys
from math import isfinite
from typing import TYPE_CHECKING

import click

from deadlint.errors import UserError
from deadlint.result import ExitStatus

if TYPE_CHECKING:
    from deadlint.migrate.migration import Migration


@click.command()
@click.argument("paths", nargs=-1, type=click.Path(readable=False))
@click.option("--entry", required=True, metavar="MODULE:FUNCTION", help="Where the budget is made: `pkg.flows:build`.")
@click.option(
    "--deadline", type=click.FloatRange(min=0, min_open=True), metavar="SECONDS",
    help="How long it may take [the limit that its scheduler has for it].",
)
@click.option(
    "--reserve", type=click.FloatRange(min=0), metavar="SECONDS",
    help="What of that is kept for finishing and clean-up [a tenth].",
)
@click.option("--ambient", is_flag=True, help="Use the ambient budget where no parameter can be added.")
@click.option("--exported", is_flag=True, help="Give exported functions an optional parameter too.")
@click.option("--plan", is_flag=True, help="Print the tree of changes, and what is left (the default).")
@click.option("--diff", is_flag=True, help="Print the changes as a diff.")
@click.option("--write", is_flag=True, help="Change the files.")
@click.option("--allow-dirty", is_flag=True, help="Write though git has changes that are not committed.")
@click.option("--config", type=click.Path(), metavar="FILE", help="This configuration for all files.")
@click.option("--isolated", is_flag=True, help="No configuration at all.")
@click.option("--debug", is_flag=True, help="Tracebacks for faults of deadlint itself.")
def migrate(
    paths: tuple[str, ...],
    entry: str,
    deadline: float | None,
    reserve: float | None,
    ambient: bool,
    exported: bool,
    plan: bool,
    diff: bool,
    write: bool,
    allow_dirty: bool,
    config: str | None,
    isolated: bool,
    debug: bool,
) -> int:
    """Thread one budget from MODULE:FUNCTION to every blocking call that it reaches in PATHS.

    Without --write nothing is changed. Exit status: 0, with --diff alone 1 where something would change; 2 error.
    """
    from deadlint.migrate.migration import Wanted  # noqa: PLC0415 - start-up is a figure to hold
    from deadlint.migrate.opening import Order  # noqa: PLC0415
    from deadlint.migrate.run import planned  # noqa: PLC0415

    for option, seconds in (("--deadline", deadline), ("--reserve", reserve)):
        if seconds is not None and not isfinite(seconds):
            raise UserError(f"{option} {seconds:g}: is no number of seconds; give one that ends")
    wanted = Wanted(entry, Order(deadline, reserve), ambient, exported)
    migration = planned(wanted, paths or (os.curdir,), config=config, isolated=isolated)
    if plan or not (diff or write):
        from deadlint.migrate.tree import print_plan  # noqa: PLC0415

        print_plan(migration, sys.stdout)
    if diff:
        _print_diff(migration)
    if write:
        from deadlint.migrate.written import write as write_all  # noqa: PLC0415

        click.echo(write_all(migration, allow_dirty=allow_dirty), err=True)
    only_shown = diff and not write and bool(migration.changes)
    return ExitStatus.FINDINGS if only_shown else ExitStatus.CLEAN


def _print_diff(migration: Migration) -> None:
    from deadlint.migrate.tree import shown_changes  # noqa: PLC0415 - see `migrate`
    from deadlint.report.diff import print_report  # noqa: PLC0415
    from deadlint.result import RunResult  # noqa: PLC0415

    print_report(RunResult(changes=shown_changes(migration)), sys.stdout)
