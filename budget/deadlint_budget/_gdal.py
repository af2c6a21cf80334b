"""GDAL: its programs, its progress callback in process, and its options for remote files."""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Callable
from types import TracebackType
from typing import Any

from ._bound import Bound, bounded
from ._budget import Budget
from ._errors import Cancelled, DeadlineExceeded
from ._processes import Args, run

# gdalwarp, gdal_translate and ogr2ogr install no signal handler: SIGTERM ends them in 6-34 ms (measured), and no
# grace saves what they were writing. So hardly any of the limit is kept for stopping them.
GDAL_GRACE = 1.0

# A Translate into the default cache (5 % of memory) reached 100 % after 0.1 s and then flushed for 4.1 s without a
# callback; with 64 MB it was 0.6 s, with 8 MB 0.05 s, in the same total time (measured).
CACHE_MB = 16


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

    Takes every keyword of `run` and raises the same. A program that is stopped leaves a half-written output that
    `gdalinfo` accepts (measured): write to the path that `atomic_output` gives.
    """
    if "stdout" not in options and "stderr" not in options:
        options.setdefault("capture_output", True)
    if not {"text", "encoding", "errors", "universal_newlines"} & options.keys():
        # Paths and layer names that are not UTF-8 come out as GDAL prints them.
        options.update(encoding="utf-8", errors="replace")
    return run(args, budget=budget, want=want, grace=grace, check=check, **options)


class GdalDeadlineExceeded(DeadlineExceeded):
    """A GDAL call was stopped by its progress callback. `complete` is how far it was (0 to 1), `gdal` what GDAL said.

    What the call was writing may still be there: Translate and COG remove it, Warp leaves a file of full size that
    opens (measured). Write into `atomic_output`.
    """

    complete: float = 0.0
    gdal: str = ""


class GdalCancelled(GdalDeadlineExceeded, Cancelled):
    """A GDAL call was stopped because its budget was cancelled."""


class GdalProgress:
    """A progress callback and a context manager. Made by `gdal_progress`."""

    def __init__(
        self, budget: Budget | None, want: float | None, callback: Callable[..., Any] | None, cache_mb: float | None
    ) -> None:
        self._bound = _gdal_bound(budget, want)
        self._callback = callback
        self._cache_mb = cache_mb
        self._cache_before: int | None = None
        self._failure: BaseException | None = None
        self.complete = 0.0  # how far the call said it was, 0 to 1
        self.stopped = False  # whether the call was told to stop, by the budget or by the user's callback

    def __call__(self, complete: float, message: str = "", data: Any = None) -> int:
        """1 while there is time, else 0. Never raises: GDAL prints and swallows what a callback raises (measured)."""
        self.complete = complete
        if self._bound.over():
            self.stopped = True
            return 0
        if self._callback is not None:
            try:
                answer = self._callback(complete, message, data)
            except BaseException as failure:
                self._failure = failure
                self.stopped = True
                return 0
            # None is a forgotten return, and GDAL goes on for it: so does this.
            if answer is not None and not answer:
                self.stopped = True
                return 0
        return 1

    def verify(self, result: Any = True) -> Any:
        """`result`, as the call returned it.

        Raises where the call was stopped, where the budget is over, and where GDAL failed without an exception:
        a stopped Translate and a threaded Warp return None and set no error.
        """
        self._raise_if_stopped(None)
        self._bound.check()
        if result is None:
            raise RuntimeError(f"GDAL returned nothing: {_last_error() or 'and gave no reason'}")
        return result

    def __enter__(self) -> GdalProgress:
        gdal = sys.modules.get("osgeo.gdal")
        if gdal is not None and self._cache_mb is not None:
            before = gdal.GetCacheMax()
            size = int(self._cache_mb * 1024 * 1024)
            if before > size:
                gdal.SetCacheMax(size)
                self._cache_before = before
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if self._cache_before is not None:
            sys.modules["osgeo.gdal"].SetCacheMax(self._cache_before)
            self._cache_before = None
        if error is None or isinstance(error, RuntimeError):  # GDAL's "User terminated"
            self._raise_if_stopped(error)

    def _raise_if_stopped(self, cause: BaseException | None) -> None:
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure
        if self.stopped and self._bound.over():
            error = self._bound.error(GdalDeadlineExceeded, GdalCancelled)
            assert isinstance(error, GdalDeadlineExceeded)
            error.complete = self.complete
            error.gdal = str(cause) if cause is not None else _last_error()
            error.args = (f"{error}; GDAL had done {100 * self.complete:.0f} %",)
            raise error from cause


def _gdal_bound(budget: Budget | None, want: float | None) -> Bound:
    return bounded("GDAL", budget, want, (GdalDeadlineExceeded, GdalCancelled), note="not begun")


def _last_error() -> str:
    gdal = sys.modules.get("osgeo.gdal")
    return "" if gdal is None else str(gdal.GetLastErrorMsg())


def gdal_progress(
    budget: Budget | None = None,
    want: float | None = None,
    *,
    callback: Callable[..., Any] | None = None,
    cache_mb: float | None = CACHE_MB,
) -> GdalProgress:
    """`with gdal_progress(budget) as progress: gdal.Warp(…, callback=progress)` stops GDAL when the time is over.

    The callback returns 0 then (or after a cancellation), and the end of the block raises `GdalDeadlineExceeded`
    (`GdalCancelled`) with what GDAL said as its cause. `callback` is a callback of one's own, called as well; what it
    raises comes out of the block. Inside the block GDAL's cache is at most `cache_mb` (for the whole process), since
    what is cached is flushed without callbacks; None leaves it. Outside a `with`, call `progress.verify(result)`.

    What it cannot stop: that flush, drivers that report no progress, and rasterio, which has no callback. There, run
    the work in a child with `run`. Stops within 20-210 ms for Warp, at once for ComputeStatistics (measured).
    """
    return GdalProgress(budget, want, callback, cache_mb)


def gdal_http_options(
    budget: Budget | None = None,
    want: float | None = None,
    *,
    requests: int = 4,
    retries: int = 0,
    retry_delay: float = 1.0,
    fresh: bool | str = False,
) -> dict[str, str]:
    """GDAL's options for remote files, sized so that `requests` requests, each with `retries`, fit into what is left.

    For `gdal.config_options(…)`, `rasterio.Env(**…)`, or a child's environment. GDAL's timeouts are per request: a
    dataset that needs more than `requests` of them can take longer (opening a GeoTIFF takes two to five, each window
    at least one), so use it inside a limit that stops. Empty where nothing bounds it.

    `fresh` is for a second attempt: after one failure GDAL answers for that URL without any request, for the life of
    the process (measured), unless the URL is read uncached (True: all of `/vsicurl/`; or a prefix). With osgeo,
    `gdal_forget(url)` does that at less cost.
    """
    if requests < 1 or retries < 0:
        raise ValueError(f"there is at least one request and no fewer than 0 retries, not {requests} and {retries}")
    left = _gdal_bound(budget, want).seconds
    options = {"GDAL_DISABLE_READDIR_ON_OPEN": "EMPTY_DIR"}  # without it, a listing of the directory: a request more
    if left is not None:
        pauses = requests * retries * retry_delay
        if pauses >= left:
            raise ValueError(f"{retries} retries of {requests} requests pause for {pauses:g} s; {left:.3g} s are left")
        each = max(0.001, (left - pauses) / (requests * (retries + 1)))
        options |= {
            "GDAL_HTTP_TIMEOUT": f"{each:.3f}",
            "GDAL_HTTP_CONNECTTIMEOUT": f"{each:.3f}",
            "GDAL_HTTP_MAX_RETRY": str(retries),
            "GDAL_HTTP_RETRY_DELAY": f"{retry_delay:g}",
        }
    if fresh:
        options["CPL_VSIL_CURL_NON_CACHED"] = "/vsicurl/" if fresh is True else fresh
    return options if left is not None or fresh else {}


def gdal_forget(url: str | None = None) -> None:
    """Clear what GDAL (osgeo) remembers of a URL, or of all: its failures above all, before a retry.

    `url` as GDAL knows it (`/vsicurl/https://…`) or a plain one. ImportError without osgeo; rasterio has no such call,
    use `gdal_http_options(fresh=True)` there.
    """
    gdal: Any = importlib.import_module("osgeo.gdal")

    if url is None:
        gdal.VSICurlClearCache()
    else:
        gdal.VSICurlPartialClearCache(url if url.startswith("/vsi") else f"/vsicurl/{url}")
