"""`atomic_output`: an output that is the old one or the new one, never half of it."""

from __future__ import annotations

import ctypes
import errno
import hashlib
import itertools
import os
import re
import shutil
import socket
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from ._ambient import current_budget
from ._budget import Budget

# `x.gpkg.zip`, `x.tar.gz`: GDAL and tar go by both.
_COMPRESSED = {".gz", ".zip", ".bz2", ".xz", ".zst"}
# What GDAL writes beside `name`: statistics, overviews, masks. Left over from the old output they would be wrong
# for the new one: stale overviews are shown, stale statistics believed.
_SIDECARS = (".aux.xml", ".ovr", ".msk", ".ovr.aux.xml", ".msk.ovr")
_RENAME_EXCHANGE = 2
_AT_FDCWD = -100
_counter = itertools.count(1)


class OutputError(OSError):
    """The block ended well, but there is no output that could be published: it is missing, empty or not valid."""


def split_name(name: str) -> tuple[str, str]:
    """The stem and the ending by which programs know the format: `("tile", ".tif")`, `("a.b", ".gpkg.zip")`."""
    stem, ending = os.path.splitext(name)
    if ending.lower() in _COMPRESSED:
        stem, inner = os.path.splitext(stem)
        ending = inner + ending
    return (stem, ending) if stem else (name, "")


def _here() -> str:
    """Names the set of processes in which a pid means something: this boot of this host, this pid namespace."""
    parts = [socket.gethostname()]
    with suppress(OSError):
        parts.append(Path("/proc/sys/kernel/random/boot_id").read_text())
        parts.append(str(os.stat("/proc/self/ns/pid").st_ino))
    return hashlib.blake2b("\0".join(parts).encode(), digest_size=4).hexdigest()


def _started(pid: int) -> str | None:
    """When a process began, in its system's own count; None where there is no such process, "" where unknown."""
    if not os.path.exists("/proc/self/stat"):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return None
        except OSError:
            pass
        return ""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    return text.rpartition(")")[2].split()[19]


def _temporary_stem(stem: str) -> str:
    pid = os.getpid()
    return f".{stem}.part-{_here()}-{pid}-{_started(pid) or 0}-{next(_counter)}"


def _sweep(target: Path) -> None:
    """Remove what processes that have died left of earlier tries at `target`; those of other hosts are not ours."""
    stem, _ = split_name(target.name)
    pattern = re.compile(re.escape(f".{stem}.part-{_here()}-") + r"(\d+)-(\d+)-\d+(?=[.\-_]|$)")
    for entry in os.scandir(target.parent):
        match = pattern.match(entry.name)
        if match is None:
            continue
        started = _started(int(match[1]))
        if started is None or started not in ("", match[2]):
            _remove(Path(entry.path))


def _remove(path: Path) -> None:
    with suppress(OSError):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink()


class _Parts:
    """The temporary output and what was written beside it: everything in the directory that begins with its stem."""

    def __init__(self, target: Path) -> None:
        self.target = target
        self.stem, ending = split_name(target.name)
        self.temporary_stem = _temporary_stem(self.stem)
        self.main = target.parent / f"{self.temporary_stem}{ending}"

    def found(self) -> list[Path]:
        names = [entry.name for entry in os.scandir(self.target.parent)]
        ours = re.compile(re.escape(self.temporary_stem) + r"([.\-_]|$)")
        return [self.target.parent / name for name in sorted(names) if ours.match(name)]

    def final(self, part: Path) -> Path:
        return part.with_name(self.stem + part.name[len(self.temporary_stem) :])

    def discard(self) -> None:
        for part in self.found():
            _remove(part)

    def publish(self, durable: bool) -> None:
        """Sidecars first, the main file last: it is what readers look for."""
        parts = self.found()
        if durable:
            for part in parts:
                _sync(part)
        fresh = {self.final(part).name for part in parts}
        for ending in _SIDECARS:
            if self.target.name + ending not in fresh:
                # Before the main file: the old one without its overviews is slow, the new one with them is wrong.
                _remove(self.target.with_name(self.target.name + ending))
        for part in parts:
            if part != self.main:
                _replace(part, self.final(part))
        _replace(self.main, self.target)
        if durable and os.name == "posix":
            _sync_one(self.target.parent)


def _sync(path: Path) -> None:
    if path.is_dir():
        for folder, _, names in os.walk(path):
            for name in names:
                _sync_one(Path(folder, name))
            _sync_one(Path(folder))
    else:
        _sync_one(path)


