"""Checking again whenever a file is saved, until Ctrl-C."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from deadlint.config import FILE_NAMES
from deadlint.discover import SUFFIXES
from deadlint.errors import UserError
from deadlint.result import ExitStatus

# What an editor writes in one save arrives within a few milliseconds; a longer wait is felt.
_STEP_MS = 10
_MOST_MS = 50


def saves(paths: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """The files below `paths` that were changed, made or removed, as often as any were.

    Raises `UserError` where `watchfiles` is not installed or a path cannot be watched.
    """
    try:
        from watchfiles import watch  # noqa: PLC0415 - only here
    except ImportError:
        raise UserError("`--watch` needs watchfiles: install it with `pip install 'deadlint[watch]'`") from None
    try:
        for changes in watch(
            *_directories(paths),
            watch_filter=lambda _, path: _concerns(path),
            step=_STEP_MS,
            debounce=_MOST_MS,
        ):
            yield tuple(sorted({os.path.relpath(path) for _, path in changes}))
    except OSError as error:
        raise UserError(f"cannot watch {', '.join(paths)}: {error}") from error


def check_on_save(paths: Sequence[str], check: Callable[[], ExitStatus], say: Callable[[str], None]) -> ExitStatus:
    """Check, and check again after each save; the last exit status, when Ctrl-C ends it."""
    status = check()
    say("Watching for changes; Ctrl-C ends.")
    changes = saves(paths)
    while (changed := _next(changes)) is not None:
        say(f"Changed: {', '.join(changed[:3])}{f' and {len(changed) - 3} more' if len(changed) > 3 else ''}")
        status = check()
    return status


def _next(changes: Iterator[tuple[str, ...]]) -> tuple[str, ...] | None:
    """What was saved next; None when Ctrl-C comes first, which is how a watch ends."""
    try:
        return next(changes, None)
    except KeyboardInterrupt:
        return None


def _directories(paths: Sequence[str]) -> list[Path]:
    """The directories to watch: of a file its own, since editors replace files rather than write into them."""
    return [path if path.is_dir() else path.parent for path in map(Path, paths)]


def _concerns(path: str) -> bool:
    """Whether a change to a file may change findings: of a module, a notebook, or what tells which of them to check."""
    name = os.path.basename(path)
    return name.endswith(SUFFIXES) or name in FILE_NAMES or name == ".gitignore"
