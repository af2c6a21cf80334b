"""A tree of limits as one page: an icicle of nested limits on a time axis, a list, and no network."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from html import escape
from importlib.resources import files
from typing import Any, TextIO

from deadlint import __version__
from deadlint.tree.as_text import amount_text, is_silent, limit_text, summary, title, where
from deadlint.tree.icicle import Bar, icicle_of
from deadlint.tree.links import link
from deadlint.tree.model import Kind, Known, Node, Tree
from deadlint.tree.seconds import seconds, worst_case
from deadlint.tree.shown import pruned, signs

_KNOWN = {
    Known.CONSTANT: "a constant",
    Known.PARAMETER: "passed by the call on this path",
    Known.DEFAULT: "a default",
    Known.BUDGET: "no more than what is left of the budget",
    Known.UNKNOWN: "there is a limit, its value is not known",
}
# What the look of a bar says, in the order in which it wins where several apply.
_LOOKS = (
    ("fault", (Kind.INVERTED, Kind.OUTLASTS, Kind.OVERRUN)),
    ("unbounded", (Kind.UNBOUNDED, Kind.PER_READ, Kind.UNCOUNTED)),
    ("budget", (Kind.BUDGET,)),
)
_HEAD = "".join(f'<th scope="col">{name}</th>' for name in ("Mark", "What", "Limit", "Worst case", "Where"))
_OUTER = ("flow", "dag", "job", "graph", "script", "main", "asset", "task", "op", "operator", "actor", "sensor")


def print_html(tree: Tree, out: TextIO, depth: int | None, template: str) -> None:
    """Write the page."""
    tree = pruned(tree, depth)
    said = summary(tree)
    silent = [root for root in tree.roots if is_silent(root)]
    tree = replace(tree, roots=tuple(root for root in tree.roots if not is_silent(root)))
    page = files("deadlint.tree").joinpath("page")
    css, script = (page.joinpath(name).read_text("utf-8") for name in ("page.css", "page.js"))
    data = json.dumps([_entry(root, tree.base, template) for root in tree.roots], separators=(",", ":"))
    parts = {
        "title": escape(f"Limits of {os.path.basename(tree.base) or tree.base}"),
        "summary": escape(said),
        "version": escape(__version__),
        "css": css,
        "script": script,
        "css_hash": _hash(css),
        "script_hash": _hash(script),
        "data": data.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029"),
        "entries": "".join(_section(number, root, tree.base, template) for number, root in enumerate(tree.roots)),
        "nav": _navigation(tree),
        "silent": _silent(silent, tree.base, template),
    }
    text = page.joinpath("page.html").read_text("utf-8")
    before, *rest = text.split("{{")
    out.write(before)
    for piece in rest:
        name, _, after = piece.partition("}}")
        out.write(parts[name] + after)


def _hash(text: str) -> str:
    """The source expression of a content security policy that allows this text alone."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _navigation(tree: Tree) -> str:
    if len(tree.roots) < 2:
        return ""
    items = "".join(
        f'<li><a href="#entry-{number}">{escape(title(root).replace("`", ""))}</a> '
        f"<span>{escape(_worst(root))}</span></li>"
        for number, root in enumerate(tree.roots)
    )
    return f'<nav aria-label="Entries"><ul>{items}</ul></nav>'


def _silent(roots: Sequence[Node], base: str, template: str) -> str:
    """The entries of which nothing is known but that they are there."""
    if not roots:
        return ""
    items = ", ".join(
        f'<a href="{escape(link(root.place, template, base))}">{escape(title(root).replace("`", ""))}</a>'
        for root in roots
    )
    return f'<p class="silent">Nothing waits and nothing has a limit, as far as can be seen, in {items}.</p>'


def _section(number: int, root: Node, base: str, template: str) -> str:
    name = escape(root.name or root.layer)
    facts = [f"worst case <b>{escape(_worst(root))}</b>"] if _worst(root) else []
    if root.limit is not None or root.attempts != 1:
        facts.insert(0, f"limit <b>{escape(limit_text(root))}</b>")
    rows = "".join(_row(index, node, guides, base, template) for index, (node, guides) in enumerate(_guided(root)))
    return (
        f'<section class="entry" id="entry-{number}" aria-labelledby="name-{number}">'
        f'<h2 id="name-{number}"><span class="layer">{escape(root.layer)}</span> {name}</h2>'
        f'<p class="facts">{", ".join(facts)}</p>'
        f'<div class="chart" data-entry="{number}"></div>'
        f'<div class="scroll"><table><caption>The same as a list</caption><thead><tr>{_HEAD}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div></section>"
    )


