"""One editor's session: its buffers, what is known of them, and what is to be checked next."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol, TypeVar

from lsprotocol import types

from deadlint.config import FILE_NAMES
from deadlint.errors import UserError
from deadlint.model import Finding
from deadlint.part import Before
from deadlint.server.actions import Deferred, deferred_edit, workspace_edit
from deadlint.server.analysis import Analysis, Checked
from deadlint.server.buffers import Buffer, Buffers, path_of
from deadlint.server.client import Client
from deadlint.server.diagnostics import diagnostics
from deadlint.server.effective import Held
from deadlint.server.options import Options
from deadlint.server.places import Places
from deadlint.server.worker import Worker
from deadlint.source import SourceFile

_Result = TypeVar("_Result")

# Seconds after a change before it is looked at as a whole, with the other open files that it concerns: a keystroke gets
# an answer for the function that it is in. Longer than from key to key while somebody types.
SETTLED_S = 0.3


class Progress(Protocol):
    """Work that the editor shows and may cancel."""

    @property
    def cancelled(self) -> bool:
        """Whether the user wants no more of it."""

    def report(self, done: int) -> None:
        """So many steps are done."""

    def end(self) -> None:
        """The work is over."""


class Editor(Protocol):
    """What a session says to the editor."""

    async def begin(self, title: str, steps: int) -> Progress:
        """Show that work has begun."""

    def publish(self, buffer: Buffer, found: list[types.Diagnostic]) -> None:
        """Show the diagnostics of a version of a buffer."""

    def refresh(self) -> None:
        """Ask for what has been shown again."""

    def complain(self, text: str) -> None:
        """Show an error."""


@dataclass(slots=True)
class Known:
    """What has been found out about one version of a buffer."""

    checked: Checked | None = None
    quick: Checked | None = None  # what was found when only the function that had changed was looked at
    fixable: Checked | None = None
    held: tuple[Held, ...] | None = None
    reported: tuple[str, list[types.Diagnostic]] | None = None  # what a pull was answered, by its id

    def answer(self, *, with_fixes: bool, quick: bool) -> Checked | None:
        """What was found, if it was looked for."""
        if with_fixes:
            return self.fixable
        return self.checked or self.fixable or (self.quick if quick else None)

    def take(self, found: Checked) -> None:
        """Keep what was found."""
        if found.partial:
            self.quick = found
        elif found.with_fixes:
            self.fixable = found
        else:
            self.checked = found


@dataclass(slots=True)
class Session:
    """The state of a session. Its methods run in the thread of the messages; what they `run` does not."""

    editor: Editor
    client: Client = field(default_factory=Client)
    folder: str = field(default_factory=os.getcwd)
    buffers: Buffers = field(default_factory=Buffers)
    worker: Worker = field(default_factory=Worker)
    _analysis: Analysis | None = None
    _known: dict[str, Known] = field(default_factory=dict)
    _before: dict[str, Before] = field(default_factory=dict)  # by address, what the next version is compared with
    _partial: dict[str, None] = field(default_factory=dict)  # of which only a part was looked at since they changed
    _completing: asyncio.TimerHandle | None = None
    _completion: asyncio.Task[None] | None = None
    _dirty: dict[str, None] = field(default_factory=dict)
    _later: dict[str, None] = field(default_factory=dict)
    _pushing: asyncio.Task[None] | None = None
    _indexing: asyncio.Task[None] | None = None
    _index_at: asyncio.TimerHandle | None = None
    _to_enlist: dict[str, None] = field(default_factory=dict)
    _refreshing: asyncio.TimerHandle | None = None
    _clock: int = 0  # counts changes
    _changed_at: dict[str, int] = field(default_factory=dict)
    _reports: int = 0
    _complaint: str = ""

    @property
    def analysis(self) -> Analysis:
        """The engine's side of the session."""
        if self._analysis is None:
            self._analysis = Analysis(self.buffers.texts)
        return self._analysis

    # --- what the editor tells -------------------------------------------------------------------------------

    def opened(self, document: types.TextDocumentItem) -> None:
        """A document is open."""
        buffer = self.buffers.open(document, self.folder)
        self._on_change(buffer.path, created=not os.path.exists(buffer.path))
        self._check_soon(buffer.uri)
        self._to_enlist[buffer.path] = None
        self._index_soon()

    def changed(self, params: types.DidChangeTextDocumentParams) -> None:
        """A document has changed."""
        buffer = self.buffers.change(params)
        if buffer is not None:
            self._on_change(buffer.path)
            self._check_soon(buffer.uri)

    def closed(self, uri: str) -> None:
        """A document is closed: what the disk has of it counts again."""
        buffer = self.buffers.close(uri)
        if buffer is None:
            return
        self._known.pop(uri, None)
        self._before.pop(uri, None)
        self._on_change(buffer.path)
        if not self.client.pulls:
            self.editor.publish(buffer, [])

    def saved(self, uri: str) -> None:
        """A document is saved. A client that does not watch files says no more than this of the disk."""
        self.disk_changed([(path_of(uri, self.folder), False)])

    def disk_changed(self, changes: Iterable[tuple[str, bool]]) -> None:
        """Files have changed on disk: their paths, and whether they came or went."""
        configured = False
        for path, came_or_went in changes:
            if os.path.basename(path) in (*FILE_NAMES, ".gitignore"):
                configured = True
            elif path not in self.buffers.texts or came_or_went:
                self._on_change(path, created=came_or_went)
        if configured:
            self.configure()

    def configure(self, said: object = None) -> None:
        """The configuration has changed; `said` are the client's settings where it has given others."""
        options = None
        if said is not None:
            try:
                options = Options.of(said)
            except UserError as error:
                self.editor.complain(str(error))
        analysis = self.analysis
        analysis.reconfigure(options)
        self._everything_changed()

    # --- what the editor asks --------------------------------------------------------------------------------

    async def checked(self, buffer: Buffer, *, with_fixes: bool = False, quick: bool = False) -> Checked | None:
        """What is found in a buffer; None where it, or what it rests on, has changed meanwhile.

        Where it is to be `quick`, only the function may be looked at that has changed; the rest follows.
        """
        known = self._known_of(buffer)
        ready = known.answer(with_fixes=with_fixes, quick=quick)
        if ready is not None:
            return ready
        clock = self._clock
        before = self._before.get(buffer.uri) if quick else None

        def work() -> Checked | None:
            # Nobody needs an overtaken version; and what was waited for may have been found out meanwhile.
            if self.buffers.is_current(buffer) and known.answer(with_fixes=with_fixes, quick=quick) is None:
                known.take(self.analysis.findings(buffer, with_fixes=with_fixes, before=before))
            return known.answer(with_fixes=with_fixes, quick=quick)

        found = await self._run(work)
        if found is None or not self._is_still_so(found, clock):
            if self.buffers.is_current(buffer):
                self._known[buffer.uri] = Known()
            return None
        self._complain_of(found)
        if found.partial:
            self._complete_soon(buffer.uri)
        elif found.before is not None:
            self._before[buffer.uri] = found.before
        return found

    async def held(self, buffer: Buffer) -> tuple[Held, ...] | None:
        """The limits of a buffer; None where it has changed meanwhile."""
        known = self._known_of(buffer)
        if known.held is None:
            clock = self._clock
            found = await self._run(lambda: self.analysis.held(buffer))
            checked = await self.checked(buffer)
            if checked is None or not self._is_still_so(checked, clock):
                return None
            known.held = found
        return known.held

    async def report(self, buffer: Buffer) -> tuple[str, list[types.Diagnostic]] | None:
        """The diagnostics of a buffer and their id; None where it has changed meanwhile."""
        checked = await self.checked(buffer, quick=self.client.refreshes_diagnostics)
        if checked is None:
            return None
        known = self._known_of(buffer)
        if known.reported is None:
            self._reports += 1
            known.reported = (f"{self._reports}", diagnostics(checked, self.places()))
        return known.reported

    async def edit_of(self, deferred: Deferred) -> types.WorkspaceEdit | None:
        """The edit of an action; None where the document has another version by now. Raises `CannotDo`."""
        buffer = self.buffers.get(deferred.uri)
        if buffer is None or buffer.version != deferred.version:
            return None

        def findings(source: SourceFile) -> Sequence[Finding]:
            return self.analysis.findings_of(buffer, source)

        edits = await self._run(lambda: deferred_edit(deferred, buffer, findings, self.analysis.rules))
        return workspace_edit(buffer, edits, versioned=self.client.versioned_edits)

    def places(self) -> Places:
        """Places in files as they are now."""
        return Places(self.buffers.texts, self.buffers.units, {one.path: one.uri for one in self.buffers})

    # --- what is to be done ----------------------------------------------------------------------------------

    async def _run(self, work: Callable[[], _Result], *, waited_for: bool = True) -> _Result:
        def settled() -> tuple[bool, _Result]:
            return self.analysis.settle(), work()

        run = self.worker.run if waited_for else self.worker.run_when_quiet
        reconfigured, result = await run(settled)
        if reconfigured:
            self._everything_changed()
        return result

    def _known_of(self, buffer: Buffer) -> Known:
        known = self._known.get(buffer.uri)
        if known is None or not self.buffers.is_current(buffer):
            return Known()
        return known

    def _is_still_so(self, found: Checked, clock: int) -> bool:
        """Whether nothing has changed since `clock` that what was found rests on."""
        if not self.buffers.is_current(found.buffer):
            return False
        return all(self._changed_at.get(path, 0) <= clock for path in (found.buffer.path, *found.depends))

    def _on_change(self, path: str, *, created: bool = False) -> None:
        """A file has another content now, in a buffer or on disk; `created` where it came or went."""
        self._clock += 1
        self._changed_at[path] = self._clock
        self.analysis.note(path, created=created)
        self._index_soon()
        concerned = [one for one in self.buffers if one.path == path or self._rests_on(one, path)]
        for buffer in concerned:
            self._known[buffer.uri] = Known()
            if buffer.path != path:
                self._before.pop(buffer.uri, None)
        if any(one.path != path for one in concerned):
            self._look_again([one.uri for one in concerned if one.path != path])

    def _called_anew(self, paths: Iterable[str]) -> None:
        """Files are called under something else than before: what is found in those that are open may change."""
        concerned = [one for path in paths if (one := self.buffers.at(path)) is not None]
        for buffer in concerned:
            self._clock += 1
            self._changed_at[buffer.path] = self._clock
            self._known[buffer.uri] = Known()
            self._before.pop(buffer.uri, None)
        if concerned:
            self._look_again([one.uri for one in concerned])

    def _rests_on(self, buffer: Buffer, path: str) -> bool:
        known = self._known.get(buffer.uri, Known())
        checked = known.answer(with_fixes=False, quick=True)
        return checked is not None and path in checked.depends

    def _everything_changed(self) -> None:
        self._clock += 1
        self._complaint = ""
        self._before.clear()
        for buffer in self.buffers:
            self._changed_at[buffer.path] = self._clock
            self._known[buffer.uri] = Known()
            self._to_enlist[buffer.path] = None
        self._look_again([one.uri for one in self.buffers])
        self._index_soon()

    def _look_again(self, uris: Sequence[str]) -> None:
        """Show anew what is found in buffers that did not change themselves, once typing pauses."""
        if self._refreshing is not None:
            self._refreshing.cancel()
        if not self.client.pulls:
            self._later.update(dict.fromkeys(uris))
        self._refreshing = asyncio.get_running_loop().call_later(SETTLED_S, self._refresh)

    def _refresh(self) -> None:
        self._refreshing = None
        self.editor.refresh()
        later, self._later = self._later, {}
        for uri in later:
            self._check_soon(uri)

    def _check_soon(self, uri: str) -> None:
        if self.client.pulls:
            return
        self._dirty.pop(uri, None)
        self._dirty[uri] = None
        if self._pushing is None or self._pushing.done():
            self._pushing = asyncio.get_running_loop().create_task(self._push())

    async def _push(self) -> None:
        """Publish what is found in the buffers that wait for it, the latest first."""
        while self._dirty:
            uri, _ = self._dirty.popitem()
            buffer = self.buffers.get(uri)
            if buffer is None:
                continue
            checked = await self.checked(buffer, quick=True)
            if checked is not None:
                self.editor.publish(buffer, diagnostics(checked, self.places()))
            elif self.buffers.get(uri) is not None:
                self._dirty.setdefault(uri)

    def _complete_soon(self, uri: str) -> None:
        """Look at the whole of a buffer once nothing has changed for a moment."""
        self._partial[uri] = None
        if self._completing is not None:
            self._completing.cancel()
        self._completing = asyncio.get_running_loop().call_later(SETTLED_S, self._start_completing)

    def _start_completing(self) -> None:
        self._completing = None
        if self._completion is None or self._completion.done():
            self._completion = asyncio.get_running_loop().create_task(self._complete())

    async def _complete(self) -> None:
        """Show what is found in whole buffers, where that is something else than was shown."""
        while self._partial:
            uri, _ = self._partial.popitem()
            buffer = self.buffers.get(uri)
            if buffer is None:
                continue
            known = self._known_of(buffer)
            whole = await self.checked(buffer)
            if whole is None or known.quick is None or whole.findings == known.quick.findings:
                continue
            known.reported = None
            if self.client.pulls:
                self.editor.refresh()
            else:
                self.editor.publish(buffer, diagnostics(whole, self.places()))

    def _index_soon(self) -> None:
        """Index once nothing has changed for a moment."""
        if self._index_at is not None:
            self._index_at.cancel()
        self._index_at = asyncio.get_running_loop().call_later(SETTLED_S, self._start_indexing)

    def _start_indexing(self) -> None:
        self._index_at = None
        if self._indexing is None or self._indexing.done():
            self._indexing = asyncio.get_running_loop().create_task(self._index())
        else:
            self._index_soon()

    async def _index(self) -> None:
        """Find out who calls whom under what: at first in whole projects, later where something has changed."""
        new = 0
        while self._to_enlist:
            path, _ = self._to_enlist.popitem()
            new += await self._run(partial(self.analysis.enlist, path), waited_for=False)
        progress = await self.editor.begin("Indexing", new) if new else None
        waiting = 1
        while waiting and not (progress and progress.cancelled):
            changed, waiting = await self._run(self.analysis.index, waited_for=False)
            self._called_anew(changed)
            if progress:
                progress.report(max(0, new - waiting))
        if waiting:
            await self._run(self.analysis.leave_index, waited_for=False)
        if progress:
            progress.end()

    def _complain_of(self, checked: Checked) -> None:
        """Say once why files cannot be checked."""
        if checked.problem is not None and checked.problem != self._complaint:
            self._complaint = checked.problem
            self.editor.complain(checked.problem)
