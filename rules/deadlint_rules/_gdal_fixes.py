"""Fixes of the rules about GDAL: a block around the statement that gives it a callback."""

from __future__ import annotations

import ast

from deadlint.model import Edit, Fix, Safety
from deadlint.region import code, parse_call, rewritten, smallest
from deadlint.site import Site

from deadlint_rules._gdal import Callback, Stops, stops
from deadlint_rules._process_repairs import bounds

_PLAIN = ast.Expr | ast.Assign | ast.AnnAssign | ast.AugAssign | ast.Return


def with_progress(site: Site, callback: Callback) -> Fix | None:
    """The statement of the call in a block of `gdal_progress`, with the callback of that; None where that is not plain.

    The statement must have its lines to itself, and none of them may lie in a text: they are indented.
    """
    statement, holder = site.statement, callback.holder
    if holder is None or not isinstance(statement, _PLAIN) or site.scope.kind == "lambda" or site.target.partial:
        return None
    if any(isinstance(a, ast.Starred) for a in holder.args) or callback.argument.node in holder.args:
        return None
    source = site.module.source
    start, end = source.extent(statement)
    line_start = source.line_starts[statement.lineno - 1]
    indentation = source.text[line_start:start]
    if indentation.strip() or source.text[end:].partition("\n")[0].partition("#")[0].strip() or _holds_lines(statement):
        return None
    keywords, constants = bounds(site, None)
    helper, wanted = site.helper("gdal_progress")
    progress = _free_name(site)
    given = callback.argument.node if stops(callback.argument, site) is not Stops.NONE else None
    call = rewritten(
        parse_call(source, holder),
        rename={"callback": ("callback", progress)},
        add=[("callback", progress)],
    )
    inner_start, inner_end = source.extent(holder)
    body = source.text[start:inner_start] + code(source, call) + source.text[inner_end:end]
    more = [*keywords, *([("callback", source.segment(given))] if given is not None else [])]
    arguments = ", ".join(value if name == "budget" else f"{name}={value}" for name, value in more)
    step = "\t" if indentation.startswith("\t") else "    "
    lines = body.splitlines(keepends=True)
    indented = indentation + step + lines[0] + "".join(step + line if line.strip() else line for line in lines[1:])
    text = f"with {helper}({arguments}) as {progress}:{source.newline}{indented}"
    title = f"run it in `with {helper}({arguments})`, whose callback stops it"
    return Fix(title, Safety.UNSAFE, (smallest(source, start, end, text),), (wanted,), constants)


def _holds_lines(statement: ast.stmt) -> bool:
    """Whether a text of several lines stands in a statement: to indent it would change it."""
    return any(
        isinstance(node, ast.Constant | ast.JoinedStr)
        and isinstance(getattr(node, "value", ""), str)
        and node.lineno != node.end_lineno
        for node in ast.walk(statement)
    )


def _free_name(site: Site) -> str:
    taken = site.module.bound_names
    return next(name for name in ("progress", "gdal_stop", "stop_gdal", "_gdal_stop") if name not in taken)


def with_http_options(site: Site) -> Fix | None:
    """`with rasterio.Env(**gdal_http_options(…)), rasterio.open(…)`; None where the call is no `with` of its own.

    Only shown where nothing in scope says how long the reading may take.
    """
    block = next((n for n in site.ancestors() if isinstance(n, ast.With)), None)
    func = site.call.func
    if block is None or not isinstance(func, ast.Attribute) or block.items[0].context_expr is not site.call:
        return None
    source = site.module.source
    keywords, constants = bounds(site, None)
    helper, wanted = site.helper("gdal_http_options")
    arguments = ", ".join(value if name == "budget" else f"{name}={value}" for name, value in keywords)
    text = f"{source.segment(func.value)}.Env(**{helper}({arguments})), "
    start, _ = source.extent(site.call)
    safety = Safety.DISPLAY if constants else Safety.UNSAFE
    title = f"open it in `Env(**{helper}({arguments}))`"
    return Fix(title, safety, (Edit(start, start, text),), (wanted,), constants)
