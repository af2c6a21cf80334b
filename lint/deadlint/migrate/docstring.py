"""The entry of a parameter in a docstring that has entries for others: Google, NumPy and Sphinx style."""

from __future__ import annotations

import ast
import re

from deadlint.index.scopes import FunctionNode
from deadlint.model import Edit
from deadlint.source import SourceFile

_ABOUT = "The time that is left for this."
_SPHINX = re.compile(r"^([ \t]*):param\b[^:\n]*:[^\n]*", re.MULTILINE)
_GOOGLE = re.compile(r"^([ \t]*)(?:Args|Arguments|Parameters|Keyword Args):[ \t]*\r?$", re.MULTILINE)
_NUMPY = re.compile(r"^([ \t]*)(?:Other )?Parameters[ \t]*\r?\n\1-{3,}[ \t]*\r?$", re.MULTILINE)


def docstring_edit(source: SourceFile, node: FunctionNode, name: str, type_name: str) -> Edit | None:
    """The edit that documents a parameter; None where the docstring documents none."""
    match node.body:
        case [ast.Expr(value=ast.Constant(value=str()) as text), *_]:
            start, end = source.extent(text)
        case _:
            return None
    literal = source.text[start:end]
    if match := list(_SPHINX.finditer(literal)):
        return _sphinx(source, start, literal, match[-1], name, type_name)
    if found := _NUMPY.search(literal):
        indentation = found.group(1)
        entry = [f"{indentation}{name} : {type_name}", f"{indentation}    {_ABOUT}"]
        return _behind(source, start, literal, found.end(), len(indentation), entry)
    if found := _GOOGLE.search(literal):
        inner = _first_indentation(literal, found.end()) or f"{found.group(1)}    "
        typed = bool(re.search(rf"^{inner}\w+ \([^)\n]*\):", literal[found.end() :], re.MULTILINE))
        label = f"{name} ({type_name})" if typed else name
        return _behind(source, start, literal, found.end(), len(found.group(1)) + 1, [f"{inner}{label}: {_ABOUT}"])
    return None


def _sphinx(
    source: SourceFile, start: int, literal: str, last: re.Match[str], name: str, type_name: str
) -> Edit:
    indentation = last.group(1)
    end = _end_of_entry(literal, last.end(), len(indentation) + 1)
    lines = [f"{indentation}:param {name}: {_ABOUT}"]
    kind = re.compile(rf"^{indentation}:type\b[^\n]*", re.MULTILINE)
    types = list(kind.finditer(literal))
    if types:
        lines.append(f"{indentation}:type {name}: {type_name}")
        end = max(end, _end_of_entry(literal, types[-1].end(), len(indentation) + 1))
    text = source.newline + source.newline.join(lines)
    return Edit(start + end, start + end, text)


def _behind(source: SourceFile, start: int, literal: str, head: int, depth: int, entry: list[str]) -> Edit:
    """Put an entry at the end of the section whose heading ends at `head`, and that is indented by `depth` at least."""
    end = _end_of_section(literal, head, depth) if depth else head
    text = source.newline + source.newline.join(entry)
    return Edit(start + end, start + end, text)


def _first_indentation(literal: str, position: int) -> str:
    found = re.compile(r"\r?\n([ \t]+)\S").match(literal, position)
    return found.group(1) if found else ""


def _end_of_entry(literal: str, position: int, depth: int) -> int:
    """The offset behind the lines that go on with an entry: those that are indented deeper."""
    end = position
    for line in re.finditer(r"\n([ \t]*)(\S[^\n]*)?", literal[position:]):
        if line.group(2) is None or len(line.group(1)) < depth or line.group(2).startswith(('"""', "'''")):
            break
        end = position + len(line.group().rstrip("\r")) + line.start()
    return end


def _end_of_section(literal: str, position: int, depth: int) -> int:
    """The offset behind the last line of a section: blank lines within it belong to it, those after it do not."""
    end = position
    for line in re.finditer(r"\n([ \t]*)([^\n]*)", literal[position:]):
        text = line.group(2).rstrip("\r")
        if not text:
            continue
        if len(line.group(1)) < depth or text.startswith(('"""', "'''")):
            break
        following = literal[position + line.end() :].lstrip("\r\n").partition("\n")[0].strip()
        if set(following) <= set("-=") and len(following) >= 3:
            break  # the heading of the next section
        end = position + line.start() + len(line.group().rstrip("\r"))
    return end
