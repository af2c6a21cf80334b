"""The pages of the rules, made from their docstrings: `python -m deadlint.rule_pages docs/rules`.

What a page says of levels and fixes is not claimed but observed: what the rule does on its cases and its example.
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from deadlint.model import Finding, Level, Safety
from deadlint.rule import HEADINGS, Rule, all_rules

NOTE = "<!-- Made by `python -m deadlint.rule_pages` from the docstring of the rule; change it there. -->"
_HEADING = re.compile(r"^## (.+)$", re.MULTILINE)
_PYTHON = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CASES = "fixtures/cases"

LEVELS = {
    frozenset({Level.DEFAULT}): "default",
    frozenset({Level.STRICT}): "strict (`--level strict`)",
    frozenset({Level.DEFAULT, Level.STRICT}): "default, in some cases strict",
}
FIXES = {
    Safety.SAFE: "safe (`--fix`)",
    Safety.UNSAFE: "unsafe (`--unsafe-fixes`)",
    Safety.DISPLAY: "suggestion (not applied)",
}


@dataclass(slots=True)
class Observed:
    """What a rule was seen to report."""

    levels: set[Level] = field(default_factory=set)
    fixes: set[Safety] = field(default_factory=set)

    @property
    def level(self) -> str:
        """For a reader."""
        return LEVELS.get(frozenset(self.levels), "default")

    @property
    def fix(self) -> str:
        """For a reader, the safest first."""
        return ", ".join(text for safety, text in FIXES.items() if safety in self.fixes) or "none"


def sections(rule: Rule) -> dict[str, str]:
    """The text under each heading of a rule's docstring, in its order."""
    parts = _HEADING.split(rule.documentation())
    return {heading: text.strip() for heading, text in zip(parts[1::2], parts[2::2], strict=True)}


def introduction(rule: Rule) -> str:
    """What stands before the first heading."""
    return _HEADING.split(rule.documentation())[0].strip()


def code_under(rule: Rule, heading: str) -> str:
    """The first block of Python under a heading. Raises `ValueError` where there is none."""
    found = _PYTHON.search(sections(rule).get(heading, ""))
    if found is None:
        raise ValueError(f"{rule.code}: no block of Python under {heading!r}")
    return found[1]


def observe(findings: Iterable[Finding]) -> dict[str, Observed]:
    """What was reported, by code."""
    seen: defaultdict[str, Observed] = defaultdict(Observed)
    for finding in findings:
        seen[finding.code].levels.add(finding.level)
        if finding.fix is not None:
            seen[finding.code].fixes.add(finding.fix.safety)
    return dict(seen)


def pages(rules: Sequence[Rule], seen: Mapping[str, Observed]) -> dict[str, str]:
    """The text of each page by its file name, the index `README.md` among them."""
    made = {f"{rule.code}.md": page(rule, seen.get(rule.code, Observed())) for rule in rules}
    return {"README.md": index(rules, seen), **made}


def page(rule: Rule, observed: Observed) -> str:
    """The page of one rule."""
    facts = (
        ("Code", f"`{rule.code}`"),
        ("Name", f"`{rule.name}`"),
        ("Level", observed.level),
        ("Fix", observed.fix),
        ("Since", rule.since),
    )
    head = " | ".join(name for name, _ in facts)
    line = " | ".join(value for _, value in facts)
    texts = sections(rule)
    body = "\n\n".join(f"## {heading}\n\n{texts[heading]}" for heading in HEADINGS if heading in texts)
    return (
        f"{NOTE}\n\n# {rule.name} ({rule.code})\n\n{introduction(rule)}\n\n"
        f"| {head} |\n|{'---|' * len(facts)}\n| {line} |\n\n{body}\n"
    )


def index(rules: Sequence[Rule], seen: Mapping[str, Observed]) -> str:
    """The page that lists the rules."""
    lines = [
        NOTE,
        "",
        "# Rules",
        "",
        "A rule goes by its code or its name, in options, configuration and comments alike.",
        "",
        "| Code | Name | Finds | Level | Fix |",
        "|---|---|---|---|---|",
    ]
    for rule in rules:
        observed = seen.get(rule.code, Observed())
        code = f"[{rule.code}]({rule.code}.md)"
        lines.append(f"| {code} | {rule.name} | {rule.summary()} | {observed.level} | {observed.fix} |")
    return "\n".join(lines) + "\n"


def findings_in(path: str, code: str) -> list[Finding]:
    """What all rules find in a text, at either level, suppressed or not."""
    # Only here: a person who looks up a rule does not need the engine.
    from deadlint.check import check_source  # noqa: PLC0415
    from deadlint.settings import Settings  # noqa: PLC0415
    from deadlint.source import SourceFile  # noqa: PLC0415
    from deadlint.suppress import suppress  # noqa: PLC0415

    source = SourceFile(path, code)
    names = [(rule.code, rule.name) for rule in all_rules()]
    return suppress(source, check_source(source, Settings(), all_rules()), names, names)


def evidence(directory: Path) -> dict[str, Observed]:
    """What the rules report in the cases under a directory, and each in its own example."""
    found: list[Finding] = []
    for path in sorted(directory.rglob("*.py")):
        found += findings_in(path.name, path.read_bytes().decode("utf-8"))
    for rule in all_rules():
        example = findings_in(f"{rule.code}.py", code_under(rule, "Example"))
        found += [finding for finding in example if finding.code == rule.code]
    return observe(found)


def main(arguments: Sequence[str]) -> int:
    """Write the pages; those of rules that are gone are removed."""
    if not 1 <= len(arguments) <= 2:
        print(f"usage: python -m deadlint.rule_pages PAGES [CASES, else {CASES}]", file=sys.stderr)
        return 2
    target, source = Path(arguments[0]), Path(*arguments[1:] or (CASES,))
    made = pages(all_rules(), evidence(source))
    target.mkdir(parents=True, exist_ok=True)
    for stale in {path.name for path in target.glob("*.md")} - set(made):
        (target / stale).unlink()
    for name, text in made.items():
        (target / name).write_text(text, encoding="utf-8", newline="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
