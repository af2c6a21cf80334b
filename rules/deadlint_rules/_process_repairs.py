"""Fixes of the rules about processes: the call goes to a helper that stops the whole tree."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from deadlint.index.scopes import dotted
from deadlint.model import Constant, Edit, Fix, Import, Safety
from deadlint.region import parse_call, replace_call, rewritten, with_keyword_name
from deadlint.site import Site

from deadlint_rules._kill_paths import Names, alive_test, catches_expiry, caught_names
from deadlint_rules._limits import below_around
from deadlint_rules._processes import Child, leads_group, meaningful_bound, same_child
from deadlint_rules._swallowing import swallower

if TYPE_CHECKING:
    import libcst as cst


def bounds(site: Site, limit: str | None) -> tuple[list[tuple[str, str]], tuple[Constant, ...]]:
    """The keywords that bound a helper call, and the constant that they need.

    `limit` is the source of the limit that was there, None where there was none.
    """
    budget = site.budget
    given = [("budget", budget)] if budget else []
    if limit is not None:
        return [*given, ("want", limit)], ()
    if given:
        return given, ()
    parameter = limit_parameter(site)
    if parameter is not None:
        return [("want", parameter)], ()
    constant = _constant(site)
    return [("want", constant.name)], (constant,)


_SECONDS = re.compile(r"timeout(_s|_secs?|_seconds)?")


def limit_parameter(site: Site) -> str | None:
    """A parameter of the function that is a number of seconds for what it does."""
    function = site.function
    for parameter in function.parameters() if function is not None else ():
        kind = ast.unparse(parameter.annotation) if parameter.annotation is not None else "float"
        if _SECONDS.fullmatch(parameter.arg) and set(re.findall(r"\w+", kind)) <= {"int", "float", "None", "Optional"}:
            return parameter.arg if meaningful_bound(site) == f"the parameter `{parameter.arg}`" else None
    return None


def _constant(site: Site) -> Constant:
    """The constant that bounds a process: the configured one, or one of its own below a tighter limit around."""
    return below_around(site, *site.module.settings.constants.process)


def _shown(keywords: Sequence[tuple[str, str]]) -> str:
    """The keywords in a title, on one line."""
    return ", ".join(f"{k}={v if len(v) <= 40 and v.isprintable() else '…'}" for k, v in keywords)


def to_run(site: Site, limit: str | None) -> Fix | None:
    """`run/call/check_call/check_output(…)` as a call of the helper; None where that cannot be written."""
    call = site.call
    if site.target.partial is not None or len(call.args) > 1 or any(isinstance(a, ast.Starred) for a in call.args):
        return None
    keywords, constants = bounds(site, limit)
    kind = site.name.rpartition(".")[2]
    name, wanted = site.helper("check_output" if kind == "check_output" else "run")
    node = _with_bounds(parse_call(site.module.source, call), name, keywords)
    if kind == "check_call":
        node = rewritten(node, add=[("check", "True")])
    suffix = ".returncode" if kind in ("call", "check_call") and site.value_used else ""
    # A limit whose expiry a handler swallows would only hide the fault.
    hidden = site.spread or (limit is None and swallower(site) is not None)
    safety = Safety.DISPLAY if hidden else Safety.UNSAFE
    shown = _shown(keywords)
    edit = replace_call(site.module.source, call, node, suffix)
    return Fix(f"call `{name}(…, {shown})`, which stops the whole tree", safety, (edit,), (wanted,), constants)


def _with_bounds(node: cst.Call, function: str, keywords: Sequence[tuple[str, str]]) -> cst.Call:
    """`node` as a call of `function`, with the first of `keywords` where `timeout` stood, the others at the end."""
    first, *others = keywords
    return rewritten(node, function=function, rename={"timeout": first}, add=[first, *others])


def to_shell_run(site: Site) -> Fix | None:
    """`os.system(command)` as `run(command, shell=True, …)`; only shown where its odd exit status is used."""
    call = site.call
    if len(call.args) != 1 or call.keywords or isinstance(call.args[0], ast.Starred):
        return None
    keywords, constants = bounds(site, None)
    name, wanted = site.helper("run")
    node = rewritten(
        parse_call(site.module.source, call), function=name, add=[("shell", "True"), *keywords]
    )  # fmt: skip
    hidden = site.value_used or swallower(site) is not None
    safety = Safety.DISPLAY if hidden else Safety.UNSAFE
    edit = replace_call(site.module.source, call, node, ".returncode" if site.value_used else "")
    shown = _shown(keywords)
    return Fix(f"call `{name}(…, shell=True, {shown})`", safety, (edit,), (wanted,), constants)


def to_wait(site: Site, child: Child, limit: ast.expr | None) -> Fix | None:
    """`proc.wait(…)` and `proc.communicate(…)` as calls of the helper, and a session for the child.

    After the helper the child is gone and its pipes are closed, so what a handler did to it then is taken out.
    """
    call = site.call
    method = site.name.rpartition(".")[2]
    func = call.func
    if not isinstance(func, ast.Attribute) or site.target.partial is not None:
        return None
    if any(isinstance(a, ast.Starred) for a in call.args) or len(call.args) > (2 if method == "communicate" else 1):
        return None
    source = site.module.source
    keywords, constants = bounds(site, site.source(limit) if limit is not None else None)
    name, wanted = site.helper(method)
    node = _limit_by_keyword(parse_call(source, call), method)
    node = _with_bounds(node, name, keywords)
    node = rewritten(node, prepend=[site.source(func.value)])
    leftover = _leftovers(site, child)
    safety = Safety.DISPLAY if site.spread or leftover is None else Safety.UNSAFE
    edits = [replace_call(source, call, node), *(leftover or ()), *_sessions(site, child)]
    shown = _shown(keywords)
    imports: tuple[Import, ...] = (wanted,)
    title = f"call `{name}({child.key or '…'}, {shown})`, which stops and reaps the tree"
    return Fix(title, safety, tuple(edits), imports, constants)


def _limit_by_keyword(node: cst.Call, method: str) -> cst.Call:
    """A positional limit as a keyword."""
    place = 1 if method == "communicate" else 0
    positional = [a for a in node.args if a.keyword is None and not a.star]
    if len(positional) <= place:
        return node
    args = [with_keyword_name(a, "timeout") if a is positional[place] else a for a in node.args]
    return node.with_changes(args=args)


def _sessions(site: Site, child: Child) -> Iterator[Edit]:
    """`start_new_session=True` for the constructors in this function that say nothing about it."""
    for start in child.starts:
        inside = site.call.lineno <= start.call.lineno <= (site.call.end_lineno or 0) and not child.key
        if (
            start.function is site.function
            and not start.spread
            and not inside
            and leads_group(start) is False
            and start.argument("start_new_session").absent
            and start.name == "subprocess.Popen"
        ):
            node = rewritten(parse_call(site.module.source, start.call), add=[("start_new_session", "True")])
            yield replace_call(site.module.source, start.call, node)


# --- what a handler did to the child ---------------------------------------------------------------------------


def _leftovers(site: Site, child: Child) -> list[Edit] | None:
    """Edits that take out what would fail once the child is gone; None where that is not plain.

    `killpg` of a reaped child is a ProcessLookupError. `communicate` returns what the helper has read.
    """
    names = Names(frozenset({child.key}) if child.key else frozenset(), frozenset({f"{child.key}.pid"}))
    handler = next(_handlers(site), None)
    body = handler.body if handler is not None else []
    removable = [s for s in body if _stops(s, names)]
    if handler is not None and removable and not _about_the_wait(handler, site):
        return None
    for call in site.scope.calls:
        if (call.lineno, call.col_offset) <= (site.call.lineno, site.call.col_offset) or not names.mentions(call):
            continue
        if _harmless(call, site, names) or site.module.statement(call) in removable:
            continue
        if isinstance(call.func, ast.Attribute) and names.is_child(call.func.value) and not same_child(call, child):
            continue
        return None
    return list(_removals(site, body, removable))


def _about_the_wait(handler: ast.ExceptHandler, site: Site) -> bool:
    """Whether nothing but the wait leads into a handler: what else raises would leave the child running."""
    node = site.module.walker.parents[handler]
    alone = isinstance(node, ast.Try | ast.TryStar) and node.body == [site.statement]
    if alone or handler.type is None:
        return alone
    names = caught_names(handler.type, site.module, site.scope)
    return all(name.endswith("TimeoutExpired") for name in names)


def _handlers(site: Site) -> Iterator[ast.ExceptHandler]:
    """The handlers that the expiry of the call reaches."""
    inner: ast.AST = site.call
    for node in site.ancestors():
        if isinstance(node, ast.Try) and inner in node.body:
            found = next((h for h in node.handlers if catches_expiry(h, site.module, site.scope)), None)
            if found is not None:
                yield found
                return
        inner = node


def _stops(statement: ast.stmt, names: Names) -> bool:
    """Whether a statement does nothing but end or reap the child."""
    match statement:
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=base, attr=attr)) as call):
            if names.is_child(base):
                return attr in ("kill", "terminate", "wait", "communicate", "send_signal")
            return attr in ("killpg", "kill") and names.mentions(call) and dotted(base) == "os"
    return False


def _harmless(call: ast.Call, site: Site, names: Names) -> bool:
    """Whether a call may follow the helper: it is skipped once the child is gone, or does nothing then."""
    func = call.func
    if isinstance(func, ast.Attribute) and names.is_child(func.value):
        return True
    if dotted(func) not in ("os.killpg", "os.kill", "os.getpgid"):
        return not dotted(func).startswith(("os.", "psutil."))
    inner: ast.AST = call
    for node in site.module.ancestors(call):
        if isinstance(node, ast.If) and inner in node.body and _only_alive(node.test, names):
            return True
        inner = node
    return False


def _only_alive(test: ast.expr, names: Names) -> bool:
    parts = test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else [test]
    return any(alive_test(part, names) is True for part in parts)


def _removals(site: Site, body: list[ast.stmt], removable: list[ast.stmt]) -> Iterator[Edit]:
    source = site.module.source
    for statement in removable:
        start, end = source.extent(statement)
        line_start = source.line_starts[statement.lineno - 1]
        last = statement.end_lineno or statement.lineno
        line_end = source.line_starts[last] if last < len(source.line_starts) else len(source.text)
        alone = not source.text[line_start:start].strip() and not source.text[end:line_end].strip()
        keep = not alone or (len(removable) == len(body) and statement is removable[-1])
        yield Edit(start, end, "pass") if keep else Edit(line_start, line_end, "")
