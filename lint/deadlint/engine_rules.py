"""The codes that the engine itself reports: a file that does not parse, a comment that suppresses nothing.

They are rules so that they can be selected, ignored and looked up like the others; no call concerns them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar

from deadlint.rule import Rule

if TYPE_CHECKING:
    from deadlint.site import Report, Site


class EngineRule(Rule):
    """A code whose findings come from the engine rather than from a call site."""

    calls: ClassVar[frozenset[str]] = frozenset()
    words: ClassVar[tuple[tuple[str, ...], ...]] = ()

    def check(self, site: Site) -> Iterable[Report]:
        """Nothing: no call site concerns it."""
        return ()


class SyntaxErrorRule(EngineRule):
    """A file that Python cannot parse.

    ## What it does
    Reports a file that the running Python cannot parse, and that no newer syntax explains.

    ## Why it is bad
    Nothing in the file was checked: an unbounded wait in it goes unnoticed. Only files that could hold a
    finding are parsed, so a file without one of the calls that the rules look at is not reported.

    ## Example
    ```python
    import requests

    print "downloading"
    requests.get("https://example.org/tiles")
    ```

    ## Use instead
    ```python
    import requests

    print("downloading")
    requests.get("https://example.org/tiles", timeout=(5, 30))
    ```

    ## Fix safety
    There is no fix.

    ## Options
    `exclude` leaves files out that are no Python for this interpreter, such as templates.

    ## References
    - [Python: errors and exceptions](https://docs.python.org/3/tutorial/errors.html#syntax-errors)
    """

    code = "DL001"
    name = "syntax-error"
    since = "0.1.0"


class UnusedSuppression(EngineRule):
    """A comment that suppresses nothing.

    ## What it does
    Reports `# noqa: DL201` and `# deadlint: ignore[DL201]` where the rule finds nothing on that statement,
    and `# deadlint:` comments that name no rule or are not understood. A bare `# noqa` is never reported: it
    may be for another tool. Neither is a code whose rule is not selected.

    ## Why it is bad
    It says that there is a known fault where there is none. It also hides the next fault on the line.

    ## Example
    ```python
    limit_s = 30  # noqa: DL201
    ```

    ## Use instead
    ```python
    limit_s = 30
    ```

    ## Fix safety
    Safe: only the comment goes, or the one code from its list. Codes of other tools stay.

    ## Options
    `ignore = ["unused-suppression"]` turns it off.

    ## References
    - [Living beside other linters](https://docs.astral.sh/ruff/settings/#lint_external)
    """

    code = "DL002"
    name = "unused-suppression"
    since = "0.1.0"
    words = (("noqa", "DL"), ("deadlint", "ignore"))


RULES: tuple[Rule, ...] = (SyntaxErrorRule(), UnusedSuppression())
