"""The documentation of rules, for a reader at a terminal."""

from __future__ import annotations

import json
from typing import TextIO

from deadlint.errors import UserError
from deadlint.rule import Rule, all_rules
from deadlint.shape import nearest


def explain(wanted: str, out: TextIO) -> None:
    """Print the page of a rule. Raises `UserError` where no rule has that code or name."""
    text = page(_find(wanted))
    if not out.isatty():
        out.write(text)
        return
    from rich.console import Console  # noqa: PLC0415 - on a terminal only
    from rich.markdown import Markdown  # noqa: PLC0415

    console = Console(file=out)
    console.print(Markdown(text, hyperlinks=False), width=min(console.width, 100))


def page(rule: Rule) -> str:
    """The page of a rule, as Markdown."""
    return f"# {rule.code} {rule.name}\n\n{rule.documentation()}\n\nSince {rule.since}.\n"


def list_rules(out: TextIO, *, as_json: bool) -> None:
    """Print all rules: as a table, or as a JSON list with code, name, since and summary."""
    rules = all_rules()
    if as_json:
        records = [
            {"code": rule.code, "name": rule.name, "since": rule.since, "summary": rule.summary()} for rule in rules
        ]
        out.write(json.dumps(records, indent=2) + "\n")
        return
    width = max((len(rule.name) for rule in rules), default=0)
    for rule in rules:
        out.write(f"{rule.code}  {rule.name:{width}}  {rule.summary()}\n")


def _find(wanted: str) -> Rule:
    rules = all_rules()
    for rule in rules:
        if wanted.upper() == rule.code or wanted.lower() == rule.name:
            return rule
    words = [word for rule in rules for word in (rule.code, rule.name)]
    hint = nearest(wanted, words, otherwise="") or "`deadlint rules` lists them"
    raise UserError(f"no rule has the code or name {wanted!r}; {hint}")
