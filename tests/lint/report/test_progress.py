"""The progress bar: for a person who waits, and for nobody else."""

from __future__ import annotations

import io

import pytest
from deadlint.report.progress import progress

from tests.lint.report.made_by_hand import Terminal


def test_it_shows_how_far_a_long_run_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    now = iter(range(100))
    err = Terminal()
    with progress(err, "Checking", clock=lambda: float(next(now))) as advance:
        for done in range(5):
            advance(done, 10)
    drawn = err.getvalue()
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
