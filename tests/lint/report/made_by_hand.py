"""Small sources with findings made by hand, so that printers are tested without rules."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass, replace

from deadlint.model import Finding, Span
from deadlint.report import PLAIN, Options, printer
from deadlint.result import RunResult

TILES = '''\
import subprocess
from prefect import task


@task(timeout_seconds=600)
def build_tile(tile, source):
    """Warp one tile."""
    result = subprocess.run(
        ["gdalwarp", source, f"/data/{tile}.tif"],
        check=True,
        timeout=900,
    )
    return result
'''
FLOWS = """\
import requests


def mosaic(urls):
    names = [requests.get(url) for url in urls]
    return names
"""


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


@dataclass(frozen=True)
class Place:
    """Where a piece of a text is: as offsets, and as a span."""

    start: int
    end: int
    span: Span


def locate(text: str, first: str, last: str | None = None) -> Place:
    """The stretch from the start of `first` to the end of `last` (of `first` itself where None)."""
    start = text.index(first)
    end = text.index(last, start) + len(last) if last else start + len(first)

    def at(offset: int) -> tuple[int, int]:
        return text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)

    return Place(start, end, Span(*at(start), *at(end)))


def finding(path: str, place: Place, **changes: object) -> Finding:
    """A plain finding there."""
    plain = Finding(
        code="DL201",
        name="request-without-timeout",
        path=path,
        span=place.span,
        message="`requests.get` has no timeout, so a silent server holds it for ever.",
        remedy="Pass `timeout=`.",
    )
    return replace(plain, **changes)  # type: ignore[arg-type]


def result_of(sources: Mapping[str, str], *findings: Finding, **rest: object) -> RunResult:
    """A run over `sources` with these findings."""
    return RunResult(findings=findings, files=len(sources), source=sources.get, **rest)  # type: ignore[arg-type]


def shown(result: RunResult, format_name: str, options: Options = PLAIN) -> str:
    """What a printer prints."""
    out = io.StringIO()
    printer(format_name)(result, out, options)
    return out.getvalue()
