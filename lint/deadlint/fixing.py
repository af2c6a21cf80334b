"""Fixing many files: those with something to fix, and then what that changes for the files around them."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

from deadlint.collect import Collected
from deadlint.memory import Known
from deadlint.model import Safety
from deadlint.outcome import Order, Target, is_shown
from deadlint.rounds import Rounds

# A fix may change what is found in a file that is called, and that be fixed in turn; real chains are of two.
_MOST_PASSES = 5


def fix(rounds: Rounds, order: Order, paths: Collection[str], collected: Collected) -> None:
    """Fix what is known of the files at `paths`, until nothing more is found to fix; notes it in `collected`.

    What is only to be shown is fixed once: other files do not see it.
    """
    for _ in range(_MOST_PASSES):
        changed = rounds.judge(list(_fixable(rounds, order.fix, paths)), order)
        for target, outcome in changed:
            collected.change(target, outcome)
        if not changed or not order.write:
            return
        rounds.settle([], replace(order, fix=frozenset(), write=False))


def _fixable(rounds: Rounds, safeties: Collection[Safety], paths: Collection[str]) -> Iterator[Target]:
    for path in sorted(paths & rounds.known.keys()):
        known = rounds.known[path]
        if path not in rounds.problems and _has_something_to_fix(known, safeties):
            yield rounds.under_callers(known.target)


def _has_something_to_fix(known: Known, safeties: Collection[Safety]) -> bool:
    level = known.target.settings.level
    return any(
        one.fix and one.fix.safety in safeties and not one.suppressed and is_shown(one, level)
        for one in known.findings
    )
