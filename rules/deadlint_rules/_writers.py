"""What writes a file, and under which name: programs with an output among their arguments, GDAL, downloads."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from deadlint.index.scopes import Scope, dotted
from deadlint.index.values import Const, Result, Template
from deadlint.site import Site

from deadlint_rules._gdal import algorithm_argument, is_virtual, short_work
from deadlint_rules._processes import RUNS, child_of, commands_of

HELPERS = frozenset(f"deadlint_budget.{name}" for name in ("run", "check_output", "run_gdal"))
_GDAL = {"Warp": "destNameOrDestDS", "Translate": "destName", "Rasterize": "destNameOrDestDS",
         "VectorTranslate": "destNameOrDestDS", "DEMProcessing": "destName"}  # fmt: skip
RUN = frozenset({"osgeo.gdal.Run", "gdal.Run"})
GDAL = {f"{module}.{name}": keyword for module in ("osgeo.gdal", "gdal") for name, keyword in _GDAL.items()}
_FRAMES = ("geopandas.GeoDataFrame", "geopandas.read_file", "geopandas.read_parquet", "pandas.DataFrame",
           "pandas.read_csv", "pandas.read_parquet")  # fmt: skip
_TO = {"to_file": "filename", "to_parquet": "path", "to_feather": "path", "to_csv": "path_or_buf"}
FRAMES = {f"{frame}.{name}": keyword for frame in _FRAMES for name, keyword in _TO.items()}
RETRIEVE = frozenset({"urllib.request.urlretrieve", "urllib.urlretrieve"})
WAITS = frozenset({"subprocess.Popen.communicate", "subprocess.Popen.wait"})
OPEN = frozenset({"builtins.open", "pathlib.Path.open", "io.open"})
RASTERIO = "rasterio.open"

# Programs whose output is the last of their arguments, the first, or the value of an option.
LAST = frozenset({"gdalwarp", "gdal_translate", "gdal_rasterize", "gdal_grid", "gdaldem", "nearblack", "gdal", "rio"})
FIRST = frozenset({"ogr2ogr"})
OPTION = {"wget": ("-O", "--output-document"), "curl": ("-o", "--output"), "aria2c": ("-o", "--out"),
          "tippecanoe": ("-o", "--output"), "gdal_merge.py": ("-o",), "osmium": ("-o", "--output"),
          "entwine": ("-o", "--output"), "untwine": ("-o", "--output_dir"), "pg_dump": ("-f", "--file"),
          "tile-join": ("-o", "--output"), "gdal": ("-o", "--output"), "rio": ("-o", "--output"),
          "otbcli": ("-out",)}  # fmt: skip
# Commands of these programs that write the last of their arguments.
_COMMANDS = {
    "gdal": re.compile(
        r"(raster|vector) (convert|reproject|clip|edit|resize|mosaic|stack|calc|hillshade|slope|aspect|contour"
        r"|polygonize|rasterize|grid|buffer|filter|concat|fill-nodata|sieve|proximity|viewshed|tile|select|sql)"
    ),
    "rio": re.compile(r"(warp|convert|merge|clip|mask|rasterize|stack|calc|cogeo create)"),
}
PROGRAMS = LAST | FIRST | OPTION.keys() | {"ffmpeg"}
# What adds to a file that is there: that one cannot be written elsewhere.
_ADDING = frozenset({"-append", "-update", "-c", "--continue", "-C", "--continue-at"})
_FLAGS = frozenset(
    {
        "-overwrite", "-skipfailures", "-progress", "-makevalid", "-explodecollections", "-preserve_fid", "-q",
        "--overwrite", "--quiet", "--progress", "-multi", "-at", "-i", "-wrapdateline", "-nomd", "-noNativeData",
        "-unsetFid", "-addfields", "-relaxedFieldNameMatch",
        "-forceNullable", "-ds_transaction",
    }
)  # fmt: skip
_STREAMS = frozenset({"iter_content", "iter_bytes", "iter_raw", "aiter_bytes", "iter_chunked", "copyfileobj", "stream"})
_IN_MEMORY = frozenset({"io.BytesIO", "io.StringIO"})
_NOWHERE = re.compile(r"/vsi|/dev/|-?$|\w+://|pipe:")


@dataclass(frozen=True, slots=True)
class Output:
    """The file that a call writes. `name` is what messages call the writer."""

    path: ast.expr
    name: str
    checked: bool = True  # whether a failure raises
    fresh: bool = True  # whether an existing file is replaced, not written into


def output_of(site: Site) -> Output | None:
    """What a call writes; None where it writes nothing, or nothing that a name of another file could stand in for."""
    found = _output(site)
    return found if found is not None and not _nowhere(found.path, site) else None


def _output(site: Site) -> Output | None:
    name = site.name
    if name in RUNS or name in HELPERS:
        return _of_program(site)
    if name in WAITS:
        starts = child_of(site).starts
        found = _of_program(starts[0]) if len(starts) == 1 and starts[0].scope is site.scope else None
        looked = site.function is not None and "returncode" in site.source(_statement(site.function.node))
        return replace(found, checked=looked or site.value_used) if found is not None else None
    if name in RUN:
        node = algorithm_argument(site, "output").node
        return None if node is None or short_work(site) else Output(node, "gdal.Run")
    if name in GDAL:
        node = site.argument(GDAL[name], 0).node
        memory = site.argument("format").constant == Const("MEM")
        return None if node is None or memory or is_virtual(site) else Output(node, f"gdal.{name.rpartition('.')[2]}")
    if name in FRAMES:
        node, mode = site.argument(FRAMES[name], 0).node, site.argument("mode").constant
        adds = mode is not None and mode.value in ("a", "a+", "ab")
        return None if node is None or adds else Output(node, name.rpartition(".")[2])
    if name in RETRIEVE:
        node = site.argument("filename", 1).node
        return None if node is None else Output(node, "urlretrieve")
    if name == RASTERIO:
        node, mode = site.argument("fp", 0).node, site.argument("mode", 1).constant
        writes = mode is not None and mode.value in ("w", "w+")
        return Output(node, "rasterio.open(…, 'w')") if node is not None and writes else None
    return _of_open(site)


def _statement(node: ast.AST) -> ast.stmt:
    assert isinstance(node, ast.stmt)
    return node


def _of_open(site: Site) -> Output | None:
    """`with open(path, "wb") as file:` around a stream."""
    method = site.name == "pathlib.Path.open"
    mode = site.argument("mode", 0 if method else 1).constant
    if mode is None or not isinstance(mode.value, str) or not mode.value.startswith("w"):
        return None
    func = site.call.func
    path = func.value if method and isinstance(func, ast.Attribute) else site.argument("file", 0).node
    block = next((n for n in site.ancestors() if isinstance(n, ast.With | ast.AsyncWith)), None)
    if path is None or block is None or not any(site.call is item.context_expr for item in block.items):
        return None
    stream: Output | None = None
    for statement in block.body:
        for node in ast.walk(statement):
            match node:
                case ast.Call(func=ast.Attribute(attr=called) | ast.Name(id=called), args=args) if called in _STREAMS:
                    if args and any(isinstance(v, Result) and v.name in _IN_MEMORY for v in site.values(args[0])):
                        return None  # done in no time
                    return Output(path, "a copy" if called == "copyfileobj" else "a download")
                case ast.For(target=ast.Name(id=item)) | ast.AsyncFor(target=ast.Name(id=item)):
                    if "b" in mode.value and _PIECE.search(item) and _writes(node, item):
                        stream = Output(path, "a loop over a stream")
    return stream


_PIECE = re.compile(r"^(chunk|block|piece|buf|buffer)$|_chunk$")


def _writes(loop: ast.For | ast.AsyncFor, item: str) -> bool:
    """Whether each turn of a loop writes what it was given."""
    for node in ast.walk(loop):
        match node:
            case ast.Call(func=ast.Attribute(attr="write"), args=[ast.Name(id=name)]) if name == item:
                return True
    return False


# --- programs ------------------------------------------------------------------------------------------------------


def _of_program(site: Site) -> Output | None:
    command = commands_of(site).first
    argument = site.argument("args", 0).node
    words = list(_items(argument, site.scope, site, 0)) if argument is not None else []
    if not words or any(isinstance(w, ast.Starred) for w in words):
        return None
    texts = [w.value if isinstance(w, ast.Constant) and isinstance(w.value, str) else "" for w in words]
    place = next((i for i, t in enumerate(texts) if _writer_of(t) in PROGRAMS), None)
    if place is None and command.launcher is None and command.program in PROGRAMS:
        place, texts[0] = 0, command.program  # `gdalwarp = shutil.which("gdalwarp")`
    if place is None or command.shell:
        return None
    program, rest, told = _writer_of(texts[place]), words[place + 1 :], texts[place + 1 :]
    if _ADDING & set(told) or "VRT" in told:
        return None  # it adds to what is there, or writes no pixels
    path = _path(program, rest, told)
    if path is None:
        return None
    checked = (
        site.name.endswith(("check_call", "check_output", "run_gdal"))
        or site.argument("check").constant == Const(True)
        or site.value_used
    )
    fresh = program != "gdalwarp" or "-overwrite" in told
    return Output(path, program, checked, fresh)


def _path(program: str, words: list[ast.expr], texts: list[str]) -> ast.expr | None:
    if program in OPTION:
        for i, text in enumerate(texts[:-1]):
            if text in OPTION[program]:
                return words[i + 1]
        if program not in LAST:
            return None
    if program in _COMMANDS and not _COMMANDS[program].match(" ".join(texts[:2])):
        return None
    if program in LAST:
        return words[-1] if len(words) > 1 and _is_argument(texts) else None
    if program == "ffmpeg":
        return _of_ffmpeg(words, texts)
    i = 0
    while i < len(words):
        if not texts[i].startswith("-"):
            return words[i] if i + 1 < len(words) else None
        if texts[i] in ("-spat", "-clipsrc", "-clipdst"):
            return None  # they take one value or four
        i += 1 if texts[i] in _FLAGS else 2
    return None


def _writer_of(text: str) -> str:
    """The base name of a program; OTB has one for each of its applications."""
    name = text.rpartition("/")[2]
    return "otbcli" if name.startswith("otbcli_") else name


def _is_argument(texts: list[str]) -> bool:
    """Whether the last word is no option, nor the value of one: `gdal_translate in.tif out.tif -of COG`."""
    last, before = texts[-1], texts[-2]
    if re.fullmatch(r"[\d.]+", last):
        return False  # the last of several values: `-te 1 2 3 4`
    return not last.startswith("-") and (not before.startswith("-") or before in _FLAGS or "=" in before)


def _of_ffmpeg(words: list[ast.expr], texts: list[str]) -> ast.expr | None:
    """The one word that is neither an option nor the value of one; None where there are several."""
    found = [
        word
        for word, text, before in zip(words, texts, ["", *texts[:-1]], strict=True)
        if not text.startswith("-") and (not before.startswith("-") or before in ("-y", "-n", "-hide_banner", "-an"))
    ]
    return found[0] if len(found) == 1 else None


def _items(node: ast.expr, scope: Scope, site: Site, depth: int) -> Iterator[ast.expr]:
    """The items of a list that is written out, perhaps in pieces or under a name."""
    match node:
        case ast.List(elts=items) | ast.Tuple(elts=items):
            yield from items
        case ast.BinOp(op=ast.Add(), left=left, right=right):
            yield from _items(left, scope, site, depth)
            yield from _items(right, scope, site, depth)
        case ast.Name(id=name) if depth < 3:
            home = site.module.resolver.scope_binding(name, scope)
            bindings = home.bindings[name] if home is not None and home is scope else []
            changed = any(
                isinstance(c.func, ast.Attribute) and dotted(c.func.value) == name for c in scope.calls
            )  # `.append(…)`, `.extend(…)`
            if len(bindings) == 1 and bindings[0].kind == "assign" and bindings[0].value is not None and not changed:
                yield from _items(bindings[0].value, scope, site, depth + 1)
            else:
                yield ast.Starred(node, ast.Load())
        case _:
            yield ast.Starred(node, ast.Load())


def _nowhere(path: ast.expr, site: Site) -> bool:
    """Whether a path is none that could be renamed: memory, a device, a remote one, or a dataset that is open."""
    for value in site.values(path):
        match value:
            case Const(value=str() as text):
                if _NOWHERE.match(text) and not re.match(r"\w:[\\/]", text):
                    return True
            case Template(parts=(str() as first, *_)):
                if _NOWHERE.match(first) and first:
                    return True
            case Const() | Result(name="osgeo.gdal.Open" | "osgeo.gdal.OpenEx" | "builtins.open" | "io.BytesIO"):
                return True
            case Result(name=name) if name.startswith(("osgeo.gdal.GetDriverByName", "rasterio.io.MemoryFile")):
                return True
    return False
