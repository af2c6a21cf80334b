"""DL501: a blocking call on the event loop, whose limit cannot expire meanwhile."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from deadlint.graph import Around
from deadlint.index.blocking import DATABASES, SLEEP
from deadlint.index.scopes import Scope
from deadlint.index.values import External
from deadlint.model import Edit, Fix, Level, Safety
from deadlint.region import parse_call, replace_call, rewritten
from deadlint.rule import Rule
from deadlint.site import Report, Site

from deadlint_rules._async_limits import around, is_coroutine, scope_statement
from deadlint_rules._blocking import BLOCKING, WORDS, blocks, length, shown
from deadlint_rules._limits import places, route, seconds
from deadlint_rules._process_repairs import bounds


class BlockingCallUnderAsyncTimeout(Rule):
    """A blocking call runs on the event loop, so the limit around it cannot fire until it is over.

    ## What it does
    Finds calls that hold their thread (`time.sleep`, `subprocess`, `requests`, `urllib`, database drivers that are not
    asynchronous, GDAL, waits for queues, futures, threads and file locks) in a coroutine, or in a function that a
    coroutine calls, under `asyncio.timeout`, `asyncio.wait_for`, their kin in `async_timeout`, anyio and trio, or the
    `timeout_seconds` of an asynchronous Prefect task or flow.

    Of what a function asks of its database only the first call is reported.

    At the strict level also in an `async def` with no limit in sight, through seven calls or more, and sleeps of less
    than a second. What is handed to a thread is DL502's.

    ## Why it is bad
    A limit of asyncio is a callback of the loop that cancels the task at its next `await`. While a blocking call runs
    there is no loop and no `await`. Measured: `async with asyncio.timeout(1)` around a sleep of 2 s or a child of 3 s
    raises **nothing**: the block is left normally, and `expired()` is False, also with one `await sleep(0)` behind
    it. An asynchronous Prefect task with a limit of 1 s returned normally after 4 s. Every other task of the loop
    stands still meanwhile, their limits too.

    ## Example
    ```python
    import asyncio
    import subprocess


    async def build(argv):
        async with asyncio.timeout(600):
            subprocess.run(argv, check=True)
    ```

    ## Use instead
    ```python
    import asyncio

    from deadlint_budget import run_async


    async def build(argv):
        async with asyncio.timeout(600):
            await run_async(argv, check=True)
    ```

    ## Fix safety
    Unsafe: other tasks of the loop run where nothing ran before, and the limit around may now really fire.
    `time.sleep` becomes `await asyncio.sleep`, where `asyncio` is imported and it is a statement of its own in a
    coroutine; `subprocess.run` and the helper's own `run` there become `await run_async`. Where arguments come in a
    `**mapping` that is only shown.

    ## Options
    - `helpers`: the module that fixed code imports from.

    ## References
    - [asyncio.timeout](https://docs.python.org/3/library/asyncio-task.html#asyncio.timeout)
    - [Running blocking code](https://docs.python.org/3/library/asyncio-dev.html#running-blocking-code)
    """

    code = "DL501"
    name = "blocking-call-under-async-timeout"
    since = "0.1.0"
    calls = BLOCKING
    words = tuple(("async def", *group) for group in WORDS)

    def check(self, site: Site) -> Iterator[Report]:
        if site.scope.kind != "function" or _awaited(site) or not blocks(site) or _kept_for_others(site):
            return
        nearest = next((one for one in around(site) if _runs_under(site, one)), None)
        if _said_before(site, nearest):
            return
        if nearest is not None:
            yield _report(site, _message(site, nearest), _level(site, nearest), nearest)
        elif is_coroutine(site.function) and not _short(site) and not _has_loop_to_itself(site):
            message = f"{shown(site)} holds the event loop: no limit around this coroutine can fire until it is over"
            yield _report(site, message, Level.STRICT, None)


def _awaited(site: Site) -> bool:
    """Whether the call makes something to await, so that it is another than its name says: a wrong annotation, say."""
    parent = site.module.walker.parents.get(site.call)
    return isinstance(parent, ast.Await) or (isinstance(parent, ast.Call) and _last(parent.func) in _TAKING_COROUTINES)


_TAKING_COROUTINES = frozenset({"wait_for", "gather", "shield", "create_task", "ensure_future", "run_until_complete"})


def _said_before(site: Site, nearest: Around | None) -> bool:
    """Whether it is one more query of a function whose first one is reported."""
    if site.name not in DATABASES or site.function is None:
        return False
    for call in site.function.calls:
        if (call.lineno, call.col_offset) < (site.call.lineno, site.call.col_offset):
            other = site.module.site(call)
            if (
                other is not None
                and any(t.name in DATABASES for t in other.targets)
                and not _awaited(other)
                and (nearest is None or next(around(other), None) is not None)
            ):
                return True
    return False


def _kept_for_others(site: Site) -> bool:
    """Whether a coroutine has two ways, and this is the one for callers that are not asynchronous."""
    return any(isinstance(node, ast.If) and "async" in ast.unparse(node.test) for node in site.ancestors())


def _report(site: Site, message: str, level: Level, nearest: Around | None) -> Report:
    related = places(nearest, what="the limit") if nearest is not None else ()
    return site.report(message, _remedy(site), level=level, related=related, fix=lambda: _fix(site))


def _runs_under(site: Site, one: Around) -> bool:
    """Whether the call runs once the limit has begun: what `wait_for` is given is made before."""
    if one.limit.name != "asyncio.wait_for":
        return True
    return len(one.path) > 1 or (len(one.path) == 1 and is_coroutine(site.function))


_FAR = 7  # calls; read in public code: a way through 9 was one that a flag of the caller shuts


def _level(site: Site, nearest: Around) -> Level:
    return Level.STRICT if _short(site) or len(nearest.path) >= _FAR else Level.DEFAULT


def _short(site: Site) -> bool:
    """A sleep of which nobody notices that a limit is late by as much."""
    bound = length(site)
    return bound is not None and bound < 1


def _message(site: Site, nearest: Around) -> str:
    limit = nearest.limit
    amount = f" of {seconds(limit.seconds)}" if limit.seconds is not None else ""
    held = f"{shown(site)} holds the event loop{route(nearest)}"
    if not nearest.path and _last_word(site, nearest):
        return f"{held}, and nothing is awaited after it: the limit{amount} of {limit.label} never fires"
    return f"{held}: the limit{amount} of {limit.label} cannot fire until it is over"


def _last_word(site: Site, nearest: Around) -> bool:
    """Whether nothing is awaited between the call and the end of the limit."""
    block = scope_statement(site, nearest)
    place = (site.call.lineno, site.call.col_offset)
    for statement in block.body if block is not None else ():
        for node in ast.walk(statement):
            if isinstance(node, ast.Await | ast.AsyncFor | ast.AsyncWith | ast.Yield | ast.comprehension):
                later = (getattr(node, "lineno", place[0]), getattr(node, "col_offset", place[1] + 1)) > place
                if later or any(isinstance(a, ast.For | ast.While) for a in _between(site, block)):
                    return False
    return block is not None


def _between(site: Site, block: ast.With | ast.AsyncWith | None) -> Iterator[ast.AST]:
    for node in site.ancestors():
        if node is block:
            return
        yield node


def _has_loop_to_itself(site: Site) -> bool:
    """Whether the coroutine is all that its loop runs: `asyncio.run(main())`, and it starts no task."""
    function = site.function
    if function is None or any(_last(call.func) in _TASKS for call in function.calls):
        return False
    seen: set[Scope] = set()
    while function is not None and function not in seen:
        seen.add(function)
        callers = site.module.callers(function)
        if len(callers) != 1:
            return False
        call, scope = callers[0]
        parent = site.module.walker.parents.get(call)
        if isinstance(parent, ast.Call) and re.search(r"(^|_)run($|_)", _last(parent.func)):
            return True
        function = scope.enclosing_function() if isinstance(parent, ast.Await) else None
    return False


_TASKS = frozenset({"create_task", "ensure_future", "gather", "TaskGroup", "to_thread", "run_in_executor", "wait"})


def _last(func: ast.expr) -> str:
    return func.attr if isinstance(func, ast.Attribute) else func.id if isinstance(func, ast.Name) else ""


_HELPER = "deadlint_budget.run"


# --- repairing -------------------------------------------------------------------------------------------------


def _remedy(site: Site) -> str:
    if site.name == SLEEP:
        return "await `asyncio.sleep` instead"
    if site.name.startswith("subprocess.") or site.name == "os.system":
        budget = f", budget={site.budget}" if site.budget else ""
        return f"`await {site.module.settings.helpers}.run_async(…{budget})`, which the limit stops"
    return "await an asynchronous client, or a thread whose work has a limit of its own"


def _fix(site: Site) -> Fix | None:
    # Inside a function that is not a coroutine there is nothing to await with.
    if not is_coroutine(site.function) or site.target.partial is not None:
        return None
    if any(isinstance(node, ast.GeneratorExp | ast.JoinedStr) for node in site.ancestors()):
        return None  # `await` would make another kind of generator
    if site.name == SLEEP:
        return _to_async_sleep(site)
    return _to_run_async(site) if site.name in ("subprocess.run", _HELPER) else None


def _to_async_sleep(site: Site) -> Fix | None:
    module = _asyncio(site)
    if module is None or not isinstance(site.parent, ast.Expr) or site.call.keywords:
        return None
    source = site.module.source
    start, end = source.extent(site.call.func)
    return Fix(f"`await {module}.sleep(…)`", Safety.UNSAFE, (Edit(start, end, f"await {module}.sleep"),))


def _asyncio(site: Site) -> str | None:
    """The name under which the file has `asyncio` at this place."""
    name = ast.copy_location(ast.Name("asyncio", ast.Load()), site.call)
    return "asyncio" if site.values(name) == (External("asyncio"),) else None


def _to_run_async(site: Site) -> Fix | None:
    call = site.call
    if _asyncio(site) is None or len(call.args) > 1 or any(isinstance(a, ast.Starred) for a in call.args):
        return None
    limit = site.argument("timeout").node
    keywords, constants = bounds(site, site.source(limit) if limit is not None else None)
    # Under a limit of asyncio the helper needs none of its own: it stops the tree when it is cancelled.
    enough = limit is None and not site.budget and next(around(site), None) is not None
    if enough or site.name == _HELPER:
        keywords, constants = [], ()
    name, wanted = site.helper("run_async")
    rename: dict[str, tuple[str, str | None]] = {"timeout": keywords[-1]} if limit is not None and keywords else {}
    node = rewritten(parse_call(site.module.source, call), function=name, rename=rename, add=keywords)
    edit = replace_call(site.module.source, call, node)
    start, end = site.module.source.extent(call)
    opening, closing = ("await ", "") if _stands_alone(site) else ("(await ", ")")
    text = site.module.source.text
    inner = text[start : edit.start] + edit.text + text[edit.end : end]
    safety = Safety.DISPLAY if site.spread else Safety.UNSAFE
    whole = Edit(start, end, f"{opening}{inner}{closing}")
    return Fix(f"`await {name}(…)`, which the limit stops", safety, (whole,), (wanted,), constants)


def _stands_alone(site: Site) -> bool:
    """Whether `await` in front of the call needs no parentheses."""
    return isinstance(site.parent, ast.Expr | ast.Assign | ast.AnnAssign | ast.Return)
