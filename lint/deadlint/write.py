"""Writing a file as a whole, or not at all."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from dataclasses import dataclass
from tempfile import mkstemp


class CannotWrite(Exception):
    """A file was not replaced; the text says why, and what to do, as the rest of a sentence."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A file as it was read: where it is, its status and its bytes."""

    path: str
    status: os.stat_result
    data: bytes

    @classmethod
    def read(cls, path: str) -> Snapshot:
        """Read `path`. Raises `OSError`."""
        with open(path, "rb") as file:
            status = os.fstat(file.fileno())
            return cls(path, status, file.read())


def replace_file(before: Snapshot, data: bytes) -> None:
    """Put `data` in place of the file that `before` was read from.

    The new content is complete on disk before it takes the name. Mode and owner stay; a symbolic link goes on
    leading to the file. Raises `CannotWrite` where the file has changed since, or cannot be written.
    """
    target = os.path.realpath(before.path)
    temporary = None
    try:
        descriptor, temporary = mkstemp(prefix=".deadlint-", dir=os.path.dirname(target))
        with open(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            _keep(file.fileno(), before.status)
            os.fsync(file.fileno())
        _refuse_if_changed(target, before)
        os.replace(temporary, target)
        temporary = None
    except OSError as error:
        raise CannotWrite(f"cannot be written: {error.strerror}; nothing was changed") from error
    finally:
        if temporary is not None:
            with suppress(OSError):
                os.unlink(temporary)


def put_file(path: str, data: bytes) -> None:
    """Make `path` hold `data`, whether or not there is such a file; directories on the way are made.

    It is replaced as a whole, with its mode and through a link. A pipe or a device is written to.
    Raises `CannotWrite`.
    """
    try:
        try:
            mode = os.stat(path).st_mode
        except FileNotFoundError:
            mode = None
        if mode is not None and not stat.S_ISREG(mode):
            with open(path, "wb") as file:
                file.write(data)
            return
        _put(os.path.realpath(path), data, None if mode is None else stat.S_IMODE(mode))
    except OSError as error:
        raise CannotWrite(f"cannot be written: {error.strerror}") from error


def _put(target: str, data: bytes, mode: int | None) -> None:
    os.makedirs(os.path.dirname(target), exist_ok=True)
    temporary = f"{target}.{os.getpid()}.tmp"
    try:
        with open(temporary, "xb") as file:  # not by `mkstemp`, for a report is for others to read as well
            if mode is not None:
                os.fchmod(file.fileno(), mode)
            file.write(data)
        os.replace(temporary, target)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(temporary)


def _keep(descriptor: int, status: os.stat_result) -> None:
    """Give the new file the owner and mode of the old one."""
    made = os.fstat(descriptor)
    if (made.st_uid, made.st_gid) != (status.st_uid, status.st_gid):
        try:
            os.fchown(descriptor, status.st_uid, status.st_gid)
        except PermissionError as error:
            raise CannotWrite("belongs to another user or group; run as its owner") from error
    os.fchmod(descriptor, stat.S_IMODE(status.st_mode))


def _refuse_if_changed(target: str, before: Snapshot) -> None:
    """A look at the last moment. Status alone is not enough: an edit can be quicker than the clock's tick."""
    now = Snapshot.read(target)
    if _identity(now.status) != _identity(before.status) or now.data != before.data:
        raise CannotWrite("has changed since it was read, so it was left alone; run again")


def _identity(status: os.stat_result) -> tuple[int, int, int, int]:
    return (status.st_dev, status.st_ino, status.st_mtime_ns, status.st_size)
