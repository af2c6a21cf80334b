"""Limits in the arguments of a program: `timeout 60 …`, `curl -m`, `wget --timeout`, `ssh -o ConnectTimeout`."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass

from deadlint.index.amounts import duration
from deadlint.index.values import Const, Sequence, Template, Values

Words = tuple[str | None, ...]  # None where a word is not known


@dataclass(frozen=True, slots=True)
class InArguments:
    """A limit that the program is told: seconds, and the words that say so."""

    seconds: float
    words: str


_VALUED = frozenset({"-k", "-s"})  # options of coreutils' `timeout` that are followed by a value
_CURL = re.compile(r"-m(\d+(?:\.\d+)?)|--max-time=(\d+(?:\.\d+)?)")
_SSH = frozenset({"ssh", "scp", "sftp"})
_CONNECT = re.compile(r"(?:-o)?ConnectTimeout[= ](\d+)", re.IGNORECASE)
_UNDER = frozenset({"sudo", "nice", "ionice", "env", "nohup", "exec"})


def limit(values: Values) -> InArguments | None:
    """The limit in the arguments of a child, a list or a command line; None where none is certain."""
    for words in (_words(value) for value in values):
        found = _limit(words) if words else None
        if found is not None and len(values) == 1:
            return found
    return None


def _words(value: object) -> Words:
    match value:
        case Sequence(items=items):
            return tuple(_text(item) for item in items)
        case Const(str() as text):
            try:
                words = shlex.split(text)
            except ValueError:
                return ()
            # In a pipe or a list the limit holds for one command of several.
            return () if {"|", "&&", ";", "||", "&"} & set(words) else tuple(words)
        case Template() as template:
            return tuple(word if "\0" not in word else None for word in template.text("\0").split())
    return ()


def _text(item: Values) -> str | None:
    match item:
        case (Const(str() | int() | float() as plain),) if not isinstance(plain, bool):
            return str(plain)
    return None


def _limit(words: Words) -> InArguments | None:
    while words and words[0] is not None and words[0].rpartition("/")[2] in _UNDER:
        words = words[1:]
    program = (words[0] or "").rpartition("/")[2] if words else ""
    rest = words[1:]
    match program:
        case "timeout" | "gtimeout":
            return _timeout(rest)
        case "curl":
            return _curl(rest)
        case "wget":
            return _following(rest, ("-T", "--timeout"))
        case _ if program in _SSH:
            return _ssh(rest)
        case "ping":
            return _following(rest, ("-w",))
        case "":
            return None
    return _flag(rest)


def _timeout(rest: Words) -> InArguments | None:
    i = 0
    while i < len(rest) and (word := rest[i]) is not None and word.startswith("-"):
        i += 2 if word in _VALUED else 1
    text = rest[i] if i < len(rest) else None
    seconds = duration(text) if text is not None else None
    return InArguments(seconds, f"timeout {text}") if seconds else None


def _curl(rest: Words) -> InArguments | None:
    if any(word is not None and word.startswith("--retry") for word in rest):
        return None  # it holds for each attempt
    for word in rest:
        found = _CURL.fullmatch(word) if word is not None else None
        if found is not None:
            return InArguments(float(found[1] or found[2]), word or "")
    return _following(rest, ("-m", "--max-time"))


def _ssh(rest: Words) -> InArguments | None:
    for word in rest:
        found = _CONNECT.fullmatch(word) if word is not None else None
        if found is not None:
            return InArguments(float(found[1]), f"ConnectTimeout={found[1]}")
    return None


def _flag(rest: Words) -> InArguments | None:
    """A `--timeout` of any program. A round number of thousands may be milliseconds: nothing is said of it."""
    found = _following(rest, ("--timeout",))
    return None if found is None or (found.seconds >= 1000 and found.seconds % 500 == 0) else found


def _following(rest: Words, names: tuple[str, ...]) -> InArguments | None:
    """The value of an option, behind it or after its `=`."""
    for i, word in enumerate(rest):
        if word is None:
            continue
        name, equals, text = word.partition("=")
        if name not in names:
            continue
        value = text if equals else (rest[i + 1] if i + 1 < len(rest) else None)
        seconds = duration(value) if value is not None else None
        return InArguments(seconds, f"{name} {value}") if seconds else None
    return None
