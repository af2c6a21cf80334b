"""The directory of the cache: its files are read, replaced and cleared, and nothing else that is there."""

from __future__ import annotations

import os
import stat
import time
from contextlib import suppress

NAME = ".deadlint_cache"
SUFFIX = ".cache"
_HALF_WRITTEN = ".tmp"
_ABANDONED_S = 3600  # no writer takes an hour
_KEEP_S = 30 * 24 * 3600  # cache files of other settings go when nobody has written them for a month
_LARGEST = 1 << 30
_MARKS = {
    ".gitignore": "# Made by deadlint.\n*\n",
    "CACHEDIR.TAG": "Signature: 8a477f597d28d172789f06886806bc55\n# Made by deadlint.\n",
}


def read_regular(path: str) -> bytes:
    """The content of a regular file: a pipe in its place must not hold us, nor a link lead elsewhere."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    with open(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        return file.read() if stat.S_ISREG(status.st_mode) and status.st_size <= _LARGEST else b""


def prepare(directory: str) -> None:
    """Make the directory, with the marks that keep it out of version control and backups."""
    if os.path.islink(directory):
        raise OSError(f"{directory} is a link")  # an untrusted checkout must not choose where we write
    is_ours = os.path.basename(directory) == NAME or not os.path.isdir(directory)
    os.makedirs(directory, exist_ok=True)
    if not is_ours:
        return  # a directory with a purpose of its own
    for name, text in _MARKS.items():
        with suppress(FileExistsError), open(os.path.join(directory, name), "x", encoding="ascii") as file:
            file.write(text)


def clean(directory: str) -> bool:
    """Remove the cache in `directory`, if it is one; nothing else that lies there. Whether there was any."""
    found = False
    if os.path.islink(directory) or not os.path.isdir(directory):
        return False
    for name in os.listdir(directory):
        path = os.path.join(directory, name)
        mark = _MARKS.get(name)
        if name.endswith((SUFFIX, _HALF_WRITTEN)) or (mark and read_regular(path) == mark.encode()):
            os.unlink(path)
            found = True
    with suppress(OSError):
        os.rmdir(directory)
    return found


def sweep(directory: str, own: str) -> None:
    """Remove what killed writers and settings of long ago have left."""
    now = time.time()
    for name in os.listdir(directory):
        path = os.path.join(directory, name)
        age = now - os.stat(path).st_mtime
        limit = _ABANDONED_S if name.endswith(_HALF_WRITTEN) else _KEEP_S
        if path != own and name.endswith((SUFFIX, _HALF_WRITTEN)) and age > limit:
            os.unlink(path)


class Temporary:
    """A new file in a directory, which takes its name only when it is whole, and else goes."""

    def __init__(self, directory: str) -> None:
        self._path: str | None = os.path.join(directory, f"{os.getpid()}-{time.time_ns()}{_HALF_WRITTEN}")
        self._file = open(self._path, "xb")  # noqa: SIM115 - closed by `__exit__`
        # By the clock of the file system, which need not be ours.
        self.clock_ahead_ns = os.fstat(self._file.fileno()).st_mtime_ns - time.time_ns()

    def __enter__(self) -> Temporary:
        return self

    def write(self, data: bytes) -> None:
        self._file.write(data)
        self._file.close()

    def rename(self, path: str) -> None:
        if self._path is not None:
            os.replace(self._path, path)
            self._path = None

    def __exit__(self, *_: object) -> None:
        self._file.close()
        if self._path is not None:
            with suppress(OSError):
                os.unlink(self._path)
