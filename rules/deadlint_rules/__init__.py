"""The rules of deadlint, one public module each. A module whose name begins with `_` holds what several share."""

from __future__ import annotations

from deadlint.rule import rules_in

RULES = rules_in(__name__, __path__)
