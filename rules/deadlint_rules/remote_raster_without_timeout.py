"""DL203: GDAL reads over HTTP, and nothing limits its requests."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from deadlint.index.scopes import dotted
from deadlint.index.values import NONE, UNKNOWN, Const, Mapping
from deadlint.model import Fix, Level
from deadlint.rule import Rule
from deadlint.site import Report, Site

from deadlint_rules._again import tried_again
from deadlint_rules._gdal import ALGORITHMS, algorithm_argument, short
from deadlint_rules._gdal_fixes import with_http_options
from deadlint_rules._processes import RUNS, Given, commands_of, limit_given
from deadlint_rules._programs import words_of
from deadlint_rules._remote import LIMITS, Remote, limited, limits_anything, remote, remote_text

if TYPE_CHECKING:
    from deadlint.index.module import Module


@dataclass(frozen=True, slots=True)
class _Source:
    """Where a call takes what it opens."""

    keyword: str
    position: int


_PYTHON = {
    "rasterio.open": _Source("fp", 0),
    "rioxarray.open_rasterio": _Source("filename", 0),
    "xarray.open_rasterio": _Source("filename", 0),
    "xarray.open_dataset": _Source("filename_or_obj", 0),  # with engine="rasterio"
    "fiona.open": _Source("fp", 0),
    "pyogrio.read_dataframe": _Source("path_or_buffer", 0),
    "pyogrio.read_info": _Source("path_or_buffer", 0),
    "geopandas.read_file": _Source("filename", 0),
}
_BINDINGS = {
    "gdal.Open": _Source("utf8_path", 0),
    "gdal.OpenEx": _Source("utf8_path", 0),
    "gdal.Info": _Source("ds", 0),
    "gdal.VectorInfo": _Source("ds", 0),
    "ogr.Open": _Source("utf8_path", 0),
    "gdal.Warp": _Source("srcDSOrSrcDSTab", 1),
    "gdal.Translate": _Source("srcDS", 1),
    "gdal.VectorTranslate": _Source("srcDS", 1),
    "gdal.BuildVRT": _Source("srcDSOrSrcDSTab", 1),
    "gdal.DEMProcessing": _Source("srcDS", 1),
    "gdal.Run": _Source("input", 0),
}
_SOURCES = _PYTHON | _BINDINGS | {f"osgeo.{name}": source for name, source in _BINDINGS.items()}
_ENV = "rasterio.Env"
_SET = frozenset({"osgeo.gdal.SetConfigOption", "gdal.SetConfigOption"})
_PROGRAM = re.compile(r"gdal\w*(\.py)?|ogr\w+|rio|otbcli_\w+|raster2pgsql")
# Options that speak of requests, and none that limits them.
_RETRIES = ("GDAL_HTTP_MAX_RETRY", "GDAL_HTTP_RETRY_DELAY", "GDAL_HTTP_CONNECTTIMEOUT")
_LIBRARIES = (
    ("rasterio", "open"), ("rioxarray", "open_rasterio"), ("fiona", "open("), ("pyogrio", "read_"),
    ("geopandas", "read_file("), ("osgeo",), ("import gdal",), ("import ogr",),
)  # fmt: skip
_HINTS = ("/vsi", "http", "s3://", "gs://", "url", "href")


class RemoteRasterWithoutTimeout(Rule):
    """A raster or vector is read over HTTP, and nothing limits GDAL's requests.

    ## What it does
    Finds `/vsicurl/`, `/vsis3/`, `https://`, `s3://` and the like in `rasterio.open`, `rioxarray.open_rasterio`,
    `fiona.open`, `geopandas.read_file`, `pyogrio`, `gdal.Open`, `gdal.Warp`, `gdal.Translate`, `gdal.BuildVRT`,
    `gdal.Run`, `ogr.Open`, and in the arguments of programs that read through GDAL, where no `GDAL_HTTP_TIMEOUT` (or
    `GDAL_HTTP_LOW_SPEED_TIME`) is set: in the `Env` or `config_options` around the call or its callers, by
    `SetConfigOption`, in the environment or in a dictionary of the file. Also retries and a connect limit
    (`GDAL_HTTP_MAX_RETRY`, `GDAL_HTTP_CONNECTTIMEOUT`) with no limit beside them, a `rasterio.Env` for remote files
    with none, and a retry around an open that cannot reach the network.

    Strict adds sources of which only the name says that they are an address (`url`, `href`), servers on this host,
    programs, and a `rasterio.Env` that may be for local files or is given options that are not known. A program whose
    process nothing bounds is DL103's alone: the limit that it lacks ends such a wait too.

    ## Why it is bad
    GDAL's requests have no limit of their own. Measured with 3.6 and 3.10: `rasterio.open` on a server that accepts and
    says nothing had not come back after 900 s; with dropped packets it took 270 s. With `GDAL_HTTP_TIMEOUT=2` it took
    4.2 s; with `GDAL_HTTP_CONNECTTIMEOUT=2` alone more than 25 s. No exception or signal gets through meanwhile.

    The limit is for each request: opening a GeoTIFF takes two to five of them, each window at least one.
    `gdal_http_options(budget)` sizes it so that they fit into what is left.

    After one failure GDAL answers for that name from memory, in 0.00 s and without a request, for the life of the
    process. So a retry in Python around the open changes nothing, unless that memory is cleared
    (`gdal.VSICurlPartialClearCache`, `CPL_VSIL_CURL_NON_CACHED`).

    ## Example
    ```python
    import rasterio


    def bounds(name):
        with rasterio.open(f"/vsicurl/https://tiles.example.com/{name}.tif") as dataset:
            return dataset.bounds
    ```

    ## Use instead
    ```python
    import rasterio
    from deadlint_budget import gdal_http_options


    def bounds(name, budget):
        with rasterio.Env(**gdal_http_options(budget)):
            with rasterio.open(f"/vsicurl/https://tiles.example.com/{name}.tif") as dataset:
                return dataset.bounds
    ```

    ## Fix safety
    Unsafe: slow requests fail. `with rasterio.open(…)` gets an `Env` in front of it. Without a budget or a timeout
    parameter in scope the fix is only shown, as nobody has said how long the reading may take. Calls outside of
    a `with` have no fix: the limit must hold for what is read later, too.

    ## Options
    - `helpers`: the module that fixed code imports from.

    ## References
    - [GDAL configuration options: GDAL_HTTP_TIMEOUT](https://gdal.org/en/stable/user/configoptions.html)
    - [GDAL: /vsicurl/](https://gdal.org/en/stable/user/virtual_file_systems.html)
    - [rasterio/rasterio#2119](https://github.com/rasterio/rasterio/issues/2119): a retry that never reaches the network
    """

    code = "DL203"
    name = "remote-raster-without-timeout"
    since = "0.1.0"
    calls = frozenset(_SOURCES) | RUNS | _SET | {_ENV, "os.system"}
    words = (
        *((*library, hint) for library in _LIBRARIES for hint in _HINTS),
        ("rasterio", "Env("),
        ("SetConfigOption", "GDAL_HTTP_"),
        ("environ", "GDAL_HTTP_"),
        ("config_option", "GDAL_HTTP_"),
        ("engine", "rasterio", "xarray"),
        *((start, program, hint) for start in ("subprocess", "os.system")
          for program in ("gdal", "ogr2ogr", "ogrinfo", "otbcli", "rio", "raster2pgsql")
          for hint in ("/vsi", "http", "s3://")),
    )  # fmt: skip

    def check(self, site: Site) -> Iterator[Report]:
        """Report the call if it reads over HTTP without a limit, or tries again in vain."""
        if site.name in _SOURCES:
            yield from _opened(site)
        elif site.name == _ENV:
            yield from _environment(site)
        elif site.name in _SET:
            yield from _set(site)
        else:
            yield from _program(site)

    def check_module(self, module: Module) -> Iterator[Report]:
        """Report retries and connect limits that the environment or GDAL's configuration gets without a limit."""
        if not any(option in module.source.text for option in _RETRIES[::2]) or limits_anything(module):
            return
        if any(_opens_remote(site) for site in module.sites):
            return  # what is opened is reported itself
        for node, option in _configured(module):
            yield _without_limit_at(node, option)


def _opened(site: Site) -> Iterator[Report]:
    source = _SOURCES[site.name]
    if site.name in ALGORITHMS:
        argument = algorithm_argument(site, source.keyword)
    else:
        argument = site.argument(source.keyword, source.position)
    if site.name == "xarray.open_dataset" and site.argument("engine").constant != Const("rasterio"):
        return
    answer = remote(site, argument.node, argument.values)
    if answer is Remote.NO:
        return
    level = Level.DEFAULT if answer is Remote.YES else Level.STRICT
    vain = tried_again(site) and not _clears(site)
    name = site.name if site.name in _PYTHON else short(site.name)
    memory = "GDAL answers from memory after the first failure, so that no retry reaches the network"
    if not limited(site):
        yield site.report(
            f"`{name}` {'reads' if answer is Remote.YES else 'may read'} over HTTP without `GDAL_HTTP_TIMEOUT`: a"
            f" server that falls silent holds it for good{f'; and {memory}' if vain else ''}",
            _remedy(site),
            level=level,
            fix=_fix(site),
        )
    elif vain:
        yield site.report(
            f"`{name}` is tried again, but {memory}",
            f"forget what it knows first: `{site.module.settings.helpers}.gdal_forget(url)`, or"
            " `gdal_http_options(budget, fresh=True)` for the second attempt",
            level=level,
        )


def _remedy(site: Site) -> str:
    options = f"**{site.module.settings.helpers}.gdal_http_options({site.budget or 'budget'})"
    if site.name.startswith(("rasterio", "rioxarray", "xarray")):
        return f"open and read it in `with rasterio.Env({options}):`"
    if site.name.startswith(("fiona", "geopandas", "pyogrio")):
        return "set `GDAL_HTTP_TIMEOUT` before it, or download it with a limit first"
    return f"open and read it in `with gdal.config_options({options[2:]}):`"


def _fix(site: Site) -> Callable[[], Fix | None] | None:
    if site.name != "rasterio.open":
        return None
    return lambda: with_http_options(site)


_CLEARING = ("VSICurlClearCache", "VSICurlPartialClearCache", "CPL_VSIL_CURL_NON_CACHED", "gdal_forget", "fresh=")


def _clears(site: Site) -> bool:
    """Whether the file ever makes GDAL forget."""
    return any(word in site.module.source.text for word in _CLEARING)


# --- options -------------------------------------------------------------------------------------------------------


def _environment(site: Site) -> Iterator[Report]:
    if limited(site) or _opens_inside(site):
        return
    retries = [option for option in _RETRIES if _given(site, option)]
    # What comes in a `**mapping` may hold the limit.
    known = Level.STRICT if site.argument(LIMITS[0]).unknown else Level.DEFAULT
    if retries:
        yield _without_limit(site, retries[0], known)
    elif _for_remote(site):
        yield site.report(
            "this `rasterio.Env` is for remote files and sets no `GDAL_HTTP_TIMEOUT`: a server that falls silent holds"
            " what is read in it for good",
            f"add `**{site.module.settings.helpers}.gdal_http_options({site.budget or 'budget'})`",
            level=known,
        )
    elif _may_be_remote(site):
        yield site.report(
            "this `rasterio.Env` sets no `GDAL_HTTP_TIMEOUT`: a remote file that is read in it may hold it for good",
            f"add `**{site.module.settings.helpers}.gdal_http_options({site.budget or 'budget'})`",
            level=Level.STRICT,
        )


def _given(site: Site, option: str) -> bool:
    values = site.argument(option).values
    return any(v not in (UNKNOWN, NONE) for v in values)


_CLOUD = ("aws_unsigned", "AWS_NO_SIGN_REQUEST", "AWS_REQUEST_PAYER", "AWS_S3_ENDPOINT")


def _for_remote(site: Site) -> bool:
    if any(_given(site, option) for option in _CLOUD):
        return True
    return any(k.arg is not None and k.arg.startswith("CPL_VSIL_CURL_") for k in site.call.keywords)


def _may_be_remote(site: Site) -> bool:
    """A session, an option that only helps remote files, or options of which nothing is known."""
    if _given(site, "GDAL_DISABLE_READDIR_ON_OPEN") or not site.argument("session", 0).absent:
        return True
    return any(
        not isinstance(v, Mapping) or v.open
        for k in site.call.keywords if k.arg is None
        for v in site.values(k.value)
    )  # fmt: skip


def _opens_inside(site: Site) -> bool:
    """Whether a call that is reported itself stands in the block of an `Env`."""
    block = next((n for n in site.ancestors() if isinstance(n, ast.With)), None)
    if block is None or not any(site.call is item.context_expr for item in block.items):
        return False
    for node in ast.walk(block):
        inner = site.module.site(node) if isinstance(node, ast.Call) and node is not site.call else None
        for target in inner.targets if inner is not None else ():
            source = _SOURCES.get(target.name)
            if inner is not None and source is not None:
                argument = inner.argument(source.keyword, source.position)
                if remote(inner, argument.node, argument.values) is Remote.YES:
                    return True
    return False


def _set(site: Site) -> Iterator[Report]:
    option = site.argument("pszKey", 0).constant
    if option is not None and option.value in _RETRIES[::2] and not limited(site):
        yield _without_limit(site, str(option.value), Level.DEFAULT)


def _without_limit(site: Site, option: str, level: Level) -> Report:
    return replace(_without_limit_at(site.call, option), level=level)


def _without_limit_at(node: ast.expr, option: str) -> Report:
    if option == "GDAL_HTTP_CONNECTTIMEOUT":
        what = "bounds the connection alone: a server that accepts and falls silent holds the call for good"
    else:
        what = "repeats requests that fail, and without a limit a silent server never lets one fail"
    return Report(node, f"`{option}` {what}", "set `GDAL_HTTP_TIMEOUT` as well")


def _opens_remote(site: Site) -> bool:
    """Whether a call opens something that lies behind HTTP for certain."""
    for target in site.targets:
        source = _SOURCES.get(target.name)
        if source is not None and target.name not in ALGORITHMS:
            argument = site.argument(source.keyword, source.position)
            if remote(site, argument.node, argument.values) is Remote.YES:
                return True
    return False


_CONFIGURING = frozenset({"config_option", "config_options", "SetConfigOptions", "setdefault", "putenv", "update"})


def _configured(module: Module) -> Iterator[tuple[ast.expr, str]]:
    """Where the environment, or GDAL's configuration, gets an option that speaks of requests and limits none."""
    for node in ast.walk(module.tree):
        match node:
            case ast.Assign(targets=[ast.Subscript(value=base, slice=ast.Constant(value=str() as name)) as target]):
                if name in _RETRIES[::2] and dotted(base).rpartition(".")[2] == "environ":
                    yield target, name
            case ast.Call(func=func, args=[ast.Constant(value=str() as name), *_]) if name in _RETRIES[::2]:
                if _last(func) in _CONFIGURING:
                    yield node, name
            case ast.Call(func=func, args=[ast.Dict(keys=keys), *_]) if _last(func) in _CONFIGURING:
                names = [k.value for k in keys if isinstance(k, ast.Constant) and k.value in _RETRIES[::2]]
                if names:
                    yield node, str(names[0])


def _last(func: ast.expr) -> str:
    return dotted(func).rpartition(".")[2]


# --- programs ------------------------------------------------------------------------------------------------------


def _program(site: Site) -> Iterator[Report]:
    argument = site.argument("command" if site.name == "os.system" else "args", 0)
    # A child that nothing bounds is DL103's: its limit ends this wait too.
    if not (site.name in RUNS and limit_given(site) is not Given.NO) and not commands_of(site).bounded:
        return
    program = _remote_program(site, argument.node)
    if program is None or limited(site) or not _inherits(site):
        return
    yield site.report(
        f"`{program}` reads over HTTP without `GDAL_HTTP_TIMEOUT`: a server that falls silent holds it until its"
        " process is killed",
        "give it `--config GDAL_HTTP_TIMEOUT …`, or `gdal_http_options(budget)` in its environment",
        level=Level.STRICT,
    )


def _inherits(site: Site) -> bool:
    """Whether what the child's environment holds is known: nothing of its own, or a dictionary that is read whole."""
    return all(v == NONE or (isinstance(v, Mapping) and not v.open) for v in site.argument("env").values)


def _remote_program(site: Site, node: ast.expr | None) -> str | None:
    """The program of GDAL that a command line starts on a remote source."""
    values = site.argument("command" if site.name == "os.system" else "args", 0).values
    for words in words_of(values, site.module.resolver, site.module.settings):
        name = next((n for w in words if (n := w.rpartition("/")[2]) and _PROGRAM.fullmatch(n)), None)
        if name is None:
            continue
        if any(remote_text(word) is Remote.YES for word in words):
            return name
        if node is not None and remote(site, node, ()) is Remote.YES:
            return name
    return None
