"""Which configuration holds for a directory: the nearest file upward, with the command line over it."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from deadlint.model import Level
from deadlint.settings import Settings

if TYPE_CHECKING:
    from deadlint.config_file import KnownRules

# In the order in which they win where one directory has both.
FILE_NAMES = ("deadlint.toml", "pyproject.toml")


@dataclass(frozen=True, slots=True)
class Overrides:
    """What the command line says; None and empty where it says nothing."""

    select: tuple[str, ...] = ()
    extend_select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    level: Level | None = None
    baseline: str | None = None  # an absolute path; empty where none is to be used

    def over(self, settings: Settings) -> Settings:
        """`settings` with these in front: `select` sets aside what the file selects and ignores."""
        kept = replace(settings, select=self.select, extend_select=(), ignore=()) if self.select else settings
        return replace(
            kept,
            extend_select=(*kept.extend_select, *self.extend_select),
            ignore=(*kept.ignore, *self.ignore),
            level=self.level or kept.level,
            baseline=kept.baseline if self.baseline is None else self.baseline or None,
        )


@dataclass(slots=True)
class Configurations:
    """The settings of each directory, read once.

    Files without a configuration have the root of their repository as root, else `fallback`. `file` holds for
    every directory where it is given; `isolated` reads no file at all.
    """

    known_rules: KnownRules
    overrides: Overrides = field(default_factory=Overrides)
    file: str | None = None
    isolated: bool = False
    fallback: str = field(default_factory=os.getcwd)
    _places: dict[str, _Place] = field(default_factory=dict)
    _ready: dict[_Place, Settings] = field(default_factory=dict)
    _projects: dict[str, str | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        chosen = self.overrides
        options = {
            "--select": chosen.select,
            "--extend-select": chosen.extend_select,
            "--ignore": chosen.ignore,
        }
        for option, selectors in options.items():
            if selectors:
                from deadlint.config_file import check_selectors  # noqa: PLC0415 - see `_read`

                check_selectors(option, selectors, self.known_rules)

    def settings(self, directory: str) -> Settings:
        """The settings of the files in `directory`, an absolute path. Raises `UserError`."""
        return self._final(self._place(directory))

    def enter(self, directory: str, parent: str, has_marker: bool) -> Settings:
        """The same for a directory below `parent`, if it is known whether it has a `.git` or `FILE_NAMES`."""
        if not has_marker:
            self._places[directory] = self._place(parent)
        return self.settings(directory)

    def project(self, directory: str) -> str | None:
        """The directory that holds whoever may call the files in `directory`: their repository, else the outermost
        one that configures deadlint; None where there is neither.
        """
        if directory not in self._projects:
            above = os.path.dirname(directory)
            outer = self.project(above) if above != directory else None
            if os.path.lexists(os.path.join(directory, ".git")) or (
                outer is None and any(_concerns(os.path.join(directory, name), _NOTHING) for name in FILE_NAMES)
            ):
                outer = directory
            self._projects[directory] = outer
        return self._projects[directory]

    def _place(self, directory: str) -> _Place:
        place = self._places.get(directory)
        if place is None:
            above = os.path.dirname(directory)
            outer = self._place(above) if above != directory else self._top()
            place = self._places[directory] = self._read(directory, self._rooted(directory, outer))
        return place

    def _rooted(self, directory: str, outer: _Place) -> _Place:
        """`outer`, with its root here if it has no configuration and this is the root of a repository."""
        if outer.configured or not os.path.lexists(os.path.join(directory, ".git")):
            return outer
        return replace(outer, settings=replace(outer.settings, root=directory))

    def _top(self) -> _Place:
        if self.file is None or self.isolated:
            return _Place(Settings(root=self.fallback))
        from deadlint.config_file import ConfigFile  # noqa: PLC0415 - see `_read`

        return _Place(ConfigFile.load(self.file).settings(self.known_rules), configured=True)

    def _read(self, directory: str, outer: _Place) -> _Place:
        """What the files of `directory` say, over what its parents' do."""
        if self.isolated:
            return outer
        names = FILE_NAMES if self.file is None else ("pyproject.toml",)
        found = [path for name in names if _concerns(path := os.path.join(directory, name), outer)]
        if not found:
            return outer
        from deadlint.config_file import ConfigFile  # noqa: PLC0415 - most directories have no file

        settings, declared = None, outer.declared
        for file in map(ConfigFile.load, found):
            if settings is None and self.file is None and file.configures:
                settings = file.settings(self.known_rules)
            if file.path.endswith("pyproject.toml"):
                declared = file.declares_deadlint
        return _Place(settings or outer.settings, outer.configured or settings is not None, declared)

    def _final(self, place: _Place) -> Settings:
        ready = self._ready.get(place)
        if ready is None:
            settings = self.overrides.over(place.settings)
            own = settings.helpers_are_own or place.declared
            ready = self._ready[place] = replace(settings, helpers_are_own=own)
        return ready


@dataclass(frozen=True, slots=True, eq=False)  # compared by identity: directories share one that holds for all
class _Place:
    """What holds in a directory: settings, whether a file gives them, whether the project needs deadlint."""

    settings: Settings
    configured: bool = False
    declared: bool = False


_NOTHING = _Place(Settings())


def project_root(directory: str) -> str:
    """The nearest directory upward that is a repository or configures deadlint, else `directory` itself."""
    here = directory
    while True:
        if os.path.lexists(os.path.join(here, ".git")):
            return here
        if any(_concerns(os.path.join(here, name), _NOTHING) for name in FILE_NAMES):
            return here
        above = os.path.dirname(here)
        if above == here:
            return directory
        here = above


def _concerns(path: str, outer: _Place) -> bool:
    """Whether a file is worth parsing: it is there, and can change what holds further out.

    A file that is not ours to read says nothing to us.
    """
    try:
        with open(path, "rb") as file:
            return outer.declared or path.endswith("deadlint.toml") or b"deadlint" in file.read().lower()
    except OSError:
        return False
