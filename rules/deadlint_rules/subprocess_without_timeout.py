"""DL103: a child process that nothing bounds."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from deadlint.index.flow import takes_kwargs
from deadlint.index.scopes import Scope, dotted
from deadlint.index.values import Const, External, Function
from deadlint.model import Fix, Level
from deadlint.rule import Rule
from deadlint.site import PROJECT, Report, Site

from deadlint_rules._endless import Endless, chained_read, children_in, is_reaping, pipe_reads, poll_loops
from deadlint_rules._kill_paths import Names
from deadlint_rules._process_owners import handed_over
from deadlint_rules._process_repairs import limit_parameter, to_run, to_shell_run, to_wait
from deadlint_rules._processes import (
    ASYNC,
    POPEN,
    RUNS,
    Child,
    Given,
    Start,
    called_names,
    child_of,
    commands_of,
    in_wrapper,
    limit_given,
    meaningful_bound,
    site_at,
    stopped_by_signal,
)
from deadlint_rules._programs import Commands, commands
from deadlint_rules._unbounded_cleanups import unbounded_cleanup

_WAITS = frozenset(f"{kind}.{name}" for kind in (POPEN, ASYNC) for name in ("wait", "communicate"))
_READS = frozenset(f"{pipe}.{read}" for pipe in ("stdout", "stderr") for read in ("read", "readline", "readlines"))
_LOOKS = frozenset({POPEN, "asyncio.create_subprocess_exec", "asyncio.create_subprocess_shell"}) | {
    f"{kind}.{name}" for kind in (POPEN, ASYNC) for name in ("poll", "kill", "terminate", *_READS)
}
_OTHERS = frozenset({"os.system", "os.popen", "subprocess.getoutput", "subprocess.getstatusoutput"})
_SPAWNS = frozenset(f"os.spawn{end}" for end in ("l", "le", "lp", "lpe", "v", "ve", "vp", "vpe"))


class SubprocessWithoutTimeout(Rule):
    """Nothing bounds a child process: whoever waits for it may wait for ever.

    ## What it does
    Finds `subprocess.run`, `call`, `check_call`, `check_output`, `getoutput`, `os.system`, `os.popen` and `os.spawn*`
    without a limit; bare `wait()` and `communicate()`, also of asyncio's children with no `wait_for` or `timeout`
    around them; loops that poll a child and never look at a clock; and pipes that are read to their end. A wait right
    after a kill, or after the child has ended, only reaps. A program that ends by itself (`timeout 60 …`, `ping -w 5`,
    `curl --max-time 30`), an alarm around the call, or a timer that kills the child bound it too; `curl
    --connect-timeout` and `wget --timeout` do not.

    Reported by default where the program is known to run long (`long-running`), or where a limit, a timeout parameter
    or a budget around the call shows that somebody relies on its end; at the strict level elsewhere.

    ## Why it is bad
    When an upstream hangs, the child hangs, and so do its worker and the flow: a `gdalwarp` on a remote raster waited
    for a silent server for more than 900 s (measured) and would have gone on. An orchestrator marks the task failed at
    its own limit, while the child keeps its memory and its locks, and starts a second one beside it. A limit behind a
    loop over the child's output is never reached while the pipe is open.

    ## Example
    ```python
    import subprocess

    subprocess.run(["gdalwarp", "a.tif", "b.tif"], check=True)
    ```

    ## Use instead
    ```python
    from deadlint_budget import run

    PROCESS_LIMIT_S = 3600

    run(["gdalwarp", "a.tif", "b.tif"], check=True, want=PROCESS_LIMIT_S)
    ```

    ## Fix safety
    Unsafe: there is a limit where there was none. A budget in scope is passed on, else a parameter `timeout`, else the
    limit is a named constant, below a tighter limit around it a fifth shorter than that.
    The helper gives the child a session of its own and, for `run`, no standard input unless told otherwise. Only shown
    where arguments come in a `**mapping`, where a handler would swallow the expiry, and for `os.system` where its
    status is used, which is encoded otherwise.
    Poll loops, pipes, `os.popen` and asyncio's children are for a person to rewrite.

    ## Options
    - `long-running`: programs that are reported by default.
    - `constants.process`: name and value of the constant that the fix uses.
    - `helpers`: the module that fixed code imports from.

    ## References
    - [subprocess](https://docs.python.org/3/library/subprocess.html)
    - [asyncio subprocesses](https://docs.python.org/3/library/asyncio-subprocess.html)
    """

    code = "DL103"
    name = "subprocess-without-timeout"
    since = "0.1.0"
    calls = RUNS | _WAITS | _LOOKS | _OTHERS | _SPAWNS | {PROJECT}
    words = (
        ("subprocess",),
        ("system(", "os"),
        ("popen(", "os"),
        ("spawn", "os."),
    )

    def concerns(self, function: Scope) -> bool:
        """Only one that hands its `**kwargs` on is a wrapper."""
        return takes_kwargs(function)

    def check(self, site: Site) -> Iterator[Report]:
        if in_wrapper(site):
            return
        if site.name == PROJECT:
            yield from _through_wrapper(site)
        elif site.name in RUNS:
            yield from _run(site)
        elif site.name in _WAITS:
            yield from _wait(site)
        elif site.name in _OTHERS or (site.name in _SPAWNS and _waits_for_spawned(site)):
            yield from _plain(site)
        if site.name in _LOOKS or site.name in _WAITS:
            yield from _hidden(site)


# --- run and its kin -------------------------------------------------------------------------------------------


def _run(site: Site) -> Iterator[Report]:
    given = limit_given(site)
    if given is Given.NO and unbounded_cleanup(site) is None:
        started = commands_of(site)
        if not _bounded(site, started):
            short = site.name.rpartition(".")[2]
            yield _report(site, started, f"`{short}` comes back only when it has ended", lambda: to_run(site, None))


def _through_wrapper(site: Site) -> Iterator[Report]:
    """A call of a function that forwards its `**kwargs` to `run`, where no limit is among them."""
    function = site.target.receiver
    if not isinstance(function, Function) or any(k.arg in (None, "timeout") for k in site.call.keywords):
        return
    inner = _forwarded(function.scope, site)
    if inner is None or stopped_by_signal(site):
        return
    started = _started_through(inner, function, site)
    if not started.bounded:
        yield _report(site, started, f"`{function.scope.name}` comes back only when it has ended", None)


def _forwarded(function: Scope, site: Site) -> Site | None:
    """The `run` to which a function hands its own `**kwargs` with no limit of its own."""
    node = function.node
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or node.args.kwarg is None:
        return None
    name = node.args.kwarg.arg
    if any(p.arg == "timeout" for p in function.parameters()):
        return None
    for call in site.module.resolver.walked(function).calls:
        if any(k.arg is None and isinstance(k.value, ast.Name) and k.value.id == name for k in call.keywords):
            for reached in called_names(site.module, call, function) & RUNS:
                inner = site_at(site.module, call, function, reached)
                if limit_given(inner) is Given.PERHAPS and not in_wrapper(inner):
                    return inner
    return None


def _started_through(inner: Site, function: Function, site: Site) -> Commands:
    """What a wrapper starts for one caller."""
    first = inner.call.args[0] if inner.call.args else None
    settings, resolver = site.module.settings, site.module.resolver
    if isinstance(first, ast.Name):
        argument = resolver.argument_for(function, first.id, site.call)
        if argument is not None:
            return commands(site.values(argument), resolver, settings, shell=False)
    return commands_of(inner)


def _bounded(site: Site, started: Commands) -> bool:
    """Whether a call without a limit ends all the same, or is meant to go on."""
    return started.bounded or stopped_by_signal(site) or _in_the_foreground(site, started)


def _in_the_foreground(site: Site, started: Commands) -> bool:
    """Whether the process hands its own place to the child: `sys.exit(call(…))`, an editor, a pager, a shell."""
    if started.first.program in _INTERACTIVE or _from_environment(site):
        return True
    for node in site.ancestors():
        match node:
            case ast.Call() if _is_exit(node):
                return True
            case ast.Assign(targets=[ast.Name(id=name)]):
                return _exits_with(name, node, site)
            case ast.stmt():
                return False
    return False


def _is_exit(call: ast.Call) -> bool:
    return dotted(call.func) in ("sys.exit", "os._exit", "exit", "SystemExit")


def _exits_with(name: str, statement: ast.stmt, site: Site) -> bool:
    """Whether the next statement ends this process with the child's code."""
    above = site.module.walker.parents.get(statement, site.function.node if site.function else site.module.tree)
    for body in (getattr(above, field, None) for field in ("body", "orelse", "finalbody")):
        if isinstance(body, list) and statement in body[:-1]:
            match body[body.index(statement) + 1]:
                case ast.Expr(value=ast.Call(args=[ast.Name(id=code)]) as call):
                    return code == name and _is_exit(call)
    return False


_INTERACTIVE = frozenset(
    {"vi", "vim", "nano", "emacs", "less", "more", "man", "ssh-copy-id", "htop", "top", "tmux", "screen"}
)


def _from_environment(site: Site) -> bool:
    text = ast.unparse(site.call)
    return any(
        f"environ[{quote}{name}{quote}]" in text for name in ("EDITOR", "SHELL", "PAGER", "VISUAL") for quote in "'\""
    )


# --- waiting ---------------------------------------------------------------------------------------------------


def _wait(site: Site) -> Iterator[Report]:
    method = site.name.rpartition(".")[2]
    is_async = site.name.startswith(ASYNC)
    if is_async:
        if not _awaited_here(site) or any(a.limit.layer == "scope" for a in site.around):
            return
    elif limit_given(site, "timeout", 1 if method == "communicate" else 0) is not Given.NO:
        return
    child = child_of(site)
    if is_reaping(site, child) or _watched(site, child):
        return
    started = child.commands
    if _bounded(site, started):
        return
    asked = _asked(site, child)
    what = f"`{method}()` comes back only when it has ended" + (", and it may ignore SIGTERM" if asked else "")
    fix = None if is_async else lambda: to_wait(site, child, None)
    yield _report(site, started, what, fix, child, cautious=asked)


def _awaited_here(site: Site) -> bool:
    """Whether a coroutine is awaited where it is made, alone or gathered with others, and not under a limit."""
    node: ast.AST = site.call
    parents = site.module.walker.parents
    while (parent := parents.get(node)) is not None:
        match parent:
            case ast.Await():
                return True
            case ast.Call(func=func) if dotted(func).rpartition(".")[2] in ("gather", "shield"):
                node = parent
            case ast.Call(func=func) if dotted(func).rpartition(".")[2] == "wait_for":
                return any(isinstance(a, ast.Constant) and a.value is None for a in parent.args[1:]) or any(
                    k.arg == "timeout" and isinstance(k.value, ast.Constant) and k.value.value is None
                    for k in parent.keywords
                )
            case ast.Starred() | ast.keyword():
                node = parent
            case _:
                return False
    return False


def _watched(site: Site, child: Child) -> bool:
    """Whether a timer, an exit stack or the like ends the child."""
    return bool(child.key) and handed_over(site.module, site.scope, Names(frozenset({child.key})))


def _asked(site: Site, child: Child) -> bool:
    """Whether the child was asked to end before: a shut-down, not work."""
    position = (site.call.lineno, site.call.col_offset)
    for call in site.scope.calls:
        if (
            (call.lineno, call.col_offset) < position
            and isinstance(call.func, ast.Attribute)
            and call.func.attr in ("terminate", "send_signal")
            and dotted(call.func.value) == child.key
        ):
            return True
    return False


def _hidden(site: Site) -> Iterator[Report]:
    """Poll loops and pipes, which no call stands for: found from any call about the same child."""
    if site.scope.kind not in ("function", "module") or stopped_by_signal(site):
        return
    place = chained_read(site)
    if place is not None and not _limited(place, site):
        child = Child(site, "", (Start(site.call, site.scope),))
        if not child.commands.bounded:
            yield _report(site, child.commands, place.what, None, child, place=place)
    for child in children_in(site):
        started = child.commands
        if started.bounded or _watched(site, child):
            continue
        for place in (*poll_loops(site, child), *pipe_reads(site, child)):
            if not _limited(place, site):
                yield _report(site, started, place.what, None, child, place=place)


def _limited(place: Endless, site: Site) -> bool:
    """Whether an asyncio scope around the place ends it."""
    return site.name.startswith("asyncio.") and any(
        a.limit.layer == "scope" for a in site.module.graph.around(place.node, site.scope)
    )


# --- others ----------------------------------------------------------------------------------------------------


def _plain(site: Site) -> Iterator[Report]:
    started = commands_of(site)
    if not _bounded(site, started) and unbounded_cleanup(site) is None:
        fix = (lambda: to_shell_run(site)) if site.name == "os.system" else None
        yield _report(site, started, f"`{site.name}` comes back only when it has ended", fix)


def _waits_for_spawned(site: Site) -> bool:
    mode = site.argument("mode", 0)
    return any(v in (External("os.P_WAIT"), Const(0)) for v in mode.values)


# --- what is said ----------------------------------------------------------------------------------------------


def _report(
    site: Site,
    started: Commands,
    how: str,
    fix: Callable[[], Fix | None] | None,
    child: Child | None = None,
    *,
    place: Endless | None = None,
    cautious: bool = False,
) -> Report:
    bound = meaningful_bound(site)
    first = started.first
    label = first.label if first.program or child is None or not child.key else child.name
    default = (started.long_running or bound is not None) and not cautious
    around = f", though {bound} is around it" if bound is not None else ""
    method, subject = "run_async" if "asyncio." in site.name else "run", "…"
    if child is not None and site.name in _WAITS and site.name.startswith(POPEN) and place is None:
        method, subject = site.name.rpartition(".")[2], child.key or "…"
    want = limit_parameter(site) or site.module.settings.constants.process[0]
    helper = f"budget={site.budget}" if site.budget else f"want={want}"
    return site.report(
        f"nothing bounds {label}{around}: {how}",
        f"give it a limit that stops its whole tree: `{site.module.settings.helpers}.{method}({subject}, {helper})`",
        level=Level.DEFAULT if default else Level.STRICT,
        node=place.node if place is not None else None,
        fix=fix,
    )
