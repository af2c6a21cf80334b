"""The pages of the rules as files that an editor can open."""

from __future__ import annotations

import os
import sys
from functools import cache

from pygls.uris import from_fs_path

from deadlint import __version__
from deadlint.explain import page
from deadlint.rule import Rule, all_rules


@cache
def page_uri(code: str) -> str | None:
    """Where the page of a rule is, written there if it is not; None for what is no rule, or where it cannot be."""
    rule = next((rule for rule in all_rules() if rule.code == code), None)
    if rule is None:
        return None
    path = os.path.join(_folder(), f"{rule.code}.md")
    try:
        _write(path, page(rule))
    except OSError:
        return None
    uri: str | None = from_fs_path(path)
    return uri


def hover_text(rule: Rule) -> str:
    """The page of a rule, with its headings made small enough for a hover."""
    lines = page(rule).splitlines()
    return "\n".join(f"##{line}" if line.startswith("#") else line for line in lines)


def _folder() -> str:
    """Where programs keep what they can make again."""
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or os.path.expanduser("~\\AppData\\Local")
    elif sys.platform == "darwin":
        base = os.path.expanduser("~/Library/Caches")
    else:
        base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.path.join(base, "deadlint", "rules", __version__)


def _write(path: str, text: str) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    data = text.encode("utf-8")
    try:
        with open(path, "rb") as file:
            if file.read() == data:
                return
    except FileNotFoundError:
        pass
    with open(f"{path}.{os.getpid()}", "wb") as new:
        new.write(data)
    os.replace(new.name, path)
