"""The changes of fixes as a unified diff that `patch -p0` and `git apply -p0` take."""

from __future__ import annotations

import io
import tokenize
from collections.abc import Iterator
from difflib import unified_diff
from typing import TYPE_CHECKING, TextIO

from deadlint.report import PLAIN, Options
from deadlint.report.checkout_path import path_bytes
from deadlint.report.printable import encodable, printable

if TYPE_CHECKING:
    from deadlint.result import Change, RunResult


def print_report(result: RunResult, out: TextIO, options: Options = PLAIN) -> None:
    """Print the diff of every changed file, and nothing else: it is there to be piped."""
    if not result.changes:
        return
    if out.isatty():
        _print_coloured(result, out)
        return
    raw = getattr(out, "buffer", None)
    for change in result.changes:
        text = "".join(unified(change, bom="\ufeff" if change.bom and raw is not None else ""))
        if raw is None:
            out.write(encodable(text, out))
        else:  # as it is in the file, or the patch would not apply: its encoding, and newlines untranslated
            out.flush()
            raw.write(text.encode(_encoding(change), "surrogateescape"))
    out.flush()


def unified(change: Change, bom: str = "") -> Iterator[str]:
    """The diff of one file, line by line, each with its newline; `bom` is what the file has in front of its text."""
    name = quoted(change.path)
    before, after = change.before, change.after
    if change.notebook is not None:
        before, after = change.notebook.file_text(before), change.notebook.file_text(after)
    for line in unified_diff(_lines(bom + before), _lines(bom + after), name, name):
        yield line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"


def _lines(text: str) -> list[str]:
    # By \n alone: that is what a line is to patch. A carriage return or form feed belongs to it.
    return io.StringIO(text, newline="\n").readlines()


def quoted(path: str) -> str:
    """A path as a header of a diff has it: as it is, or quoted as git and GNU patch quote it."""
    if path.isprintable() and '"' not in path and "\\" not in path:
        return f"{path}\t" if " " in path else path  # a tab ends a name with spaces in it
    return '"' + "".join(_quoted_character(character) for character in path) + '"'


def _quoted_character(character: str) -> str:
    match character:
        case '"' | "\\":
            return "\\" + character
        case "\n":
            return "\\n"
        case "\t":
            return "\\t"
        case _ if character.isprintable():
            return character
        case _:
            return "".join(f"\\{byte:03o}" for byte in path_bytes(character))


def _encoding(change: Change) -> str:
    """The encoding that the text declares for itself in its first lines; of a notebook always UTF-8."""
    if change.notebook is not None:
        return "utf-8"
    head = io.BytesIO(change.before[:1000].encode("utf-8", "replace"))
    try:
        return tokenize.detect_encoding(head.readline)[0]
    except SyntaxError:
        return "utf-8"


def _print_coloured(result: RunResult, out: TextIO) -> None:
    from deadlint.report.page_writer import PageWriter, console_for  # noqa: PLC0415  rich, on a terminal only

    writer = PageWriter(console_for(out))
    for change in result.changes:
        for line in unified(change):
            writer.write([((printable(line.rstrip("\r\n")), _role(line)),)])


def _role(line: str) -> str:
    if line.startswith(("---", "+++")):
        return "head"
    return {"-": "removed", "+": "added", "@": "display"}.get(line[:1], "source")
