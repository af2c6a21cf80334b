"""Hovers: the rule behind a finding, and at a limit the one that really holds, with the way to it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from lsprotocol import types

from deadlint.graph import Around
from deadlint.model import Finding, Span
from deadlint.rule import Rule
from deadlint.server.effective import Held, seconds
from deadlint.server.pages import hover_text, page_uri
from deadlint.server.places import Places
from deadlint.server.positions import Positions


def hover(
    position: types.Position,
    positions: Positions,
    findings: Sequence[Finding],
    held: Sequence[Held],
    rules: Sequence[Rule],
    places: Places,
) -> types.Hover | None:
    """What is to be said at a position; None where it is nothing."""
    offset = positions.offset(position)
    sections: list[str] = []
    spans: list[Span] = []
    for one in held:
        if _covers(positions, one.span, offset):
            sections.append(held_text(one, places))
            spans.append(one.span)
    # Innermost first: a hover on a call is about that call, not about the `with` around it.
    if len(sections) > 1:
        sections, spans = [sections[-1]], [spans[-1]]
    found = [one for one in findings if _covers(positions, one.span, offset)]
    spans += [one.span for one in found]
    codes = {one.code for one in found}
    sections += _rule_texts([rule for rule in rules if rule.code in codes])
    if not sections:
        return None
    text = "\n\n---\n\n".join(sections)
    return types.Hover(types.MarkupContent(types.MarkupKind.Markdown, text), positions.of_span(spans[-1]))


def _rule_texts(rules: Sequence[Rule]) -> Iterator[str]:
    """The text of a rule; of several what each finds, and where the rest is."""
    if len(rules) == 1:
        yield hover_text(rules[0])
        return
    for rule in rules:
        page = page_uri(rule.code)
        title = f"**{rule.code}** {rule.name}"
        yield f"{f'[{title}]({page})' if page else title}: {rule.summary()}"


def held_text(held: Held, places: Places) -> str:
    """A limit, what holds around it, and which of them it comes to."""
    return "\n".join(_lines(held, places))


def _lines(held: Held, places: Places) -> Iterator[str]:
    effective = held.effective
    if effective is not None:
        length = seconds(effective.limit.seconds or 0.0)
        by = "its own limit" if effective.limit == held.own else effective.limit.label
        yield f"`{held.what}` ends after **{length}** at the latest, by {by}."
    else:
        yield f"`{held.what}`: the length of its limit is not known here."
    if held.budget is not None:
        yield f"The budget `{held.budget}` is in scope; what is left of it may be less."
    yield ""
    if held.own is not None:
        yield f"- its own: {_length(held.own.seconds)}{_per_read(held)}"
    for one in held.around:
        yield f"- {one.limit.label}: {_length(one.limit.seconds)}, {_place(one.limit.path, one.limit.span, places)}"
        yield from _steps(one, places)


def _steps(around: Around, places: Places) -> Iterator[str]:
    for step in around.path:
        yield f"  - calls `{step.function}`, {_place(step.path, step.span, places)}"


def _length(value: float | None) -> str:
    return "of unknown length" if value is None else seconds(value)


def _per_read(held: Held) -> str:
    """What the timeout of a request bounds: it starts anew with each read."""
    assert held.own is not None
    each = held.own.layer == "request" and not held.own.name.startswith("aiohttp.")
    return " for each read, so not for the whole" if each else ""


def _place(path: str, span: Span, places: Places) -> str:
    return f"[{os.path.basename(path)}:{span.line}]({places.link(path, span)})"


def _covers(positions: Positions, span: Span, offset: int) -> bool:
    where = positions.of_span(span)
    return positions.offset(where.start) <= offset <= positions.offset(where.end)
