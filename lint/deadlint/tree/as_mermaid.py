"""A tree of limits as a Mermaid flowchart, for a README or a merge request."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TextIO

from deadlint.tree.as_text import FAULTS, UNBOUNDED, limit_text, summary, title, where
from deadlint.tree.model import Kind, Node, Tree
from deadlint.tree.seconds import worst_case

# A border pattern and a word for each, so that no reader depends on a colour; both read on light and dark pages.
_CLASSES = {
    "fault": "fill:#fde2e2,stroke:#b42318,stroke-width:3px,color:#5f120c",
    "unbounded": "fill:#fff3d6,stroke:#9a6700,stroke-width:2px,stroke-dasharray:6 3,color:#4d3300",
    "budget": "fill:#ddf4e4,stroke:#1a7f37,stroke-width:1px,color:#0b3d1a",
}
_UNSAFE = re.compile(r"[^\w .,:;/+=()*×≤≥∞?\-…]")


def print_mermaid(tree: Tree, out: TextIO, depth: int | None = None) -> None:
    """Print one flowchart with all entries."""
    out.write(f"%% {summary(tree)}\nflowchart LR\n")
    for name, style in _CLASSES.items():
        out.write(f"    classDef {name} {style}\n")
    numbers = iter(range(1_000_000_000))
    for root in tree.roots:
        for line in _lines(root, "", tree.base, depth, numbers):
            out.write(f"    {line}\n")


def _lines(node: Node, above: str, base: str, depth: int | None, numbers: Iterator[int]) -> Iterator[str]:
    name = f"n{next(numbers)}"
    css = _class(node)
    yield f'{name}["{_label(node, base)}"]' + (f":::{css}" if css else "")
    if above:
        yield f"{above} --> {name}"
    if depth == 0 and node.children:
        yield f'{name} -.-> {name}more["{len(node.children)} more below"]'
        return
    for child in node.children:
        yield from _lines(child, name, base, None if depth is None else depth - 1, numbers)


def _class(node: Node) -> str:
    if node.has(*FAULTS):
        return "fault"
    if node.has(*UNBOUNDED):
        return "unbounded"
    return "budget" if node.has(Kind.BUDGET) else ""


def _label(node: Node, base: str) -> str:
    limit = limit_text(node)
    word = "" if node.layer == "loop" and node.limit is None else "limit "
    parts = [title(node).replace("`", ""), f"{word}{limit}" if limit else "", ""]
    if node.layer != "budget":
        parts[2] = f"worst case {worst_case(node.worst)}"
    words = [mark.kind.value for mark in node.marks if mark.kind is not Kind.BUDGET]
    parts += [", ".join(dict.fromkeys(words)).upper(), where(node.place, base)]
    return "<br>".join(_escaped(part) for part in parts if part)


def _escaped(text: str) -> str:
    """`text` with what Mermaid would read as its own as character codes."""
    return _UNSAFE.sub(lambda found: f"#{ord(found.group())};", text)
