"""Seconds as people read them."""

from __future__ import annotations

import math

from deadlint.tree.model import Worst


def seconds(value: float) -> str:
    """A number of seconds: `900 s`, `1,200 s`, `0.5 s`; `∞` where nothing bounds it."""
    if math.isinf(value):
        return "∞"
    return f"{value:,.6g} s" if value < 1e6 else f"{value:,.0f} s"


def worst_case(worst: Worst) -> str:
    """A worst case: `1,200 s`; `∞`; `≥ 600 s` where a part is not known, and `?` where nothing is."""
    if not worst.bounded or worst.exact:
        return seconds(worst.seconds)
    return f"≥ {seconds(worst.seconds)}" if worst.seconds else "?"
