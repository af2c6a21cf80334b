"""What `deadlint --version` says: the versions that a report of a bug needs."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, entry_points, version

from deadlint import __version__
from deadlint.rule import ENTRY_POINT


def versions() -> str:
    """`deadlint` and its version in the first line; then Python, LibCST, the platform and the packages of rules."""
    python = f"Python {platform.python_version()} ({platform.python_implementation()})"
    lines = [f"deadlint {__version__}", python, f"libcst {_version('libcst')}", platform.platform()]
    return "\n".join([*lines, f"rules from {', '.join(_rule_packages()) or 'no package'}"])


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "is not installed"


def _rule_packages() -> list[str]:
    """The installed packages that have rules. None of them is loaded: it may be what is broken."""
    found = {point.dist for point in entry_points(group=ENTRY_POINT) if point.dist is not None}
    return sorted({f"{package.name} {package.version}" for package in found})
