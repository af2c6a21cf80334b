"""Make text that comes from outside safe to show on one line of a terminal or log.

Paths and sources may hold newlines, escape sequences, bidirectional controls that reorder what is read, and
the surrogates that stand for bytes which are no text. Each is shown as the escape that Python writes for it.
"""

from __future__ import annotations

import re
from typing import IO

# C0 and C1 controls, line and paragraph separators, bidirectional controls, the BOM, surrogates.
_UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")


def printable(text: str) -> str:
    """`text` with every character that a terminal would act on, or could not show, as an escape."""
    return text if text.isprintable() else _UNSAFE.sub(_escape, text)


def _escape(found: re.Match[str]) -> str:
    number = ord(found.group())
    if 0xDC80 <= number <= 0xDCFF:  # how the file system's undecodable bytes come in
        return f"\\x{number - 0xDC00:02x}"
    return found.group().encode("unicode_escape", "surrogatepass").decode("ascii")


def encodable(text: str, out: IO[str]) -> str:
    """`text` with what the encoding of `out` cannot hold as escapes."""
    if text.isascii():
        return text
    encoding = getattr(out, "encoding", None) or "utf-8"
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return text.encode(encoding, "backslashreplace").decode(encoding)
    return text
