"""One file from its bytes to its outcome: screen, check, suppress, and fix where that is asked for."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import TYPE_CHECKING, TypeVar

from deadlint.index.limits import Origins
from deadlint.model import NOTEBOOK, Finding, Level
from deadlint.outcome import Order, Outcome, Target, is_shown, status_of
from deadlint.patterns import Patterns
from deadlint.place import digest_of
from deadlint.result import Change
from deadlint.rule import Rule, matches, selected
from deadlint.screen import Screen
from deadlint.settings import Settings
from deadlint.source import SourceFile, UnreadableSource
from deadlint.suppress import suppress
from deadlint.write import CannotWrite, Snapshot, replace_file

if TYPE_CHECKING:
    from deadlint.check import Checked
    from deadlint.part import Before
    from deadlint.project import Project

_Result = TypeVar("_Result")


@dataclass(slots=True)
class Judge:
    """Judges files, with what it needs for each set of settings made ready once. Times each step."""

    rules: Sequence[Rule]
    order: Order
    unsaved: Mapping[str, str] = field(default_factory=dict)  # what an editor holds of files, by absolute path
    seconds: dict[str, float] = field(default_factory=dict)
    files: dict[str, int] = field(default_factory=dict)
    _plans: dict[int, _Plan] = field(default_factory=dict)

    def judge(self, target: Target) -> Outcome:
        """The outcome for one file. Does not raise: what goes wrong with one file is no reason to stop."""
        try:
            before = self._timed("read", lambda: Snapshot.read(target.path))
        except OSError as error:
            return Outcome(problem=_unreadable(error))
        try:
            return self._judge(target, before)
        except Exception as error:
            return Outcome(problem=_internal(error, self.order.debug))

    def judge_bytes(self, target: Target, data: bytes) -> Outcome:
        """The same for content that is in no file."""
        try:
            return self._judge(target, _unwritten(target.path, data))
        except Exception as error:
            return Outcome(problem=_internal(error, self.order.debug))

    def judge_text(
        self, target: Target, source: SourceFile, *, with_fixes: bool = True, before: Before | None = None
    ) -> Outcome:
        """The same for a text that an editor holds: its findings, or its exits where it is `indexed`.

        With what was `before`, only the function is looked at that has changed since, if that is all. What the findings
        rest on is for `Project.reached` to say.
        """
        from deadlint.check import CannotCheck  # noqa: PLC0415 - see `_check`

        plan = self._plan(target.settings)
        try:
            task = plan.task(target, source.text.encode("utf-8", "replace"))
            task = task if target.indexed else replace(task, follows=False)
            checked = self._checked(
                source, target, plan, task, with_fixes=with_fixes, before=before, screened=False
            )
        except CannotCheck as error:
            return Outcome(problem=str(error))
        except Exception as error:
            return Outcome(problem=_internal(error, self.order.debug))
        return Outcome(findings=tuple(checked.findings), exits=checked.exits, partial=checked.partial)

    def project(self, settings: Settings) -> Project:
        """The modules that files with these settings import from each other."""
        return self._plan(settings).project

    def forget_file(self, path: str) -> None:
        """Forget what rests on the content of the file at `path`, an absolute path."""
        for plan in self._plans.values():
            plan.project.forget_file(path)

    def _judge(self, target: Target, before: Snapshot) -> Outcome:
        plan = self._plan(target.settings)
        data = before.data
        status = status_of(before.status)
        if b"\0" in data:
            return Outcome(problem="holds NUL bytes, so it is no Python source; exclude it")
        try:
            code = _code(target, data)
        except UnreadableSource as error:
            return Outcome(problem=str(error))
        task = self._timed("screen", lambda: plan.task(target, code))
        if not task.rules and not task.follows:
            return Outcome(status=status)
        digest = self._timed("hash", lambda: digest_of(data)) if self.order.with_digest else None
        if digest is not None and digest == target.digest and not self.order.fix:
            return Outcome(known=True, status=status, digest=digest)
        return self._check(target, before, plan, task, Outcome(status=status, digest=digest))

    def _check(self, target: Target, before: Snapshot, plan: _Plan, task: _Task, outcome: Outcome) -> Outcome:
        from deadlint.check import CannotCheck  # noqa: PLC0415 - few files come this far

        try:
            source = self._timed("decode", lambda: SourceFile.decode(target.shown, before.data))
            checked = self._checked(source, target, plan, task)
            outcome = replace(outcome, findings=tuple(checked.findings), exits=checked.exits)
            if self.order.fix:
                return self._fix(source, target, before, plan, task, outcome)
        except (UnreadableSource, CannotCheck) as error:
            return Outcome(problem=str(error))
        return replace(outcome, depends=plan.project.depends_on(target.path))

    def _fix(
        self, source: SourceFile, target: Target, before: Snapshot, plan: _Plan, task: _Task, outcome: Outcome
    ) -> Outcome:
        """`outcome` after the fixes that are asked for; as it is where there are none."""
        from deadlint.fix import FixError, choose, fix_file  # noqa: PLC0415 - only where files are fixed

        def visible(source: SourceFile) -> list[Finding]:
            shown = target.settings.level
            found = self._checked(source, target, plan, task).findings
            return [one for one in found if not one.suppressed and is_shown(one, shown)]

        outcome = replace(outcome, depends=plan.project.depends_on(target.path))
        if not choose([one for one in outcome.findings if is_shown(one, target.settings.level)], self.order.fix):
            return outcome
        try:
            result = self._timed("fix", lambda: fix_file(source, visible, self.order.fix))
            if not result.applied:
                return outcome
            after = result.source.encode()
            if self.order.write:
                replace_file(before, after)
        except (FixError, CannotWrite) as error:
            return replace(outcome, problem=str(error))
        checked = self._checked(result.source, target, plan, task)
        return Outcome(
            findings=tuple(checked.findings),
            exits=checked.exits,
            status=status_of(os.stat(target.path)) if self.order.write else None,
            digest=digest_of(after) if self.order.write else None,
            fixed=result.applied,
            change=_change(source, result.source),
            depends=plan.project.depends_on(target.path),
        )

    def _checked(
        self,
        source: SourceFile,
        target: Target,
        plan: _Plan,
        task: _Task,
        *,
        with_fixes: bool = True,
        before: Before | None = None,
        screened: bool = True,
    ) -> Checked:
        """All findings of one text, marked where suppressed; in a test file all are for strict readers."""
        from deadlint.check import Checked, examine  # noqa: PLC0415 - few files come this far

        def check() -> Checked:
            return examine(
                source,
                target.settings,
                task.rules,
                with_fixes=with_fixes,
                project=plan.project,
                entered=target.entered,
                with_exits=task.follows,
                before=before,
                whole=target.named,
                screened=screened and not target.named,
            )

        checked = self._timed("check", check)
        for code, seconds in checked.seconds.items():
            self._count(code, seconds)
        if not task.rules:
            return Checked([], checked.exits)
        names = [(rule.code, rule.name) for rule in task.rules]
        codes = {code for code, _ in names}
        found = [one for one in checked.findings if one.code in codes]
        found = self._timed("suppress", lambda: suppress(source, found, plan.known, names, checked.tree))
        if plan.tests.covers(target.path):
            found = [replace(one, level=Level.STRICT) for one in found]
        return Checked(found, checked.exits, checked.partial)

    def _plan(self, settings: Settings) -> _Plan:
        plan = self._plans.get(id(settings))
        if plan is None:
            plan = self._plans[id(settings)] = _Plan.of(settings, self.rules, self.unsaved)
        return plan

    def _timed(self, step: str, work: Callable[[], _Result]) -> _Result:
        start = perf_counter()
        try:
            return work()
        finally:
            self._count(step, perf_counter() - start)

    def _count(self, step: str, seconds: float) -> None:
        self.seconds[step] = self.seconds.get(step, 0.0) + seconds
        self.files[step] = self.files.get(step, 0) + 1


@dataclass(frozen=True, slots=True)
class _Task:
    """What is to be done with one file."""

    rules: tuple[Rule, ...]  # empty where its findings are not asked for, or there are none
    follows: bool  # whether it may have limits or budgets around what it calls


@dataclass(slots=True)
class _Plan:
    """What settings mean for the files that they hold for."""

    settings: Settings  # kept, so that its identity stays its own
    rules: tuple[Rule, ...]
    known: tuple[tuple[str, str], ...]
    screen: Screen[Rule | Origins]  # both in one pass over the bytes
    tests: Patterns
    ignores: tuple[tuple[Patterns, tuple[str, ...]], ...]
    unsaved: Mapping[str, str]
    _active: dict[tuple[str, ...], tuple[Rule, ...]] = field(default_factory=dict)
    _project: Project | None = None

    @classmethod
    def of(cls, settings: Settings, rules: Sequence[Rule], unsaved: Mapping[str, str]) -> _Plan:
        select = (*settings.select, *settings.extend_select) if settings.select else ()
        chosen = selected(rules, select, settings.ignore)
        return cls(
            settings,
            chosen,
            tuple((rule.code, rule.name) for rule in rules),
            Screen[Rule | Origins]([*chosen, Origins()]),
            Patterns(settings.root, settings.tests),
            tuple((Patterns(settings.root, [pattern]), codes) for pattern, codes in settings.per_file_ignores),
            unsaved,
        )

    @property
    def project(self) -> Project:
        """The modules that the files import from each other."""
        if self._project is None:
            from deadlint.project import Project  # noqa: PLC0415 - few files come this far

            self._project = Project(self.settings, self.unsaved)
        return self._project

    def task(self, target: Target, data: bytes) -> _Task:
        """What is to be done with a file of these bytes.

        Tests have short limits around what they call, so that they end soon: these say nothing of the project.
        """
        interested = () if target.entered else self.screen.interested(data)
        follows = bool(target.entered) or any(isinstance(one, Origins) for one in interested)
        wanted = not target.indexed and (
            target.named or bool(target.entered) or any(not isinstance(one, Origins) for one in interested)
        )
        return _Task(
            self.active(target.path) if wanted else (),
            follows and not self.tests.covers(target.path),
        )

    def active(self, path: str) -> tuple[Rule, ...]:
        """The rules for one file: those chosen, but for what its path ignores."""
        ignored = tuple(code for patterns, codes in self.ignores if patterns.covers(path) for code in codes)
        if ignored not in self._active:
            self._active[ignored] = tuple(
                rule for rule in self.rules if not any(matches(rule.code, rule.name, one) for one in ignored)
            )
        return self._active[ignored]


def _code(target: Target, data: bytes) -> bytes:
    """The bytes to screen: of a notebook its code, for words may stand in outputs, and lines are strings there.

    Raises `UnreadableSource` where it is no notebook.
    """
    if not target.name.endswith(NOTEBOOK):
        return data
    from deadlint.notebook.source import code_of  # noqa: PLC0415 - few files are notebooks

    return code_of(data)


def _change(before: SourceFile, after: SourceFile) -> Change:
    if not before.path.endswith(NOTEBOOK):
        return Change(before.path, before.text, after.text, bom=before.bom)
    from deadlint.notebook.source import Notebook  # noqa: PLC0415 - few files are notebooks

    assert isinstance(before, Notebook)
    return Change(before.path, before.text, after.text, before, before.bom)


def _unwritten(path: str, data: bytes) -> Snapshot:
    return Snapshot(path, os.stat_result((0,) * 10), data)


def _unreadable(error: OSError) -> str:
    if isinstance(error, PermissionError):
        return "cannot be read: permission denied; grant access or exclude it"
    return f"cannot be read: {error.strerror}"


def _internal(error: BaseException, debug: bool) -> str:
    """One line for a fault of our own; the rest goes on."""
    said = " ".join(f"{type(error).__name__}: {error}".split())
    whose = (getattr(error, "__notes__", None) or ["deadlint itself"])[-1]
    text = f"could not be checked for a fault of {whose} ({said}); please report it"
    if debug:
        return text + "\n" + "".join(traceback.format_exception(error)).rstrip()
    return text + ", with what --debug prints"
