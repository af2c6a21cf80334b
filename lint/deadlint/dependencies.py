"""Whether a project declares deadlint among what it needs at run time, so that it may import the helpers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

# Groups whose packages a developer installs and production does not: code may not rely on them.
DEVELOPMENT_GROUPS = frozenset(
    {"check", "checks", "ci", "dev", "develop", "development", "doc", "docs", "format", "lint", "linting",
     "pre-commit", "quality", "style", "test", "testing", "tests", "tools", "types", "typing"}
)  # fmt: skip


def declares_deadlint(pyproject: Mapping[str, Any]) -> bool:
    """Whether a `pyproject.toml` names deadlint in its dependencies: PEP 621, PEP 735 groups, or Poetry."""
    return any(_normal(name) == "deadlint" for name in _requirements(pyproject))


def _requirements(pyproject: Mapping[str, Any]) -> Iterator[str]:
    yield from _texts(_table(pyproject, "project").get("dependencies"))
    for group, entries in _table(pyproject, "dependency-groups").items():
        if _normal(group) not in DEVELOPMENT_GROUPS:
            yield from _texts(entries)
    poetry = _table(_table(pyproject, "tool"), "poetry")
    yield from _table(poetry, "dependencies")
    for group in _table(poetry, "group"):
        if _normal(group) not in DEVELOPMENT_GROUPS:
            yield from _table(_table(_table(poetry, "group"), group), "dependencies")


def _table(parent: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = parent.get(key)
    return value if isinstance(value, Mapping) else {}


def _texts(entries: Any) -> Iterator[str]:
    if isinstance(entries, list):
        yield from (entry for entry in entries if isinstance(entry, str))


def _normal(requirement: str) -> str:
    """The name of a requirement as PEP 503 normalises it, without extras, versions and markers."""
    found = re.match(r"[A-Za-z0-9._-]+", requirement.strip())
    return re.sub(r"[-_.]+", "-", found.group()).lower() if found else ""
