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

    The path must stand in the call itself, as a name or a text, and the call must have finished writing when it
    returns: a program, a download, GDAL whose dataset nobody keeps.
    """
    call = site.call
    inside = any(node is output.path for node in ast.walk(call))
    if not inside or not isinstance(output.path, ast.Name | ast.Attribute | ast.Constant | ast.JoinedStr):
        return None
    if site.name not in RUNS | _writers.HELPERS | _writers.RETRIEVE and not (
        site.name in _writers.GDAL and isinstance(site.statement, ast.Expr)
    ):
        return None
    helper, wanted = site.helper("atomic_output")
    taken = site.module.bound_names
    part = next(name for name in ("part", "output_part", "unfinished", "_part") if name not in taken)
    path = site.source(output.path)
    arguments = f"{path}, {site.budget}" if site.budget else path
    shape: Wrapped | None = wrapped(
        site,
        f"with {helper}({arguments}) as {part}:",
        [(output.path, part if site.name in RUNS | _writers.HELPERS else f"str({part})")],
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
