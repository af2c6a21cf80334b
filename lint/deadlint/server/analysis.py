"""What the engine finds in the buffers of an editor. Everything here runs in the one thread of `worker`."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from deadlint.config import FILE_NAMES, Configurations
from deadlint.discover import SUFFIXES, discover, is_excluded
from deadlint.errors import UserError
from deadlint.exits import decode
from deadlint.index.module import Module
from deadlint.judge import Judge
from deadlint.model import Finding
from deadlint.outcome import Exits, Order, Outcome, Status, Target, is_shown, status_of
from deadlint.part import Before
from deadlint.project import forget
from deadlint.rule import Rule, all_rules
from deadlint.server.buffers import Buffer
from deadlint.server.callers import Callers
from deadlint.server.effective import Held, held_in
from deadlint.server.options import Options
from deadlint.settings import Settings
from deadlint.source import SourceFile
from deadlint.suppress import SYNTAX_ERROR


@dataclass(frozen=True, slots=True)
class Checked:
    """What was found in one version of a buffer, at the level asked for and not suppressed."""

    buffer: Buffer
    findings: tuple[Finding, ...] = ()
    problem: str | None = None  # why it could not be checked
    depends: frozenset[str] = frozenset()  # other paths that the findings rest on
    with_fixes: bool = False
    partial: bool = False  # whether only the function that has changed was looked at
    before: Before | None = None  # what the next version can be compared with


@dataclass(slots=True)
class Analysis:
    """The rules, the settings of each folder, and the modules of the projects, kept from check to check."""

    unsaved: Mapping[str, str]
    options: Options = field(default_factory=Options)
    # What is to be noted before the next check. The thread of the editor's messages adds to it.
    _pending: deque[Callable[[], None]] = field(default_factory=deque)
    _judge: Judge | None = None
    _configurations: Configurations | None = None
    _excluded: dict[str, bool] = field(default_factory=dict)
    _callers: Callers = field(default_factory=Callers)
    _indexed: dict[str, Target] = field(default_factory=dict)  # the files of the projects
    _roots: set[str] = field(default_factory=set)
    _configured_by: dict[str, Status | None] = field(default_factory=dict)

    @property
    def rules(self) -> tuple[Rule, ...]:
        """All installed rules."""
        return all_rules()

    def note(self, path: str, *, created: bool) -> None:
        """Before the next check: a file has another content; `created` where it came or went. For any thread."""

        def settle() -> None:
            if created:
                forget()
            self.judge.forget_file(path)
            if path.endswith(SUFFIXES):
                self._callers.add([path])

        self._pending.append(settle)

    def reconfigure(self, options: Options | None) -> None:
        """Before the next check: read the configuration anew, with options where they are others. For any thread."""
        self._pending.append(lambda: self._configure(options))

    def settle(self) -> bool:
        """Take note of what has changed since the last check; whether a configuration has that nobody told of."""
        while self._pending:
            self._pending.popleft()()
        if all(_status(path) == status for path, status in self._configured_by.items()):
            return False
        self._configure(None)
        return True

    def _configure(self, options: Options | None) -> None:
        self.options = options or self.options
        self._judge = None
        self._configurations = None
        self._excluded.clear()
        self._configured_by.clear()
        self._callers = Callers()
        self._indexed.clear()
        self._roots.clear()
        forget()

    @property
    def judge(self) -> Judge:
        """The engine, with what it knows of the projects."""
        if self._judge is None:
            self._judge = Judge(self.rules, Order(), self.unsaved)
        return self._judge

    def settings(self, path: str) -> Settings:
        """The settings that hold for a file. Raises `UserError` where the configuration is wrong."""
        folder = os.path.dirname(path)
        self._note(folder)
        return self._read().settings(folder)

    def findings(self, buffer: Buffer, *, with_fixes: bool = False, before: Before | None = None) -> Checked:
        """The findings of a buffer in its project; where it differs from what was `before` in one function, of that."""
        try:
            settings = self.settings(buffer.path)
            if self._is_excluded(buffer.path):
                return Checked(buffer, with_fixes=with_fixes)
        except UserError as error:
            return Checked(buffer, problem=str(error), with_fixes=with_fixes)
        target = self.target(buffer, settings)
        outcome = self.judge.judge_text(target, source_of(buffer), with_fixes=with_fixes, before=before)
        shown = [one for one in outcome.findings if not one.suppressed and is_shown(one, settings.level)]
        return Checked(
            buffer,
            tuple(shown),
            outcome.problem,
            frozenset(self.judge.project(settings).reached(buffer.path)),
            with_fixes,
            outcome.partial,
            before if outcome.partial else _to_compare(buffer, outcome),
        )

    def findings_of(self, buffer: Buffer, source: SourceFile) -> list[Finding]:
        """The findings, with fixes, of what a buffer is on its way to while it is fixed. Raises `UserError`."""
        settings = self.settings(buffer.path)
        found = self.judge.judge_text(self.target(buffer, settings), source).findings
        return [one for one in found if not one.suppressed and is_shown(one, settings.level)]

    def held(self, buffer: Buffer) -> tuple[Held, ...]:
        """The limits in a buffer, with what holds around them; none where it does not parse."""
        try:
            settings = self.settings(buffer.path)
            entries = decode(self._callers.entered(buffer.path))
            module = Module(source_of(buffer), settings, self.judge.project(settings), entries)
        except (UserError, SyntaxError, ValueError, RecursionError, MemoryError):
            return ()
        try:
            return held_in(module)
        except RecursionError:
            return ()
        finally:
            module.release()

    def target(self, buffer: Buffer, settings: Settings) -> Target:
        """The buffer as the engine takes it."""
        folder, name = os.path.split(buffer.path)
        return Target(folder, buffer.path, name, settings, named=True, entered=self._callers.entered(buffer.path))

    # --- the callers of other files --------------------------------------------------------------------------

    def enlist(self, path: str) -> int:
        """Let the files of the project that a file belongs to wait for `index`, once. Returns how many are new."""
        try:
            configurations = self._read()
            root = configurations.project(os.path.dirname(path))
            if root is None or root in self._roots:
                return 0
            self._roots.add(root)
            found = discover([root], configurations)
        except UserError:
            return 0  # the check of the file says so
        new = {
            (target := Target(folder.path, os.path.join(folder.path, name), name, folder.settings, indexed=True)).path:
            target
            for folder in found.folders
            for name in folder.names
        }
        self._indexed.update(new)
        self._callers.add(new)
        return len(new)

    def index(self) -> tuple[set[str], int]:
        """Judge some of the files that wait for what they have around their calls of others.

        Returns the files that are called under something else since, and how many still wait.
        """
        return self._callers.settle(self._exits), len(self._callers.waiting)

    def leave_index(self) -> None:
        """Let no file wait any more: what they have around their calls stays unknown until they change."""
        self._callers.leave()

    def _exits(self, path: str, entered: bytes) -> Exits:
        target = self._indexed.get(path)
        text = self.unsaved.get(path)
        if target is None:
            if text is None and not os.path.isfile(path):
                return ()
            try:
                folder, name = os.path.split(path)
                target = Target(folder, path, name, self.settings(path), indexed=True)
            except UserError:
                return ()
        target = target._replace(entered=entered)
        if text is not None:
            return self.judge.judge_text(target, SourceFile(path, text), with_fixes=False).exits
        return self.judge.judge(target).exits

    def _read(self) -> Configurations:
        if self._configurations is None:
            names = [(rule.code, rule.name) for rule in self.rules]
            self._configurations = Configurations(lambda: names, self.options.overrides, self.options.config)
        return self._configurations

    def _is_excluded(self, path: str) -> bool:
        known = self._excluded.get(path)
        if known is None:
            known = self._excluded[path] = is_excluded(path, self._read())
        return known

    def _note(self, folder: str) -> None:
        """Remember how the files are now that may configure a folder."""
        while os.path.join(folder, FILE_NAMES[0]) not in self._configured_by:
            for name in (*FILE_NAMES, ".gitignore"):
                path = os.path.join(folder, name)
                self._configured_by[path] = _status(path)
            folder = os.path.dirname(folder)


def _to_compare(buffer: Buffer, outcome: Outcome) -> Before | None:
    """What the next version can be compared with; None where this one could not be checked as a whole."""
    broken = outcome.problem is not None or any(one.code == SYNTAX_ERROR for one in outcome.findings)
    return None if broken else Before(buffer.text, outcome.findings)


def source_of(buffer: Buffer) -> SourceFile:
    """The text of a buffer as the engine takes it."""
    return SourceFile(buffer.path, buffer.text)


def _status(path: str) -> Status | None:
    try:
        return status_of(os.stat(path))
    except OSError:
        return None
