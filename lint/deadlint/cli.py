"""The command line: options in, a run, a report out, and the exit status.

Only what every command needs is imported at the top: start-up is a figure to hold.
"""

from __future__ import annotations

import errno
import os
import sys
from typing import TYPE_CHECKING, Any, NoReturn, TextIO

import click

from deadlint.commands import Commands
from deadlint.errors import UserError
from deadlint.model import Level, Safety
from deadlint.report import FORMATS
from deadlint.result import ExitStatus
from deadlint.rules_option import complete_rules, rules_option

if TYPE_CHECKING:

    from deadlint.report import Options
    from deadlint.result import RunResult
    from deadlint.run import Request

STOPPED = 130  # as the shell has it for Ctrl-C
_DEBUGGING = "deadlint.debugging"  # whether the group was given `--debug`
READER_GONE = 141  # and for a pipe that nobody reads any more
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def main(arguments: list[str] | None = None) -> NoReturn:
    """Run the command line and leave with its exit status."""
    given = sys.argv[1:] if arguments is None else arguments
    if sys.stdout is None:  # closed by the caller (`>&-`), who wants the exit status alone
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - until the process ends
    sys.exit(_status(given))


def _status(arguments: list[str]) -> int:
    debug = "--debug" in arguments
    try:
        status = int(cli.main(arguments, prog_name="deadlint", standalone_mode=False) or 0)
        if not sys.stdout.closed:  # as the language server leaves it
            sys.stdout.flush()  # here, where what goes wrong can be said
        return status
    except click.ClickException as error:
        error.show()
        return ExitStatus.ERROR
    except UserError as error:
        return _fail(str(error), traceback=debug)
    except (click.Abort, KeyboardInterrupt):
        return STOPPED
    except BrokenPipeError:
        _drop_output()
        return READER_GONE
    except OSError as error:
        if error.filename is not None or error.errno not in _NO_ROOM:
            return _fault(error, debug)
        _drop_output()
        return _fail(f"standard output: {error.strerror}; make room, or write elsewhere", traceback=debug)
    except Exception as error:
        return _fault(error, debug)


def _drop_output() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # or Python complains when it flushes at exit


def _fault(error: Exception, debug: bool) -> int:
    remedy = "please report it with this and `deadlint --version`" if debug else "please report it with --debug"
    return _fail(f"a fault of deadlint itself ({type(error).__name__}: {error}); {remedy}", traceback=debug)


def _fail(text: str, *, traceback: bool) -> int:
    """Say what went wrong; with `traceback` how the exception that is being handled came about as well."""
    from deadlint.report.printable import encodable, printable  # noqa: PLC0415 - only where something is wrong

    if traceback:
        from traceback import format_exc  # noqa: PLC0415 - see above

        sys.stderr.write(encodable(format_exc(), sys.stderr))
    for line in text.splitlines():
        sys.stderr.write(encodable(f"error: {printable(line)}\n", sys.stderr))
    return ExitStatus.ERROR


def _complete_formats(_: click.Context, __: click.Parameter, incomplete: str) -> list[str]:
    return [name for name in FORMATS if name.startswith(incomplete)]


