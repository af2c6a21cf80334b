"""What IPython adds to Python, written as Python that can be taken back: magics, shell lines, questions.

A line that is no Python is put behind a word of ours that makes it a comment, or a name and a comment where a statement
has to stand; everything else keeps its line and column. The word stands in the text itself, so that the original can be
had from it whatever else was edited.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from functools import cached_property

# Cell magics whose body is Python, run in the notebook's own namespace.
_PYTHON_BODY = frozenset({"time", "timeit", "capture", "prun", "debug", "memit", "mprun", "lprun", "ipytest"})
# What Databricks has as the first line of a cell in another language, with one sign instead of two.
_OTHER_LANGUAGE = re.compile(r"\s*%(?:md|md-sandbox|sql|sh|scala|r|fs|run|python2)\b")
# Line magics that are written without their sign, as IPython allows where no variable has the name.
_AUTOMAGIC = re.compile(
    r"(?P<indent>[ \t]*)(?:cat|cd|conda|cp|env|less|ll|ls|mamba|man|mkdir|more|mv|pip|pwd|pycat|rm|rmdir|run|who|whos)"
    r"(?:[ \t]+[^\s=(.\[]|[ \t]*$)",
    re.MULTILINE,
)
_PASTED = re.compile(r"\s*(?:>>> |In \[\d+\]: )")
_CELL_MAGIC = re.compile(r"(?P<before>(?:[ \t]*(?:#[^\n]*)?\r?\n)*)%%(?P<name>[\w.]*)")

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
_ANY = re.compile(r"^[ \t]*[%!?/,;]|\?[ \t]*\r?$|=[ \t]*[%!]", re.MULTILINE)
_ESCAPE = re.compile(r"(?P<indent>[ \t]*)(?:[%!?]|[/,;][A-Za-z_])")
_QUESTION = re.compile(r"(?P<indent>[ \t]*)[^\r\n#'\"]*[\w\])*]\?\??[ \t]*$", re.MULTILINE)
_ASSIGNED = re.compile(
    r"""(?P<target>[ \t]*[A-Za-z_](?:[\w.,:* \t\[\]()]|"[^"\r\n]*"|'[^'\r\n]*')*?=[ \t]*)(?=[%!])""",
)
_TIMED = re.compile(r"[ \t]*(?P<magic>%(?:time|timeit|prun)(?:[ \t]+-[nrp][ \t]*\d+|[ \t]+-[tcqo])*[ \t]+)(?=\S)")
_LEX = re.compile(
    r"""
      (?P<comment> \#[^\r\n]* )
    | (?P<string> \"\"\"(?:\\.|[^\\])*?(?:\"\"\"|\Z) | '''(?:\\.|[^\\])*?(?:'''|\Z)
                | "(?:\\.|[^"\\\r\n])*"? | '(?:\\.|[^'\\\r\n])*'? )
    | (?P<open> [(\[{] )
    | (?P<close> [)\]}] )
    | (?P<joined> \\(?:\r\n|\r|\n) )
    | (?P<newline> \r\n|\r|\n )
    | [^\#"'()\[\]{}\\\r\n]+ | \\
    """,
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True)
class Masks:
    """The word that marks what is not Python; it must stand nowhere in the notebook."""

    word: str

    @classmethod
    def for_text(cls, text: str) -> Masks:
        """A word that `text` does not hold."""
        word = "DEADLINT_IPYTHON"
        while word in text:
            word += "_"
        return cls(word)

    @cached_property
    def _mask(self) -> re.Pattern[str]:
        return re.compile(rf"#{self.word}:|{self.word}#|{self.word}_(?P<hidden>[0-9a-f]+); ")

    def comment(self, line: str) -> str:
        """A line as a comment."""
        return f"#{self.word}:{line}"

    def statement(self, line: str) -> str:
        """Something to the end of the line as a value or a statement."""
        return f"{self.word}#{line}"

    def hidden(self, text: str) -> str:
        """What stands in front of a statement, as a statement of its own."""
        return f"{self.word}_{text.encode().hex()}; "

    def removed(self, text: str) -> str:
        """The original of a masked text."""
        return self._mask.sub(self._original, text)

    def column(self, line: str, column: int) -> int:
        """Where a column (from 1) of a masked line is in the original."""
        shift = 0
        for mask in self._mask.finditer(line):
            if mask.end() < column:
                shift += mask.end() - mask.start() - len(self._original(mask))
            elif mask.start() < column - 1:
                return mask.start() + 1 - shift
        return column - shift

    @staticmethod
    def _original(mask: re.Match[str]) -> str:
        return bytes.fromhex(mask["hidden"]).decode() if mask["hidden"] else ""


