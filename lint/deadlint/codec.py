"""Findings as JSON text and back: plain data, so that reading what someone else wrote runs nothing."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from typing import Any

from deadlint.model import (
    Constant,
    Edit,
    Finding,
    Fix,
    Import,
    Level,
    Related,
    Safety,
    Span,
    Suppression,
)
from deadlint.place import shown


class BadRecord(Exception):
    """The text holds no findings as `encode` writes them."""


def encode(findings: Iterable[Finding]) -> bytes:
    """The findings of one file. Its path is left out and others are absolute: what is shown depends on the reader."""
    return json.dumps([_plain(finding) for finding in findings], separators=(",", ":")).encode()


def decode(data: bytes, path: str) -> tuple[Finding, ...]:
    """What `encode` was given, for the file at `path`. Raises `BadRecord`."""
    try:
        return tuple(_finding(record, path) for record in json.loads(data))
    except (ValueError, TypeError, KeyError, IndexError, RecursionError) as error:
        raise BadRecord(str(error)) from error


def _plain(finding: Finding) -> list[Any]:
    return [
        finding.code,
        finding.name,
        _span(finding.span),
        finding.message,
        finding.remedy,
        finding.level.value,
        [[_elsewhere(one.path, finding.path), _span(one.span), one.message] for one in finding.related],
        finding.fix and _plain_fix(finding.fix),
        finding.suppressed and [finding.suppressed.line, finding.suppressed.text, finding.suppressed.reason],
    ]


def _elsewhere(path: str, own: str) -> str | None:
    return None if path == own else os.path.abspath(path)


def _plain_fix(fix: Fix) -> list[Any]:
    return [
        fix.title,
        fix.safety.value,
        [[edit.start, edit.end, edit.text] for edit in fix.edits],
        [[one.module, one.name, one.alias] for one in fix.imports],
        [[one.name, one.value] for one in fix.constants],
    ]


def _span(span: Span) -> list[int]:
    return [span.line, span.column, span.end_line, span.end_column]


def _finding(record: Any, path: str) -> Finding:
    code, name, span, message, remedy, level, related, fix, suppressed = record
    return Finding(
        code=_text(code),
        name=_text(name),
        path=path,
        span=_read_span(span),
        message=_text(message),
        remedy=_text(remedy),
        level=Level(level),
        related=tuple(
            Related(path if where is None else shown(_text(where)), _read_span(at), _text(said))
            for where, at, said in related
        ),
        fix=None if fix is None else _fix(fix),
        suppressed=None if suppressed is None else _suppression(suppressed),
    )


def _fix(record: Any) -> Fix:
    title, safety, edits, imports, constants = record
    return Fix(
        title=_text(title),
        safety=Safety(safety),
        edits=tuple(Edit(_number(start), _number(end), _text(text)) for start, end, text in edits),
        imports=tuple(
            Import(_text(module), _text(name), None if alias is None else _text(alias))
            for module, name, alias in imports
        ),
        constants=tuple(Constant(_text(name), _text(value)) for name, value in constants),
    )


def _suppression(record: Any) -> Suppression:
    line, text, reason = record
    return Suppression(_number(line), _text(text), _text(reason))


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no text")
    return value


def _number(value: Any) -> int:
    if type(value) is not int:
        raise TypeError(f"{value!r} is no whole number")
    return value


def _read_span(record: Any) -> Span:
    line, column, end_line, end_column = map(_number, record)
    return Span(line, column, end_line, end_column)
