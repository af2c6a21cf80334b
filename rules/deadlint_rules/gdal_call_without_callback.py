"""DL507: GDAL in process with nothing that can stop it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from deadlint.model import Fix, Level
from deadlint.rule import Rule
from deadlint.site import Report, Site

from deadlint_rules._gdal import (
    ALGORITHMS,
    POSITIONS,
    Callback,
    Stops,
    callback_of,
    is_virtual,
    keyword_of,
    short,
    short_work,
    stops,
)
from deadlint_rules._gdal_fixes import with_progress
from deadlint_rules._processes import meaningful_bound


class GdalCallWithoutCallback(Rule):
    """A long call of GDAL in process has no progress callback that can stop it.

    ## What it does
    Finds `gdal.Warp`, `Translate`, `Rasterize`, `VectorTranslate`, `ReprojectImage`, `BuildOverviews`, `CreateCopy` and
    their kin that are called without `callback=`, `gdal.Run` and `Algorithm.Run` without `progress=`, or any of them
    with a callback that never tells GDAL to stop: a function that returns nothing, or always 1, or
    `gdal.TermProgress_nocb`. Also a `callback=` beside `options=gdal.WarpOptions(…)`: GDAL then takes everything from
    the options and never calls it.

    The default level reports them where a limit, a timeout parameter or a budget is around the call; strict reports
    the others as well, and `gdal.BuildVRT` and calls with `format="VRT"`, which write no pixels.

    ## Why it is bad
    GDAL runs in C. Measured: without a callback, a signal handler of Python waits for the call, and a SIGALRM at 0.8 s
    came through at 3.05 s. So a limit that works by a signal or by an exception does not hold, and a limit on a thread
    only stops waiting. A callback that returns 0 stopped `gdal.Warp` in 20–210 ms. Returning nothing means *go on*, and
    what a callback raises is printed and swallowed.

    Even so the callback is only as good as GDAL's cache: with the default one, `gdal.Translate` had reported 100 %
    after 0.10 s and then wrote for 4.1 s without asking; with 8 MB that was 50 ms. `gdal_progress` lowers the cache
    for the block.

    ## Example
    ```python
    from osgeo import gdal


    def reproject(source, target, budget):
        gdal.Warp(target, source, dstSRS="EPSG:3857")
    ```

    ## Use instead
    ```python
    from deadlint_budget import gdal_progress
    from osgeo import gdal


    def reproject(source, target, budget):
        with gdal_progress(budget) as progress:
            gdal.Warp(target, source, dstSRS="EPSG:3857", callback=progress)
    ```
    What a stopped `gdal.Warp` leaves is a file of full size that opens (measured), so write into `atomic_output`.

    ## Fix safety
    Unsafe: a call that is stopped raises `GdalDeadlineExceeded` at the end of the block. A callback that was there is
    still called. There is no fix where nothing in sight says how long the call may take, where the statement shares
    its line or holds a text of several lines, or where the options are made elsewhere.

    ## Options
    - `helpers`: the module that fixed code imports from.

    ## References
    - [GDAL's progress callbacks](https://gdal.org/en/stable/api/python/python_gotchas.html)
    - [GDAL configuration options: GDAL_CACHEMAX](https://gdal.org/en/stable/user/configoptions.html)
    """

    code = "DL507"
    name = "gdal-call-without-callback"
    since = "0.1.0"
    calls = frozenset(POSITIONS)
    words = tuple(("gdal", f"{name}(") for name in sorted({name.rpartition(".")[2] for name in POSITIONS}))

    def check(self, site: Site) -> Iterator[Report]:
        """Report the call unless its callback may stop it."""
        callback = callback_of(site)
        if callback is None or (site.name in ALGORITHMS and short_work(site)):
            return
        what = Stops.NEVER if callback.ignored else stops(callback.argument, site)
        if what is Stops.PERHAPS or (what is Stops.NONE and site.spread and site.call.args == []):
            return
        bound = meaningful_bound(site)
        level = Level.DEFAULT if bound is not None and not is_virtual(site) else Level.STRICT
        yield site.report(
            f"{_what(site, callback, what)}, so {_so(bound)}",
            f"`with {site.module.settings.helpers}.gdal_progress({site.budget or ''}) as progress:` and"
            f" `{keyword_of(site)}=progress`",
            level=level,
            fix=_fix(site, callback, bound),
        )


def _fix(site: Site, callback: Callback, bound: str | None) -> Callable[[], Fix | None] | None:
    if bound is None or callback.holder is None:
        return None
    return lambda: with_progress(site, callback)


def _what(site: Site, callback: Callback, what: Stops) -> str:
    name = short(site.name)
    if callback.ignored:
        return f"`{name}` takes everything from `options=` and never calls this `callback`"
    if what is Stops.NEVER:
        return f"the callback of `{name}` never returns 0"
    return f"`{name}` has no callback"


def _so(bound: str | None) -> str:
    if bound is None:
        return "nothing in this process can stop it"
    return f"{bound} cannot stop it: it runs to its end in C"
