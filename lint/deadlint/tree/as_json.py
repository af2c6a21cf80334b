"""A tree of limits as JSON: everything that is known, with absolute paths."""

from __future__ import annotations

import json
import math
from typing import Any, TextIO

from deadlint.tree.model import Node, Place, Tree, Worst

VERSION = 1


def print_json(tree: Tree, out: TextIO, depth: int | None = None) -> None:
    """Print it, indented."""
    json.dump(record(tree, depth), out, indent=2)
    out.write("\n")


def record(tree: Tree, depth: int | None = None) -> dict[str, Any]:
    """The tree as plain data. Seconds that are not known, and those of what nothing bounds, are None."""
    return {
        "version": VERSION,
        "base": tree.base,
        "files": tree.files,
        "problems": list(tree.problems),
        "entries": [_node(root, depth) for root in tree.roots],
    }


def _node(node: Node, depth: int | None) -> dict[str, Any]:
    deeper = None if depth is None else depth - 1
    return {
        "layer": node.layer,
        "name": node.name,
        **_place(node.place),
        "called": None if node.called is None else _place(node.called),
        "limit": None
        if node.limit is None
        else {
            "seconds": node.limit.seconds,
            "known": node.limit.known.value,
            "note": node.limit.note,
        },
        "attempts": node.attempts,
        "pauses": _finite(node.pauses),
        "until": node.until,
        "worst": _worst(node.worst),
        "inside": _worst(node.inside),
        "order": node.order.value,
        "marks": [{"kind": mark.kind.value, "text": mark.text} for mark in node.marks],
        "children": [] if depth == 0 else [_node(child, deeper) for child in node.children],
        "left_out": len(node.children) if depth == 0 else 0,
    }


def _place(place: Place) -> dict[str, Any]:
    return {"path": place.path, "line": place.line, "column": place.column}


def _worst(worst: Worst) -> dict[str, Any]:
    return {"seconds": _finite(worst.seconds), "bounded": worst.bounded, "exact": worst.exact}


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