def as_python(text: str, masks: Masks, *, leniently: bool = False) -> str | None:
    """The source of a cell as Python of the same lines; None where the cell is in another language.

    `leniently` is for a cell that is none otherwise: what only older versions of IPython read is taken for theirs too.
    """
    magic = _CELL_MAGIC.match(text)
    if magic is not None:
        if magic["name"] not in _PYTHON_BODY:
            return None
        end = _line_end(text, magic.start("name"))
        body = as_python(text[end:], masks, leniently=leniently)
        return None if body is None else magic["before"] + commented(text[magic.end("before") : end], masks) + body
    return _masked(text, masks, leniently=leniently) if leniently or _ANY.search(text) else text


def commented(text: str, masks: Masks) -> str:
    """Every line of a text as a comment."""
    return "".join(masks.comment(line) for line in _LINE.findall(text))


def is_no_code(text: str) -> bool:
    """Whether a cell that does not parse shows why: its language, as Databricks writes it, or a pasted session."""
    return _OTHER_LANGUAGE.match(text) is not None or _PASTED.match(text) is not None


def _masked(text: str, masks: Masks, *, leniently: bool) -> str:
    """The text with the logical lines masked that are IPython's own."""
    made: list[str] = []
    at = 0
    while at < len(text):
        assigned = _ASSIGNED.match(text, at)
        escape = _ESCAPE.match(text, at) or _QUESTION.match(text, at)
        if leniently:
            escape = escape or _AUTOMAGIC.match(text, at)
        if assigned is not None:
            end = _joined_end(text, at)
            made.append(assigned["target"] + _behind(text[assigned.end() : end], masks))
        elif escape is not None:
            end = (_logical_end if leniently and text.startswith("%", at) else _joined_end)(text, at)
            made.append(_timed(text[at:end], masks) or _whole(text[at:end], escape["indent"], masks))
        else:
            end = _logical_end(text, at)
            made.append(text[at:end])
        at = end
    return "".join(made)


def _whole(text: str, indent: str, masks: Masks) -> str:
    """A logical line as a comment; where it is indented, it may be all that a block holds."""
    if not indent:
        return commented(text, masks)
    return indent + _behind(text[len(indent) :], masks)


def _behind(text: str, masks: Masks) -> str:
    """Something up to the end of a logical line as a value; the lines that it goes on over as comments."""
    end = _line_end(text, 0)
    return masks.statement(text[:end]) + commented(text[end:], masks)


def _timed(text: str, masks: Masks) -> str | None:
    """A line magic that is followed by one Python statement, with that statement left to be read."""
    magic = _TIMED.match(text)
    if magic is None:
        return None
    try:
        ast.parse(text[magic.end() :])
    except (SyntaxError, ValueError):
        return None
    return text[: magic.start("magic")] + masks.hidden(magic["magic"]) + text[magic.end() :]


def _line_end(text: str, at: int) -> int:
    """The offset behind the newline of the line that `at` is in."""
    end = text.find("\n", at)
    return len(text) if end < 0 else end + 1


def _joined_end(text: str, at: int) -> int:
    """The offset behind the line at `at` and those that backslashes join to it."""
    end = _line_end(text, at)
    while text[at:end].rstrip("\r\n").endswith("\\") and end < len(text):
        at, end = end, _line_end(text, end)
    return end


def _logical_end(text: str, at: int) -> int:
    """The offset behind the logical line of Python that begins at `at`."""
    depth = 0
    while at < len(text):
        token = _LEX.match(text, at)
        assert token is not None, "every character is some token"
        at = token.end()
        match token.lastgroup:
            case "open":
                depth += 1
            case "close":
                depth = max(depth - 1, 0)
            case "newline" if depth == 0:
                return at
    return at