def _sync_one(path: Path) -> None:
    # A descriptor of ours syncs what another process has written (measured).
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _replace(part: Path, final: Path) -> None:
    if not part.is_dir():
        if not final.is_symlink():
            _keep_owner(part, final)
        os.replace(part, final)
        return
    if not final.exists():
        os.rename(part, final)
    elif _exchange(part, final):
        _remove(part)  # the old one, which has that name now
    else:
        # Without an exchange there is a moment in which neither has the name.
        aside = part.with_name(part.name + "-old")
        os.rename(final, aside)
        try:
            os.rename(part, final)
        except OSError:
            os.rename(aside, final)
            raise
        _remove(aside)


def _exchange(one: Path, other: Path) -> bool:
    """Swap two names in one step (Linux, most filesystems); False where that cannot be had."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        renameat2 = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError):
        return False
    return bool(renameat2(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE) == 0)


def _keep_owner(part: Path, final: Path) -> None:
    """The mode and, where we may, the owner of the file that is replaced."""
    try:
        old = final.stat()
    except FileNotFoundError:
        return
    with suppress(PermissionError):
        if hasattr(os, "chown"):
            os.chown(part, old.st_uid, old.st_gid)
    os.chmod(part, stat.S_IMODE(old.st_mode))


def _valid(main: Path, allow_empty: bool, validate: Callable[[Path], Any] | None) -> None:
    if not main.exists():
        raise OutputError(f"the block ended without an output: nothing is at {main}")
    if not allow_empty and (not any(main.iterdir()) if main.is_dir() else main.stat().st_size == 0):
        raise OutputError(f"the output is empty: {main} (allow_empty=True if that is right)")
    if validate is not None and validate(main) is False:
        raise OutputError(f"the output is not valid, says {getattr(validate, '__name__', 'validate')}: {main}")


@contextmanager
def atomic_output(
    path: str | os.PathLike[str],
    budget: Budget | None = None,
    *,
    durable: bool = True,
    allow_empty: bool = False,
    validate: Callable[[Path], Any] | None = None,
) -> Iterator[Path]:
    """`with atomic_output("tile.tif") as part:` write `part`; it becomes `tile.tif` when the block has ended well.

    Yields a `pathlib.Path` in the same directory, hidden, that keeps the ending (`.tile.part-….tif`: GDAL goes by
    it). At the end, if the budget (default: the ambient one) has not run out and `validate(part)` is not False and
    does not raise, it is synced to the disk (`durable`) and renamed over `path`; files that were written beside it
    (`.aux.xml`, `.ovr`, `.tfw`, the parts of a shapefile) go along, and outdated ones are removed. On any exception
    everything is removed and `path` stays as it was. Killed at any moment, `path` is the old output or the new one;
    what is left over is swept by the next try. A symlink stays one; mode and owner of the old file are kept.

    A format of several files is not replaced in one step: its main file is last, a fraction of a millisecond after
    the others. A directory (`.gdb`, `.zarr`) is exchanged in one step on Linux; elsewhere there is a moment without.

    Raises `OutputError` where there is nothing to publish, `DeadlineExceeded` where the time is over, OSError with
    EXDEV where `path` lies on another filesystem than its directory, ValueError for `/vsi…` paths and URLs.
    """
    name = os.fspath(path)
    if name.startswith("/vsi") or "://" in name:
        raise ValueError(f"atomic_output is for local files: {name!r} cannot be renamed in one step")
    target = Path(os.path.realpath(name))
    budget = current_budget() if budget is None else budget
    _refuse_other_filesystem(target)
    _sweep(target)
    parts = _Parts(target)
    try:
        yield parts.main
        if budget is not None:
            budget.check(f"publishing {target.name}")
        _valid(parts.main, allow_empty, validate)
        if target.is_dir() and not parts.main.is_dir():
            raise OutputError(f"{target} is a directory and its new version is a file")
        parts.publish(durable)
    except BaseException:
        parts.discard()
        raise
    parts.discard()


def _refuse_other_filesystem(target: Path) -> None:
    try:
        same = target.stat().st_dev == target.parent.stat().st_dev
    except FileNotFoundError:
        target.parent.stat()  # a missing directory is told here, not after the work
        return
    if not same:
        words = "is mounted from another filesystem than its directory, so no rename can replace it in one step"
        raise OSError(errno.EXDEV, f"{target} {words}")