def _note_debugging(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    context.meta[_DEBUGGING] = wanted


def _say_versions(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not context.resilient_parsing:
        from deadlint.versions import versions  # noqa: PLC0415 - only here

        click.echo(versions())
        context.exit()


_FORMATS_HELP = f"How to print findings: {', '.join(FORMATS)} [text]. With =FILE there as well; may be repeated."


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_say_versions,
    help="The version, and what else a report of a bug needs.",
)  # fmt: skip
@click.option(
    "--debug", is_flag=True, expose_value=False, callback=_note_debugging, help="Tracebacks for what goes wrong."
)
def cli() -> None:
    """Find and repair timeout and cancellation faults in Python pipelines."""


@cli.command()
@click.argument("paths", nargs=-1, type=click.Path(readable=False))
@click.option("--fix", is_flag=True, help="Apply the safe fixes.")
@click.option("--unsafe-fixes", is_flag=True, help="Apply those as well that may change behaviour; implies --fix.")
@click.option("--diff", is_flag=True, help="Show what fixes would change, and change nothing.")
@rules_option("--select", "Only these rules: codes, prefixes or names, separated by commas.")
@rules_option("--extend-select", "These rules as well.")
@rules_option("--ignore", "Not these rules.")
@click.option("--level", type=click.Choice([level.value for level in Level]), help="How much to report.")
@click.option(
    "--output-format", "output_formats", multiple=True, metavar="FORMAT[=FILE]",
    shell_complete=_complete_formats, help=_FORMATS_HELP,
)  # fmt: skip
@click.option("--output-file", type=click.Path(), metavar="FILE", help="Print them there, not on standard output.")
@click.option("--config", type=click.Path(), metavar="FILE", help="This configuration for all files.")
@click.option("--isolated", is_flag=True, help="No configuration at all.")
@click.option("--baseline", type=click.Path(), metavar="FILE", help="Report only findings that are not listed there.")
@click.option("--no-baseline", is_flag=True, help="Report those of the configured baseline as well.")
@click.option("--no-cache", is_flag=True, help="Neither read nor write what is known of unchanged files.")
@click.option("--cache-dir", type=click.Path(), metavar="DIR", help="Where that is kept [.deadlint_cache].")
@click.option("--with-dependents", is_flag=True, help="Also what other files have that points into those of PATHS.")
@click.option("--force-exclude", is_flag=True, help="Leave out excluded files though they are named.")
@click.option("--statistics", is_flag=True, help="Counts for each rule.")
@click.option("--show-files", is_flag=True, help="List the files that would be checked, and stop.")
@click.option("--exit-zero", is_flag=True, help="Exit status 0 though there are findings.")
@click.option("-q", "--quiet", is_flag=True, help="Findings and errors only.")
@click.option("-w", "--watch", is_flag=True, help="Check again whenever a file is saved, until Ctrl-C.")
@click.option("--stdin-filename", metavar="FILE", help="The name of what `-` reads.")
@click.option("-j", "--jobs", type=click.IntRange(min=1), help="Processes [one for each processor].")
@click.option("--debug", is_flag=True, help="Tracebacks for faults of deadlint itself.")
@click.option("--debug-timings", is_flag=True, help="Where the time went, on standard error.")
def check(paths: tuple[str, ...], **options: Any) -> int:
    """Check files and directories; `-` reads standard input. Without PATHS: the working directory.

    Exit status: 0 nothing found or all of it fixed, 1 findings, 2 error (the rest has been checked).
    """
    from deadlint.outputs import outputs  # noqa: PLC0415 - see `_request`

    options["outputs"] = outputs(options["output_formats"], options["output_file"])
    request = _request(paths, options)
    if options["show_files"]:
        return _show_files(request)
    if "-" in paths:
        result = _check_standard_input(request, options)
        status = result.exit_status
    elif options["watch"]:
        status = _watch(request, options)
    else:
        result = _run(request, options)
        _report(result, options, sys.stdout)
        status = result.exit_status
    return ExitStatus.CLEAN if options["exit_zero"] and status is ExitStatus.FINDINGS else status


@cli.command()
@click.argument("rule", shell_complete=complete_rules)
def rule(rule: str) -> None:
    """Explain RULE, a code or a name."""
    from deadlint.explain import explain  # noqa: PLC0415 - loads the rules

    explain(rule, sys.stdout)


@cli.command()
@click.option("--output-format", type=click.Choice(["text", "json"]), default="text", help="How to print them.")
def rules(output_format: str) -> None:
    """List the rules."""
    from deadlint.explain import list_rules  # noqa: PLC0415 - loads the rules

    list_rules(sys.stdout, as_json=output_format == "json")


@cli.command()
@click.option("--cache-dir", type=click.Path(), metavar="DIR", help="Another place than .deadlint_cache.")
def clean(cache_dir: str | None) -> None:
    """Remove what is known of unchanged files."""
    from deadlint import cache_directory  # noqa: PLC0415 - see `_request`
    from deadlint.run import Request, directory_of_cache  # noqa: PLC0415

    directory = directory_of_cache(Request(cache_directory=cache_dir))
    try:
        found = cache_directory.clean(directory)
    except OSError as error:
        raise UserError(f"{directory}: cannot be removed: {error.strerror}") from error
    click.echo(f"Removed {directory}" if found else f"Nothing to remove in {directory}")


@cli.command()
@click.argument("path", type=click.Path())
@click.option("--check", "only_check", is_flag=True, help="Say whether the copy is unmodified and current.")
@click.option("--force", is_flag=True, help="Replace a copy that was changed by hand.")
def vendor(path: str, only_check: bool, force: bool) -> int:
    """Copy the runtime helpers into the folder PATH; name it as `helpers` in the configuration."""
    from pathlib import Path  # noqa: PLC0415 - only here

    from deadlint import vendor as copies  # noqa: PLC0415

    if not only_check:
        click.echo(f"{path}: deadlint_budget {copies.vendor(Path(path), force=force)} written")
        return ExitStatus.CLEAN
    verdict = copies.check(Path(path))
    for name in verdict.changed:
        click.echo(f"{path}/{name}: differs from what was written")
    if not verdict.current:
        click.echo(f"{path}: holds {verdict.version}, which is not what is installed; run `deadlint vendor {path}`")
    if verdict.good:
        click.echo(f"{path}: deadlint_budget {verdict.version}, unmodified and current")
    return ExitStatus.CLEAN if verdict.good else ExitStatus.FINDINGS


def _request(paths: tuple[str, ...], options: dict[str, Any]) -> Request:
    from deadlint.config import Overrides  # noqa: PLC0415 - `deadlint --version` needs none of it
    from deadlint.run import Request  # noqa: PLC0415

    fixes = options["fix"] or options["diff"] or options["unsafe_fixes"]
    safeties = {Safety.SAFE} if fixes else set()
    if options["unsafe_fixes"]:
        safeties.add(Safety.UNSAFE)
    return Request(
        paths=paths or (".",),
        overrides=Overrides(
            select=options["select"],
            extend_select=options["extend_select"],
            ignore=options["ignore"],
            level=Level(options["level"]) if options["level"] else None,
            baseline="" if options["no_baseline"] else options["baseline"] and os.path.abspath(options["baseline"]),
        ),
        config=options["config"],
        isolated=options["isolated"],
        force_exclude=options["force_exclude"],
        fix=frozenset(safeties),
        write=bool(safeties) and not options["diff"],
        use_cache=not options["no_cache"],
        cache_directory=options["cache_dir"],
        processes=options["jobs"],
        debug=options["debug"] or click.get_current_context().meta[_DEBUGGING],
        with_dependents=options["with_dependents"],
    )


def _run(request: Request, options: dict[str, Any]) -> RunResult:
    from deadlint.run import no_progress, run  # noqa: PLC0415 - see `_request`

    if options["quiet"] or not sys.stderr.isatty():
        return run(request, no_progress)
    from deadlint.report.progress import progress  # noqa: PLC0415 - on a terminal only

    with progress(sys.stderr, "Checking") as advance:
        return run(request, advance)


def _watch(request: Request, options: dict[str, Any]) -> ExitStatus:
    """Check and report again after each save."""
    from deadlint.watch import check_on_save  # noqa: PLC0415 - only here

    if request.fix or not request.use_cache:
        raise UserError("`--watch` only reports, and from the cache: leave out --fix, --diff and --no-cache")

    def check() -> ExitStatus:
        result = _run(request, options)
        _report(result, options, sys.stdout)
        sys.stdout.flush()
        return result.exit_status

    return check_on_save(request.paths, check, lambda text: click.echo(text, err=True))


def _check_standard_input(request: Request, options: dict[str, Any]) -> RunResult:
    """Check what standard input holds; where it is fixed, standard output gets the fixed text alone."""
    if request.paths != ("-",):
        raise UserError("`-` stands for standard input; name it alone, without other paths")
    from deadlint.run import fixed_bytes, run_text  # noqa: PLC0415 - see `_request`

    data = sys.stdin.buffer.read()
    result = run_text(data, options["stdin_filename"], request)
    if request.write:
        sys.stdout.buffer.write(fixed_bytes(result, data))
        sys.stdout.flush()
    _report(result, options, sys.stderr if request.write else sys.stdout)
    return result


def _report(result: RunResult, options: dict[str, Any], out: TextIO) -> None:
    """Print what was found on `out` and in files, and what went wrong on standard error."""
    from deadlint.report import Options, printer  # noqa: PLC0415 - see `_request`

    shown = Options(quiet=options["quiet"], statistics=options["statistics"])
    main, *others = options["outputs"]
    # Without a finding there is nothing that needs the library behind the text format.
    is_short = main.format == "text" and not result.open_findings
    name = "diff" if options["diff"] else "concise" if is_short else main.format
    if main.file is None:
        printer(name)(result, out, shown)
        out.flush()
    else:
        _write_report(name, main.file, result, shown)
    for output in others:
        _write_report(output.format, output.file, result, shown)
    if options["diff"]:
        _say_summary(result, options)
    if result.problems or result.warnings:
        from deadlint.report.problems import print_problems  # noqa: PLC0415 - only where there are any

        print_problems(result, sys.stderr, quiet=options["quiet"])
    if options["debug_timings"]:
        for step in result.steps:
            sys.stderr.write(f"{step.seconds:9.4f} s  {step.files:7} files  {step.name}\n")


def _write_report(name: str, path: str, result: RunResult, shown: Options) -> None:
    """Print a report into a file, in UTF-8; the file is replaced as a whole."""
    from io import BytesIO, TextIOWrapper  # noqa: PLC0415 - most runs write no file

    from deadlint.report import printer  # noqa: PLC0415
    from deadlint.write import CannotWrite, put_file  # noqa: PLC0415

    data = BytesIO()
    out = TextIOWrapper(data, encoding="utf-8", newline="")
    printer(name)(result, out, shown)
    out.flush()
    try:
        put_file(path, data.getvalue())
    except CannotWrite as error:
        raise UserError(f"{path}: {error}; name another place for the {name} report") from error


def _say_summary(result: RunResult, options: dict[str, Any]) -> None:
    """The closing line on standard error: a diff is there to be piped."""
    from deadlint.report.summary import summary  # noqa: PLC0415 - see `_request`

    if not options["quiet"]:
        sys.stderr.write(summary(result) + "\n")


def _show_files(request: Request) -> int:
    """List the files, as the bytes that their names are."""
    from deadlint.report.problems import print_problems  # noqa: PLC0415 - see `_request`
    from deadlint.run import show_files  # noqa: PLC0415

    paths, result = show_files(request)
    for path in paths:
        sys.stdout.buffer.write(os.fsencode(path) + b"\n")
    sys.stdout.flush()
    print_problems(result, sys.stderr)
    return result.exit_status
