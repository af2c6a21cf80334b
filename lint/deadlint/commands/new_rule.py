"""`deadlint new-rule`: the skeleton of a rule and of its cases, in the package that one stands in."""

from __future__ import annotations

import click


@click.command("new-rule", short_help="Write the skeleton of a rule and its cases.")
@click.argument("code")
@click.argument("name")
@click.option(
    "--package", type=click.Path(), metavar="DIR", help="The package of the rules [the one in pyproject.toml]."
)
@click.option("--cases", type=click.Path(), metavar="DIR", help="Where its cases go, in a folder CODE [tests/cases].")
def new_rule(code: str, name: str, package: str | None, cases: str | None) -> None:
    """Write the skeleton of the rule CODE (such as ACM102) with the kebab-case NAME, and cases that pass as they are.

    Without --package, the nearest pyproject.toml upward says under "deadlint.rules" which package holds the rules.
    """
    from deadlint.skeleton import write_rule  # noqa: PLC0415 - loads the rules

    for path in write_rule(code, name, package, cases):
        click.echo(f"Wrote {path}")
