"""What a walk leaves out: what Git ignores, and what the settings exclude."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from deadlint.patterns import Patterns, patterns_in
from deadlint.settings import Settings


@dataclass(frozen=True, slots=True)
class IgnoreRules:
    """The ignore files that hold in one directory, the innermost first."""

    files: tuple[Patterns, ...] = ()

    def ignores(self, path: str, name: str, directory: bool) -> bool:
        """Whether Git ignores an entry of that directory; the innermost file that speaks of it decides."""
        for patterns in self.files:
            verdict = patterns.verdict(path, name, directory)
            if verdict is not None:
                return verdict
        return False

    def within(self, directory: str, *, repository: bool) -> IgnoreRules:
        """The rules of a directory inside this one that has a `.gitignore`, or is a repository of its own."""
        own = [patterns_in(os.path.join(directory, ".gitignore"), directory)]
        if repository:
            own.append(patterns_in(os.path.join(directory, ".git", "info", "exclude"), directory))
        outer = () if repository else self.files
        return IgnoreRules((*(patterns for patterns in own if patterns is not None), *outer))


@dataclass(slots=True)
class GitIgnores:
    """The rules of each directory from its own and those above, up to the root of its repository.

    Outside a repository only the directory's own file counts.
    """

    _rules: dict[str, IgnoreRules] = field(default_factory=dict)
    _roots: dict[str, str | None] = field(default_factory=dict)

    def at(self, directory: str) -> IgnoreRules:
        """The rules for the entries of `directory`, an absolute path."""
        rules = self._rules.get(directory)
        if rules is None:
            root = self.repository(directory)
            inside = root is not None and root != directory
            outer = self.at(os.path.dirname(directory)) if inside else IgnoreRules()
            rules = self._rules[directory] = outer.within(directory, repository=root == directory)
        return rules

    def repository(self, directory: str) -> str | None:
        """The root of the repository that `directory` is in, if any."""
        if directory not in self._roots:
            above = os.path.dirname(directory)
            if os.path.lexists(os.path.join(directory, ".git")):
                self._roots[directory] = directory
            else:
                self._roots[directory] = self.repository(above) if above != directory else None
        return self._roots[directory]


@dataclass(slots=True)
class Exclusions:
    """The `exclude` patterns of settings, built once for each of them."""

    # By identity: directories share settings, and hashing these costs more than the look-up. The settings are
    # kept beside the patterns, so that no other object can come to have the same identity.
    _built: dict[int, tuple[Settings, Patterns]] = field(default_factory=dict)

    def of(self, settings: Settings) -> Patterns:
        """The patterns of `settings`, relative to their root."""
        built = self._built.get(id(settings))
        if built is None:
            built = self._built[id(settings)] = (settings, Patterns(settings.root, settings.exclude))
        return built[1]
