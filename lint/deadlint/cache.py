"""What is known of files that have not changed: one file for a project, trusted only where all of it fits.

Whatever is odd about it (torn, foreign, of another version, not writable) makes it as good as absent.
"""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import NamedTuple
from zlib import crc32

from deadlint.cache_directory import SUFFIX, Temporary, prepare, read_regular, sweep
from deadlint.environment import Environment, still_holds
from deadlint.model import Level
from deadlint.outcome import DIGEST_BYTES, Exits
from deadlint.settings import Settings
from deadlint.surroundings import merged, numbers_of, settled, settled_pack, table

_MAGIC = b"deadlint cache 2\n"
_STATUS = struct.Struct("<qqQQ")
_LENGTH = struct.Struct("<I")
NO_DIGEST = bytes(DIGEST_BYTES)
UNKNOWN = b"?"  # in place of findings that nobody asked for yet

# A change within one tick of the file system's clock shows in no time. FAT has the longest tick: two seconds.
_TICK_NS = 2_000_000_000
_MOST_SETTINGS = 100  # beyond that the old sections are given up with them


class Entry(NamedTuple):
    """What is known of one file."""

    status: bytes
    digest: bytes  # `NO_DIGEST` where it was not hashed
    findings: bytes  # as `codec` writes them; empty for none, or `UNKNOWN`
    depends: tuple[bytes, ...] = ()  # what the findings rest on, as `surroundings` packs it
    entered: bytes = b""  # under what the callers in other files had around their calls, as `Join.entered` gives it
    exits: bytes = b""  # what it has around its own calls of other files, as `packed_exits` writes it


@dataclass(frozen=True, slots=True)
class Section:
    """What is known of the files of one directory under certain settings, as the cache file holds it."""

    settings: str
    names: str  # joined by NUL
    statuses: bytes
    digests: bytes
    findings: tuple[bytes, ...]  # empty where no file has any
    places: tuple[bytes, ...]  # what the findings of any of them rest on
    depends: tuple[bytes, ...]  # for each file its places, as numbers; empty where there are none
    entered: tuple[bytes, ...] = ()  # empty where no file has any
    exits: tuple[bytes, ...] = ()  # empty where no file has any

    @classmethod
    def of(cls, settings: str, entries: Mapping[str, Entry]) -> Section:
        """The section that holds `entries`, by name."""
        packs = [one for entry in entries.values() for one in entry.depends]
        numbers = merged(packs)
        return cls(
            settings,
            "\0".join(entries),
            b"".join(entry.status for entry in entries.values()),
            b"".join(entry.digest for entry in entries.values()),
            _unless_empty(entry.findings for entry in entries.values()),
            table(packs, numbers),
            tuple(_numbers(numbers_of(entry.depends, numbers)) for entry in entries.values()) if packs else (),
            _unless_empty(entry.entered for entry in entries.values()),
            _unless_empty(entry.exits for entry in entries.values()),
        )

    @property
    def plain(self) -> bool:
        """Whether none of the files has a finding, or anything to do with calls from file to file."""
        return not (self.findings or self.entered or self.exits)

    def is_of(self, names: Sequence[str], statuses: Sequence[bytes]) -> bool:
        """Whether these are exactly the files that are known, and none of them has changed."""
        return self.names == "\0".join(names) and self.statuses == b"".join(statuses)

    def entries(self) -> dict[str, Entry]:
        """What is known of each file. Raises `ValueError` or `IndexError` where the parts do not fit."""
        names = self.names.split("\0")
        statuses = _slices(self.statuses, _STATUS.size, len(names))
        digests = _slices(self.digests, DIGEST_BYTES, len(names))
        none = (b"",) * len(names)
        depends = [
            tuple(self.places[number] for (number,) in _LENGTH.iter_unpack(numbers)) for numbers in self.depends or none
        ]
        columns = (statuses, digests, self.findings or none, depends, self.entered or none, self.exits or none)
        return {name: Entry(*row) for name, *row in zip(names, *columns, strict=True)}


