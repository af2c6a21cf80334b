"""`deadlint add-ignore`: comments in the code that suppress what is found, each with a reason."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

import click

from deadlint.add_ignore import NOT_IGNORED, CannotIgnore, check_reason, with_comments
from deadlint.config import Overrides
from deadlint.model import FileProblem, Finding, Level
from deadlint.notebook.source import Notebook
from deadlint.report import Options, printer
from deadlint.report.problems import print_problems
from deadlint.report.progress import progress
from deadlint.report.summary import plural
from deadlint.result import Change, ExitStatus, RunResult
from deadlint.rule import all_rules
from deadlint.rules_option import rules_option
from deadlint.run import Request, run
from deadlint.source import SourceFile, UnreadableSource
from deadlint.write import CannotWrite, Snapshot, replace_file


@click.command()
@click.argument("paths", nargs=-1)
@click.option("--reason", required=True, metavar="TEXT", help="Why; it is written into each comment.")
@rules_option("--select", "Only these rules: codes, prefixes or names.")
@rules_option("--ignore", "Not these rules.")
@click.option("--level", type=click.Choice([level.value for level in Level]), help="How much to look at.")
@click.option("--diff", is_flag=True, help="Show the comments, and change nothing.")
@click.option("--config", type=click.Path(), metavar="FILE", help="This configuration for all files.")
@click.option("--isolated", is_flag=True, help="No configuration at all.")
@click.option("--no-cache", is_flag=True, help="Neither read nor write what is known of unchanged files.")
@click.option("--cache-dir", type=click.Path(), metavar="DIR", help="Where that is kept [.deadlint_cache].")
@click.option("-q", "--quiet", is_flag=True, help="Errors, and what is still found, only.")
@click.option("-j", "--jobs", type=click.IntRange(min=1), help="Processes [one for each processor].")
@click.option("--debug", is_flag=True, help="Tracebacks for faults of deadlint itself.")
def add_ignore(
    paths: tuple[str, ...],
    reason: str,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    level: str | None,
    diff: bool,
    config: str | None,
    isolated: bool,
    no_cache: bool,
    cache_dir: str | None,
    quiet: bool,
    jobs: int | None,
    debug: bool,
) -> int:
    """Write `# deadlint: ignore[…] TEXT` for all that is found in PATHS. Without PATHS: the working directory.

    What a baseline knows is left alone. The files are checked again: exit status 1 where something is still found.
    """
    text = check_reason(reason)
    request = Request(
        paths=paths or (".",),
        overrides=Overrides(select=select, ignore=ignore, level=Level(level) if level else None),
        config=config,
        isolated=isolated,
        use_cache=not no_cache,
        cache_directory=cache_dir,
        processes=jobs,
        debug=debug,
    )
    with progress(sys.stderr, "Checking", quiet=quiet) as advance:
        result = run(request, advance)
    done = _Done()
    for path, findings in groupby(result.open_findings, key=lambda one: one.path):
        done.add(path, [one for one in findings if one.code not in NOT_IGNORED], text, write=not diff)
    if diff:
        printer("diff")(RunResult(changes=tuple(done.changes)), sys.stdout)
    problems = (*result.problems, *done.problems)
    print_problems(replace(result, problems=problems), sys.stderr, quiet=quiet)
    if not quiet:
        click.echo(done.summary(written=not diff), err=diff)
    left = run(request) if done.changes and not diff else result
    if not diff:
        _tell_what_is_left(left)
    if problems:
        return ExitStatus.ERROR
    return ExitStatus.FINDINGS if left.open_findings else ExitStatus.CLEAN


def _tell_what_is_left(result: RunResult) -> None:
    """Say what is still found, and why no comment was written for it."""
    left = result.open_findings
    if not left:
        return
    printer("concise")(result, sys.stderr, Options(quiet=True))
    unfit = sorted({finding.code for finding in left} & set(NOT_IGNORED))
    advice = {
        "DL001": "a file with a syntax error is to be mended or excluded",
        "DL002": "`deadlint check --fix` takes out a comment without effect",
    }
    said = "; ".join(advice[code] for code in unfit) or "suppress it by hand"
    click.echo(f"{plural(len(left), 'finding')} left: {said}.", err=True)


@dataclass(slots=True)
class _Done:
    """What has been written so far."""

    comments: int = 0
    findings: int = 0
    changes: list[Change] = field(default_factory=list)
    problems: list[FileProblem] = field(default_factory=list)

    def add(self, path: str, findings: Sequence[Finding], reason: str, *, write: bool) -> None:
        """Write the comments of one file, all or none."""
        if not findings:
            return
        try:
            before = Snapshot.read(path)
            source = SourceFile.decode(path, before.data)
            known = [(rule.code, rule.name) for rule in all_rules()]
            made = with_comments(source, findings, reason, known)
            if write:
                replace_file(before, made.source.encode())
        except (CannotIgnore, CannotWrite, UnreadableSource) as error:
            self.problems.append(FileProblem(path, str(error)))
        except OSError as error:
            self.problems.append(FileProblem(path, f"cannot be read: {error.strerror}"))
        else:
            self.comments += made.comments
            self.findings += len(findings)
            notebook = source if isinstance(source, Notebook) else None
            self.changes.append(Change(path, source.text, made.source.text, notebook, source.bom))

    def summary(self, *, written: bool) -> str:
        """What was done, in a line."""
        if not self.changes:
            return "Nothing to ignore."
        what = f"{plural(self.comments, 'comment')} for {plural(self.findings, 'finding')}"
        return f"{'Wrote' if written else 'Would write'} {what} in {plural(len(self.changes), 'file')}."
