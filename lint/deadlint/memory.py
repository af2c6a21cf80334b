"""What a run knows of files before it reads them, and what it remembers of them for the next."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from deadlint.cache import NO_DIGEST, UNKNOWN, Cache, Entry, Section, exits_of, packed_exits, settings_key
from deadlint.discover import Folder
from deadlint.environment import Environment
from deadlint.model import Finding
from deadlint.outcome import Exits, Outcome, Target, status_of
from deadlint.settings import Settings
from deadlint.surroundings import Surroundings, pack, packed_status

if TYPE_CHECKING:
    from deadlint.rule import Rule


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of a file, from the cache or since it was judged."""

    target: Target
    findings: tuple[Finding, ...] = ()
    exits: Exits = ()
    entered: bytes = b""  # under what this was found out


@dataclass(slots=True)
class Memory:
    """The cache as the runner uses it; `cache` is None where none is to be used."""

    cache: Cache | None
    _changed: dict[str, _Folder] = field(default_factory=dict)
    _keys: dict[int, tuple[Settings, str]] = field(default_factory=dict)
    _surroundings: Surroundings = field(default_factory=Surroundings)
    _environment: Environment | None = None

    @property
    def active(self) -> bool:
        """Whether anything will be remembered."""
        return self.cache is not None

    def known_rules(self) -> Sequence[tuple[str, str]]:
        """Codes and names of the installed rules, without loading them where that is possible."""
        if self.cache is not None and self.cache.environment is not None:
            return self.cache.environment.rules
        from deadlint.rule import all_rules  # noqa: PLC0415 - a warm run loads no rules

        return [(rule.code, rule.name) for rule in all_rules()]

    def recall(self, folder: Folder, *, indexed: bool = False) -> tuple[list[Known], list[Target]]:
        """What is known of unchanged files, less those of which there is nothing to say; and the others.

        For files that are `indexed` their findings do not matter.
        """
        if self.cache is None:
            return [], [target_of(folder, name, indexed=indexed) for name in folder.names]
        section = self._section(folder)
        if section is None:
            if folder.path not in self._changed:
                self._changed[folder.path] = _Folder(self._key(folder.settings))
            return [], [target_of(folder, name, indexed=indexed) for name in folder.names]
        statuses = [_status(folder.path, name) for name in folder.names]
        same = section.is_of(folder.names, statuses) and all(
            self._surroundings.now(one) == one for one in section.places
        )
        if same and folder.whole and section.plain:
            return [], []
        return self._recall(folder, section, statuses, indexed=indexed, same=same)

    def _section(self, folder: Folder) -> Section | None:
        """What the cache has of a folder under its settings."""
        section = self.cache.section(folder.path) if self.cache is not None else None
        return section if section is not None and section.settings == self._key(folder.settings) else None

    def _depends_now(self, entry: Entry) -> Entry | None:
        """The entry with its places as they are now; None where one has changed."""
        places = [now for place in entry.depends if (now := self._surroundings.now(place)) is not None]
        return entry._replace(depends=tuple(places)) if len(places) == len(entry.depends) else None

    def _recall(
        self, folder: Folder, section: Section, statuses: Sequence[bytes], *, indexed: bool, same: bool
    ) -> tuple[list[Known], list[Target]]:
        """The same, file by file."""
        entries = _entries(section)
        found: list[Known] = []
        targets: list[Target] = []
        before = self._changed.get(folder.path)  # other files of the folder were asked for in another way
        state = before or _Folder(section.settings, {} if folder.whole else dict(entries))
        for name, status in zip(folder.names, statuses, strict=True):
            entry = self._depends_now(entries[name]) if name in entries else None
            known = _remembered(folder, name, entry, indexed=indexed)
            if entry is None or known is None:
                targets.append(target_of(folder, name, indexed=indexed))
            elif entry.status != status:
                state.known[name] = (entry, known)
                digest = entry.digest if entry.digest != NO_DIGEST else None
                targets.append(known.target._replace(digest=digest, entered=entry.entered))
            else:
                state.entries[name] = entry
                if known.findings or known.exits or known.entered:
                    found.append(known)
        if targets or not (same or (not folder.whole and state.entries == entries)):
            self._changed[folder.path] = state
        return found, targets

    def settle(self, target: Target, outcome: Outcome) -> Known:
        """What is known of a file since it was judged; remembers it."""
        state = self._state(target)
        entry, known = state.known.get(target.name, (None, None)) if state is not None else (None, None)
        if not (outcome.known and entry is not None and known is not None):
            known, entry = Known(target, outcome.findings, outcome.exits, target.entered), None
        if state is not None:
            if outcome.problem is not None or outcome.status is None:
                state.entries.pop(target.name, None)
            elif entry is not None:
                state.entries[target.name] = entry._replace(status=packed_status(outcome.status))
            else:
                state.entries[target.name] = _entry(target, outcome)
        return known

    def _state(self, target: Target) -> _Folder | None:
        """What is to be remembered of the folder of a file."""
        if self.cache is None:
            return None
        state = self._changed.get(target.folder)
        if state is None:
            # None of its files has changed; this one is judged again for what its callers have.
            section = self.cache.section(target.folder)
            state = _Folder(self._key(target.settings), _entries(section) if section is not None else {})
            self._changed[target.folder] = state
        return state

    def begin(self, rules: Sequence[Rule]) -> None:
        """Note under which rules files are judged from here on."""
        if self.cache is not None:
            self._environment = Environment.of(rules)

    def save(self) -> None:
        """Write what has changed, if anything has; not if an installation has changed meanwhile."""
        if self.cache is None or not self._changed:
            return
        environment = self._environment or self.cache.environment
        if environment is None or environment.describe() != environment.description:
            return
        sections = {path: state.section() for path, state in self._changed.items()}
        self.cache.save(environment, sections)

    def _key(self, settings: Settings) -> str:
        """The settings as the cache has them. By identity: the folders share few of them."""
        found = self._keys.get(id(settings))
        if found is None:
            found = self._keys[id(settings)] = (settings, settings_key(settings))
        return found[1]


