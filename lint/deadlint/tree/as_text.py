"""A tree of limits for a terminal: one line a node, aligned, useful at 80 columns and without colour."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TextIO

from rich.cells import cell_len, set_cell_size

from deadlint.report.page_writer import Line, PageWriter, console_for
from deadlint.report.printable import printable
from deadlint.report.wrapping import wrapped
from deadlint.tree.model import Amount, Kind, Known, Node, Place, Tree, Worst
from deadlint.tree.seconds import seconds, worst_case
from deadlint.tree.shown import signs

_WIDEST = 140  # cells
_PIPED = 100  # where there is no terminal to ask
_NARROWEST = 24  # cells for the tree itself
# What stands for a sign where the output has no Unicode, and its style.
_PLAIN = {"!": "!", "∞": "U", "b": "b", "↻": "@", "↑": "^", "→": ">", "…": "~"}
_STYLES = {"!": "code", "∞": "code strict", "b": "added", "↻": "related", "↑": "frame", "→": "related", "…": "frame"}
_MEANS = {
    "!": "longer than what is around it", "∞": "nothing bounds it", "b": "from a budget", "↻": "called already",
    "↑": "shown above", "→": "runs elsewhere", "…": "not followed further",
}  # fmt: skip
FAULTS = (Kind.INVERTED, Kind.OUTLASTS, Kind.OVERRUN)
UNBOUNDED = (Kind.UNBOUNDED, Kind.PER_READ, Kind.UNCOUNTED)


def print_tree(tree: Tree, out: TextIO, depth: int | None = None) -> None:
    """Print all of it, with what its marks mean, and a closing line."""
    console = console_for(out)
    asked = console.is_terminal or os.environ.get("COLUMNS", "").isdecimal()
    encoding = (getattr(out, "encoding", None) or "utf-8").lower().replace("-", "")
    page = _Page(tree, min(console.width, _WIDEST) if asked else _PIPED, depth, encoding.startswith("utf"))
    PageWriter(console).write(page.lines())


@dataclass(frozen=True, slots=True)
class _Row:
    """One node: its marks, guides in front of it, and what stands in each column."""

    node: Node
    marks: tuple[tuple[str, str], ...]
    guides: str
    limit: str
    worst: str
    where: str
    more: bool  # there are children that the depth leaves out


@dataclass(frozen=True, slots=True)
class _Page:
    tree: Tree
    width: int
    depth: int | None
    unicode: bool

    def lines(self) -> Iterator[Line]:
        silent = [root for root in self.tree.roots if is_silent(root)]
        for root in self.tree.roots:
            if not is_silent(root):
                yield from self._entry(root)
                yield ()
        if silent:
            names = ", ".join(f"{title(root)}" for root in silent)
            text = printable(f"Nothing waits and nothing has a limit, as far as can be seen, in {names}.")
            yield from (((self._plain(line), "frame"),) for line in wrapped(text, self.width))
            yield ()
        yield from (((self._plain(line), "message"),) for line in wrapped(summary(self.tree), self.width))

    def _entry(self, root: Node) -> Iterator[Line]:
        rows = list(self._rows(root, "", "", 0))
        limits = max(5, *(cell_len(row.limit) for row in rows))
        worsts = max(10, *(cell_len(row.worst) for row in rows))
        wheres = max(cell_len(row.where) for row in rows)
        room = self.width - 4 - limits - worsts - 6
        wheres = min(wheres, max(room - max(_NARROWEST, room * 2 // 3), 15))
        names = min(room - wheres, max(cell_len(_guided(row)) + 2 for row in rows))
        head = f"    {set_cell_size('', names)}  {'limit':>{limits}}  {'worst case':>{worsts}}  where"
        yield ((self._plain(head), "frame"),)
        for row in rows:
            yield from self._row(row, names, limits, worsts, wheres)
        yield from self._notes(root, rows)

    def _row(self, row: _Row, names: int, limits: int, worsts: int, wheres: int) -> Iterator[Line]:
        marks = [*row.marks, *[(" ", "frame")] * (4 - len(row.marks))]
        layer, name = _titled(row.node)
        room = max(names - cell_len(row.guides) - (cell_len(layer) + 1 if layer else 0), 4)
        shown = _cut(name + (" …" if row.more else ""), room)
        used = cell_len(row.guides) + (cell_len(layer) + 1 if layer else 0) + cell_len(shown)
        style = "code" if row.node.has(*FAULTS) else "code strict" if row.node.has(*UNBOUNDED) else "name"
        worst_style = "code strict" if not row.node.worst.bounded else "code" if row.node.has(*FAULTS) else "message"
        yield (
            *marks,
            (self._plain(row.guides), "frame"),
            (f"{layer} " if layer else "", "frame"),
            (self._plain(shown), style),
            (" " * max(names - used, 0), "frame"),
            ("  " + self._right(row.limit, limits), "message"),
            ("  " + self._right(row.worst, worsts), worst_style),
            ("  " + self._plain(_cut_left(row.where, wheres)), "frame"),
        )

    def _rows(self, node: Node, first: str, further: str, level: int) -> Iterator[_Row]:
        cut = self.depth is not None and level >= self.depth and bool(node.children)
        marks = [(sign if self.unicode else _PLAIN[sign], _STYLES[sign]) for sign in signs(node)]
        yield _Row(
            node, tuple(marks)[:3], first, limit_text(node), worst_case(node.worst) if _says(node) else "",
            where(node.place, self.tree.base), cut,
        )  # fmt: skip
        if cut:
            return
        for number, child in enumerate(node.children):
            last = number == len(node.children) - 1
            yield from self._rows(
                child, f"{further}{'└ ' if last else '├ '}", f"{further}{'  ' if last else '│ '}", level + 1
            )

    def _notes(self, root: Node, rows: list[_Row]) -> Iterator[Line]:
        """What is longer than what is around it, one sentence each; and what the other marks mean."""
        said: set[str] = set()
        for node in root.walk():
            for mark in node.marks:
                if mark.kind not in FAULTS:
                    continue
                text = f"{title(node)} {mark.text}" if mark.kind is not Kind.OVERRUN else f"{title(node)}: {mark.text}"
                text = printable(f"{text} ({where(node.place, self.tree.base)})")
                if text not in said:
                    said.add(text)
                    first, *others = wrapped(text, self.width - 4)
                    yield (("!   ", "code"), (self._plain(first), "message"))
                    yield from ((("    ", "frame"), (self._plain(line), "message")) for line in others)
        used = dict.fromkeys(mark for row in rows for mark, _ in row.marks)
        means = {sign if self.unicode else _PLAIN[sign]: text for sign, text in _MEANS.items()}
        if any(row.node.has(Kind.PER_READ) for row in rows):
            means["∞" if self.unicode else "U"] += ", a request's limit holds for each read"
        legend = "  ".join(f"{mark} {means[mark]}" for mark in means if mark in used)
        if legend:
            yield from (((f"    {self._plain(line)}", "frame"),) for line in wrapped(legend, self.width - 4))

    def _right(self, text: str, width: int) -> str:
        return self._plain(" " * max(width - cell_len(text), 0) + text)

    def _plain(self, text: str) -> str:
        return text if self.unicode else text.translate(_ASCII)


_ASCII = str.maketrans(
    {"└": "`", "├": "|", "│": "|", "×": "x", "∞": "unbounded", "…": "~", "≥": ">=", "≤": "<=", "–": "-"}
)


def summary(tree: Tree) -> str:
    """The closing line: how many entries, and how many of each mark."""
    nodes = [node for root in tree.roots for node in root.walk()]
    counts = {
        "inversion": sum(node.has(Kind.INVERTED, Kind.OUTLASTS) for node in nodes),
        "overrun": sum(node.has(Kind.OVERRUN) for node in nodes),
        "unbounded wait or loop": sum(node.has(*UNBOUNDED) for node in nodes),
        "limit from a budget": sum(node.has(Kind.BUDGET) for node in nodes),
    }
    found = [_counted(number, what) for what, number in counts.items() if number]
    entries = "1 entry" if len(tree.roots) == 1 else f"{len(tree.roots)} entries"
    good = "no limit is longer than the one around it, and nothing waits without one"
    if not tree.roots:
        return "no entries"
    if all(map(is_silent, tree.roots)):
        good = "nothing waits and nothing has a limit, as far as can be seen"
    return f"{entries}: {', '.join(found) or good}"


def _counted(number: int, what: str) -> str:
    if number == 1:
        return f"1 {what}"
    many = {"unbounded wait or loop": "unbounded waits or loops", "limit from a budget": "limits from budgets"}
    return f"{number} {many.get(what, what + 's')}"


def is_silent(root: Node) -> bool:
    """Whether nothing is known of an entry but that it is one."""
    return all(node.limit is None and node.attempts == 1 and node.worst == Worst() for node in root.walk())


def _says(node: Node) -> bool:
    """Whether a worst case says anything of a node: a budget takes no time, and a cycle is counted further out."""
    nothing = node.worst.seconds == 0 and node.worst.exact
    return node.layer != "budget" and not nothing


def _titled(node: Node) -> tuple[str, str]:
    """The layer and the name, as a line shows them."""
    if node.layer == "loop":
        return "", printable(node.name)
    return node.layer, printable(node.name)


def title(node: Node) -> str:
    """What sentences call a node."""
    return f"{node.layer} `{node.name}`" if node.name else node.layer


def limit_text(node: Node) -> str:
    """The limit with its attempts: `4 × 600 s + 180 s`."""
    own = amount_text(node.limit)
    if node.layer == "loop":
        turns = "" if node.attempts is None and node.limit else f"× {'?' if node.attempts is None else node.attempts}"
        return " ".join(part for part in (own, turns) if part)
    if node.attempts == 1 and node.until is None:
        return own
    number = "?" if node.attempts is None else str(node.attempts)
    times = f"{number} × {own}" if own else f"{number} attempts"
    times += f" + {seconds(node.pauses)}" if node.pauses else ""
    return f"{times} until {seconds(node.until)}" if node.until is not None else times


def amount_text(limit: Amount | None) -> str:
    """A limit, with how it is known where that is no plain constant."""
    if limit is None:
        return ""
    known = seconds(limit.seconds) if limit.seconds is not None else ""
    match limit.known:
        case Known.BUDGET:
            return f"≤ {known}" if known else "budget"
        case Known.PARAMETER:
            return f"{known} passed"
        case Known.DEFAULT:
            return f"{known} default"
    return known or "?"


def where(place: Place, base: str) -> str:
    """`path:line`, the path relative to where one stands if it is below."""
    below = base.rstrip("/") + "/"
    return printable(f"{place.path.removeprefix(below)}:{place.line}")


def _guided(row: _Row) -> str:
    layer, name = _titled(row.node)
    return f"{row.guides}{layer} {name}" if layer else f"{row.guides}{name}"


def _cut(text: str, width: int) -> str:
    return text if cell_len(text) <= width else set_cell_size(text, width - 1).rstrip() + "…"


def _cut_left(text: str, width: int) -> str:
    """A place in at most `width` cells: directories go first, then the middle of the name; its line stays."""
    while cell_len(text) > width and "/" in text.removeprefix("…/"):
        text = "…/" + text.removeprefix("…/").partition("/")[2]
    text = text if cell_len(text) <= width else text.removeprefix("…/")
    path, colon, line = text.rpartition(":")
    return _cut(path, max(width - len(line) - 1, 4)) + colon + line
