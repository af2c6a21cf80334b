"""`deadlint baseline`: make the list of known findings, keep it current, and say whether it is."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import click

from deadlint import baseline_file
from deadlint.baseline import entries_of
from deadlint.config import Configurations, Overrides, project_root
from deadlint.errors import UserError
from deadlint.model import Level
from deadlint.report import Options, printer
from deadlint.report.printable import encodable, printable
from deadlint.report.problems import print_problems
from deadlint.report.progress import progress
from deadlint.report.summary import plural
from deadlint.result import Comparison, ExitStatus, RunResult
from deadlint.rule import all_rules
from deadlint.run import Request, run

_OPTIONS = (
    click.argument("paths", nargs=-1, type=click.Path(readable=False)),
    click.option("--baseline", "file", type=click.Path(), metavar="FILE", help="The baseline [that of the project]."),
    click.option("--level", type=click.Choice([level.value for level in Level]), help="How much to look at."),
    click.option("--config", type=click.Path(), metavar="FILE", help="This configuration for all files."),
    click.option("--isolated", is_flag=True, help="No configuration at all."),
    click.option("--no-cache", is_flag=True, help="Neither read nor write what is known of unchanged files."),
    click.option("--cache-dir", type=click.Path(), metavar="DIR", help="Where that is kept [.deadlint_cache]."),
    click.option("-q", "--quiet", is_flag=True, help="Errors, and what is wrong with the baseline, only."),
    click.option("-j", "--jobs", type=click.IntRange(min=1), help="Processes [one for each processor]."),
    click.option("--debug", is_flag=True, help="Tracebacks for faults of deadlint itself."),
)


def _options(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


@click.group()
def baseline() -> None:
    """Keep a list of findings that are known and not reported."""


@baseline.command(short_help="List what is found now.")
@_options
@click.option("--force", is_flag=True, help="Replace a baseline that is there.")
def create(force: bool, **options: Any) -> int:
    """Write what is found in PATHS into a new baseline. Without PATHS: the working directory."""
    asked = _Asked(**options)
    configurations = asked.configurations()
    configured = configurations.settings(os.getcwd()).baseline
    path = asked.named or configured or os.path.join(project_root(os.getcwd()), baseline_file.NAME)
    shown = os.path.relpath(path)
    if os.path.lexists(path) and not force:
        raise UserError(f"{shown}: exists; `deadlint baseline update` keeps it current, --force makes it anew")
    if os.path.lexists(path) and not baseline_file.is_one(path):
        raise UserError(f"{shown}: is no baseline, so it is not replaced; name another file")
    result = asked.run(baseline="")
    found = list(result.open_findings)
    if path == configured:  # of files under another configuration it would not be asked
        found = [one for one in found if configurations.settings(_directory(one.path)).baseline == path]
    baseline_file.write(path, entries_of(found, result, path))
    files = len({finding.path for finding in found})
    asked.say(f"{shown}: {plural(len(found), 'finding')} in {plural(files, 'file')} written.")
    if path != configured:
        asked.say(
            f'To use it, write `baseline = "{shown}"` under `[tool.deadlint]` of pyproject.toml, '
            f"or give `--baseline {shown}`."
        )
    if others := len(result.open_findings) - len(found):
        asked.say(f"{plural(others, 'finding')} left out: another configuration holds there, which does not name it.")
    return asked.finish(result, ExitStatus.CLEAN)


@baseline.command(short_help="Take out what is gone, follow what has moved.")
@_options
@click.option("--add", is_flag=True, help="Take in what is found and not listed.")
def update(add: bool, **options: Any) -> int:
    """Take out what is gone, follow what has moved, and mend a merge conflict in the file.

    What is found and not listed stays out, unless --add is given.
    """
    asked = _Asked(**options)
    result = asked.run(merging=True)
    for one in _comparisons(result):
        added = entries_of(one.new, result, one.path) if add else []
        baseline_file.write(one.path, [*one.kept, *added])
        done = [f"{len(one.kept)} kept"]
        done += [f"{one.moved} of them moved"] if one.moved else []
        done += [f"{len(one.stale)} stale taken out"] if one.stale else []
        done += [f"{len(added)} added"] if added else []
        asked.say(f"{os.path.relpath(one.path)}: {', '.join(done)}.")
        if one.new and not add:
            asked.say(
                f"Not listed: {plural(len(one.new), 'finding')}; `deadlint check` shows them, --add takes them in."
            )
    return asked.finish(result, ExitStatus.CLEAN, stale=False)


@baseline.command(short_help="Say whether the list is current.")
@_options
def check(**options: Any) -> int:
    """Say what the baseline lists and is gone, and what is found and not listed; 1 if there is any."""
    asked = _Asked(**options)
    result = asked.run()
    good = True
    for one in _comparisons(result):
        shown = os.path.relpath(one.path)
        for entry in one.stale:
            click.echo(encodable(printable(f"{shown}: stale: {baseline_file.line(entry)}"), sys.stdout))
        printer("concise")(replace(result, findings=one.new), sys.stdout, Options(quiet=True))
        if one.stale or one.new:
            good = False
            asked.say(
                f"{shown}: {len(one.stale)} stale, {len(one.new)} not listed; "
                "`deadlint baseline update` takes out the stale ones, with --add it takes in the others."
            )
        else:
            asked.say(f"{shown}: current, {plural(len(one.kept), 'finding')} listed.")
    return asked.finish(result, ExitStatus.CLEAN if good else ExitStatus.FINDINGS, stale=False)


@dataclass(slots=True, kw_only=True)
class _Asked:
    """The options that all three have."""

    paths: tuple[str, ...]
    file: str | None
    level: str | None
    config: str | None
    isolated: bool
    no_cache: bool
    cache_dir: str | None
    quiet: bool
    jobs: int | None
    debug: bool

    def run(self, *, baseline: str | None = None, merging: bool = False) -> RunResult:
        """Check the files, beside `baseline`: None for the one that is named or configured, empty for none."""
        request = Request(
            paths=self.paths or (".",),
            overrides=Overrides(
                level=Level(self.level) if self.level else None, baseline=self.named if baseline is None else baseline
            ),
            config=self.config,
            isolated=self.isolated,
            use_cache=not self.no_cache,
            cache_directory=self.cache_dir,
            processes=self.jobs,
            debug=self.debug,
            merging=merging,
        )
        with progress(sys.stderr, "Checking", quiet=self.quiet) as advance:
            return run(request, advance)

    def configurations(self) -> Configurations:
        """The settings of each directory."""
        return Configurations(_rules, file=self.config, isolated=self.isolated)

    @property
    def named(self) -> str | None:
        """The absolute path of the baseline that was named."""
        return os.path.abspath(self.file) if self.file else None

    def say(self, text: str) -> None:
        """Print a line, unless nothing is to be said."""
        if not self.quiet:
            click.echo(text)

    def finish(self, result: RunResult, status: ExitStatus, *, stale: bool = True) -> int:
        """Say what went wrong; the exit status. `stale` is False where the stale entries have been told."""

        told = {os.path.relpath(one.path) for one in result.baselines if not stale}
        warnings = tuple(one for one in result.warnings if one.path not in told)
        print_problems(replace(result, warnings=warnings), sys.stderr, quiet=self.quiet)
        return ExitStatus.ERROR if result.problems else status


def _comparisons(result: RunResult) -> Sequence[Comparison]:
    if not result.baselines:
        raise UserError(
            "no baseline is named: give --baseline FILE, or set the key `baseline` in the configuration; "
            "`deadlint baseline create` makes one"
        )
    return result.baselines


def _rules() -> Sequence[tuple[str, str]]:
    return [(rule.code, rule.name) for rule in all_rules()]


def _directory(path: str) -> str:
    return os.path.dirname(os.path.abspath(path))
