"""From a time of day to a number of seconds."""

# ruff: noqa: PLC0415 - imports wait for the call that needs them, so that `import deadlint_budget` is quick

from __future__ import annotations

import datetime as dt
import time


def seconds_until(when: dt.datetime | str, tz: dt.tzinfo | str | None, wall: float | None = None) -> float:
    """Seconds from now (`wall`: a Unix time, for tests) to `when`; negative where a datetime has passed."""
    now = time.time() if wall is None else wall
    zone = _zone(tz)
    if isinstance(when, dt.datetime):
        moment = when if when.tzinfo is not None else when.replace(tzinfo=zone)
        return moment.timestamp() - now
    if not isinstance(when, str):
        raise TypeError(f"until takes a datetime or a time of day such as '06:00', not {type(when).__name__}")
    try:
        clock_time = dt.time.fromisoformat(when.strip())
    except ValueError:
        raise ValueError(f"{when!r} is no time of day: write '06:00' or '06:00:30'") from None
    zone = clock_time.tzinfo or zone
    today = dt.datetime.fromtimestamp(now, zone).date()
    # Each day's moment is built from its date, not by adding 24 hours: a day with a clock change has 23 or
    # 25.
    for days in (0, 1, 2):
        day = today + dt.timedelta(days=days)
        moment = dt.datetime.combine(day, clock_time.replace(tzinfo=None), zone)
        if (seconds := moment.timestamp() - now) > 0:
            return seconds
    raise AssertionError("a time of day comes within two days")


def _zone(tz: dt.tzinfo | str | None) -> dt.tzinfo | None:
    if not isinstance(tz, str):
        return tz
    if tz.upper() == "UTC":
        return dt.UTC
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    try:
        return ZoneInfo(tz)
    except (ZoneInfoNotFoundError, ValueError):
        raise ValueError(f"{tz!r} is no time zone that this system knows") from None
