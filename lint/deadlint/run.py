"""A run: discover, look up what is known, judge the rest, remember it, collect what was found."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from zlib import crc32

from deadlint.cache import Cache
from deadlint.cache_directory import NAME as CACHE_NAME
from deadlint.collect import Collected, Steps
from deadlint.config import Configurations, Overrides, project_root
from deadlint.discover import Folder, discover, is_excluded
from deadlint.memory import Memory
from deadlint.model import Finding, Level, Safety
from deadlint.outcome import Order, Target, is_shown
from deadlint.result import RunResult

Progress = Callable[[int, int], None]  # files done, and of how many

STANDARD_INPUT = "-"
# In a run of so few files each is parsed, so that none with a syntax error goes unnoticed; it takes 0.2 s at the most.
FEW = 100


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked of a run."""

    paths: tuple[str, ...] = (".",)
    overrides: Overrides = field(default_factory=Overrides)
    config: str | None = None
    isolated: bool = False
    force_exclude: bool = False
    fix: frozenset[Safety] = frozenset()
    write: bool = False  # whether fixed files are written, or only shown
    use_cache: bool = True
    cache_directory: str | None = None
    processes: int | None = None  # None: as many as there are processors
    debug: bool = False

    @property
    def order(self) -> Order:
        """What is to be done with each file."""
        return Order(self.fix, self.write, self.use_cache, self.debug)


def no_progress(done: int, total: int) -> None:
    """Show nothing."""


def run(request: Request, progress: Progress = no_progress) -> RunResult:
    """Check files. Raises `UserError` where the request or a configuration is wrong."""
    steps = Steps()
    memory = _memory(request)
    with steps.time("discover"):
        configurations = _configurations(request, memory)
        found = discover(request.paths, configurations, force_exclude=request.force_exclude)
    files = sum(len(folder.names) for folder in found.folders)
    steps.files["discover"] = files
    collected = Collected([*found.problems], [*found.warnings])
    with steps.time("recall", files):
        targets = _recall(found.folders, request, memory, collected)
    if files <= FEW:
        targets = [target._replace(named=True) for target in targets]
    if targets:
        from deadlint.work import installed_rules, judged  # noqa: PLC0415 - a warm run judges nothing

        rules = installed_rules()
        memory.begin(rules)
        for target, outcome in judged(targets, request.order, rules, request.processes, steps, progress):
            collected.add(target, outcome, memory.settle(target, outcome))
    if request.write or not request.fix:  # what is only shown is not on disk
        with steps.time("remember", len(targets)):
            memory.save()
    return collected.result(steps, files=files, cached=files - len(targets), written=request.write)


def run_text(data: bytes, filename: str | None, request: Request) -> RunResult:
    """Check `data` as if `filename` held it; nothing is read from there, written or remembered."""
    from deadlint.work import installed_rules, judged_text  # noqa: PLC0415 - `run` may not need it

    steps = Steps()
    path = os.path.abspath(filename or "stdin.py")
    configurations = _configurations(request, Memory(None))
    if filename and request.force_exclude and is_excluded(path, configurations):
        return RunResult()
    folder, name = os.path.split(path)
    target = Target(folder, filename or STANDARD_INPUT, name, configurations.settings(folder), named=True)
    order = replace(request.order, write=False, with_digest=False)
    outcome = judged_text(target, data, order, installed_rules(), steps)
    collected = Collected()
    collected.add(target, outcome, outcome.findings)
    collected.give_source(target, data)
    return collected.result(steps, files=1, cached=0, written=request.write)


def fixed_bytes(result: RunResult, data: bytes) -> bytes:
    """What `run_text` makes of `data`, in its encoding; `data` itself where nothing was fixed."""
    if not result.changes:
        return data
    from deadlint.source import SourceFile  # noqa: PLC0415 - only where something was fixed

    return SourceFile.decode(STANDARD_INPUT, data).encode(result.changes[0].after)


def show_files(request: Request) -> tuple[list[str], RunResult]:
    """The files that a run would check, and what is wrong with the paths. Raises as `run` does."""
    configurations = _configurations(request, _memory(request))
    found = discover(request.paths, configurations, force_exclude=request.force_exclude)
    paths = [os.path.join(folder.shown, name) for folder in found.folders for name in folder.names]
    return sorted(paths), RunResult(problems=found.problems, warnings=found.warnings, files=len(paths))


def directory_of_cache(request: Request) -> str:
    """The directory that a run keeps its cache in."""
    if request.cache_directory is not None:
        return os.path.abspath(request.cache_directory)
    return os.path.join(project_root(os.getcwd()), CACHE_NAME)


def _memory(request: Request) -> Memory:
    if not request.use_cache:
        return Memory(None)
    # One file for each project and choice of rules, so that two choices do not undo each other's work.
    chosen = replace(request.overrides, level=None)
    identity = repr((project_root(os.getcwd()), chosen, request.config, request.isolated))
    name = f"{crc32(identity.encode('utf-8', 'surrogateescape')):08x}"
    return Memory(Cache.open(directory_of_cache(request), name))


def _configurations(request: Request, memory: Memory) -> Configurations:
    return Configurations(
        memory.known_rules, overrides=request.overrides, file=request.config, isolated=request.isolated
    )


def _recall(folders: Sequence[Folder], request: Request, memory: Memory, collected: Collected) -> list[Target]:
    """Collect what is known already; the files that are to be judged."""
    targets: list[Target] = []
    for folder in folders:
        level = folder.settings.level
        findings, left = memory.recall(folder, partial(_nothing_to_fix, request.fix, level))
        collected.findings += [one for one in findings if is_shown(one, level)]
        targets += left
    return targets


def _nothing_to_fix(fix: frozenset[Safety], level: Level, findings: Sequence[Finding]) -> bool:
    """Whether none of the findings of a file is to be fixed: what is remembered of fixes is never applied."""
    return not any(
        one.fix and one.fix.safety in fix and not one.suppressed and is_shown(one, level) for one in findings
    )