def _row(index: int, node: Node, guides: str, base: str, template: str) -> str:
    sentences = "".join(f'<div class="why">{escape(_sentence(text))}</div>' for text in _faults(node))
    return (
        f'<tr data-node="{index}" class="{_look(node)}"><td class="mark">{escape(signs(node))}'
        f'<span class="said">{escape(", ".join(_words(node)))}</span></td>'
        f'<td class="what"><span class="guides" aria-hidden="true">{guides}</span>'
        f'<span class="layer">{escape(node.layer)}</span> <span class="name">{escape(node.name)}</span>{sentences}</td>'
        f'<td class="number">{escape(limit_text(node))}</td><td class="number">{escape(_worst(node))}</td>'
        f'<td class="where"><a href="{escape(link(node.place, template, base))}">'
        f"{escape(where(node.place, base))}</a></td></tr>"
    )


def _guided(root: Node) -> Iterator[tuple[Node, str]]:
    """Every node with the lines in front of it, as the chart numbers them."""

    def below(node: Node, first: str, further: str) -> Iterator[tuple[Node, str]]:
        yield node, first
        for child in _drawn_order(node):
            last = child is _drawn_order(node)[-1]
            yield from below(child, further + ("└ " if last else "├ "), further + ("  " if last else "│ "))

    yield from below(root, "", "")


def _drawn_order(node: Node) -> list[Node]:
    """The children as the chart has them: budgets first."""
    return sorted(node.children, key=lambda child: child.layer != "budget")


def _entry(root: Node, base: str, template: str) -> dict[str, Any]:
    icicle = icicle_of(root)
    return {
        "name": title(root).replace("`", ""),
        "seconds": icicle.seconds,
        "rows": icicle.rows,
        "bars": [_bar(bar, base, template) for bar in icicle.bars],
    }


def _bar(bar: Bar, base: str, template: str) -> dict[str, Any]:
    node = bar.node
    return {
        "p": bar.parent,
        "r": bar.row,
        "s": bar.start,
        "e": bar.end,
        "o": bar.over,
        "after": bar.after,
        "open": bar.open,
        "ticks": bar.ticks,
        "layer": node.layer,
        "name": node.name,
        "kind": "outer" if node.layer in _OUTER else "inner" if node.children else "leaf",
        "look": _look(node),
        "symbols": signs(node),
        "words": _words(node),
        "limit": limit_text(node),
        "amount": amount_text(node.limit),
        "known": _known(node),
        "worst": _worst(node),
        "over": seconds(bar.over[1] - bar.over[0]) if bar.over and math.isfinite(bar.over[1]) else "",
        "said": [_sentence(mark.text) for mark in node.marks if mark.text],
        "where": where(node.place, base),
        "href": link(node.place, template, base),
        "called": where(node.called, base) if node.called else "",
        "calledHref": link(node.called, template, base) if node.called else "",
    }


def _known(node: Node) -> str:
    if node.limit is None:
        return ""
    note = f" ({node.limit.note})".replace("`", "") if node.limit.note else ""
    return _KNOWN[node.limit.known] + note


def _worst(node: Node) -> str:
    nothing = node.worst.seconds == 0 and node.worst.exact
    return "" if node.layer == "budget" or nothing else worst_case(node.worst)


def _look(node: Node) -> str:
    if node.layer == "budget" and not node.has(Kind.INVERTED):
        return "budget"
    return next((look for look, kinds in _LOOKS if node.has(*kinds)), "")


def _words(node: Node) -> list[str]:
    return list(dict.fromkeys(mark.kind.value for mark in node.marks))


def _faults(node: Node) -> list[str]:
    return [mark.text for mark in node.marks if mark.kind in _LOOKS[0][1] and mark.text]


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:].replace("`", "")
