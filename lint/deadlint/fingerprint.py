"""Name a finding by what it is rather than where: for baselines, and for services that follow it over time.

A fingerprint survives what does not change the fault: moved lines, a renamed file, reformatting, comments. So
it is made from the rule's code, the enclosing function or class, and the tokens of what the finding points
at; equal ones are told apart by counting them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from hashlib import blake2b

from deadlint.model import Finding, Span

VERSION = 1  # in every fingerprint: a baseline of another version is to be made anew, not compared

_NEWLINE = re.compile(r"\r\n|\r|\n")
_DEFINITION = re.compile(r"([ \t]*)(?:async[ \t]+def|def|class)[ \t]+(\w+)")
_TOKEN = re.compile(
    r"""
      (?P<string>
        (?P<prefix>[A-Za-z]{0,2}) (?P<quote>\"\"\"|'''|"|') (?P<body>(?:\\.|(?!(?P=quote)).)*) (?P=quote)
      )
    | (?P<comment> \#[^\r\n]* )
    | (?P<join> \\(?:\r\n|\r|\n) )
    | (?P<newline> \r\n|\r|\n )
    | (?P<space> [ \t\f]+ )
    | (?P<word> [\w.]+ )
    | (?P<sign> . )
    """,
    re.VERBOSE | re.DOTALL,
)


def fingerprints(findings: Iterable[Finding], source: Callable[[str], str | None]) -> list[str]:
    """A fingerprint for each finding, in their order; no two are equal.

    `source` gives the text of a path, as `RunResult.source` does. What it cannot give counts as empty.
    """
    seen: Counter[str] = Counter()
    result = []
    for name in identities(findings, source):
        result.append(f"{VERSION}:{name}:{seen[name]}")
        seen[name] += 1
    return result


def identities(findings: Iterable[Finding], source: Callable[[str], str | None]) -> list[str]:
    """The same without version and count, 24 hexadecimal digits: findings that are alike have the same one."""
    result = []
    lines: dict[str, list[str]] = {}
    for finding in findings:
        if finding.path not in lines:
            lines = {finding.path: _NEWLINE.split(source(finding.path) or "")}  # findings come file by file
        result.append(finding.identity or identity(finding, lines[finding.path]))
    return result


def identity(finding: Finding, lines: Sequence[str]) -> str:
    """What a finding is, whatever its place among the `lines` of its file; equal for two of a kind."""
    scope = enclosing(lines, finding.span.line)
    parts = (finding.code, scope, *tokens(pointed_at(lines, finding.span)))
    return blake2b("\0".join(parts).encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()


def pointed_at(lines: Sequence[str], span: Span) -> str:
    """The text that a span covers; empty where the text has no such lines."""
    if not 1 <= span.line <= span.end_line <= len(lines):
        return ""
    first, *rest = lines[span.line - 1 : span.end_line]
    if not rest:
        return first[span.column - 1 : span.end_column - 1]
    return "\n".join((first[span.column - 1 :], *rest[:-1], rest[-1][: span.end_column - 1]))


def enclosing(lines: Sequence[str], line: int) -> str:
    """The dotted name of the functions and classes around a line, told by indentation; empty at the top.

    No syntax tree is read: what does not parse has findings too, and a large file is not worth it.
    """
    if not 1 <= line <= len(lines):
        return ""
    names: list[str] = []
    limit = _indentation(lines[line - 1])
    for text in reversed(lines[: line - 1]):
        if limit == 0:
            break
        found = _DEFINITION.match(text)
        if found and (indent := _indentation(text)) < limit:
            names.append(found.group(2))
            limit = indent
    return ".".join(reversed(names))


def _indentation(line: str) -> int:
    text = line.expandtabs(8)
    return len(text) - len(text.lstrip())


def tokens(text: str) -> list[str]:
    """The tokens of the first logical line of `text`, without what a formatter may change.

    Comments, white space, parentheses, a comma before a closing bracket, the kind of quotes and the case of
    numbers are left out.
    """
    result: list[str] = []
    depth = 0
    for found in _TOKEN.finditer(text):
        match found.lastgroup:
            case "string":
                result.append(_string(found))
            case "word":
                word = found.group()
                result.append(word.lower() if word[0].isdigit() else word)
            case "newline" if depth == 0 and result:
                break
            case "sign":
                sign = found.group()
                depth += (sign in "([{") - (sign in ")]}")
                if sign in ")]}" and result and result[-1] == ",":
                    result.pop()
                if sign not in "()":
                    result.append(sign)
            case _:
                pass
    return result


def _string(found: re.Match[str]) -> str:
    body, quote = found["body"], found["quote"]
    plain = len(quote) == 1 and '"' not in body and "'" not in body
    return found["prefix"].lower() + ('"' + body + '"' if plain else quote + body + quote)
