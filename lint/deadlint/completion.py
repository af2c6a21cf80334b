"""Completion in shells: the scripts that click makes, and what may stand where a rule is named."""

from __future__ import annotations

from click.shell_completion import CompletionItem, get_completion_class

from deadlint.errors import UserError
from deadlint.rule import all_rules

SHELLS = ("bash", "zsh", "fish")
VARIABLE = "_DEADLINT_COMPLETE"  # as click names it after the command


def script(shell: str) -> str:
    """What the shell is to read once in each session."""
    from deadlint.cli import cli  # noqa: PLC0415 - which imports this module in turn

    found = get_completion_class(shell)
    assert found is not None, f"click knows {shell}"
    return found(cli, {}, "deadlint", VARIABLE).source()


def rules(incomplete: str, *, several: bool) -> list[CompletionItem]:
    """The rules whose code or name begins so; with `several`, of the last entry of a comma list."""
    before, comma, last = incomplete.rpartition(",") if several else ("", "", incomplete)
    try:
        known = all_rules()
    except UserError:
        return []
    wanted = [rule.name if last[:1].islower() else rule.code for rule in known]
    texts = zip(wanted, known, strict=True)
    return [
        CompletionItem(f"{before}{comma}{text}", help=rule.summary()) for text, rule in texts if text.startswith(last)
    ]
