"""What SARIF says of the rules: their documentation, from the docstrings that all other help comes from."""

from __future__ import annotations

from collections.abc import Iterable

from deadlint.model import Finding
from deadlint.rule import Rule, all_rules

Json = dict[str, object]


def descriptors(findings: Iterable[Finding]) -> list[Json]:
    """A descriptor for each installed rule, and for what was found without one, such as a syntax error."""
    known: dict[str, Json] = {rule.code: _of_rule(rule) for rule in all_rules()}
    for finding in findings:
        if finding.code not in known:
            known[finding.code] = {"id": finding.code, "name": finding.name}
    return [known[code] for code in sorted(known)]


def _of_rule(rule: Rule) -> Json:
    text = rule.documentation()
    return {
        "id": rule.code,
        "name": rule.name,
        "shortDescription": {"text": rule.summary()},
        "fullDescription": {"text": _first_paragraph(text)},
        "help": {"text": text, "markdown": text},
        "defaultConfiguration": {"level": "error"},
        "properties": {"tags": ["timeouts", "reliability"], "since": rule.since},
    }


def _first_paragraph(text: str) -> str:
    return " ".join(text.partition("\n\n")[0].split())
