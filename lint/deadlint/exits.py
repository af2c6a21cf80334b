"""What a file has around its calls of functions of other files, as bytes: kept in the cache, handed to processes.

Plain data, so that reading what someone else wrote runs nothing. Paths are absolute within.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from typing import Any

from deadlint.graph import Around, Entries, Entry, Step
from deadlint.index.limits import Limit
from deadlint.join import BETWEEN
from deadlint.model import Span
from deadlint.outcome import Exits
from deadlint.place import shown


class BadExits(Exception):
    """The bytes are none that `encode` makes."""


def encode(exits: Iterable[tuple[str, str, Entry]]) -> Exits:
    """What `Graph.exits` gives, for each file that is called one line of bytes; sorted, so the same for the same."""
    called: dict[str, Entries] = {}
    for path, function, entry in exits:
        functions = called.setdefault(os.path.abspath(path), {})
        functions[function] = functions[function].joined(entry) if function in functions else entry
    return tuple((path, _bytes(functions)) for path, functions in sorted(called.items()))


def decode(entered: bytes) -> Entries:
    """The entries of a file whose callers have `entered` around their calls. Raises `BadExits`."""
    found: Entries = {}
    try:
        for line in entered.split(BETWEEN) if entered else ():
            for function, entry in _entries(json.loads(line)):
                found[function] = found[function].joined(entry) if function in found else entry
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError) as error:
        raise BadExits(str(error)) from error
    return found


def _bytes(functions: Entries) -> bytes:
    record = {
        name: [
            [_plain_around(around) for around in entry.limits],
            None if entry.budget is None else [_plain_step(step) for step in entry.budget],
        ]
        for name, entry in sorted(functions.items())
    }
    return json.dumps(record, separators=(",", ":")).encode()


def _plain_around(around: Around) -> list[Any]:
    limit = around.limit
    place = [os.path.abspath(limit.path), _plain_span(limit.span)]
    steps = [_plain_step(step) for step in around.path]
    return [limit.seconds, limit.label, limit.layer, *place, limit.name, limit.default, steps]


def _plain_step(step: Step) -> list[Any]:
    given = [list(one) for one in step.given]
    return [os.path.abspath(step.path), _plain_span(step.span), step.function, step.direct, given]


def _plain_span(span: Span) -> list[int]:
    return [span.line, span.column, span.end_line, span.end_column]


def _entries(record: dict[str, Any]) -> Iterator[tuple[str, Entry]]:
    for name, (limits, budget) in record.items():
        steps = None if budget is None else tuple(map(_step, budget))
        yield name, Entry(tuple(map(_around, limits)), steps)


def _around(record: list[Any]) -> Around:
    seconds, label, layer, path, span, name, default, steps = record
    return Around(Limit(seconds, label, layer, shown(path), Span(*span), name, default), tuple(map(_step, steps)))


def _step(record: list[Any]) -> Step:
    path, span, function, direct, given = record
    return Step(shown(path), Span(*span), function, direct, tuple((name, value) for name, value in given))
