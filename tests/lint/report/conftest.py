"""Findings made by hand, and surroundings that are the same wherever the tests run."""

from __future__ import annotations

from dataclasses import replace

import pytest
from deadlint.model import Edit, Finding, Fix, Level, Related, Safety
from deadlint.result import RunResult

from tests.lint.report.made_by_hand import FLOWS, TILES, finding, locate, result_of


@pytest.fixture(autouse=True)
def _no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Printers see the same surroundings wherever the tests run."""
    for name in ("COLUMNS", "NO_COLOR", "FORCE_COLOR", "CLICOLOR_FORCE", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def inverted() -> Finding:
    """A limit over several lines, longer than the one of the task around it; an unsafe fix."""
    call = locate(TILES, "subprocess.run(", "    )")
    limit = locate(TILES, "timeout=900")
    return Finding(
        code="DL401",
        name="inverted-limits",
        path="tiles.py",
        span=call.span,
        message="`gdalwarp` may run 900 s inside task `build_tile`, which ends at 600 s.",
        remedy="Give the call less than the 600 s of its task.",
        related=(
            Related("tiles.py", locate(TILES, "@task(timeout_seconds=600)").span, "the outer limit: 600 s"),
            Related("tiles.py", limit.span, "the inner limit: 900 s"),
            Related("flows.py", locate(FLOWS, "def mosaic(urls):").span, "the flow"),
        ),
        fix=Fix("end before the task does", Safety.UNSAFE, (Edit(limit.start, limit.end, "timeout=540"),)),
    )


@pytest.fixture
def untimed() -> Finding:
    """A call on one line; a safe fix."""
    call = locate(FLOWS, "requests.get(url)")
    fix = Fix("pass the time that is left", Safety.SAFE, (Edit(call.end - 1, call.end - 1, ", timeout=30"),))
    return finding("flows.py", call, fix=fix)


@pytest.fixture
def result(inverted: Finding, untimed: Finding) -> RunResult:
    """A run with both, the second one strict."""
    strict = replace(untimed, level=Level.STRICT)
    return result_of({"flows.py": FLOWS, "tiles.py": TILES}, strict, inverted)
