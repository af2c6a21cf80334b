"""JSON text that every reader takes: ASCII only, without the lone surrogates that strict parsers refuse."""

from __future__ import annotations

import json
import re

from deadlint.report.printable import printable

_SURROGATE = re.compile("[\ud800-\udfff]")


def json_text(value: object) -> str:
    """`value` as indented JSON with a newline at its end. A byte of a path that is no text reads `\\xff`."""
    text = json.dumps(value, ensure_ascii=False, indent=2)
    if not text.isascii():
        escaped = _SURROGATE.sub(lambda found: json.dumps(printable(found.group()))[1:-1], text)
        text = json.dumps(json.loads(escaped), indent=2)
    return text + "\n"
