"""Document links: from a finding to the place it is about, and from a code in a comment to the rule's page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lsprotocol import types

from deadlint.directives import candidates
from deadlint.model import Finding
from deadlint.rule import Rule
from deadlint.server.buffers import Buffer
from deadlint.server.pages import page_uri
from deadlint.server.places import Places


def links(
    buffer: Buffer, findings: Sequence[Finding], rules: Sequence[Rule], places: Places
) -> Iterator[types.DocumentLink]:
    """The links of a buffer."""
    taken: set[tuple[int, int, int, int]] = set()
    for finding in findings:
        span = finding.span
        key = (span.line, span.column, span.end_line, span.end_column)
        other = next((one for one in finding.related if (one.path, one.span) != (finding.path, span)), None)
        if other is not None and key not in taken:
            taken.add(key)  # one link a place
            target = places.link(other.path, other.span)
            yield types.DocumentLink(buffer.positions.of_span(span), target, tooltip=other.message)
    yield from _codes(buffer, rules)


def _codes(buffer: Buffer, rules: Sequence[Rule]) -> Iterator[types.DocumentLink]:
    names = [(rule.code, rule.name) for rule in rules]
    for directive in candidates(buffer.text, names):
        for entry in directive.entries or ():
            rule = next((one for one in rules if entry.text.upper() == one.code or entry.text == one.name), None)
            target = page_uri(rule.code) if rule is not None else None
            if rule is not None and target is not None:
                where = buffer.positions.range(entry.start, entry.end)
                yield types.DocumentLink(where, target, tooltip=f"{rule.code} {rule.name}")
