"""From the command line to a migration: configuration, files, rules."""

from __future__ import annotations

import gc
import sys

from deadlint.config import Configurations
from deadlint.errors import UserError
from deadlint.migrate.migration import Migration, Wanted, migrate
from deadlint.migrate.sources import Sources, read_files
from deadlint.settings import Settings
from deadlint.work import installed_rules

_DEEP = 4000  # expressions are followed over files, by calls inside calls


def planned(wanted: Wanted, paths: tuple[str, ...], *, config: str | None = None, isolated: bool = False) -> Migration:
    """What a migration would do. Raises `UserError` where the request is wrong, or a file cannot be read."""
    rules = installed_rules()
    names = [(rule.code, rule.name) for rule in rules]
    files = read_files(paths, Configurations(lambda: names, file=config, isolated=isolated))
    if files.problems:
        first = files.problems[0]
        raise UserError(f"{first.path}: {first.message}; a migration needs all files, so nothing was changed")
    if not files.by_path:
        raise UserError(f"no Python files below {', '.join(paths)}")
    sys.setrecursionlimit(max(sys.getrecursionlimit(), _DEEP))
    settings: Settings = next(iter(files.by_path.values())).settings
    gc.disable()  # syntax trees are many objects, and it takes half of the time to look for cycles in them
    try:
        return migrate(wanted, files, Sources(settings, files), rules)
    except RecursionError as error:
        raise UserError("calls are nested too deeply to be followed; name fewer paths") from error
    finally:
        gc.enable()
