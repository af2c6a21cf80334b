"""What a run knows of files before it reads them, and what it remembers of them for the next."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from deadlint.cache import NO_DIGEST, Cache, Entry, Section, settings_key
from deadlint.discover import Folder
from deadlint.environment import Environment
from deadlint.model import Finding
from deadlint.outcome import Outcome, Target, status_of
from deadlint.settings import Settings
from deadlint.surroundings import Surroundings, pack, packed_status

if TYPE_CHECKING:
    from deadlint.rule import Rule

# Whether what is known of a file is enough, given its findings: not where they are to be fixed.
Suffices = Callable[[tuple[Finding, ...]], bool]


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

    def recall(self, folder: Folder, suffices: Suffices) -> tuple[list[Finding], list[Target]]:
        """The findings of the files that have not changed, and those that are to be judged."""
        if self.cache is None:
            return [], [_target(folder, name) for name in folder.names]
        section = self.cache.section(folder.path)
        if section is None or section.settings != self._key(folder.settings):
            self._changed[folder.path] = _Folder(folder, self._key(folder.settings))
            return [], [_target(folder, name) for name in folder.names]
        statuses = [_status(folder.path, name) for name in folder.names]
        same = section.is_of(folder.names, statuses) and all(
            self._surroundings.now(one) == one for one in section.places
        )
        if same and folder.whole and not section.findings:
            return [], []
        return self._recall(folder, section, statuses, suffices, same=same)

    def _depends_now(self, entry: Entry) -> Entry | None:
        """The entry with its places as they are now; None where one has changed."""
        places = [now for place in entry.depends if (now := self._surroundings.now(place)) is not None]
        return entry._replace(depends=tuple(places)) if len(places) == len(entry.depends) else None

    def _recall(
        self, folder: Folder, section: Section, statuses: Sequence[bytes], suffices: Suffices, *, same: bool
    ) -> tuple[list[Finding], list[Target]]:
        """The same, file by file."""
        try:
            entries = section.entries()
        except (ValueError, IndexError):
            entries = {}
        findings: list[Finding] = []
        targets: list[Target] = []
        state = _Folder(folder, section.settings, {} if folder.whole else dict(entries))
        for name, status in zip(folder.names, statuses, strict=True):
            known = _known(folder, name, self._depends_now(entries[name]) if name in entries else None)
            if known is None:
                targets.append(_target(folder, name))
            elif known.entry.status != status or not suffices(known.findings) or _unparsed(folder, known):
                state.known[name] = known
                targets.append(_target(folder, name, known.digest))
            else:
                state.entries[name] = known.entry
                findings += known.findings
        if targets or not (same or (not folder.whole and state.entries == entries)):
            self._changed[folder.path] = state
        return findings, targets

    def settle(self, target: Target, outcome: Outcome) -> tuple[Finding, ...]:
        """The findings of a file that was judged; remembers them."""
        state = self._changed.get(target.folder)
        known = state.known.get(target.name) if state is not None else None
        findings = known.findings if outcome.known and known is not None else outcome.findings
        if state is not None:
            if outcome.problem is not None or outcome.status is None:
                state.entries.pop(target.name, None)
            elif outcome.known and known is not None:
                state.entries[target.name] = known.entry._replace(status=packed_status(outcome.status))
            else:
                state.entries[target.name] = _entry(outcome)
        return findings

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


@dataclass(frozen=True, slots=True)
class _Known:
    """What is known of a file whose content may be the same still."""

    entry: Entry
    findings: tuple[Finding, ...]

    @property
    def digest(self) -> bytes | None:
        return self.entry.digest if self.entry.digest != NO_DIGEST else None


@dataclass(slots=True)
class _Folder:
    """What is to be remembered of a folder, while it is put together."""

    folder: Folder
    settings: str
    entries: dict[str, Entry] = field(default_factory=dict)
    known: dict[str, _Known] = field(default_factory=dict)

    def section(self) -> Section:
        """All of it, as the cache holds it."""
        return Section.of(self.settings, dict(sorted(self.entries.items())))


def _unparsed(folder: Folder, known: _Known) -> bool:
    """Whether a file that is asked for by name was left out by the screen so far: its syntax is not known."""
    return not folder.whole and known.digest is None


def _known(folder: Folder, name: str, entry: Entry | None) -> _Known | None:
    if entry is None:
        return None
    if not entry.findings:
        return _Known(entry, ())
    from deadlint.codec import BadRecord, decode  # noqa: PLC0415 - a clean tree needs no JSON

    try:
        return _Known(entry, decode(entry.findings, os.path.join(folder.shown, name)))
    except BadRecord:
        return None


def _entry(outcome: Outcome) -> Entry:
    if outcome.status is None:
        raise ValueError("only what is on disk can be remembered")
    findings = b""
    if outcome.findings:
        from deadlint.codec import encode  # noqa: PLC0415 - a clean tree needs no JSON

        findings = encode(outcome.findings)
    return Entry(packed_status(outcome.status), outcome.digest or NO_DIGEST, findings, pack(outcome.depends))


def _status(folder: str, name: str) -> bytes:
    """The status of a file now; empty, which none has, where it cannot be had."""
    try:
        return packed_status(status_of(os.stat(f"{folder}/{name}")))
    except OSError:
        return b""


def _target(folder: Folder, name: str, digest: bytes | None = None) -> Target:
    shown = os.path.join(folder.shown, name)
    return Target(folder.path, shown, name, folder.settings, digest, named=not folder.whole)
