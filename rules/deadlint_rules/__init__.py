"""The rules of deadlint, one public module each. A module whose name begins with `_` holds what several share."""

from __future__ import annotations

import importlib
import inspect
import pkgutil

from deadlint.rule import Rule


def _discover() -> tuple[Rule, ...]:
    found = []
    for info in pkgutil.iter_modules(__path__):
        if info.name.startswith("_"):
            continue
        module = importlib.import_module(f"{__name__}.{info.name}")
        for _, cls in inspect.getmembers(module, inspect.isclass):
            if issubclass(cls, Rule) and cls.__module__ == module.__name__:
                found.append(cls())
    return tuple(sorted(found, key=lambda rule: rule.code))


RULES = _discover()
