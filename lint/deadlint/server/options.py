"""What the editor says of how to check: its settings, beside those of the project."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from deadlint.config import Overrides
from deadlint.errors import UserError
from deadlint.model import Level


@dataclass(frozen=True, slots=True)
class Options:
    """The editor's settings; each is over what the project's configuration says, as options of `check` are."""

    overrides: Overrides = field(default_factory=Overrides)
    config: str | None = None
    hints: bool = True

    @classmethod
    def of(cls, said: object) -> Options:
        """The options in a client's settings, alone or under `deadlint`. Raises `UserError`."""
        values = said.get("deadlint", said) if isinstance(said, Mapping) else {}
        if not isinstance(values, Mapping):
            return cls()
        overrides = Overrides(
            select=_texts(values, "select"),
            extend_select=_texts(values, "extendSelect"),
            ignore=_texts(values, "ignore"),
            level=_level(values.get("level")),
        )
        config = values.get("config") or None
        if config is not None and not isinstance(config, str):
            raise UserError(f"the editor's setting deadlint.config is {config!r}; give the path of a TOML file")
        return cls(overrides, config, bool(values.get("inlayHints", True)))


def _texts(values: Mapping[str, Any], key: str) -> tuple[str, ...]:
    found = values.get(key) or ()
    if isinstance(found, str) or not all(isinstance(one, str) for one in found):
        raise UserError(f"the editor's setting deadlint.{key} is {found!r}; give a list of codes or names of rules")
    return tuple(found)


def _level(said: object) -> Level | None:
    if not said:
        return None
    try:
        return Level(str(said))
    except ValueError as error:
        raise UserError(f"the editor's setting deadlint.level is {said!r}; give `default` or `strict`") from error
