"""Rules of a third party, as small as they can be, for the tests of what surrounds rules.

They look at calls of `slowlib`, a library that does not exist.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable
from typing import ClassVar

from deadlint.model import Edit, Fix, Level, Safety
from deadlint.rule import Rule
from deadlint.site import Report, Site


class Standin(Rule):
    since = "1.0"
    words: ClassVar[tuple[tuple[str, ...], ...]] = (("slowlib",),)


def _with_limit(site: Site, safety: Safety) -> Fix:
    _, end = site.module.source.extent(site.call)
    text = ", limit=9" if site.call.args or site.call.keywords else "limit=9"
    return Fix("add a limit", safety, (Edit(end - 1, end - 1, text),))


class Fetch(Standin):
    """A fetch without a limit."""

    code = "ZZ101"
    name = "fetch-without-limit"
    calls = frozenset({"slowlib.fetch"})

    def check(self, site: Site) -> Iterable[Report]:
        if site.argument("limit").absent:
            yield site.report("nothing limits this fetch", "add a limit", fix=lambda: _with_limit(site, Safety.SAFE))


class Send(Standin):
    """A send without a limit, for strict readers."""

    code = "ZZ102"
    name = "send-without-limit"
    calls = frozenset({"slowlib.send"})

    def check(self, site: Site) -> Iterable[Report]:
        if site.argument("limit").absent:
            yield site.report(
                "nothing limits this send",
                "add a limit",
                level=Level.STRICT,
                fix=lambda: _with_limit(site, Safety.UNSAFE),
            )


class Wait(Standin):
    """A wait whose limit, wherever it is defined, is above a hundred seconds."""

    code = "ZZ201"
    name = "long-wait"
    calls = frozenset({"slowlib.wait"})

    def check(self, site: Site) -> Iterable[Report]:
        constant = site.argument("limit", 0).constant
        if constant is not None and isinstance(constant.value, int) and constant.value > 100:
            yield site.report(f"this waits {constant.value} s", "wait less")


class Misbehave(Standin):
    """A rule with a fault of its own: `slowlib.misbehave("die")` and `slowlib.misbehave("fail")`."""

    code = "ZZ901"
    name = "misbehaving-rule"
    calls = frozenset({"slowlib.misbehave"})

    def check(self, site: Site) -> Iterable[Report]:
        constant = site.argument("how", 0).constant
        if constant is not None and constant.value == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        raise RuntimeError("the rule has failed")


RULES: tuple[Rule, ...] = (Fetch(), Send(), Wait(), Misbehave())
