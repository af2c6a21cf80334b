"""Writing a migration: every file, or none."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable

from deadlint_budget import run

from deadlint.errors import UserError
from deadlint.migrate.migration import Migration
from deadlint.write import CannotWrite, Snapshot, replace_file

_GIT_LIMIT_S = 30


def write(migration: Migration, *, allow_dirty: bool) -> str:
    """Change the files; a line that says what was done. Raises `UserError` where none was changed."""
    if not migration.changes:
        return "Nothing to change."
    paths = [change.path for change in migration.changes]
    if not allow_dirty:
        _refuse_dirty(paths)
    done: list[tuple[Snapshot, bytes]] = []
    for change in migration.changes:
        file = migration.files.by_path[change.path]
        data = file.source.encode(change.after)
        try:
            replace_file(file.snapshot, data)
        except CannotWrite as error:
            _take_back(done)
            raise UserError(f"{file.shown}: {error}; nothing was changed in the other files either") from error
        done.append((file.snapshot, data))
    files = f"{len(done)} files" if len(done) > 1 else "1 file"
    return f"Changed {files}. Look at the diff, run the tests."


def _take_back(done: Iterable[tuple[Snapshot, bytes]]) -> None:
    """Give the files back what was in them."""
    for before, _ in done:
        try:
            replace_file(Snapshot.read(before.path), before.data)
        except (CannotWrite, OSError) as error:
            raise UserError(f"{before.path}: was changed and could not be given back ({error}); see git") from error


def _refuse_dirty(paths: list[str]) -> None:
    """Refuse where git has changes that are not committed; a place without git has nothing to compare with."""
    for directory in sorted({os.path.dirname(path) for path in paths}):
        try:
            done = run(
                # A monitor is a program that the repository's own configuration names.
                [
                    "git",
                    "-c",
                    "core.fsmonitor=false",
                    "--no-optional-locks",
                    "status",
                    "--porcelain",
                    "--untracked-files=no",
                ],
                cwd=directory,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                check=False,
                want=_GIT_LIMIT_S,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise UserError(f"git cannot be asked for changes ({error}); give --allow-dirty to go on") from error
        if done.returncode == 0 and done.stdout.strip():
            raise UserError(
                f"git has changes in {directory} that are not committed, which a migration would be mixed with;"
                " commit or stash them, or give --allow-dirty"
            )
