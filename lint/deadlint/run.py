"""A run: discover, look up what is known, judge the rest, remember it, collect what was found."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING
from zlib import crc32

from deadlint import place
from deadlint.cache import Cache
from deadlint.cache_directory import NAME as CACHE_NAME
from deadlint.collect import Collected, Steps
from deadlint.config import Configurations, Overrides, project_root
from deadlint.discover import Discovery, Folder, around, discover, is_excluded
from deadlint.memory import Memory
from deadlint.model import Safety
from deadlint.outcome import Order, Target
from deadlint.result import RunResult
from deadlint.rounds import Progress, Rounds
from deadlint.settings import Settings

if TYPE_CHECKING:
    from deadlint.baseline_file import Baselines

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
    with_dependents: bool = False  # whether to show what other files have that points into those of `paths`
    merging: bool = False  # whether both sides of a merge conflict in a baseline count

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
        others = around(found, configurations)
        looked_at = (*found.folders, *others) if request.with_dependents else found.folders
        known = _baselines((folder.settings for folder in looked_at), request)
    files = sum(len(folder.names) for folder in found.folders)
    steps.files["discover"] = files
    rounds = Rounds(memory, request.processes, steps, progress)
    with steps.time("recall", files):
        targets = rounds.recall(found.folders)
        left = rounds.recall(others, indexed=not request.with_dependents)
    if files <= FEW:
        targets = [target._replace(named=True) for target in targets]
    rounds.settle([*targets, *left], replace(request.order, fix=frozenset(), write=False))
    collected = Collected([*found.problems], [*found.warnings])
    asked = {os.path.join(folder.path, name) for folder in found.folders for name in folder.names}
    if request.fix:
        from deadlint.fixing import fix  # noqa: PLC0415 - a check alone does not need it

        fix(rounds, request.order, asked, collected)
    judged = _collect(rounds, asked, collected, with_dependents=request.with_dependents)
    if request.write or not request.fix:  # what is only shown is not on disk
        with steps.time("remember", len(targets)):
            memory.save()
    result = collected.result(steps, files=files, cached=files - judged, written=request.write)
    return _beside(result, known, collected, request, steps)


def _collect(rounds: Rounds, asked: set[str], collected: Collected, *, with_dependents: bool) -> int:
    """Collect what was found in the files that were `asked` for, and in others what points there.

    Returns how many of these files were judged.
    """
    shown = {place.shown(path) for path in asked} if with_dependents else set()
    for path, known in rounds.known.items():
        if path in asked:
            collected.find(known.target, known.findings)
        elif not known.target.indexed:
            collected.find(known.target, [one for one in known.findings if any(r.path in shown for r in one.related)])
    for path, (target, outcome) in rounds.problems.items():
        if path in asked:
            collected.add(target, outcome)
    return len(rounds.judged & asked)


def run_text(data: bytes, filename: str | None, request: Request) -> RunResult:
    """Check `data` as if `filename` held it; nothing is read from there, written or remembered of it."""
    from deadlint.work import installed_rules, judged_text  # noqa: PLC0415 - `run` may not need it

    steps = Steps()
    memory = _memory(request) if filename else Memory(None)
    path = os.path.abspath(filename or "stdin.py")
    configurations = _configurations(request, memory)
    if filename and request.force_exclude and is_excluded(path, configurations):
        return RunResult()
    folder, name = os.path.split(path)
    target = Target(folder, filename or STANDARD_INPUT, name, configurations.settings(folder), named=True)
    known = _baselines([target.settings], request)
    if filename:
        target = _under_callers(target, configurations, memory, request, steps)
    order = replace(request.order, write=False, with_digest=False)
    outcome = judged_text(target, data, order, installed_rules(), steps)
    collected = Collected()
    collected.find(target, outcome.findings)
    collected.add(target, outcome)
    if outcome.change is not None:
        collected.change(target, outcome)
    collected.give_source(target, data)
    result = collected.result(steps, files=1, cached=0, written=request.write)
    return _beside(result, known, collected, replace(request, paths=(path,)), steps)


def _baselines(settings: Iterable[Settings], request: Request) -> Baselines:
    """The baselines that hold under any of the settings, read before anything is written."""
    paths = {one.baseline for one in settings}
    if paths <= {None}:
        return {}
    from deadlint import baseline_file  # noqa: PLC0415 - most runs have none

    return {path: baseline_file.read(path, merging=request.merging) for path in paths if path is not None}


def _beside(result: RunResult, known: Baselines, collected: Collected, request: Request, steps: Steps) -> RunResult:
    """`result` as it is shown beside the baselines that hold for its files, if there are any."""
    if not known:
        return result
    from deadlint.baseline import Checked, with_baselines  # noqa: PLC0415 - most runs have none

    chosen = request.overrides
    everything = not (chosen.select or chosen.extend_select or chosen.ignore)
    with steps.time("compare", result.files):
        compared = with_baselines(result, known, collected.beside, Checked(request.paths, everything))
    return replace(compared, steps=steps.all())


def _under_callers(
    target: Target, configurations: Configurations, memory: Memory, request: Request, steps: Steps
) -> Target:
    """`target` with what the project around it has around its calls of it."""
    itself = Folder(target.folder, "", target.settings, (target.name,), whole=False)
    rounds = Rounds(memory, request.processes, steps, no_progress)
    left = rounds.recall(around(Discovery((itself,)), configurations), indexed=True)
    rounds.settle(left, replace(request.order, fix=frozenset(), write=False))
    memory.save()
    return rounds.under_callers(target)


def fixed_bytes(result: RunResult, data: bytes) -> bytes:
    """What `run_text` makes of `data`, in its encoding; `data` itself where nothing was fixed."""
    if not result.changes:
        return data
    from deadlint.source import SourceFile  # noqa: PLC0415 - only where something was fixed

    change = result.changes[0]
    return SourceFile.decode(change.path, data).encode(change.after)


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
    chosen = replace(request.overrides, level=None, baseline=None)
    identity = repr((project_root(os.getcwd()), chosen, request.config, request.isolated))
    name = f"{crc32(identity.encode('utf-8', 'surrogateescape')):08x}"
    return Memory(Cache.open(directory_of_cache(request), name))


def _configurations(request: Request, memory: Memory) -> Configurations:
    return Configurations(
        memory.known_rules, overrides=request.overrides, file=request.config, isolated=request.isolated
    )