@dataclass(slots=True)
class _Folder:
    """What is to be remembered of a folder, while it is put together."""

    settings: str
    entries: dict[str, Entry] = field(default_factory=dict)
    known: dict[str, tuple[Entry, Known]] = field(default_factory=dict)  # of files that may be the same still

    def section(self) -> Section:
        """All of it, as the cache holds it."""
        return Section.of(self.settings, dict(sorted(self.entries.items())))


def _entries(section: Section) -> dict[str, Entry]:
    """What is known of each file; nothing where the parts do not fit."""
    try:
        return section.entries()
    except (ValueError, IndexError):
        return {}


def _remembered(folder: Folder, name: str, entry: Entry | None, *, indexed: bool) -> Known | None:
    """What an entry says of a file; None where that is not what is asked for, or cannot be read."""
    if entry is None:
        return None
    target = target_of(folder, name, indexed=indexed)
    if not indexed and (entry.findings == UNKNOWN or (target.named and entry.digest == NO_DIGEST)):
        return None  # only indexed so far, or left out by the screen: its findings, or its syntax, are not known
    try:
        exits = exits_of(entry.exits)
        if indexed or not entry.findings:
            return Known(target, (), exits, entry.entered)
        from deadlint.codec import BadRecord, decode  # noqa: PLC0415 - a clean tree needs no JSON
    except ValueError:
        return None
    try:
        return Known(target, decode(entry.findings, target.shown), exits, entry.entered)
    except BadRecord:
        return None


def _entry(target: Target, outcome: Outcome) -> Entry:
    if outcome.status is None:
        raise ValueError("only what is on disk can be remembered")
    findings = UNKNOWN if target.indexed else b""
    if outcome.findings:
        from deadlint.codec import encode  # noqa: PLC0415 - a clean tree needs no JSON

        findings = encode(outcome.findings)
    return Entry(
        packed_status(outcome.status),
        outcome.digest or NO_DIGEST,
        findings,
        pack(outcome.depends),
        target.entered,
        packed_exits(outcome.exits),
    )


def _status(folder: str, name: str) -> bytes:
    """The status of a file now; empty, which none has, where it cannot be had."""
    try:
        return packed_status(status_of(os.stat(f"{folder}/{name}")))
    except OSError:
        return b""


def target_of(folder: Folder, name: str, *, indexed: bool = False) -> Target:
    """A file of a folder, to be judged, or only `indexed`."""
    shown = os.path.join(folder.shown, name)
    return Target(folder.path, shown, name, folder.settings, named=not (folder.whole or indexed), indexed=indexed)
