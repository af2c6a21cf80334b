"""DL601: a file that is written under its final name by something that may be stopped."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from deadlint.model import Fix, Level, Related
from deadlint.rule import Rule
from deadlint.site import Report, Site

from deadlint_rules import _writers
from deadlint_rules._output_fixes import into_atomic_output
from deadlint_rules._processes import RUNS, Given, limit_given
from deadlint_rules._publishing import believed, is_removed_after_failure, is_working_file, taken_afterwards
from deadlint_rules._writers import Output, output_of


class OutputWrittenInPlace(Rule):
    """A writer that may be stopped writes under the final name, so what it leaves looks like the output.

    ## What it does
    Finds GDAL's programs, `wget`, `curl`, `ffmpeg` and the like, `gdal.Warp` and its kin, `urlretrieve`, downloads into
    `open(…, "wb")`, `rasterio.open(…, "w")` and `to_file`/`to_parquet` of a frame, that write their final path

    - under a limit or a budget, or
    - where the same function takes a file that exists for the finished output: it leaves the work out if the file is
      there, or calls a program whose exit status nobody looks at and then asks whether the file exists.

    Clean is a file in a temporary directory or under a name that says so (`tmp`, `part`, …), one that the function
    renames afterwards, and one that a handler or `finally` removes. Strict reports programs, GDAL's functions and
    downloads that write in place without a limit in sight, too.

    ## Why it is bad
    Measured: a `gdalwarp` or `gdal_translate` that is killed leaves a GeoTIFF that `gdalinfo` accepts, with checksum 0
    and statistics that say 100 % valid; a Shapefile opens and has no features; a CSV is short and says nothing. GDAL's
    programs handle no signal, so no grace helps. `gdal.Warp`, stopped by its callback, leaves a readable file of full
    size. So neither that the file exists nor that it opens proves anything, and the next run builds on it;
    `gdalwarp` without `-overwrite` even warps into it.

    ## Example
    ```python
    import subprocess


    def reproject(source, target):
        subprocess.run(["gdalwarp", "-overwrite", source, target], check=True, timeout=600)
    ```

    ## Use instead
    ```python
    import subprocess

    from deadlint_budget import atomic_output


    def reproject(source, target):
        with atomic_output(target) as part:
            subprocess.run(["gdalwarp", "-overwrite", source, part], check=True, timeout=600)
    ```
    `atomic_output` keeps the ending of the name, since GDAL goes by it, and takes sidecars along.

    ## Fix safety
    Unsafe: the file appears when it is complete, a missing or empty one raises `OutputError`, and what read it while
    it was written no longer can. It is only shown for `gdalwarp` without `-overwrite`, which may be meant to warp into
    a file that is there. There is no fix where a failure does not raise, or where the dataset outlives the statement.

    ## Options
    - `helpers`: the module that fixed code imports from.

    ## References
    - [gdalwarp: -overwrite](https://gdal.org/en/stable/programs/gdalwarp.html)
    - [NASA-Planetary-Science/AmesCAP#202](https://github.com/NASA-Planetary-Science/AmesCAP/issues/202): a killed job
      leaves a file, and the next run skips it
    """

    code = "DL601"
    name = "output-written-in-place"
    since = "0.1.0"
    calls = (
        RUNS | _writers.HELPERS | _writers.WAITS | _writers.GDAL.keys() | _writers.RUN | _writers.FRAMES.keys()
        | _writers.RETRIEVE | _writers.OPEN | {_writers.RASTERIO}
    )  # fmt: skip
    words = (
        *((start, program) for start in ("subprocess", "deadlint_budget") for program in sorted(_writers.PROGRAMS)),
        ("urlretrieve(",),
        *(("gdal", f"{name}(") for name in ("Warp", "Translate", "Rasterize", "VectorTranslate", "DEMProcessing")),
        ("gdal.Run(",),
        ("rasterio.open(", '"w'),
        ("rasterio.open(", "'w"),
        *((library, method) for library in ("pandas",) for method in (".to_file(", ".to_parquet(", ".to_feather(")),
        *(("open(", stream) for stream in ("iter_content(", "iter_bytes(", "iter_chunked(", "copyfileobj(")),
        ("open(", "write(chunk)"),
    )  # fmt: skip

    def check(self, site: Site) -> Iterator[Report]:
        """Report a writer of a final path, unless the function takes care of a failure."""
        output = output_of(site)
        if output is None:
            return
        after = taken_afterwards(output.path, site) if not output.checked else None
        if after is None and (is_working_file(output.path, site) or is_removed_after_failure(output.path, site)):
            return
        test = after or believed(output.path, site)
        bound = _bound(site)
        if test is None and bound is None and site.name not in _TOLD_IN_STRICT:
            return
        yield site.report(
            _message(site, output, bound, test, after),
            f"write into `with {site.module.settings.helpers}.atomic_output({_shown(site, output.path)}) as part:`",
            level=Level.DEFAULT if test is not None or bound is not None else Level.STRICT,
            related=tuple(_related(site, test)),
            fix=_fix(site, output),
        )


# Writers that are told of at strict where nothing bounds them: what they do takes long, and is known to be stopped.
_TOLD_IN_STRICT = RUNS | _writers.HELPERS | _writers.GDAL.keys() | _writers.RUN | _writers.RETRIEVE | _writers.OPEN


def _bound(site: Site) -> str | None:
    """What may stop the writer, in words."""
    if site.name in RUNS and limit_given(site) is Given.YES:
        return "its limit"
    if site.name in _writers.WAITS:
        position = 1 if site.name.endswith("communicate") else 0
        return "its limit" if limit_given(site, position=position) is Given.YES else None
    if site.name in _writers.HELPERS and not (site.argument("want").absent and site.argument("budget").absent):
        return "its limit"
    if site.budget is not None:
        return f"the budget `{site.budget}`"
    return next((around.limit.label for around in site.around), None)


def _message(site: Site, output: Output, bound: str | None, test: ast.expr | None, after: ast.expr | None) -> str:
    path = _shown(site, output.path)
    where = f"`{path}`" if path != "…" else "its output"
    name = output.name if output.name.startswith("a ") else f"`{output.name}`"
    if after is not None:
        return f"nobody looks at how `{output.name}` ends, and whatever it left as {where} is taken for its output"
    if test is not None:
        return f"{name} writes {where} in place: what is there after a failure passes the test that it exists"
    if bound is not None:
        return f"{name} writes {where} in place: when {bound} stops it, a part is left that looks complete"
    return f"{name} writes {where} in place: who stops it leaves a part that looks complete"


def _related(site: Site, test: ast.expr | None) -> Iterator[Related]:
    if test is not None:
        yield site.related(test, "what exists is taken for finished here")


def _shown(site: Site, node: ast.expr) -> str:
    text = site.source(node)
    return text if len(text) <= 40 and text.isprintable() else "…"


def _fix(site: Site, output: Output) -> Callable[[], Fix | None] | None:
    if not output.checked:
        return None
    return lambda: into_atomic_output(site, output)
