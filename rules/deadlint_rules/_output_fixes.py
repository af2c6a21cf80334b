"""The fix of a writer in place: a block of `atomic_output` around its statement."""

from __future__ import annotations

import ast

from deadlint.model import Fix, Safety
from deadlint.region import smallest
from deadlint.site import Site

from deadlint_rules import _writers
from deadlint_rules._blocks import Wrapped, wrapped
from deadlint_rules._processes import RUNS
from deadlint_rules._writers import Output


def into_atomic_output(site: Site, output: Output) -> Fix | None:
    """The statement in `with atomic_output(path) as part:`, writing `part`; None where that is not plain.

    The path must stand in the call itself or in the assignment before it, as a name or a text, and the call must
    have finished writing when it returns: a program, a download, GDAL whose dataset nobody keeps.
    """
    since = _stands_in(site, output.path)
    named = _named(output.path)
    if since is None or not isinstance(named, ast.Name | ast.Attribute | ast.Constant | ast.JoinedStr):
        return None
    if site.name not in RUNS | _writers.HELPERS | _writers.RETRIEVE and not (
        site.name in _writers.GDAL and isinstance(site.statement, ast.Expr)
    ):
        return None
    helper, wanted = site.helper("atomic_output")
    taken = _taken(site)
    part = next(name for name in ("part", "output_part", "unfinished", "_part") if name not in taken)
    path = site.source(named)
    arguments = f"{path}, {site.budget}" if site.budget else path
    shape: Wrapped | None = wrapped(
        site,
        f"with {helper}({arguments}) as {part}:",
        [(named, part if named is not output.path or site.name in RUNS | _writers.HELPERS else f"str({part})")],
        since=since,
    )
    if shape is None:
        return None
    safety = Safety.UNSAFE if output.fresh else Safety.DISPLAY
    return Fix(
        f"write into `{helper}({path if len(path) <= 40 else '…'})`",
        safety,
        (smallest(site.module.source, shape.start, shape.end, shape.text),),
        (wanted,),
    )


def _named(path: ast.expr) -> ast.expr:
    """The path itself of `str(path)` and `os.fspath(path)`."""
    match path:
        case ast.Call(func=func, args=[inner], keywords=[]) if ast.unparse(func) in ("str", "os.fspath", "fspath"):
            return inner
    return path


def _taken(site: Site) -> set[str] | frozenset[str]:
    """The names that the function uses, or the module where the call is in none."""
    if site.function is None:
        return site.module.bound_names
    return {node.id for node in ast.walk(site.function.node) if isinstance(node, ast.Name)} | {
        node.arg for node in ast.walk(site.function.node) if isinstance(node, ast.arg)
    }


def _stands_in(site: Site, path: ast.expr) -> ast.stmt | None:
    """The statement of the call where the path stands in that, else the assignment before it; None elsewhere."""
    if any(node is path for node in ast.walk(site.call)):
        return site.statement
    block = _block(site)
    place = block.index(site.statement) if site.statement in block else 0
    before = block[place - 1] if place else None
    if isinstance(before, ast.Assign) and any(node is path for node in ast.walk(before.value)):
        return before
    return None


def _block(site: Site) -> list[ast.stmt]:
    """The statements that the one of the call stands among."""
    parent = site.module.walker.parents.get(site.statement, site.scope.node)
    for name in ("body", "orelse", "finalbody"):
        block = getattr(parent, name, None)
        if isinstance(block, list) and site.statement in block:
            return block
    return []
