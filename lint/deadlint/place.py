"""Something on disk that findings elsewhere rest on: the content of a file, or only what kind of thing is there."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from enum import Enum

from deadlint.outcome import DIGEST_BYTES, Status, status_of

_NO_DIGEST = bytes(DIGEST_BYTES)


class Kind(Enum):
    """What is at a path, as far as it matters where a module is looked for."""

    FILE = b"F"
    DIRECTORY = b"D"
    NOTHING = b"N"

    @classmethod
    def at(cls, path: str) -> Kind:
        """What is there now."""
        try:
            mode = os.stat(path).st_mode
        except (OSError, ValueError):
            return cls.NOTHING
        return cls.FILE if stat.S_ISREG(mode) else cls.DIRECTORY if stat.S_ISDIR(mode) else cls.NOTHING


@dataclass(frozen=True, slots=True)
class Place:
    """A path and what was there. Status and digest are those of a file whose content matters."""

    path: str
    kind: Kind
    status: Status | None = None
    digest: bytes = _NO_DIGEST

    @classmethod
    def read(cls, path: str) -> tuple[Place, bytes]:
        """The file at `path`, and its content. Raises `OSError`."""
        with open(path, "rb") as file:
            status = status_of(os.fstat(file.fileno()))
            data = file.read()
        return cls(path, Kind.FILE, status, digest_of(data)), data

    def now(self) -> Place | None:
        """The same with its status of now, if it is what it was; None where findings may be others."""
        if self.status is None:
            return self if Kind.at(self.path) is self.kind else None
        try:
            if status_of(os.stat(self.path)) == self.status:
                return self
            place, _ = Place.read(self.path)
        except OSError:
            return None
        return place if place.digest == self.digest else None


def digest_of(data: bytes) -> bytes:
    """What tells one content from another."""
    from hashlib import blake2b  # noqa: PLC0415 - takes 5 ms to load, and a warm run hashes nothing

    return blake2b(data, digest_size=DIGEST_BYTES).digest()


def shown(path: str) -> str:
    """How reports write an absolute path: relative where it is below the working directory."""
    below = os.getcwd().rstrip("/") + "/"
    return path.removeprefix(below)
