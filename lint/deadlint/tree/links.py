"""Where a click on a place leads: the file itself, an editor, or a page of a code host."""

from __future__ import annotations

import os
import re
from urllib.parse import quote

from deadlint.errors import UserError
from deadlint.tree.model import Place

_KNOWN = {"file": "file://{path}", "vscode": "vscode://file{path}:{line}:{column}"}
_FIELDS = ("path", "relative", "line", "column")
_FIELD = re.compile(r"\{(\w*)\}")
# What a page must not run: everything else is for the browser to know.
_REFUSED = ("javascript", "data", "vbscript", "blob")


def template_of(given: str) -> str:
    """The URL template that `file`, `vscode` or a template stands for. Raises `UserError` where it is none."""
    if given in _KNOWN:
        return _KNOWN[given]
    scheme, colon, _ = given.partition(":")
    unknown = sorted(set(_FIELD.findall(given)) - set(_FIELDS))
    if not colon or not re.fullmatch(r"[A-Za-z][\w+.-]*", scheme) or scheme.lower() in _REFUSED:
        example = "https://host/repo/{relative}#L{line}"
        raise UserError(f"--source-url {given}: give file, vscode, or a URL such as {example}")
    if unknown:
        raise UserError(f"--source-url {given}: {{{unknown[0]}}} is none of {', '.join(f'{{{n}}}' for n in _FIELDS)}")
    return given


def link(place: Place, template: str, base: str) -> str:
    """The URL of a place."""
    values = {
        "path": quote(os.fsencode(place.path)),
        "relative": quote(os.fsencode(os.path.relpath(place.path, base))),
        "line": str(place.line),
        "column": str(place.column),
    }
    return _FIELD.sub(lambda found: values[found.group(1)], template)