@dataclass(slots=True)
class Cache:
    """The cache of one project. `path` is None where there is none to use."""

    path: str | None
    environment: Environment | None = None  # None unless the file is of the environment that we are in
    _raw: dict[str, bytes] = field(default_factory=dict)
    _settings: list[str] = field(default_factory=list)
    _started_ns: int = field(default_factory=time.time_ns)

    @classmethod
    def open(cls, directory: str, name: str) -> Cache:
        """The cache file `name` in `directory`. Raises nothing: one that cannot be used is empty."""
        path = os.path.join(directory, name + SUFFIX)
        cache = cls(path)
        with suppress(OSError, ValueError, struct.error, IndexError):
            cache._load(path)
        return cache

    def _load(self, path: str) -> None:
        data = read_regular(path)
        start = len(_MAGIC) + _LENGTH.size
        if not data.startswith(_MAGIC) or _LENGTH.unpack_from(data, len(_MAGIC))[0] != crc32(data[start:]):
            return
        reader = _Reader(data, start)
        environment = still_holds(reader.text())
        if environment is None:
            return
        settings = [reader.text() for _ in range(reader.number())]
        raw = {}
        while not reader.at_end:
            section = reader.piece()
            raw[_Reader(section, 0).text()] = section
        self.environment, self._settings, self._raw = environment, settings, raw

    def section(self, folder: str) -> Section | None:
        """What is known of a directory, if anything."""
        raw = self._raw.get(folder)
        if raw is None:
            return None
        try:
            return self._section(raw)
        except (ValueError, struct.error, IndexError):
            return None

    def _section(self, raw: bytes) -> Section:
        reader = _Reader(raw, 0)
        reader.piece()  # the directory
        settings = self._settings[reader.number()]
        names, statuses, digests = reader.text(), reader.piece(), reader.piece()
        return Section(settings, names, statuses, digests, *(reader.pieces() for _ in range(5)))

    def save(self, environment: Environment, sections: Mapping[str, Section]) -> None:
        """Write what is known now: `sections`, and of other directories what was known before.

        Raises nothing: what cannot be written is found out again the next time.
        """
        if self.path is None:
            return
        try:
            directory = os.path.dirname(self.path)
            prepare(directory)
            with Temporary(directory) as temporary:
                racy_ns = self._started_ns + temporary.clock_ahead_ns - _TICK_NS
                temporary.write(b"".join(self._content(environment, sections, racy_ns)))
                temporary.rename(self.path)
            sweep(directory, self.path)
        except (OSError, ValueError):
            return

    def _content(self, environment: Environment, sections: Mapping[str, Section], racy_ns: int) -> Iterator[bytes]:
        if environment != self.environment or len(self._settings) > _MOST_SETTINGS:
            self._raw, self._settings = {}, []
        settings = {text: number for number, text in enumerate(self._settings)}
        raw = {folder: data for folder, data in self._raw.items() if folder not in sections and os.path.isdir(folder)}
        for folder, section in sections.items():
            number = settings.setdefault(section.settings, len(settings))
            raw[folder] = _encode(folder, number, section, racy_ns)
        body = [_piece(_bytes(environment.description)), _LENGTH.pack(len(settings))]
        body += [_piece(_bytes(text)) for text in settings]
        body += [_piece(data) for data in raw.values()]
        joined = b"".join(body)
        yield _MAGIC
        yield _LENGTH.pack(crc32(joined))
        yield joined


def settings_key(settings: Settings) -> str:
    """The settings as far as they decide what is found: not what is looked at, nor what of it is shown."""
    return repr(replace(settings, level=Level.DEFAULT, exclude=(), notebooks=True, baseline=None))


def _encode(folder: str, settings: int, section: Section, racy_ns: int) -> bytes:
    statuses = (section.statuses[at : at + _STATUS.size] for at in range(0, len(section.statuses), _STATUS.size))
    parts = [
        _piece(_bytes(folder)),
        _LENGTH.pack(settings),
        _piece(_bytes(section.names)),
        _piece(b"".join(settled(status, racy_ns) for status in statuses)),
        _piece(section.digests),
    ]
    places = [settled_pack(one, racy_ns) for one in section.places]
    for pieces in (section.findings, places, section.depends, section.entered, section.exits):
        parts += [_LENGTH.pack(len(pieces)), *map(_piece, pieces)]
    return b"".join(parts)


def packed_exits(exits: Exits) -> bytes:
    """The exits of a file as the cache holds them: neither paths nor JSON texts hold a NUL."""
    return b"\0".join(part for path, said in exits for part in (os.fsencode(path), said))


def exits_of(packed: bytes) -> Exits:
    """What `packed_exits` was given. Raises `ValueError` where that is none."""
    parts = packed.split(b"\0") if packed else []
    return tuple((os.fsdecode(path), said) for path, said in zip(parts[::2], parts[1::2], strict=True))


def _unless_empty(column: Iterable[bytes]) -> tuple[bytes, ...]:
    found = tuple(column)
    return found if any(found) else ()


def _numbers(numbers: Iterable[int]) -> bytes:
    return b"".join(map(_LENGTH.pack, numbers))


def _slices(data: bytes, size: int, count: int) -> list[bytes]:
    if len(data) != size * count:
        raise ValueError("the lengths of the parts differ")
    return [data[at : at + size] for at in range(0, len(data), size)]


class _Reader:
    """Takes numbers, texts and pieces of bytes from where it stands."""

    def __init__(self, data: bytes, at: int) -> None:
        self._data = data
        self._at = at

    @property
    def at_end(self) -> bool:
        return self._at >= len(self._data)

    def number(self) -> int:
        (number,) = _LENGTH.unpack_from(self._data, self._at)
        self._at += _LENGTH.size
        return int(number)

    def piece(self) -> bytes:
        length = self.number()
        piece = self._data[self._at : self._at + length]
        if len(piece) != length:
            raise ValueError("the file ends too early")
        self._at += length
        return piece

    def pieces(self) -> tuple[bytes, ...]:
        return tuple(self.piece() for _ in range(self.number()))

    def text(self) -> str:
        return _text(self.piece())


def _piece(data: bytes) -> bytes:
    return _LENGTH.pack(len(data)) + data


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
