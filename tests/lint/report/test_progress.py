"""The progress bar: for a person who waits, and for nobody else."""

from __future__ import annotations

import io
import os
import pty

import pytest
from deadlint.report.progress import progress


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_it_shows_how_far_a_long_run_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    reader, writer = pty.openpty()
    now = iter(range(100))
    with open(writer, "w", encoding="utf-8") as err:
        with progress(err, "Checking", clock=lambda: float(next(now))) as advance:
            for done in range(5):
                advance(done, 10)
        err.flush()
        drawn = os.read(reader, 1 << 16).decode()
    assert "Checking" in drawn
    assert "4/10" in drawn
    assert drawn.endswith(("\x1b[2K", "\x1b[?25h", "\x1b[1A\x1b[2K"))  # it takes itself away


def test_a_short_run_is_left_in_peace() -> None:
    err = Terminal()
    with progress(err, "Checking", clock=lambda: 0.0) as advance:
        advance(1, 2)
    assert err.getvalue() == ""


@pytest.mark.parametrize(("err", "quiet"), [(io.StringIO(), False), (Terminal(), True)])
def test_not_in_a_pipe_and_not_when_quiet(err: io.StringIO, quiet: bool) -> None:
    now = iter(range(100))
    with progress(err, "Checking", quiet=quiet, clock=lambda: float(next(now))) as advance:
        for done in range(5):
            advance(done, 10)
    assert err.getvalue() == ""


def test_it_is_taken_away_when_the_run_breaks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    err = Terminal()
    now = iter(range(100))

    def work() -> None:
        with progress(err, "Checking", clock=lambda: float(next(now))) as advance:
            advance(1, 10)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        work()
    assert "\x1b[?25h" in err.getvalue()  # the cursor is back
