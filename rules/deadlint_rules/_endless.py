"""Where a function waits for a child without end: bare waits, poll loops, pipes that are read to their end."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from deadlint.index.scopes import Block, dotted
from deadlint.index.values import Member, Result
from deadlint.site import Site

from deadlint_rules._kill_paths import Names, alive_test, names_in
from deadlint_rules._processes import ASYNC, POPEN, Child, Start, called_functions, called_names, child_of, same_child

if TYPE_CHECKING:
    pass

_PIPES = ("stdout", "stderr")
_READS = frozenset({"read", "readline", "readlines", "readuntil", "readexactly", "__iter__"})
Place = ast.expr | ast.stmt


@dataclass(frozen=True, slots=True)
class Endless:
    """A place where a function waits, perhaps for ever. `what` says how."""

    node: Place
    what: str
    to_end: bool = True  # the child has closed its pipe or ended when this is over


# --- reaping ---------------------------------------------------------------------------------------------------


def is_reaping(site: Site, child: Child) -> bool:
    """Whether the child was killed, or came to its end, before a bare `wait` or `communicate`.

    What stands behind a wait with a limit is the business of DL102.
    """
    if not child.key:
        return False
    names = names_in(site.scope, child.key)
    here = _block(site.call, site)
    if _known_ended(site, names):
        return True
    for call in _earlier(site):
        block = _block(call, site)
        if block is not None and here is not None and _apart(block, here):
            continue
        if ends(call, site, child, names):
            return True
    return any(
        e.to_end and _ends_before(e.node, site)
        for e in (*poll_loops(site, child), *pipe_reads(site, child, limited=True))
    )


def _ends_before(node: Place, site: Site) -> bool:
    return (node.end_lineno or node.lineno, 0) <= (site.call.lineno, site.call.col_offset) and node is not site.call


def _earlier(site: Site) -> Iterator[ast.Call]:
    position = (site.call.lineno, site.call.col_offset)
    for call in site.scope.calls:
        if (call.end_lineno or 0, call.end_col_offset or 0) <= position:
            yield call


def _block(node: ast.AST, site: Site) -> Block | None:
    return site.scope.blocks.get(node) or site.scope.blocks.get(site.module.statement(node))


def _apart(one: Block, other: Block) -> bool:
    """Whether two blocks are different branches of one `if` or `match`, or one handler and another."""
    mine = {id(b.node): b for b in one.chain() if b.kind in ("if", "else")}
    for block in other.chain():
        if block.kind in ("if", "else") and id(block.node) in mine:
            return mine[id(block.node)] is not block
    handlers = [b for b in one.chain() if b.kind == "handler"]
    return bool(handlers) and not any(other.within(b) for b in handlers)


_KILLS = re.compile(r"kill|terminate_|_terminate|reap|stop_process|end_process", re.IGNORECASE)


def ends(call: ast.Call, site: Site, child: Child, names: Names) -> bool:
    """Whether a call kills the child or waits until it ended (with a limit: then DL102 says what is wrong)."""
    func = call.func
    if isinstance(func, ast.Attribute) and names.is_child(func.value) and same_child(call, child):
        if func.attr in ("wait", "communicate", "kill"):
            return True
        if func.attr == "send_signal":
            return any(dotted(a).endswith("SIGKILL") for a in call.args)
        if func.attr == "terminate":
            return False
    if not names.mentions(call):
        return _kills_inside(call, site, child)
    name = dotted(func)
    if name in ("os.kill", "os.killpg") or name.endswith((".killpg", ".kill")) or name in ("killpg", "kill"):
        return any("KILL" in dotted(a) for a in call.args[1:]) or not name.startswith("os.") or name == "os.killpg"
    if called_names(site.module, call, site.scope) & {"deadlint_budget.wait", "deadlint_budget.communicate"}:
        return True
    return bool(_KILLS.search(name.rpartition(".")[2])) or _kills_inside(call, site, child)


def _kills_inside(call: ast.Call, site: Site, child: Child) -> bool:
    """Whether a function of the file, a method of the same object above all, kills the child."""
    head, _, rest = child.key.partition(".")
    if (
        isinstance(call.func, ast.Attribute)
        and dotted(call.func.value) not in (head, child.key)
        and not any(dotted(a) == child.key for a in call.args)
    ):
        return False
    for function in called_functions(site.module, call, site.scope):
        if function.owner is not None and not isinstance(call.func, ast.Attribute):
            continue  # the methods of an object that is made here are not called yet
        first = next(function.parameters(), None)
        own = {child.key, *([f"{first.arg}.{rest}"] if first is not None and rest else ())}
        own |= {p.arg for p in function.parameters()} if any(dotted(a) == child.key for a in call.args) else set()
        inner = Names(frozenset(own), frozenset(f"{n}.pid" for n in own))
        for other in function.calls:
            attr = other.func.attr if isinstance(other.func, ast.Attribute) else dotted(other.func)
            if inner.mentions(other) and (attr == "kill" or _KILLS.search(attr)):
                return True
    return False


def _known_ended(site: Site, names: Names) -> bool:
    """Whether the call stands where the child is known to have ended: `if proc.poll() is not None:`."""
    inner: ast.AST = site.call
    for node in site.ancestors():
        if isinstance(node, ast.If):
            alive = alive_test(node.test, names)
            if (alive is False and inner in node.body) or (alive is True and inner in node.orelse):
                return True
        inner = node
    return False


# --- poll loops ------------------------------------------------------------------------------------------------

_CLOCK = re.compile(
    r"timeout|deadline|remaining|elapsed|expire|time_?limit|max_|tries|attempt|retr|count|budget|monotonic|perf_counter",
    re.IGNORECASE,
)


def poll_loops(site: Site, child: Child) -> Iterator[Endless]:
    """The loops of the function that poll the child and never look at a clock."""
    if not child.key:
        return
    names = names_in(site.scope, child.key)
    for statement in site.scope.blocks:
        if isinstance(statement, ast.While) and _polls(statement, names) and not _has_clock(statement, site):
            yield Endless(statement, "it is polled until it ends, with no look at a clock")


def _polls(loop: ast.While, names: Names) -> bool:
    match loop.test:
        case ast.UnaryOp(op=ast.Not(), operand=operand) if _calls_poll(operand, names):
            return True  # it even goes on once the child ended well
    if alive_test(loop.test, names) is True:
        return any(_calls_poll(n, names) for n in ast.walk(loop.test)) or _calls_poll_in(loop, names)
    if not (isinstance(loop.test, ast.Constant) and loop.test.value):
        return False
    exits = [n for n in _own_statements(loop.body) if isinstance(n, ast.Break | ast.Return | ast.Raise)]
    guarded = [
        n for s in _own_statements(loop.body) if isinstance(s, ast.If) and alive_test(s.test, names) is False
        for n in s.body if isinstance(n, ast.Break | ast.Return | ast.Raise)
    ]  # fmt: skip
    return bool(guarded) and len(guarded) == len(exits)


def _calls_poll_in(loop: ast.While, names: Names) -> bool:
    return any(_calls_poll(n, names) for s in loop.body for n in ast.walk(s))


def _calls_poll(node: ast.AST, names: Names) -> bool:
    match node:
        case ast.Call(func=ast.Attribute(value=base, attr="poll")):
            return names.is_child(base)
    return False


def _own_statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a body and those inside of them, other loops' and definitions' left out."""
    for statement in body:
        yield statement
        if isinstance(statement, ast.While | ast.For | ast.AsyncFor | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        for name in ("body", "orelse", "finalbody"):
            yield from _own_statements(getattr(statement, name, []))
        for handler in getattr(statement, "handlers", []):
            yield from _own_statements(handler.body)


def _has_clock(loop: ast.While, site: Site) -> bool:
    """Whether a loop looks at a clock, counts its turns, or ends the child itself."""
    for node in ast.walk(loop):
        match node:
            case ast.Call(func=func):
                names = called_names(site.module, node, site.scope)
                if any(n.startswith(("time.", "datetime.")) and n != "time.sleep" for n in names):
                    return True
                attr = func.attr if isinstance(func, ast.Attribute) else dotted(func)
                if attr in ("kill", "terminate", "killpg", "send_signal", "is_set", "check") or "kill" in attr:
                    return True
            case ast.Name(id=name) | ast.Attribute(attr=name) if _CLOCK.search(name):
                return True
            case ast.AugAssign(op=ast.Add(), value=ast.Constant(value=int())):
                return True
    return False


# --- pipes -----------------------------------------------------------------------------------------------------

_READY = frozenset(
    {
        "select.select", "select.poll", "selectors.DefaultSelector", "os.set_blocking", "fcntl.fcntl",
        "select.epoll", "selectors.SelectSelector",
    }
)  # fmt: skip


def pipe_reads(site: Site, child: Child, *, limited: bool = False) -> Iterator[Endless]:
    """The places of the function that read a pipe of the child until something is said or it is closed.

    With `limited` also those that something else bounds.
    """
    if not child.key or not _own_business(site, child) or (_watched(site) and not limited):
        return
    names = names_in(site.scope, child.key)
    loops = [e.node for e in poll_loops(site, child)]
    for statement in site.scope.blocks:
        if (
            isinstance(statement, ast.For | ast.AsyncFor)
            and _reads_pipe(statement.iter, names, site)
            and not _inside(statement, loops, site)
            and not _after_end(statement, site, child, names)
        ):
            yield Endless(statement, "its output is read until the pipe is closed")
    for call in site.scope.calls:
        if not _is_read(call, names) or _inside(call, loops, site) or _after_end(call, site, child, names):
            continue
        in_head = any(isinstance(a, ast.For) and call in ast.walk(a.iter) for a in site.module.ancestors(call))
        if not in_head and (limited or not _is_waited_for(call, site)):
            yield Endless(call, "its output is read without a limit", to_end=_reads_all(call, site))


def _is_waited_for(call: ast.Call, site: Site) -> bool:
    """Whether a read is handed to `wait_for`, which bounds it."""
    parent = site.module.walker.parents.get(call)
    return isinstance(parent, ast.Call) and dotted(parent.func).rpartition(".")[2] == "wait_for"


def _own_business(site: Site, child: Child) -> bool:
    """Whether the function runs the child from start to end: it made it, or it waits for it as well."""
    head, _, rest = child.key.partition(".")
    function = site.function
    home = site.module.resolver.scope_binding(head, site.scope)
    if home is not (function or site.module.scope):
        return False
    if not rest and (function is None or head not in {p.arg for p in function.parameters()}):
        return True
    names = names_in(site.scope, child.key)
    return any(
        isinstance(c.func, ast.Attribute) and c.func.attr in ("wait", "communicate") and names.is_child(c.func.value)
        for c in site.scope.calls
    )


def _watched(site: Site) -> bool:
    """Whether the function reads only what is ready, or has someone who kills the child in time."""
    return any(
        called_names(site.module, call, site.scope) & (_READY | {"threading.Timer"})
        or dotted(call.func).endswith("call_later")
        for call in site.scope.calls
    )


def _reads_pipe(node: ast.expr, names: Names, site: Site) -> bool:
    """Whether a loop runs over the lines of a pipe: `proc.stdout`, `iter(proc.stdout.readline, b"")`, a wrapper."""
    match node:
        case ast.Attribute(value=base, attr=attr) if attr in _PIPES and names.is_child(base):
            return True
        case ast.Call(func=ast.Name(id="iter" | "enumerate" | "reversed" | "map" | "filter"), args=args):
            return any(_reads_pipe(a, names, site) for a in args)
        case ast.Attribute(value=pipe, attr=attr) | ast.Call(func=ast.Attribute(value=pipe, attr=attr)) if (
            attr in _READS
        ):
            return _reads_pipe(pipe, names, site)
        case ast.Call(args=[first, *_]) if dotted(node.func).rpartition(".")[2] in (
            "TextIOWrapper",
            "getreader",
            "tqdm",
            "open",
        ):
            return _reads_pipe(first, names, site)
        case ast.Name():
            return any(
                isinstance(v, Member) and v.name.endswith((".Popen.stdout", ".Process.stdout"))
                and isinstance(v.receiver, Result)
                for v in site.values(node)
            )  # fmt: skip
    return False


def _is_read(call: ast.Call, names: Names) -> bool:
    match call.func:
        case ast.Attribute(value=ast.Attribute(value=base, attr=pipe), attr=attr):
            return pipe in _PIPES and attr in _READS and names.is_child(base)
    return False


def _reads_all(call: ast.Call, site: Site) -> bool:
    """Whether a read goes on until the pipe is closed: `read()`, or one in a loop."""
    attr = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    in_loop = any(isinstance(a, ast.While | ast.For) for a in site.module.ancestors(call))
    return in_loop or attr == "readlines" or (attr == "read" and not call.args)


def _inside(node: ast.AST, loops: list[Place], site: Site) -> bool:
    return any(a in loops for a in site.module.ancestors(node))


def _after_end(node: Place, site: Site, child: Child, names: Names) -> bool:
    """Whether the child was killed or waited for before its pipe is read."""
    position = (node.lineno, node.col_offset)
    block = _block(node, site)
    for call in site.scope.calls:
        if (call.end_lineno or 0, call.end_col_offset or 0) <= position:
            other = _block(call, site)
            if other is not None and block is not None and _apart(other, block):
                continue
            if ends(call, site, child, names):
                return True
    if any(_before(e.node, position) for e in poll_loops(site, child)):
        return True
    guard: ast.AST = node
    for around in site.module.ancestors(node):
        if isinstance(around, ast.If) and guard in around.body and _asks_end(around.test, names):
            return True
        guard = around
    return False


def _asks_end(test: ast.expr, names: Names) -> bool:
    return any(
        isinstance(n, ast.Attribute) and n.attr in ("returncode", "poll") and names.is_child(n.value)
        for n in ast.walk(test)
    )


def _before(node: Place, position: tuple[int, int]) -> bool:
    return (node.end_lineno or node.lineno, node.end_col_offset or 0) <= position


def children_in(site: Site) -> Iterator[Child]:
    """The child that a site is about; for a constructor, under each name that it is bound to in the function."""
    if site.name.startswith((f"{POPEN}.", f"{ASYNC}.")):
        child = child_of(site)
        yield Child(site, _without_pipe(child.key), child.constructors)
        return
    for name, bindings in site.scope.bindings.items():
        if any(_holds(b.value, site.call) for b in bindings):
            yield Child(site, name, (Start(site.call, site.scope),))


def _without_pipe(key: str) -> str:
    head, _, last = key.rpartition(".")
    return head if last in _PIPES else key


def _holds(value: ast.expr | None, call: ast.Call) -> bool:
    return value is call or (isinstance(value, ast.Await) and value.value is call)


def chained_read(site: Site) -> Endless | None:
    """The read of a pipe of a child that has no name: `Popen(…).stdout.read()`, `for line in Popen(…).stdout`."""
    if site.name != POPEN:
        return None
    parents = site.module.walker.parents
    pipe = parents.get(site.call)
    if not isinstance(pipe, ast.Attribute) or pipe.attr not in _PIPES:
        return None
    match parents.get(pipe):
        case ast.For() as loop if loop.iter is pipe:
            return Endless(loop, "its output is read until the pipe is closed")
        case ast.Attribute(attr=attr) as method if attr in _READS:
            call = parents.get(method)
            return Endless(call, "its output is read without a limit") if isinstance(call, ast.Call) else None
    return None
