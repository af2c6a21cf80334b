"""What every format shows alike: the sign of each mark, and no more levels than are asked for."""

from __future__ import annotations

from dataclasses import replace

from deadlint.tree.model import Kind, Mark, Node, Tree

# In the order in which they are shown.
SYMBOLS = {
    Kind.INVERTED: "!", Kind.OUTLASTS: "!", Kind.OVERRUN: "!", Kind.UNBOUNDED: "∞", Kind.PER_READ: "∞",
    Kind.UNCOUNTED: "∞", Kind.BUDGET: "b", Kind.AGAIN: "↻", Kind.ABOVE: "↑", Kind.ELSEWHERE: "→", Kind.CUT: "…",
}  # fmt: skip


def signs(node: Node) -> str:
    """The signs of the marks of a node, each once."""
    kinds = {mark.kind for mark in node.marks}
    return "".join(dict.fromkeys(sign for kind, sign in SYMBOLS.items() if kind in kinds))


def pruned(tree: Tree, depth: int | None) -> Tree:
    """The tree without what lies deeper than `depth` levels below an entry; what is cut says so."""
    if depth is None:
        return tree
    return replace(tree, roots=tuple(_pruned(root, depth) for root in tree.roots))


def _pruned(node: Node, depth: int) -> Node:
    if depth == 0 and node.children:
        mark = Mark(Kind.CUT, f"{len(node.children)} more below, left out by --depth")
        return replace(node, children=(), marks=(*node.marks, mark))
    return replace(node, children=tuple(_pruned(child, depth - 1) for child in node.children))
