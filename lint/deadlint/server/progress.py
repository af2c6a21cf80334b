"""Showing in the editor how far work is that takes a while, where the editor can show it."""

from __future__ import annotations

import asyncio
from time import monotonic

from lsprotocol import types
from pygls.lsp.server import LanguageServer

_ANSWER_S = 5.0  # an editor that does not answer by then is shown nothing
_EVERY_S = 0.1


class Shown:
    """Work that the editor shows."""

    def __init__(self, server: LanguageServer, token: str, steps: int) -> None:
        self._server = server
        self._token = token
        self._steps = steps
        self._said_at = 0.0

    @classmethod
    async def begin(cls, server: LanguageServer, title: str, steps: int, number: int) -> Shown | Hidden:
        """Show that work has begun."""
        token = f"deadlint-{number}"
        try:
            await asyncio.wait_for(server.work_done_progress.create_async(token), _ANSWER_S)
        except Exception:  # the editor refuses, or does not answer: nothing that the work should stop for
            return Hidden()
        begun = types.WorkDoneProgressBegin(f"deadlint: {title}", cancellable=True, percentage=0)
        server.work_done_progress.begin(token, begun)
        return cls(server, token, steps)

    @property
    def cancelled(self) -> bool:
        """Whether the user wants no more of it."""
        return self._server.work_done_progress.tokens[self._token].cancelled()

    def report(self, done: int) -> None:
        """So many steps are done; said at most ten times a second."""
        if monotonic() - self._said_at >= _EVERY_S:
            self._said_at = monotonic()
            text = f"{done} of {self._steps} files"
            report = types.WorkDoneProgressReport(message=text, percentage=100 * done // max(1, self._steps))
            self._server.work_done_progress.report(self._token, report)

    def end(self) -> None:
        """The work is over."""
        self._server.work_done_progress.end(self._token, types.WorkDoneProgressEnd())
        del self._server.work_done_progress.tokens[self._token]


class Hidden:
    """Work that the editor cannot show."""

    cancelled = False

    def report(self, done: int) -> None:
        """Nothing is shown."""

    def end(self) -> None:
        """Nothing is shown."""
