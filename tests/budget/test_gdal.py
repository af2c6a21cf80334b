"""`gdal_progress` with a real GDAL (osgeo), `gdal_http_options` with osgeo and rasterio against servers that hang."""

# ruff: noqa: PLC0415, PT012, SIM117 - optional libraries; a block under test is more than one line

from __future__ import annotations

import os
import socket
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import deadlint_budget
import pytest
from budget_witness import Server, WoundClock, missing, need_module
from deadlint_budget import (
    Budget,
    DeadlineExceeded,
    GdalCancelled,
    GdalDeadlineExceeded,
    gdal_http_options,
    gdal_progress,
)
from test_http import drips_headers, heard, silent

Took = Callable[..., Any]
Serve = Callable[..., Server]


# --- the callback, without GDAL ------------------------------------------------------------------------------


def test_one_while_there_is_time(clock: WoundClock) -> None:
    progress = gdal_progress(Budget.of(10, "flow", clock=clock))
    assert progress(0.1, "", None) == 1
    assert not progress.stopped
    assert progress.verify("dataset") == "dataset"


def test_zero_on_cancel_and_an_error_after() -> None:
    budget = Budget.of(10, "flow")
    with pytest.raises(GdalCancelled, match="operator") as caught, gdal_progress(budget) as progress:
        assert progress(0.4) == 1
        budget.cancel("operator")
        assert progress(0.5) == 0
    assert caught.value.complete == 0.5
    with pytest.raises(GdalCancelled):
        progress.verify(None)


def test_zero_at_the_deadline() -> None:
    with pytest.raises(GdalDeadlineExceeded) as caught, gdal_progress(want=0.05) as progress:
        while progress(0.25):
            time.sleep(0.01)
        raise RuntimeError("User terminated")
    assert caught.value.gdal == "User terminated"
    assert isinstance(caught.value.__cause__, RuntimeError)


def test_a_user_s_callback_is_chained() -> None:
    heard_of: list[float] = []
    progress = gdal_progress(want=10, callback=lambda complete, message, data: heard_of.append(complete))
    assert progress(0.5, "", None) == 1  # a forgotten return goes on, as in GDAL
    assert heard_of == [0.5]
    assert gdal_progress(want=10, callback=lambda *_: 0)(0.5) == 0
    with pytest.raises(KeyError), gdal_progress(want=10, callback=lambda *_: {}["x"]) as progress:
        assert progress(0.5) == 0  # it does not raise inside GDAL, which would swallow it


def test_a_failure_without_an_exception_is_told() -> None:
    with pytest.raises(RuntimeError, match="returned nothing"):
        gdal_progress(want=10).verify(None)


def test_a_spent_budget_is_refused() -> None:
    for call in (gdal_progress, gdal_http_options):
        with pytest.raises(GdalDeadlineExceeded):
            call(Budget.of(0))


