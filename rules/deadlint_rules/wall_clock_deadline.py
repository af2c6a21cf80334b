"""DL409: a deadline, or the time since a start, that is measured with the wall clock."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from deadlint.model import Edit, Fix, Import, Level, Safety
from deadlint.rule import Rule
from deadlint.site import Report, Site

from deadlint_rules._wall_clock import CLOCKS, Clock, Kind, Use, clock_of

_LIMIT = re.compile(
    r"timeout|timed_?out|deadline|time_?limit|max_?wait|wait_?time|wait_?for|max_?time|max_?duration|give_?up|until"
    r"|stop_?time|end_?time|time_?left|remaining",
    re.IGNORECASE,
)
_NEXT = re.compile(r"(^|_)(next|retry)(_|$)", re.IGNORECASE)
_SHOWING = frozenset(
    {
        "print",
        "debug",
        "info",
        "warning",
        "error",
        "exception",
        "trace",
        "log",
        "str",
        "repr",
        "format",
        "fromtimestamp",
    }
)
_ORDER = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)


class WallClockDeadline(Rule):
    """A deadline, or the time since a start, that is measured with the wall clock.

    ## What it does
    Follows `time.time()`, `datetime.now()`, `datetime.utcnow()` and Django's `timezone.now()` to where they bound
    something: `deadline = time.time() + limit` that is later compared with the time, `time.time() - start > limit`,
    and the time that is left of such a deadline. A point in time that is stored, shown, compared with a file's time
    or handed to another program is left alone, and so is what only paces progress reports or refreshes a cache.
    Strict: where nothing shows what the comparison is for but a name.

    ## Why it is bad
    The wall clock is set: by NTP, by an administrator, when a virtual machine goes on after a pause, and with local
    datetimes twice a year. A deadline on it then comes early, hours late, or never. `time.monotonic()` only goes
    forward; on Linux all processes of one boot share it (checked), so even a deadline that crosses to a child process
    holds. Across hosts it means nothing: a deadline of 60 s read as 2,587,917 s on one and as -3,983 s on another,
    so hand the remaining seconds over there.

    ## Example
    ```python
    import time


    def wait_for(path, timeout):
        deadline = time.time() + timeout
        while time.time() < deadline:
            if path.exists():
                return True
            time.sleep(1)
        return False
    ```

    ## Use instead
    ```python
    import time


    def wait_for(path, timeout):
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            if path.exists():
                return True
            time.sleep(1)
        return False
    ```

    ## Fix safety
    Safe: `time.time()` becomes `time.monotonic()` where every use of the deadline or start is in the same function
    and is nothing but a comparison with, or a difference from, another such reading. There is no fix for datetimes,
    for attributes, and where the point in time is used in any other way.

    ## Options
    None.

    ## References
    - [time.monotonic](https://docs.python.org/3/library/time.html#time.monotonic)
    - [PEP 418](https://peps.python.org/pep-0418/)
    """

    code = "DL409"
    name = "wall-clock-deadline"
    since = "0.1.0"
    calls = CLOCKS
    words = (
        *(
            ("time.time()", limit)
            for limit in (
                "timeout", "timed_out", "deadline", "time_limit", "max_wait", "wait_time", "max_time", "end_time",
                "stop_time", "until",
            )
        ),
        *((f"time.time() {sign}", "while ") for sign in "-<>"),
        *((f"{sign} time.time()", "while ") for sign in "<>"),
        ("import time", "deadline"),  # also of another module that hands it on
        ("from time import", "timeout"),
        *(
            (reading, limit)
            for reading in ("datetime.now(", "utcnow(", "timezone.now(")
            for limit in ("timeout", "timed_out", "deadline", "max_wait", "wait_time", "stop_time")
        ),
    )  # fmt: skip

    also = (("time",), ("now(",), ("datetime",))

    def check(self, site: Site) -> Iterator[Report]:
        if site.call.args and site.name == "time.time":
            return
        clock = clock_of(site.module)
        found = _role(site, clock)
        if found is None:
            return
        what, remedy = _words(site, found)
        yield site.report(what, remedy, level=found.level, fix=partial(_fix, site, clock, found.name))


@dataclass(frozen=True, slots=True)
class _Found:
    """A limit that rests on a reading: the name that holds the deadline or start, and how sure that is."""

    name: ast.Name | ast.Attribute | None
    level: Level
    deadline: bool


def _words(site: Site, found: _Found) -> tuple[str, str]:
    reading = f"`{site.source(site.call)}`"
    name = f" `{ast.unparse(found.name)}`" if found.name is not None else ""
    what = f"the deadline{name} is" if found.deadline else f"the time since{name or ' the start'} is"
    remedy = (
        "read `time.monotonic()` instead, both times"
        if site.name == "time.time"
        else "read `time.monotonic()` instead, both times, and count in seconds"
    )
    return (
        f"{what} measured with the wall clock ({reading}): where the clock is set, the limit comes early, late or"
        " never",
        remedy,
    )


def _role(site: Site, clock: Clock) -> _Found | None:
    """What the reading bounds, where it is the one to report: a deadline where it is made, a span where it ends."""
    use = clock.use(site.call, Kind.POINT)
    match use.node:
        case ast.Compare():
            return _compared(use, clock)
        case (
            ast.Assign(targets=[ast.Name() | ast.Attribute() as target])
            | ast.AnnAssign(target=ast.Name() | ast.Attribute() as target)
        ):
            return _named(target, use.kind, clock)
    return None


# --- a span or an inline deadline that is compared where it is measured ----------------------------------------


def _compared(use: Use, clock: Clock) -> _Found | None:
    """`now - start > limit`, `now > start + limit`, `now - limit > start`."""
    compare = use.node
    assert isinstance(compare, ast.Compare)
    if len(compare.ops) != 1 or not isinstance(compare.ops[0], _ORDER):
        return None
    other = compare.comparators[0] if use.expression is compare.left else compare.left
    scope = clock.scope_at(compare)
    match use.kind:
        case Kind.SPAN:
            start, limit = _start(use.expression, clock), other
        case Kind.POINT if isinstance(other, ast.BinOp) and clock.kind(other, scope) is Kind.DEADLINE:
            start, limit = _start(other, clock), other
        case Kind.CUT_OFF if clock.kind(other, scope) is Kind.POINT and isinstance(other, ast.Name | ast.Attribute):
            start, limit = other, use.expression
        case _:
            return None
    if start is None or _rests_on_a_deadline(start, clock):
        return None
    return _judged(compare, start, limit, clock, deadline=False)


def _start(expression: ast.expr, clock: Clock) -> ast.Name | ast.Attribute | None:
    """The name that holds the start (or the deadline) in an expression that measures from it."""
    scope = clock.scope_at(expression)
    names = (n for n in ast.walk(expression) if isinstance(n, ast.Name | ast.Attribute))
    for node in names:
        if clock.kind(node, scope) in (Kind.POINT, Kind.DEADLINE) and not _is_left(node, expression):
            return node
    return None


def _is_left(node: ast.expr, expression: ast.expr) -> bool:
    """Whether a name is what something is subtracted from in `expression`: the present, not the start."""
    return any(isinstance(n, ast.BinOp) and isinstance(n.op, ast.Sub) and n.left is node for n in ast.walk(expression))


def _rests_on_a_deadline(name: ast.Name | ast.Attribute, clock: Clock) -> bool:
    """Whether the name is a deadline, which is reported where it is made."""
    return clock.kind(name, clock.scope_at(name)) is Kind.DEADLINE


# --- a name that holds a reading -------------------------------------------------------------------------------


def _named(target: ast.Name | ast.Attribute, kind: Kind, clock: Clock) -> _Found | None:
    """What the name of a reading bounds, over all its uses: the surest."""
    match target, kind:
        case ast.Name(), Kind.POINT:
            found = list(_present(target, clock))
        case _, Kind.DEADLINE:
            found = list(_deadline(target, clock))
        case ast.Name(), Kind.SPAN:
            found = [_judged_span(use, target, clock) for use in _uses(target, Kind.SPAN, clock)]
        case _:
            return None
    known = [f for f in found if f is not None]
    return min(known, key=lambda f: f.level is Level.STRICT, default=None)


def _uses(target: ast.Name | ast.Attribute, kind: Kind, clock: Clock) -> Iterator[Use]:
    if isinstance(target, ast.Name):
        for name in clock.loads(target, clock.scope_at(target)):
            if clock.kind(name, clock.scope_at(name)) is kind:
                yield clock.use(name, kind)
    else:
        for attribute in clock.attribute_loads(target.attr):
            yield clock.use(attribute, kind)


def _present(target: ast.Name, clock: Clock) -> Iterator[_Found | None]:
    """`now = time.time()` that is compared later, and `start = now()` of which a deadline is made later."""
    for use in _uses(target, Kind.POINT, clock):
        match use:
            case Use(kind=Kind.SPAN, node=ast.Compare(), spans=[ast.BinOp(left=left), *_]) if _holds(left, target):
                yield _compared(use, clock)
            case Use(kind=Kind.SPAN, node=ast.Assign(targets=[ast.Name() as span]), spans=[ast.BinOp(left=left), *_]):
                if _holds(left, target):
                    yield from (_judged_span(u, span, clock) for u in _uses(span, Kind.SPAN, clock))
            case Use(kind=Kind.POINT, node=ast.Compare() as compare) if len(compare.ops) == 1:
                other = compare.comparators[0] if use.expression is compare.left else compare.left
                if isinstance(other, ast.BinOp):
                    yield _compared(use, clock)
            case Use(kind=Kind.DEADLINE, node=ast.Assign(targets=[ast.Name() as deadline])):
                # One deadline is one finding: where it is also made of a reading itself, that is the place.
                if clock.latest(target, use.expression) and not clock.made_of_reading(deadline):
                    yield from _deadline(deadline, clock)


def _holds(expression: ast.expr, target: ast.Name) -> bool:
    return any(isinstance(n, ast.Name) and n.id == target.id for n in ast.walk(expression))


def _deadline(target: ast.Name | ast.Attribute, clock: Clock) -> Iterator[_Found | None]:
    """A deadline that is compared with the time, or of which the time left is taken."""
    name = target.id if isinstance(target, ast.Name) else target.attr
    uses = list(_uses(target, Kind.DEADLINE, clock))
    if any(_sent_elsewhere(use) for use in uses):
        return
    for use in uses:
        scope = clock.scope_at(use.expression)
        match use:
            case Use(kind=Kind.DEADLINE, node=ast.Compare(ops=[op], left=left, comparators=[right]) as compare):
                other = right if use.expression is left else left
                if isinstance(op, _ORDER) and clock.is_now(other, scope):
                    yield _judged(compare, target, use.expression, clock, deadline=True)
            case Use(kind=Kind.SPAN, spans=[ast.BinOp(right=right), *_], node=node) if clock.is_now(right, scope):
                if isinstance(node, ast.Compare):
                    yield _judged(node, target, use.expression, clock, deadline=True)
                elif isinstance(target, ast.Name) or _LIMIT.search(name):
                    yield _Found(target, _hinted(target, use.expression), deadline=True)


def _sent_elsewhere(use: Use) -> bool:
    """Whether a point in time is handed to something that is not known to only show it, and may want the wall clock."""
    if use.kind is not Kind.DEADLINE or not isinstance(use.expression, ast.Name | ast.Attribute):
        return False
    match use.node:
        case ast.keyword():
            return True
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
            return name not in _SHOWING
    return False


def _hinted(target: ast.Name | ast.Attribute, expression: ast.expr) -> Level:
    return Level.DEFAULT if _LIMIT.search(f"{ast.unparse(target)} {ast.unparse(expression)}") else Level.STRICT


def _judged_span(use: Use, span: ast.Name, clock: Clock) -> _Found | None:
    """A span that has a name of its own and is compared with a limit."""
    match use.node:
        case ast.Compare(ops=[op], left=left, comparators=[right]) as compare if isinstance(op, _ORDER):
            start: ast.Name | ast.Attribute | None = None
            for binding, _ in clock.bindings(span, clock.scope_at(span)):
                start = start or (_start(binding.value, clock) if binding.value is not None else None)
            if start is None or _rests_on_a_deadline(start, clock):
                return None
            limit = right if use.expression is left else left
            return _judged(compare, start, limit, clock, deadline=False)
    return None


# --- what a comparison is for ----------------------------------------------------------------------------------


def _judged(
    compare: ast.Compare, name: ast.Name | ast.Attribute, limit: ast.expr, clock: Clock, *, deadline: bool
) -> _Found | None:
    """A finding about a comparison that bounds something; None where it paces, refreshes or only asks."""
    text = f"{ast.unparse(name)} {ast.unparse(limit)}"
    hinted = bool(_LIMIT.search(text))
    if _NEXT.search(ast.unparse(name)) or (isinstance(name, ast.Attribute) and not hinted):
        return None
    level = _weight(compare, name, clock, hinted=hinted)
    return None if level is None else _Found(name, level, deadline)


def _weight(compare: ast.Compare, name: ast.Name | ast.Attribute, clock: Clock, *, hinted: bool) -> Level | None:
    """How sure it is that a comparison ends something when time is up."""
    test = clock.test(compare)
    if isinstance(test, ast.While):
        return Level.DEFAULT
    if isinstance(test, ast.If):
        if _sets(test.body, name):
            return None  # it paces something: the start moves on each time
        looped = clock.in_loop(test)
        ends = _ends(test.body) or _ends(test.orelse)
        if looped and (ends or hinted):
            return Level.DEFAULT
        if hinted and isinstance(test.body[-1], ast.Raise):
            return Level.DEFAULT
    return Level.STRICT if hinted else None


def _ends(body: list[ast.stmt]) -> bool:
    return bool(body) and isinstance(body[-1], ast.Raise | ast.Break | ast.Return)


def _sets(body: list[ast.stmt], name: ast.Name | ast.Attribute) -> bool:
    wanted = ast.unparse(name)
    return any(
        isinstance(n, ast.Name | ast.Attribute) and isinstance(n.ctx, ast.Store) and ast.unparse(n) == wanted
        for statement in body
        for n in ast.walk(statement)
    )


# --- the fix ---------------------------------------------------------------------------------------------------


def _fix(site: Site, clock: Clock, name: ast.Name | ast.Attribute | None) -> Fix | None:
    """`time.time()` → `time.monotonic()`, for the name's bindings and all that it is compared with."""
    if site.name != "time.time" or not isinstance(name, ast.Name):
        return None
    readings = _readings(name, clock)
    if readings is None or site.call not in readings:
        return None
    edits: list[Edit] = []
    imports: set[Import] = set()
    for call in readings:
        start, end = site.module.source.extent(call.func)
        match call.func:
            case ast.Attribute(value=ast.Name()) if site.source(call.func).endswith(".time"):
                edits.append(Edit(end - len("time"), end, "monotonic"))
            case ast.Name(id="time") if "monotonic" not in site.module.bound_names:
                edits.append(Edit(start, end, "monotonic"))
                imports.add(Import("time", "monotonic"))
            case _:
                return None
    ordered = tuple(sorted(edits, key=lambda e: e.start))
    return Fix("measure with the monotonic clock", Safety.SAFE, ordered, imports=tuple(imports))


def _readings(name: ast.Name, clock: Clock) -> list[ast.Call] | None:
    """Every reading that the name is made of or measured against; None where it is used in any other way."""
    scope = clock.scope_at(name)
    found: list[ast.Call] = []
    for binding, home in clock.bindings(name, scope):
        if home.kind != "function" or binding.kind != "assign" or binding.value is None or binding.index is not None:
            return None
        call = _sole_reading(binding.value, clock)
        if call is None or (binding.value is not call and not isinstance(binding.value, ast.BinOp)):
            return None
        found.append(call)
    for load in clock.loads(name, scope):
        if clock.scope_at(load) is not clock.scope_at(name):
            return None
        call = _measured_against(load, clock)
        if call is None:
            return None
        found.append(call)
    return found or None


def _sole_reading(value: ast.expr, clock: Clock) -> ast.Call | None:
    """The one reading in `time.time()` or `time.time() + limit`."""
    match value:
        case ast.Call() if clock.is_wall_seconds(value):
            return value
        case ast.BinOp(left=ast.Call() as call, op=ast.Add(), right=other) if clock.is_wall_seconds(call):
            return call if not _reads(other, clock) else None
        case ast.BinOp(left=other, op=ast.Add(), right=ast.Call() as call) if clock.is_wall_seconds(call):
            return call if not _reads(other, clock) else None
    return None


def _reads(node: ast.expr, clock: Clock) -> bool:
    """Whether something else in an expression may be a point in time."""
    scope = clock.scope_at(node)
    return any(isinstance(n, ast.expr) and clock.kind(n, scope) in (Kind.POINT, Kind.DEADLINE) for n in ast.walk(node))


def _measured_against(load: ast.Name, clock: Clock) -> ast.Call | None:
    """The reading that a start or deadline is subtracted from or compared with, directly."""
    match clock.parent(load):
        case ast.BinOp(left=one, op=ast.Sub(), right=two):
            other = two if one is load else one
        case ast.Compare(left=one, ops=[op], comparators=[two]) if isinstance(op, _ORDER):
            other = two if one is load else one
        case _:
            return None
    return other if isinstance(other, ast.Call) and clock.is_wall_seconds(other) else None
