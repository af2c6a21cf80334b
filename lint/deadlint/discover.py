"""From the paths on the command line to the files to check, each with the settings that hold for it."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from deadlint.config import FILE_NAMES, Configurations
from deadlint.ignored import Exclusions, GitIgnores, IgnoreRules
from deadlint.model import NOTEBOOK, FileProblem
from deadlint.settings import Settings

SUFFIXES = (".py", ".pyi", NOTEBOOK)


@dataclass(frozen=True, slots=True)
class Folder:
    """A directory and the names of the files in it that are to be checked, sorted."""

    path: str  # absolute
    shown: str  # how reports write it: relative where it is below the working directory; "" for that itself
    settings: Settings
    names: tuple[str, ...]
    whole: bool = True  # whether these are all files of the directory, rather than some that were named


@dataclass(frozen=True, slots=True)
class Discovery:
    """The folders in the order of their paths; what could not be looked at; what is odd but no error."""

    folders: tuple[Folder, ...]
    problems: tuple[FileProblem, ...] = ()
    warnings: tuple[FileProblem, ...] = ()
    tops: tuple[str, ...] = ()  # the directories that were named, absolute


def discover(paths: Sequence[str], configurations: Configurations, *, force_exclude: bool = False) -> Discovery:
    """The files to check below `paths`, each once. Raises `UserError` where a configuration is wrong.

    A path that is named is checked though excluded, unless `force_exclude`; what lies below it is judged.
    Symbolic links to files are followed, those to directories only where they are named.
    """
    walk = _Walk(configurations, force_exclude)
    for path in paths:
        walk.start(path)
    walk.drop_second_names()
    folders = (
        Folder(directory, walk.shown(directory), settings, tuple(sorted(names)), directory in walk.whole)
        for directory, (settings, names) in sorted(walk.found.items())
    )
    return Discovery(
        tuple(folder for folder in folders if folder.names),
        tuple(walk.problems),
        tuple(walk.warnings),
        tuple(walk.tops),
    )


def around(found: Discovery, configurations: Configurations) -> tuple[Folder, ...]:
    """The other files of the projects that files belong to: whoever calls them may stand there.

    Files in no project, without a repository or a configuration above them, have none.
    """
    roots = {root for folder in found.folders if (root := configurations.project(folder.path)) is not None}
    missing = sorted(root for root in roots if not any(_is_below(root, top) for top in found.tops))
    if not missing:
        return ()
    taken = {folder.path: folder.names for folder in found.folders}
    others = []
    for folder in discover(missing, configurations).folders:
        names = tuple(name for name in folder.names if name not in taken.get(folder.path, ()))
        if names:
            others.append(replace(folder, names=names, whole=folder.path not in taken))
    return tuple(others)


def is_excluded(path: str, configurations: Configurations) -> bool:
    """Whether a walk would leave out the file at `path`, an absolute path."""
    return _Walk(configurations, force_exclude=True).excluded(path, is_directory=False)


@dataclass(slots=True)
class _Listing:
    """What one directory holds, as far as a walk cares."""

    files: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)  # those of `files` that are symbolic links
    directories: list[str] = field(default_factory=list)
    has_configuration: bool = False
    has_ignore_file: bool = False
    is_repository: bool = False

    @property
    def has_marker(self) -> bool:
        """Whether other settings may hold here than further out."""
        return self.has_configuration or self.is_repository


@dataclass(slots=True)
class _Walk:
    """The state of one discovery."""

    configurations: Configurations
    force_exclude: bool
    here: str = field(default_factory=os.getcwd)
    exclusions: Exclusions = field(default_factory=Exclusions)
    gitignores: GitIgnores = field(default_factory=GitIgnores)
    found: dict[str, tuple[Settings, set[str]]] = field(default_factory=dict)
    links: set[str] = field(default_factory=set)  # files found under another name than their own
    whole: set[str] = field(default_factory=set)  # directories whose files were all looked at
    walked: dict[str, bool] = field(default_factory=dict)  # real directories, and whether files were below
    tops: list[str] = field(default_factory=list)
    problems: list[FileProblem] = field(default_factory=list)
    warnings: list[FileProblem] = field(default_factory=list)

    def shown(self, path: str) -> str:
        """How reports write an absolute path."""
        if path == self.here:
            return ""
        below = self.here.rstrip("/") + "/"
        return path[len(below) :] if path.startswith(below) else path

    def start(self, path: str) -> None:
        """Look at a path of the command line."""
        try:
            absolute = os.path.normpath(os.path.join(self.here, path))
            mode = os.stat(absolute).st_mode
        except (OSError, ValueError) as error:
            self.problems.append(FileProblem(path, _unreachable(error)))
            return
        is_directory = stat.S_ISDIR(mode)
        if self.force_exclude and self.excluded(absolute, is_directory=is_directory):
            return
        if is_directory:
            self.tops.append(absolute)
            self._descend(absolute)
        elif stat.S_ISREG(mode):
            self._name(absolute)
        else:
            self.problems.append(FileProblem(path, "is neither a file nor a directory; name one of these"))

    def _name(self, path: str) -> None:
        """Take a file that the command line names."""
        directory, name = os.path.split(path)
        self._take(directory, self.configurations.settings(directory), [name])
        if os.path.realpath(path) != path:
            self.links.add(path)

    def _take(self, directory: str, settings: Settings, names: list[str]) -> None:
        self.found.setdefault(directory, (settings, set()))[1].update(names)

    def _descend(self, top: str) -> None:
        """Take what is below a directory, in any order."""
        real = os.path.realpath(top)
        any_file = False
        stack = [(top, "", self.gitignores.at(top))]
        while stack:
            directory, parent, rules = stack.pop()
            # No link to a directory is followed below `top`, so this is its real path.
            place = real + directory[len(top) :]
            if place in self.walked:
                any_file = any_file or self.walked[place]
                continue
            listing = self._listing(directory)
            settings = (
                self.configurations.enter(directory, parent, listing.has_marker)
                if parent
                else self.configurations.settings(directory)
            )
            if parent and (listing.has_ignore_file or listing.is_repository):
                rules = rules.within(directory, repository=listing.is_repository)
            files = listing.files if settings.notebooks else [n for n in listing.files if not n.endswith(NOTEBOOK)]
            names = self._kept(directory, files, settings, rules, directories=False)
            self.walked[place] = bool(names)
            if names:
                self._take(directory, settings, names)
                self.whole.add(directory)
                self.links.update(f"{directory}/{name}" for name in listing.links if name in names)
                any_file = True
            for name in self._kept(directory, listing.directories, settings, rules, directories=True):
                stack.append((os.path.join(directory, name), directory, rules))
        self.walked[real] = any_file
        if not any_file:
            text = "holds no Python file that is not excluded; name another directory, or the file itself"
            self.warnings.append(FileProblem(self.shown(top) or ".", text))

    def _kept(
        self, directory: str, names: list[str], settings: Settings, rules: IgnoreRules, *, directories: bool
    ) -> list[str]:
        """The entries that neither the settings nor Git leave out."""
        excludes = self.exclusions.of(settings)
        prefix = directory.rstrip("/") + "/"
        return [
            name
            for name in names
            if not excludes.verdict(prefix + name, name, directories)
            and not rules.ignores(prefix + name, name, directories)
        ]

    def _listing(self, directory: str) -> _Listing:
        listing = _Listing()
        try:
            with os.scandir(directory) as entries:
                for entry in entries:
                    _sort(entry, listing)
        except OSError as error:
            self.problems.append(FileProblem(self.shown(directory) or ".", _unreachable(error)))
        return listing

    def excluded(self, path: str, *, is_directory: bool) -> bool:
        """Whether a walk from the root of the configuration would not have come to `path`."""
        settings = self.configurations.settings(os.path.dirname(path))
        repository = self.gitignores.repository(os.path.dirname(path))
        for directory, name in _steps(path):
            is_last = len(directory) + len(name) >= len(path) - 1
            entry = os.path.join(directory, name)
            kind = is_directory or not is_last
            below_root = is_last or _is_below(directory, settings.root)
            if below_root and self.exclusions.of(settings).verdict(entry, name, kind):
                return True
            below_repository = is_last or (repository is not None and _is_below(directory, repository))
            if below_repository and self.gitignores.at(directory).ignores(entry, name, kind):
                return True
        return False

    def drop_second_names(self) -> None:
        """Forget links to files that are found by their own name, or by an earlier link."""
        taken: set[str] = set()
        for link in sorted(self.links):
            target = os.path.realpath(link)
            directory, name = os.path.split(target)
            if target in taken or (target != link and name in self.found.get(directory, (None, set()))[1]):
                self.found[os.path.dirname(link)][1].discard(os.path.basename(link))
            taken.add(target)


def _sort(entry: os.DirEntry[str], listing: _Listing) -> None:
    """Put an entry of a directory where it belongs. Answered from the directory alone but for links."""
    name = entry.name
    if entry.is_dir(follow_symlinks=False):
        if name == ".git":
            listing.is_repository = True
        listing.directories.append(name)
    elif name.endswith(SUFFIXES):
        if _is_regular(entry):
            listing.files.append(name)
            if entry.is_symlink():
                listing.links.append(name)
    elif name == ".gitignore":
        listing.has_ignore_file = True
    elif name == ".git":  # a work tree or a submodule
        listing.is_repository = True
    elif name in FILE_NAMES:
        listing.has_configuration = True


def _is_regular(entry: os.DirEntry[str]) -> bool:
    """Whether there is a file: a pipe is none, nor is a link that leads nowhere, as some editors leave."""
    try:
        return entry.is_file()
    except OSError:
        return False


def _steps(path: str) -> Iterator[tuple[str, str]]:
    """Each directory on the way to `path`, outermost first, with the name that leads on from it."""
    parts = path.split("/")[1:]
    for number, name in enumerate(parts):
        yield "/" + "/".join(parts[:number]), name


def _is_below(directory: str, root: str) -> bool:
    return directory == root or directory.startswith(root.rstrip("/") + "/")


def _unreachable(error: OSError | ValueError) -> str:
    """Why a path could not be looked at, and what to do."""
    if not isinstance(error, OSError):
        return "is no path: it holds a NUL character"
    if error.errno == errno.ENOENT:
        return "does not exist; check the spelling and the working directory"
    if error.errno == errno.ELOOP:
        return "is a symbolic link that leads back to itself; name the file or directory itself"
    if error.errno == errno.EACCES:
        return "cannot be read: permission denied; grant access or exclude it"
    return f"cannot be read: {error.strerror}"
