"""What findings rest on elsewhere, packed for the cache, and whether it still is as it was.

Most of it is that nothing is at a path: a module of an installed library is first looked for in the project. So
what is absent is kept by directory, and told from one listing.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable
from dataclasses import dataclass, field

from deadlint.outcome import DIGEST_BYTES, Status
from deadlint.place import Kind, Place

_STATUS = struct.Struct("<qqQQ")
_READ = b"R"  # a file whose content matters: status, digest, path
_ABSENT = Kind.NOTHING.value  # a directory, and the entries that it does not have; joined by NUL
_AFTER_STATUS = 1 + _STATUS.size
_AFTER_DIGEST = _AFTER_STATUS + DIGEST_BYTES
NEVER = (-1, -1)  # times that no file has


def packed_status(status: Status) -> bytes:
    """A status as the cache holds it."""
    return _STATUS.pack(*status)


def settled(status: bytes, racy_ns: int) -> bytes:
    """A packed status that can be relied on: one that no file has, where the file may change again unseen."""
    modified, changed, size, inode = _STATUS.unpack(status)
    return status if max(modified, changed) < racy_ns else _STATUS.pack(*NEVER, size, inode)


def settled_pack(pack: bytes, racy_ns: int) -> bytes:
    """The same for the status in what `pack` gives."""
    if pack[:1] != _READ:
        return pack
    return _READ + settled(pack[1:_AFTER_STATUS], racy_ns) + pack[_AFTER_STATUS:]


def pack(places: Iterable[Place]) -> tuple[bytes, ...]:
    """The places, those where nothing is gathered by directory."""
    packs = []
    absent: dict[str, set[str]] = {}
    for place in places:
        if place.status is not None:
            packs.append(_READ + packed_status(place.status) + place.digest + os.fsencode(place.path))
        elif place.kind is Kind.NOTHING:
            directory, name = os.path.split(place.path)
            absent.setdefault(directory, set()).add(name)
        else:
            packs.append(place.kind.value + os.fsencode(place.path))
    packs += [_absent(os.fsencode(where), map(os.fsencode, names)) for where, names in absent.items()]
    return tuple(packs)


def merged(packs: Iterable[bytes]) -> dict[bytes, int]:
    """A number for each pack, shared by those that say what is absent from the same directory."""
    numbers: dict[bytes, int] = {}
    for one in packs:
        numbers.setdefault(_key(one), len(numbers))
    return numbers


def numbers_of(packs: Iterable[bytes], numbers: dict[bytes, int]) -> list[int]:
    """The numbers that `merged` gave to packs."""
    return [numbers[_key(one)] for one in packs]


def table(packs: Iterable[bytes], numbers: dict[bytes, int]) -> tuple[bytes, ...]:
    """The packs by their numbers, with all that is absent from a directory in one."""
    found: dict[int, bytes] = {}
    absent: dict[bytes, set[bytes]] = {}
    for one in packs:
        if one[:1] == _ABSENT:
            directory, *names = one[1:].split(b"\0")
            absent.setdefault(directory, set()).update(names)
        else:
            found[numbers[one]] = one
    found |= {numbers[_ABSENT + where]: _absent(where, names) for where, names in absent.items()}
    return tuple(found[number] for number in range(len(numbers)))


def _key(one: bytes) -> bytes:
    return one.partition(b"\0")[0] if one[:1] == _ABSENT else one


def _absent(directory: bytes, names: Iterable[bytes]) -> bytes:
    return _ABSENT + b"\0".join([directory, *sorted(names)])


@dataclass(slots=True)
class Surroundings:
    """The state of the disk, looked at once in a run."""

    _now: dict[bytes, bytes | None] = field(default_factory=dict)
    _modules: dict[bytes, frozenset[bytes]] = field(default_factory=dict)

    def now(self, one: bytes) -> bytes | None:
        """A pack with its status of now; None where what rests on it may have changed."""
        if one not in self._now:
            try:
                self._now[one] = self._look(one)
            except (struct.error, ValueError):
                self._now[one] = None
        return self._now[one]

    def _look(self, one: bytes) -> bytes | None:
        kind = one[:1]
        if kind == _ABSENT:
            directory, *names = one[1:].split(b"\0")
            return one if self._modules_in(directory).isdisjoint(names) else None
        if kind != _READ:
            return one if Kind.at(os.fsdecode(one[1:])) is Kind(kind) else None
        status = _STATUS.unpack(one[1:_AFTER_STATUS])
        digest, path = one[_AFTER_STATUS:_AFTER_DIGEST], os.fsdecode(one[_AFTER_DIGEST:])
        now = Place(path, Kind.FILE, status, digest).now()
        return None if now is None or now.status is None else _READ + packed_status(now.status) + one[_AFTER_STATUS:]

    def _modules_in(self, directory: bytes) -> frozenset[bytes]:
        """The entries of a directory that could be imported."""
        found = self._modules.get(directory)
        if found is None:
            try:
                with os.scandir(directory) as entries:
                    names = [one.name for one in entries if one.name.endswith(b".py") or one.is_dir()]
            except OSError:
                names = []
            found = self._modules[directory] = frozenset(names)
        return found
