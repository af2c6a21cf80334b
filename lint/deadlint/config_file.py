"""One configuration file: reading it, judging it, and the settings that it stands for."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from keyword import iskeyword
from typing import Any

import tomli

from deadlint.config_schema import CONFIGURATION
from deadlint.dependencies import declares_deadlint
from deadlint.errors import UserError
from deadlint.model import Level
from deadlint.rule import matches
from deadlint.settings import Constants, Settings, Wrappers
from deadlint.shape import nearest

# The codes and names of the rules, to judge selectors by. A callable: most runs need not load the rules.
KnownRules = Callable[[], Sequence[tuple[str, str]]]

# The lists that extend their defaults; an entry with `!` in front removes one of these.
EXTENDED = ("exclude", "tests", "long-running", "leaf", "read-only")


@dataclass(frozen=True, slots=True)
class ConfigFile:
    """A TOML file that may configure deadlint. `document` is all of it."""

    path: str
    document: Mapping[str, Any]

    @classmethod
    def load(cls, path: str) -> ConfigFile:
        """Read and parse `path`. Raises `UserError`."""
        try:
            with open(path, "rb") as file:
                data = file.read()
        except OSError as error:
            raise UserError(f"{shown(path)}: cannot be read: {error.strerror}; name a TOML file") from error
        return cls(path, _parse(path, data))

    @property
    def declares_deadlint(self) -> bool:
        """Whether the file is a `pyproject.toml` of a project that depends on deadlint."""
        return declares_deadlint(self.document)

    @property
    def configures(self) -> bool:
        """Whether the file says anything to deadlint."""
        return not self._is_pyproject or "deadlint" in self._tool

    def settings(self, known_rules: KnownRules) -> Settings:
        """The settings that the file stands for. Raises `UserError` with one line for each fault in it."""
        said = self._tool.get("deadlint", {}) if self._is_pyproject else self.document
        faults = [f"{self._where(*f.keys)} {f.text}" for f in CONFIGURATION.faults(said)]
        faults = faults or list(self._contradictions(said))
        if faults:
            raise UserError("\n".join(faults))
        self._check_rules(said, known_rules)
        return _settings(said, os.path.dirname(os.path.abspath(self.path)))

    @property
    def _is_pyproject(self) -> bool:
        return os.path.basename(self.path) == "pyproject.toml"

    @property
    def _tool(self) -> Mapping[str, Any]:
        tool = self.document.get("tool")
        return tool if isinstance(tool, Mapping) else {}

    def _where(self, *keys: str) -> str:
        """The file and a key in it, as TOML writes keys."""
        full = ("tool", "deadlint", *keys) if self._is_pyproject else keys
        bare = (key if key.replace("-", "").replace("_", "").isalnum() else f'"{key}"' for key in full)
        return f"{shown(self.path)}: {'.'.join(bare)}"

    def _contradictions(self, said: Mapping[str, Any]) -> Iterator[str]:
        """What fits the schema and yet cannot be meant."""
        for key in EXTENDED:
            defaults = _default(key)
            for entry in said.get(key, ()):
                if entry.startswith("!") and entry[1:] not in defaults:
                    yield (
                        f"{self._where(key)} removes {entry[1:]!r}, which is no default; {nearest(entry[1:], defaults)}"
                    )
        for constant, entry in said.get("constants", {}).items():
            if iskeyword(entry.get("name", "")):
                where = self._where("constants", constant, "name")
                yield f"{where} is {entry['name']!r}, a word of Python's own"
        if any(map(iskeyword, said.get("helpers", "").split("."))):
            yield f"{self._where('helpers')} is {said['helpers']!r}, which holds a word of Python's own"

    def _check_rules(self, said: Mapping[str, Any], known_rules: KnownRules) -> None:
        for key in ("select", "extend-select", "ignore"):
            check_selectors(self._where(key), said.get(key, ()), known_rules)
        for pattern, selectors in said.get("per-file-ignores", {}).items():
            check_selectors(self._where("per-file-ignores", pattern), selectors, known_rules)


def check_selectors(where: str, selectors: Iterable[str], known_rules: KnownRules) -> None:
    """Raise `UserError` where a selector names no rule; `where` says which key or option it stands under."""
    wanted = [selector for selector in selectors if selector != "ALL"]
    if not wanted:
        return
    rules = known_rules()
    for selector in wanted:
        if not any(matches(code, name, selector) for code, name in rules):
            hint = nearest(selector, sorted({word for rule in rules for word in rule}), otherwise="")
            raise UserError(
                f"{where}: no rule has the code or name {selector!r}; {hint or '`deadlint rules` lists them'}"
            )


def shown(path: str) -> str:
    """A path as short as it can be said from here."""
    relative = os.path.relpath(path)
    return path if relative.startswith("..") else relative


def _settings(said: Mapping[str, Any], root: str) -> Settings:
    """The settings that faultless configuration stands for."""
    default = Settings()
    return Settings(
        select=tuple(said.get("select", ())),
        extend_select=tuple(said.get("extend-select", ())),
        ignore=tuple(said.get("ignore", ())),
        level=Level(said.get("level", default.level)),
        per_file_ignores=tuple((p, tuple(rules)) for p, rules in said.get("per-file-ignores", {}).items()),
        exclude=_extended("exclude", said),
        notebooks=said.get("notebooks", default.notebooks),
        src=_extended("src", said),
        tests=_extended("tests", said),
        long_running=_extended("long-running", said),
        leaf=_extended("leaf", said),
        read_only=_extended("read-only", said),
        wrappers=Wrappers(**{kind: tuple(names) for kind, names in said.get("wrappers", {}).items()}),
        constants=_constants(said.get("constants", {})),
        helpers=said.get("helpers", default.helpers),
        helpers_are_own="helpers" in said,
        server_statement_timeout=said.get("server-statement-timeout", False),
        baseline=os.path.normpath(os.path.join(root, said["baseline"])) if "baseline" in said else None,
        root=root,
    )


def _extended(key: str, said: Mapping[str, Any]) -> tuple[str, ...]:
    """The default list with what `said` removes from it and adds to it."""
    entries = said.get(key, ())
    removed = {entry[1:] for entry in entries if entry.startswith("!")}
    added = tuple(entry for entry in entries if not entry.startswith("!"))
    return (*(entry for entry in _default(key) if entry not in removed), *added)


def _constants(said: Mapping[str, Any]) -> Constants:
    constants = Constants()
    for kind, entry in said.items():
        name, value = getattr(constants, kind)
        name = entry.get("name", name)
        value = repr(entry["value"]) if "value" in entry else value
        constants = replace(constants, **{kind: (name, value)})
    return constants


def _default(key: str) -> tuple[str, ...]:
    default: tuple[str, ...] = getattr(Settings(), key.replace("-", "_"))
    return default


def _parse(path: str, data: bytes) -> dict[str, Any]:
    try:
        return tomli.loads(data.decode("utf-8"))
    except tomli.TOMLDecodeError as error:
        raise UserError(f"{shown(path)}: is no valid TOML: {error}") from error
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise UserError(f"{shown(path)}: line {line} is not UTF-8, which TOML must be") from error
    except RecursionError as error:
        raise UserError(f"{shown(path)}: its values are nested too deep to read") from error
