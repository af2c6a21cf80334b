"""DL101: a limit on `subprocess.run` and its kin, which ends the direct child alone."""

from __future__ import annotations

from collections.abc import Iterator

from deadlint.index.values import number
from deadlint.model import Level
from deadlint.rule import Rule
from deadlint.site import Report, Site

from deadlint_rules._limits import seconds
from deadlint_rules._process_repairs import to_run
from deadlint_rules._processes import RUNS, Given, commands_of, has_pipe, in_wrapper, leads_group, limit_given


class SubprocessTimeoutLeavesTree(Rule):
    """`subprocess.run(timeout=…)` and its kin kill the direct child at once and leave the rest of its tree.

    ## What it does
    Finds `run`, `call`, `check_call` and `check_output` with a limit. The message says what makes it worse: a shell
    with several commands, a launcher such as `timeout` or `sudo` in front, a session that nobody kills, a pipe.

    A literal program that only reads and has no children (`read-only`: `gdalinfo`, `exiftool` …) is reported at the
    strict level.

    ## Why it is bad
    Measured: when the limit is over the direct child gets SIGKILL and is reaped, and the call is back in time. But
    there is no grace, so what the child was writing stays half written: a GeoTIFF of which `gdalinfo` says that all is
    well, a shapefile with no features. And what the child started lives on, with its memory and its locks: the
    commands of a shell, what `timeout`, `sudo` or `docker run` stand in front of, the workers of a Python script.
    `start_new_session=True` alone changes nothing but that Ctrl-C does not reach them either. A child that ended while
    something else holds its pipe looks like one that was too slow.

    ## Example
    ```python
    import subprocess

    subprocess.run("gdalwarp a.tif b.tif && gdaladdo b.tif", shell=True, check=True, timeout=600)
    ```

    ## Use instead
    ```python
    from deadlint_budget import run

    run("gdalwarp a.tif b.tif && gdaladdo b.tif", shell=True, check=True, want=600)
    ```

    ## Fix safety
    Unsafe: the helper stops the whole group, also what a child that ended in time leaves behind; it gives the child a
    session of its own and, unless told otherwise, no standard input. Result and exceptions are the same. Where
    arguments come in a `**mapping` the fix is only shown.

    ## Options
    - `read-only`: programs whose kill leaves nothing behind.
    - `wrappers.processes`: functions that stop the whole group themselves.
    - `helpers`: the module that fixed code imports from.

    ## References
    - [subprocess.run](https://docs.python.org/3/library/subprocess.html#subprocess.run)
    - [python/cpython#82388](https://github.com/python/cpython/issues/82388): a grandchild on the pipe
    """

    code = "DL101"
    name = "subprocess-timeout-leaves-tree"
    since = "0.1.0"
    calls = RUNS
    words = (("subprocess", "timeout"),)

    def check(self, site: Site) -> Iterator[Report]:
        if limit_given(site) is not Given.YES or in_wrapper(site):
            return
        commands = commands_of(site)
        level = Level.STRICT if commands.read_only else Level.DEFAULT
        limit = site.argument("timeout").node
        yield site.report(
            _message(site),
            f"stop the whole group: `{_remedy(site)}`",
            level=level,
            fix=(lambda: to_run(site, site.source(limit))) if limit is not None else None,
        )


def _message(site: Site) -> str:
    commands = commands_of(site)
    first = commands.first
    after = _after(site)
    kill = f"gets SIGKILL{after} with no grace"
    if first.launcher:
        return f"`{first.launcher}` {kill}, and {first.label}, which it started, lives on"
    if first.shell and first.several:
        return f"the shell {kill}, and the commands that it runs live on"
    if first.shell:
        return f"the shell of {first.label} {kill}, and what runs under it may live on"
    if commands.leaf:
        return f"{first.label} {kill}, and what it was writing stays half written"
    if leads_group(site):
        return (
            f"{first.label} {kill}; its session is not killed, so what it started lives on, out of reach of Ctrl-C too"
        )
    pipe = " and holds the pipe" if has_pipe(site) else ""
    return f"{first.label} {kill}, and what it started lives on{pipe}"


def _after(site: Site) -> str:
    constant = site.argument("timeout").constant
    value = number(constant) if constant is not None else None
    return f" after {seconds(value)}" if value is not None else " when its limit is over"


def _remedy(site: Site) -> str:
    helper = "check_output" if site.name.endswith("check_output") else "run"
    budget = f"budget={site.budget}, " if site.budget else ""
    limit = site.argument("timeout").node
    want = site.source(limit) if limit is not None and limit.lineno == limit.end_lineno else "…"
    return f"{site.module.settings.helpers}.{helper}(…, {budget}want={want})"
