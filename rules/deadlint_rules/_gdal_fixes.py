"""Fixes of the rules about GDAL: a block around the statement that gives it a callback."""

from __future__ import annotations

import ast

from deadlint.model import Edit, Fix, Safety
from deadlint.region import code, parse_call, rewritten, smallest
from deadlint.site import Site

from deadlint_rules._blocks import wrapped
from deadlint_rules._gdal import Callback, Stops, keyword_of, stops
from deadlint_rules._process_repairs import bounds


def with_progress(site: Site, callback: Callback) -> Fix | None:
    """The statement of the call in a block of `gdal_progress`, with its callback; None where that is not plain."""
    holder = callback.holder
    if holder is None or any(isinstance(a, ast.Starred) for a in holder.args):
        return None
    if callback.argument.node in holder.args:
        return None
    source = site.module.source
    keywords, constants = bounds(site, None)
    helper, wanted = site.helper("gdal_progress")
    progress, keyword = _free_name(site), keyword_of(site)
    given = callback.argument.node if stops(callback.argument, site) is not Stops.NONE else None
    call = rewritten(
        parse_call(source, holder),
        rename={keyword: (keyword, progress)},
        add=[(keyword, progress)],
    )
    more = [*keywords, *([("callback", source.segment(given))] if given is not None else [])]
    arguments = ", ".join(value if name == "budget" else f"{name}={value}" for name, value in more)
    block = wrapped(site, f"with {helper}({arguments}) as {progress}:", [(holder, code(source, call))])
    if block is None:
        return None
    title = f"run it in `with {helper}({arguments})`, whose callback stops it"
    edit = smallest(source, block.start, block.end, block.text)
    return Fix(title, Safety.UNSAFE, (edit,), (wanted,), constants)


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
