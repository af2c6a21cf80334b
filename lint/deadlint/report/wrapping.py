"""Break a sentence at words, as a reader would: a number stays with its unit, and short code is one word."""

from __future__ import annotations

import re
from textwrap import wrap

_UNIT = re.compile(r"(?<=\d) (?=(?:s|ms|min|h|days?|times|attempts)\b)")
_CODE = re.compile(r"`[^`]*`")
_KEPT = "\u00a0"  # `textwrap` breaks at ASCII white space only


def wrapped(text: str, width: int, *, first: int = 0, further: int = 0) -> list[str]:
    """`text` in lines of at most `width` characters, at least one line.

    The first line leaves room for `first` characters in front of it, the others are indented by `further`.
    A single word that is too long stays whole, so that a path or a name can be copied.
    """
    whole = _UNIT.sub(_KEPT, text)
    whole = _CODE.sub(lambda found: _unbroken(found.group(), width), whole)
    lines = wrap(
        whole,
        width,
        initial_indent=" " * min(first, max(width - 1, 0)),
        subsequent_indent=" " * further,
        break_on_hyphens=False,
        break_long_words=False,
    )
    if not lines:
        return [""]
    lines[0] = lines[0].lstrip(" ")
    return [line.replace(_KEPT, " ") for line in lines]


def _unbroken(code: str, width: int) -> str:
    return code.replace(" ", _KEPT) if len(code) <= width // 2 else code
