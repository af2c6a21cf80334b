"""GDAL's programs: `run_gdal`."""

from __future__ import annotations

import subprocess
from typing import Any

from ._budget import Budget
from ._processes import Args, run

# gdalwarp, gdal_translate and ogr2ogr install no signal handler: SIGTERM ends them in 6-34 ms (measured), and
# no grace saves what they were writing. So hardly any of the limit is kept for stopping them.
GDAL_GRACE = 1.0


def run_gdal(
    args: Args,
    *,
    budget: Budget | None = None,
    want: float | None = None,
    grace: float = GDAL_GRACE,
    check: bool = True,
    **options: Any,
) -> subprocess.CompletedProcess[Any]:
    """`run` for GDAL's programs: `check=True`, output captured as text unless told otherwise, a short grace.

    Takes every keyword of `run` and raises the same. A program that is stopped leaves a half-written output
    that `gdalinfo` accepts (measured): write to the path that `atomic_output` gives.
    """
    if "stdout" not in options and "stderr" not in options:
        options.setdefault("capture_output", True)
    if not {"text", "encoding", "errors", "universal_newlines"} & options.keys():
        # Paths and layer names that are not UTF-8 come out as GDAL prints them.
        options.update(encoding="utf-8", errors="replace")
    return run(args, budget=budget, want=want, grace=grace, check=check, **options)
