"""DL504: a daemon thread that writes, with nothing that stops it before the interpreter ends."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from deadlint.index.scopes import Scope, dotted
from deadlint.index.values import Const, Function, Object, Partial, Value
from deadlint.model import Level
from deadlint.rule import Rule
from deadlint.site import Argument, Report, Site, targets_of

from deadlint_rules._gdal import UTILITIES
from deadlint_rules._processes import site_at

_THREAD = "threading.Thread"
_INIT = "threading.Thread.__init__"
_OPENS = {
    "builtins.open": 1,
    "io.open": 1,
    "gzip.open": 1,
    "wave.open": 1,
    "pathlib.Path.open": 0,
    "rasterio.open": 1,
    "fiona.open": 1,
}
_WRITES = UTILITIES | {
    "pathlib.Path.write_text", "pathlib.Path.write_bytes", "shutil.copy", "shutil.copy2", "shutil.copyfile",
    "shutil.copytree",
    "urllib.request.urlretrieve", "json.dump", "pickle.dump", "numpy.save", "numpy.savez", "sqlite3.connect.commit",
    "psycopg2.connection.commit", "psycopg.Connection.commit", "sqlalchemy.orm.Session.commit",
    "sqlalchemy.Connection.commit",
} | {
    f"{frame}.{method}"
    for frame in ("geopandas.GeoDataFrame", "geopandas.read_file", "pandas.DataFrame", "pandas.read_csv")
    for method in ("to_file", "to_parquet", "to_csv", "to_feather", "to_postgis", "to_sql")
}  # fmt: skip
# What publishes a file that was written under another name: cut short, it leaves the old one.
_PUBLISHES = frozenset(
    {
        "os.replace", "os.rename", "shutil.move", "pathlib.Path.replace", "pathlib.Path.rename",
        "deadlint_budget.atomic_output",
    }
)  # fmt: skip
_DEEPEST = 3  # calls between the thread's function and what writes


class DaemonThreadWork(Rule):
    """A daemon thread writes files or a database, and nothing stops it before the interpreter ends.

    ## What it does
    Finds `threading.Thread(…, daemon=True)`, `thread.daemon = True`, and subclasses of `Thread` made that way, whose
    function, as far as it can be followed in the file, opens a file for writing, copies one, commits a transaction, or
    writes a raster or table, and does not rename it when it is complete. Reported where nothing joins the thread:
    default where the work asks for nothing that could stop it (an event, a flag in the condition of its loop, a
    sentinel), strict where it does, since whoever sets that must wait for the end as well. A `join` with a limit of a
    thread that asks for nothing is strict too.

    ## Why it is bad
    When the main thread ends, by itself, by SIGTERM or after a timeout, daemon threads are stopped wherever they are:
    no `finally`, no `with` of theirs is left. What they were writing stays half written, and a transaction or a lock
    is left to its server. Before that, a limit around the caller does not reach the thread at all.

    ## Example
    ```python
    import json
    import threading


    def publish(path, tiles):
        with open(path, "w") as stream:
            for tile in tiles:
                json.dump(tile.render(), stream)


    def start(path, tiles):
        threading.Thread(target=publish, args=(path, tiles), daemon=True).start()
    ```

    ## Use instead
    ```python
    import json
    import threading


    def publish(path, tiles, stop):
        with open(path, "w") as stream:
            for tile in tiles:
                if stop.is_set():
                    return
                json.dump(tile.render(), stream)


    def run(path, tiles, work):
        stop = threading.Event()
        thread = threading.Thread(target=publish, args=(path, tiles, stop))
        thread.start()
        try:
            work()
        finally:
            stop.set()
            thread.join()
    ```

    ## Fix safety
    There is no fix: where the work can stop, and who waits for it, is for its author to say.

    ## Options
    None.

    ## References
    - [threading: daemon threads](https://docs.python.org/3/library/threading.html#thread-objects)
    """

    code = "DL504"
    name = "daemon-thread-work"
    since = "0.1.0"
    calls = frozenset({_THREAD, _INIT})
    words = (("Thread", "daemon"), ("Thread", "setDaemon"))

    def check(self, site: Site) -> Iterator[Report]:
        key = _key(site)
        if not _is_daemon(site, key):
            return
        function = _function(site)
        if function is None:
            return
        work = _Work()
        _look(function, site, work, _DEEPEST)
        if not work.writes or work.publishes:
            return
        join = _join(site, key)
        if join is _Join.YES or (join is _Join.FOR_A_WHILE and work.stops):
            return
        name = f"`{function.name}`"
        if work.stops:
            what = f"nothing waits for daemon thread {name} when it is told to stop: `{work.writes}` may be cut short"
        else:
            what = f"nothing stops daemon thread {name} before the interpreter ends: `{work.writes}` may be cut short"
        yield site.report(
            what,
            "give it an event that it looks at, set that, and join the thread before the end",
            level=Level.STRICT if work.stops or join is not _Join.NO else Level.DEFAULT,
        )


# --- the thread ------------------------------------------------------------------------------------------------


def _key(site: Site) -> str:
    """The name that the thread gets: `thread`, `self._thread`; empty where it has none."""
    match site.parent:
        case ast.Assign(targets=[target, *_]) | ast.AnnAssign(target=target) | ast.NamedExpr(target=target):
            return dotted(target)
    return "self" if site.name == _INIT else ""


def _is_daemon(site: Site, key: str) -> bool:
    argument = site.argument("daemon")
    if not argument.absent:
        return argument.constant == Const(True)
    if not key:
        return False
    given = [binding.value for binding, _ in site.scope.attributes.get((key, "daemon"), ())]
    given += [call.args[0] for call in site.scope.calls if dotted(call.func) == f"{key}.setDaemon" and call.args]
    return any(isinstance(value, ast.Constant) and bool(value.value) for value in given)


def _function(site: Site) -> Scope | None:
    """The function that the thread runs, where it is in sight."""
    target = site.argument("target", None if site.name == _INIT else 1)
    if target.absent:
        owner = site.function.owner if site.name == _INIT and site.function is not None else _class(site)
        return site.module.resolver.method(owner, "run") if owner is not None else None
    found = [f for value in target.values if (f := _of_value(value)) is not None]
    return found[0] if len(found) == 1 and found[0].kind == "function" else None


def _class(site: Site) -> Scope | None:
    """The subclass of `Thread` that a call makes."""
    for value in site.values(site.call):
        match value:
            case Object(cls=cls):
                return cls
    return None


def _of_value(value: Value) -> Scope | None:
    match value:
        case Function(scope=scope):
            return scope
        case Partial(function=function):
            return _of_value(function)
    return None


class _Join(Enum):
    """How the end of a thread is waited for."""

    NO = "nowhere"
    FOR_A_WHILE = "with a limit"
    YES = "to its end"


def _join(site: Site, key: str) -> _Join:
    """How the thread is joined somewhere in the file; by others, where it is handed out."""
    module = site.module
    if isinstance(site.parent, ast.Return) or any(dotted(value) == key for value in site.scope.returns if key):
        return _Join.YES
    found = _Join.NO
    for call in module.calls:
        for func in (call.func, *call.args):  # also where `thread.join` is handed to something that calls it
            if isinstance(func, ast.Attribute) and func.attr == "join" and _is_this_thread(func, site, key):
                if func is not call.func or not (call.args or call.keywords):
                    return _Join.YES
                found = _Join.FOR_A_WHILE
    return found


_LIKE_A_THREAD = re.compile(r"thread|worker|^th?\d?$", re.IGNORECASE)


def _is_this_thread(join: ast.Attribute, site: Site, key: str) -> bool:
    """Whether the `join` may be that of the thread: one of a list has another name there."""
    base = dotted(join.value).rpartition(".")[2]
    if not base or base == "path":
        return False
    if base == key.rpartition(".")[2] or _LIKE_A_THREAD.search(base):
        return True
    return site.name == _INIT  # of a class of threads: its instances have any name


# --- its work --------------------------------------------------------------------------------------------------


@dataclass
class _Work:
    writes: str = ""  # the first thing that writes
    stops: bool = False  # whether it asks for something that could stop it
    publishes: bool = False  # whether what it writes gets its name when it is complete


_ASKS = frozenset({"is_set", "check", "cancelled", "should_stop", "is_alive", "stopped", "wait"})


def _look(function: Scope, site: Site, work: _Work, depth: int) -> None:
    module = site.module
    function = module.resolver.walked(function)
    if function.module is not module.scope:
        return
    for node in ast.walk(function.node):
        match node:
            case ast.While(test=test) if not isinstance(test, ast.Constant):
                work.stops = work.stops or any(isinstance(n, ast.Attribute | ast.Name) for n in ast.walk(test))
            case ast.While(body=body):
                inside = (n for statement in body for n in ast.walk(statement))
                work.stops = work.stops or any(isinstance(n, ast.Break | ast.Return) for n in inside)
    for call in function.calls:
        if isinstance(call.func, ast.Attribute) and call.func.attr in _ASKS:
            work.stops = True
        for value in module.resolver.evaluate(call.func, function):
            match value:
                case Function(scope=inner) if depth and inner is not function:
                    _look(inner, site, work, depth - 1)
            for target in targets_of((value,)):
                work.publishes = work.publishes or target.name in _PUBLISHES
                if _is_write(site_at(module, call, function, target.name)):
                    work.writes = work.writes or ast.unparse(call.func)[:40]


def _is_write(site: Site) -> bool:
    if site.name not in _OPENS:
        return site.name in _WRITES
    mode: Argument = site.argument("mode", _OPENS[site.name])
    return any(isinstance(v, Const) and isinstance(v.value, str) and re.search(r"[wax+]", v.value) for v in mode.values)
