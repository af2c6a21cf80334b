"""The fixes of DL505: a limit for what is done because one is over."""

from __future__ import annotations

import ast

from deadlint.model import Constant, Edit, Fix, Import, Safety
from deadlint.region import parse_call, replace_call, rewritten
from deadlint.site import Site

from deadlint_rules._limits import budget_above
from deadlint_rules._processes import RUNS

_JOINS = frozenset({"threading.Thread.join", "multiprocessing.Process.join"})


def to_bounded(site: Site) -> Fix | None:
    """The clean-up with time of its own; None where what comes out of it would be something else."""
    if any(isinstance(a, ast.Starred) for a in site.call.args):
        return None
    if site.name in RUNS or site.name == "os.system":
        return _to_run(site)
    if site.name in _JOINS and not site.call.args and not site.call.keywords:
        return _to_timed_join(site)
    if site.name.endswith("Executor.shutdown") and not site.value_used:
        return _to_shutdown(site)
    return None


def _constant(site: Site) -> Constant:
    return Constant(*site.module.settings.constants.cleanup)


def _to_run(site: Site) -> Fix | None:
    call = site.call
    if len(call.args) > 1:
        return None
    above = budget_above(site)
    if above is not None and above[0] is None:
        return None  # a caller's budget is the one to extend: it must be handed down first
    constant = _constant(site)
    kind = site.name.rpartition(".")[2]
    name, wanted = site.helper("check_output" if kind == "check_output" else "run")
    imports: tuple[Import, ...] = (wanted,)
    if site.budget:
        budget = f"{site.budget}.cleanup({constant.name})"
    else:
        maker, needed = site.helper("Budget")
        budget = f'{maker}.of({constant.name}, "cleanup")'
        imports = (wanted, needed)
    add = [("budget", budget)]
    if kind == "check_call":
        add.append(("check", "True"))
    if kind == "system":
        add.insert(0, ("shell", "True"))
    node = rewritten(parse_call(site.module.source, call), function=name, add=add)
    suffix = ".returncode" if kind in ("call", "check_call", "system") and site.value_used else ""
    edit = replace_call(site.module.source, call, node, suffix)
    odd = site.spread or (kind == "system" and site.value_used)
    safety = Safety.DISPLAY if odd else Safety.UNSAFE
    return Fix(f"call `{name}(…)` with {constant.value} s of its own", safety, (edit,), imports, (constant,))


def _to_timed_join(site: Site) -> Fix:
    constant = _constant(site)
    limit = f"{site.budget}.cleanup({constant.name}).remaining()" if site.budget else constant.name
    _, end = site.module.source.extent(site.call)
    edit = Edit(end - 1, end - 1, limit)
    return Fix(f"wait for {constant.value} s at most", Safety.UNSAFE, (edit,), (), (constant,))


def _to_shutdown(site: Site) -> Fix:
    start, end = site.module.source.extent(site.call)
    _, function = site.module.source.extent(site.call.func)
    edit = Edit(function, end, "(wait=False, cancel_futures=True)")
    assert start < function
    return Fix("leave what runs to its own limit", Safety.UNSAFE, (edit,))