# --- osgeo, in the Python that has it ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def osgeo() -> Callable[..., str]:
    """Runs code in a Python that has osgeo: this one, or Debian's."""
    for python in (sys.executable, "/usr/bin/python3"):
        if not Path(python).exists():
            continue
        found = subprocess.run([python, "-c", "import osgeo.gdal"], capture_output=True, check=False)
        if found.returncode == 0:
            break
    else:
        missing("osgeo", "apt-get install python3-gdal (it belongs to Debian's own Python)")
    root = str(Path(deadlint_budget.__file__).parent.parent)

    def run(code: str, *args: str) -> str:
        prelude = (
            "import sys, time\nfrom osgeo import gdal\ngdal.UseExceptions()\n"
            "from contextlib import contextmanager\n"
            "@contextmanager\n"
            "def config_options(options):  # gdal.config_options, which GDAL has from 3.7 on\n"
            "    for name, value in options.items(): gdal.SetConfigOption(name, value)\n"
            "    yield\n"
            "    for name in options: gdal.SetConfigOption(name, None)\n"
            "from deadlint_budget import Budget, DeadlineExceeded, gdal_forget, gdal_http_options, gdal_progress\n"
        )
        done = subprocess.run(
            [python, "-c", prelude + textwrap.dedent(code), *args],
            capture_output=True, text=True, check=False, timeout=60, env={**os.environ, "PYTHONPATH": root},
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


CALLS = {
    # Sparse: else closing the file that was cut short fills it to its full size, 2.7 GB here (5 s, measured).
    "Warp": (
        "gdal.Warp(out, src, dstSRS='EPSG:3857', xRes=4, yRes=4, resampleAlg='lanczos', "
        "creationOptions=['SPARSE_OK=TRUE'], callback=progress)"
    ),
    "threaded Warp": (
        "gdal.Warp(out, src, dstSRS='EPSG:3857', xRes=4, yRes=4, resampleAlg='lanczos', multithread=True, "
        "creationOptions=['SPARSE_OK=TRUE'], warpOptions=['NUM_THREADS=2'], callback=progress)"
    ),
    "Translate": "gdal.Translate(out, src, creationOptions=['COMPRESS=DEFLATE', 'ZLEVEL=9'], callback=progress)",
    "ComputeStatistics": "src.GetRasterBand(1).ComputeStatistics(False, progress)",
}


@pytest.mark.parametrize("call", CALLS)
def test_gdal_stops_at_the_deadline(call: str, osgeo: Callable[..., str], tmp_path: Path) -> None:
    out = osgeo(
        f"""
        src = gdal.GetDriverByName("MEM").Create("", 6000, 6000, 3, gdal.GDT_Float32)
        src.SetGeoTransform((500000, 10, 0, 5600000, 0, -10))
        src.SetProjection('PROJCS["x",GEOGCS["WGS 84",DATUM["WGS_1984",SPHEROID["WGS 84",6378137,298.257223563]],'
            'PRIMEM["Greenwich",0],UNIT["degree",0.0174532925199433]],PROJECTION["Transverse_Mercator"],'
            'PARAMETER["latitude_of_origin",0],PARAMETER["central_meridian",15],PARAMETER["scale_factor",0.9996],'
            'PARAMETER["false_easting",500000],PARAMETER["false_northing",0],UNIT["metre",1]]')
        for band in 1, 2, 3:
            src.GetRasterBand(band).Fill(band)
        out = sys.argv[1]
        before = gdal.GetCacheMax()
        budget = Budget.of({0.02 if call == "ComputeStatistics" else 0.3}, "flow")
        began = time.monotonic()
        try:
            with gdal_progress(budget) as progress:
                assert gdal.GetCacheMax() <= 16 * 1024 * 1024
                {CALLS[call]}
            print("no error")
        except DeadlineExceeded as error:
            print(type(error).__name__, error.layer, 0 <= error.complete < 1, error, file=sys.stderr)
            print(type(error).__name__, error.layer, 0 <= error.complete < 1)
        assert gdal.GetCacheMax() == before
        print(time.monotonic() - began)
        """,
        str(tmp_path / "out.tif"),
    )
    words, seconds = out.strip().splitlines()
    assert words == "GdalDeadlineExceeded flow True"
    assert float(seconds) < 3  # threaded Warp asks between chunks only: 1.5 s on a busy machine (measured)


def test_gdal_in_time(osgeo: Callable[..., str], tmp_path: Path) -> None:
    out = osgeo(
        """
        src = gdal.GetDriverByName("MEM").Create("", 10, 10)
        seen = []
        progress = gdal_progress(Budget.of(60), callback=lambda complete, *_: seen.append(complete) or 1)
        with progress:
            result = progress.verify(gdal.Translate(sys.argv[1], src, callback=progress))
        print(result.RasterXSize, seen[-1])
        """,
        str(tmp_path / "out.tif"),
    )
    assert out == "10 1.0\n"


# --- remote files --------------------------------------------------------------------------------------------


def test_options_are_sized_for_requests_and_retries(clock: WoundClock) -> None:
    budget = Budget.of(26, clock=clock)
    options = gdal_http_options(budget, requests=3, retries=1, retry_delay=2)
    assert options["GDAL_HTTP_TIMEOUT"] == "3.333"
    assert options["GDAL_HTTP_MAX_RETRY"] == "1"
    assert gdal_http_options(budget, 4, requests=4)["GDAL_HTTP_TIMEOUT"] == "1.000"
    assert gdal_http_options() == {}
    assert gdal_http_options(want=4, fresh=True)["CPL_VSIL_CURL_NON_CACHED"] == "/vsicurl/"
    with pytest.raises(ValueError, match="pause"):
        gdal_http_options(want=3, requests=2, retries=3, retry_delay=1)


@pytest.mark.parametrize("misbehaves", [silent, drips_headers], ids=lambda f: f.__name__)
def test_osgeo_does_not_hang(
    misbehaves: Callable[..., None], osgeo: Callable[..., str], serve: Serve, took: Took
) -> None:
    code = """
    began = time.monotonic()
    with config_options(gdal_http_options(Budget.of(2))):
        try:
            gdal.Open("/vsicurl/" + sys.argv[1])
        except RuntimeError:
            print(time.monotonic() - began)
    """
    assert float(osgeo(code, f"{serve(misbehaves).url}x.tif")) < 2.5


def _geotiff(folder: Path) -> bytes:
    rasterio = need_module("rasterio")
    path = folder / "tile.tif"
    with rasterio.open(path, "w", driver="GTiff", width=8, height=8, count=1, dtype="uint8") as dataset:
        dataset.write(need_module("numpy").full((1, 8, 8), 5, "uint8"))
    return path.read_bytes()


class Flaky:
    """Serves a file by HTTP once `up` is set; until then it says nothing."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.up = False

    def __call__(self, conn: socket.socket) -> None:
        while request := heard(conn):
            if not self.up:
                time.sleep(3)
                return
            head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(self.data)
            conn.sendall(head if request.startswith(b"HEAD") else head + self.data)


@pytest.mark.filterwarnings("ignore::Warning")
@pytest.mark.parametrize("misbehaves", [silent, drips_headers], ids=lambda f: f.__name__)
def test_rasterio_does_not_hang(misbehaves: Callable[..., None], serve: Serve, took: Took) -> None:
    """Without options: more than 900 s (measured)."""
    rasterio = need_module("rasterio")
    url = f"{serve(misbehaves).url}{misbehaves.__name__}.tif"
    with took(0, 2.5), pytest.raises(rasterio.errors.RasterioIOError):
        with rasterio.Env(**gdal_http_options(Budget.of(2))):
            rasterio.open(url)


@pytest.mark.filterwarnings("ignore::Warning")
def test_a_retry_reaches_the_network(serve: Serve, tmp_path: Path) -> None:
    """Without `fresh` every later open fails in 0.00 s, without a request (measured)."""
    rasterio = need_module("rasterio")
    flaky = Flaky(_geotiff(tmp_path))
    url = f"{serve(flaky).url}tile.tif"
    budget = Budget.of(20, "flow")
    widths = []
    for attempt in budget.attempts(3, backoff=0, want=2, on=rasterio.errors.RasterioIOError):
        with attempt as mine:
            options = gdal_http_options(mine, fresh=attempt.number > 1)
            with rasterio.Env(**options):
                try:
                    with rasterio.open(url) as dataset:
                        widths.append((attempt.number, dataset.width))
                finally:
                    flaky.up = True
    assert widths == [(2, 8)]


def test_gdal_forget(osgeo: Callable[..., str], serve: Serve, tmp_path: Path) -> None:
    flaky = Flaky(_geotiff(tmp_path))
    server = serve(flaky)
    code = """
    import urllib.request
    url = sys.argv[1]
    def width():
        try:
            with config_options(gdal_http_options(want=1)):
                return gdal.Open("/vsicurl/" + url).RasterXSize
        except RuntimeError:
            return None
    answers = [width()]
    print("down", flush=True)
    sys.stdin.readline()
    answers.append(width())
    gdal_forget(url)
    answers.append(width())
    print(answers)
    """
    import threading

    threading.Timer(1.5, setattr, [flaky, "up", True]).start()
    out = osgeo(code.replace("sys.stdin.readline()", "time.sleep(1.5)"), f"{server.url}tile.tif")
    assert out.splitlines()[-1] == "[None, None, 8]"


def test_errors_are_deadline_errors() -> None:
    assert issubclass(GdalDeadlineExceeded, DeadlineExceeded)
