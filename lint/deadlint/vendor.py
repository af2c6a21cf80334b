"""A copy of the runtime helpers in the user's own tree, for images that are to hold no linter."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from deadlint.errors import UserError

PACKAGE = "deadlint_budget"
MANIFEST = "VENDORED.json"
_KEPT = ("*.py", "py.typed")


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is to be said of a copy: the files that were changed in it, and whether it is the installed version."""

    version: str
    changed: tuple[str, ...]
    current: bool

    @property
    def good(self) -> bool:
        """Whether nothing is to be done."""
        return self.current and not self.changed


def vendor(target: Path, *, force: bool = False) -> str:
    """Write the helpers to the folder `target` and return their version.

    A copy that was changed by hand is only replaced with `force`, anything else that is there never is.
    Raises `UserError`.
    """
    if os.path.lexists(target):
        if not (target / MANIFEST).is_file():
            raise UserError(f"{target}: is there already and is no copy of {PACKAGE}; name another folder")
        changed = () if force else check(target).changed
        if changed:
            raise UserError(
                f"{target}: {', '.join(changed)} was changed here; keep your changes elsewhere, then use --force"
            )
    source = _installed()
    manifest = {"package": PACKAGE, "version": _version(source), "sha256": _digests(source)}
    try:
        _replace(target, source, manifest)
    except OSError as error:
        raise UserError(f"{target}: cannot be written: {error.strerror}; nothing was changed") from error
    return str(manifest["version"])


def _replace(target: Path, source: Path, manifest: Mapping[str, object]) -> None:
    """Put a whole copy where `target` is. Raises `OSError`, and then what was there is there."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}-") as folder:
        made, old = Path(folder) / "new", Path(folder) / "old"
        made.mkdir()
        for name in _files(source):
            (made / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source / name, made / name)
        (made / MANIFEST).write_text(json.dumps(manifest, indent=2, sort_keys=True) + "\n", encoding="utf-8")
        if target.exists():
            target.rename(old)
        try:
            made.rename(target)
        except OSError:
            if old.exists():
                old.rename(target)
            raise


def check(target: Path) -> Verdict:
    """Compare a copy with what was written and with what is installed. Raises `UserError` where it is none."""
    try:
        manifest = json.loads((target / MANIFEST).read_text(encoding="utf-8"))
        written = dict(manifest["sha256"])
        version = str(manifest["version"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"{target}: no copy of {PACKAGE} is here; write one with `deadlint vendor {target}`") from error
    there = _digests(target, ("*",))
    there.pop(MANIFEST)
    changed = sorted(name for name in written.keys() | there.keys() if written.get(name) != there.get(name))
    return Verdict(version, tuple(changed), written == _digests(_installed()))


def _installed() -> Path:
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or spec.origin is None:
        raise UserError(f"{PACKAGE} is not installed; reinstall deadlint")
    return Path(spec.origin).parent


def _files(folder: Path, patterns: Sequence[str] = _KEPT) -> list[str]:
    return sorted(
        path.relative_to(folder).as_posix()
        for pattern in patterns
        for path in folder.rglob(pattern)
        if "__pycache__" not in path.parts and path.is_file()
    )


def _digests(folder: Path, patterns: Sequence[str] = _KEPT) -> dict[str, str]:
    return {name: sha256((folder / name).read_bytes()).hexdigest() for name in _files(folder, patterns)}


def _version(source: Path) -> str:
    for line in (source / "__init__.py").read_text(encoding="utf-8").splitlines():
        if line.startswith("__version__"):
            return line.partition("=")[2].strip().strip('"')
    raise UserError(f"{source}: has no version; reinstall deadlint")
