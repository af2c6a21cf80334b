"""DL104: a handler that goes on after `TimeoutExpired` as if the work were done."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from deadlint.model import Fix
from deadlint.rule import Rule
from deadlint.site import Report, Site

from deadlint_rules._kill_paths import caught_names
from deadlint_rules._processes import RUNS, Given, commands_of, limit_given
from deadlint_rules._swallowing import raised_again, swallower

_HELPERS = frozenset({"deadlint_budget.run", "deadlint_budget.check_output", "deadlint_budget.run_gdal"})


class TimeoutExpiredSwallowed(Rule):
    """A handler catches `TimeoutExpired` and goes on as if the program had done its work.

    ## What it does
    Looks at the handler that the expiry of `subprocess.run(timeout=…)` and its kin reaches: `except TimeoutExpired`,
    `SubprocessError`, `Exception`, a bare `except`, and `contextlib.suppress`. It is reported where the handler does
    nothing but pass, continue, log or sleep, and nothing else tells the difference: no return, raise or break, no
    flag or list that is filled, no result that is looked at later, no `else`. A broad handler is reported only where
    the call is all that it guards.

    `Popen` is DL102's: what its handler owes is the kill.

    ## Why it is bad
    The next step works on an output that is half written or missing, and the run is reported as a success. Measured:
    `gdalinfo` accepts the GeoTIFF of a `gdalwarp` that was killed, and statistics call all of its pixels valid.

    ## Example
    ```python
    import subprocess


    def build(tile):
        try:
            subprocess.run(["gdalwarp", tile, "out.tif"], timeout=600)
        except subprocess.TimeoutExpired:
            pass
    ```

    ## Use instead
    ```python
    import subprocess


    def build(tile):
        try:
            subprocess.run(["gdalwarp", tile, "out.tif"], timeout=600)
        except subprocess.TimeoutExpired:
            return False
        return True
    ```

    ## Fix safety
    Unsafe: the exception reaches callers that never saw it. A `pass` or `continue` at the end of the handler becomes
    `raise`; behind a log line `raise` is added. Offered for handlers of `TimeoutExpired` alone: others catch more than
    the fix is about.

    ## Options
    None.

    ## References
    - [subprocess.TimeoutExpired](https://docs.python.org/3/library/subprocess.html#subprocess.TimeoutExpired)
    """

    code = "DL104"
    name = "timeout-expired-swallowed"
    since = "0.1.0"
    calls = RUNS | _HELPERS
    words = (
        ("subprocess", "timeout", "except"),
        ("subprocess", "timeout", "suppress"),
        ("deadlint_budget", "except"),
        ("deadlint_budget", "suppress"),
    )

    def check(self, site: Site) -> Iterator[Report]:
        if site.name in RUNS and limit_given(site) is not Given.YES:
            return
        node = swallower(site)
        if node is None:
            return
        label = commands_of(site).first.label
        yield site.report(
            f"when {label} is killed at its limit the code goes on as if it had done its work",
            "raise, return, or note the failure where the caller looks",
            node=node,
            related=(site.related(site.call, "the limit that expires"),),
            fix=(lambda: _with_raise(node, site)) if isinstance(node, ast.ExceptHandler) else None,
        )


def _with_raise(handler: ast.ExceptHandler, site: Site) -> Fix | None:
    """`raise` at the end of the handler, where it is about the expiry alone."""
    if handler.type is None or not _only_expiry(caught_names(handler.type, site.module, site.scope)):
        return None
    return raised_again(handler, site.module)


def _only_expiry(names: Iterable[str]) -> bool:
    return all(name.endswith("TimeoutExpired") for name in names)
