"""Fixes of the HTTP rules: the same request through `deadlint_budget.http`, which bounds the whole of it."""

from __future__ import annotations

import ast
from collections.abc import Callable

from deadlint import region
from deadlint.index.values import Const, Mapping
from deadlint.model import Constant, Edit, Fix, Safety
from deadlint.site import Site

from deadlint_rules._http import VERBS
from deadlint_rules._limits import below_around

MakeFix = Callable[[], Fix | None]


def limit(site: Site) -> tuple[str, str, tuple[Constant, ...]]:
    """The keyword and value that bound a helper's call here, and the constant that they need."""
    if site.budget:
        return "budget", site.budget, ()
    constant = below_around(site, *site.module.settings.constants.http)
    return "want", constant.name, (constant,)


def seconds(site: Site) -> tuple[str, tuple[Constant, ...]]:
    """A value for a plain `timeout=` here, and the constant that it needs."""
    if site.budget:
        return f"{site.budget}.slice()", ()
    constant = below_around(site, *site.module.settings.constants.http)
    return constant.name, (constant,)


def remedy(site: Site, *, what: str = "http.get") -> str:
    """What to do, in the words of a message."""
    if site.budget:
        return f"bound the whole request by the budget: `{what}(…, budget={site.budget})` of deadlint_budget"
    return f"bound the whole request: `{what}(…, want={site.module.settings.constants.http[0]})` of deadlint_budget"


def of_requests(site: Site, *, known_seconds: float | None = None) -> MakeFix | None:
    """The request through `http.get` and its kin; None where there is no way to say it so.

    `known_seconds` is the timeout that it has: no total shorter than that is put in its place.
    """
    verb = site.name.rpartition(".")[2]
    if verb not in (*VERBS, "request"):
        return None

    def make() -> Fix | None:
        node = region.parse_call(site.module.source, site.call)
        keyword, value, constants = limit(site)
        helper, wanted = site.helper("http")
        session = _session(site)
        replaced = {"timeout": (keyword, value)} if _is_none(site.call) else {}
        added = [(keyword, value)] if not replaced else []
        if session is not None:
            added.insert(0, ("session", session))
        fixed = region.rewritten(node, function=f"{helper}.{verb}", rename=replaced, add=added)
        return Fix(
            f"send it through `{helper}.{verb}`, over in `{value}` in all",
            _safety(site, known_seconds, constants),
            (region.replace_call(site.module.source, site.call, fixed),),
            (wanted,),
            constants,
        )

    return make


def _session(site: Site) -> str | None:
    """The source of the session that a method call is on; None for the functions of requests."""
    if site.name.startswith("requests.Session.") and isinstance(site.call.func, ast.Attribute):
        return site.source(site.call.func.value)
    return None


def _is_none(call: ast.Call) -> bool:
    return any(
        keyword.arg == "timeout" and isinstance(keyword.value, ast.Constant) and keyword.value.value is None
        for keyword in call.keywords
    )


def _unmeasured_download(site: Site) -> bool:
    """Whether a body is streamed without a budget at hand: the constant for requests would end a long download."""
    streamed = site.argument("stream")
    return site.budget is None and not (streamed.absent or streamed.constant == Const(False))


def _safety(site: Site, known_seconds: float | None, constants: tuple[Constant, ...]) -> Safety:
    if _elsewhere(site) or _hidden(site) or _too_many(site) or _unmeasured_download(site):
        return Safety.DISPLAY
    if constants and known_seconds is not None and known_seconds > _number(constants[0].value):
        return Safety.DISPLAY
    return Safety.UNSAFE


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0


def _elsewhere(site: Site) -> bool:
    """Whether the call does not say itself what is called: a partial, `getattr`, one of several things."""
    if site.target.partial is not None or len({t.name for t in site.targets}) > 1:
        return True
    match site.call.func:
        case ast.Attribute(value=ast.Call(func=ast.Name(id="super"))):
            return True
        case ast.Attribute(attr=attr):
            return attr not in (*VERBS, "request")
        case ast.Name():
            return site.name.startswith("requests.Session.")
    return True


def _hidden(site: Site) -> bool:
    """Whether `*args` or a `**mapping` of unknown content is in the call."""
    if any(isinstance(arg, ast.Starred) for arg in site.call.args):
        return True
    spreads = (site.values(keyword.value) for keyword in site.call.keywords if keyword.arg is None)
    return not all(isinstance(value, Mapping) and not value.open for values in spreads for value in values)


_MOST_POSITIONAL = {"get": 2, "post": 3, "put": 2, "patch": 2, "request": 2}


def _too_many(site: Site) -> bool:
    """Whether there are positional arguments that the helper takes by keyword only."""
    return len(site.call.args) > _MOST_POSITIONAL.get(site.name.rpartition(".")[2], 1)


def of_urlopen(site: Site, *, known_seconds: float | None = None) -> MakeFix | None:
    """`urlopen` through `http.urlopen`, where a timeout that it has becomes the limit on the whole."""
    if site.name != "urllib.request.urlopen":
        return None

    def make() -> Fix | None:
        call = site.call
        helper, wanted = site.helper("http")
        keyword, value, constants = limit(site)
        node = region.parse_call(site.module.source, call)
        own = next((k for k in call.keywords if k.arg == "timeout"), None)
        rename: dict[str, tuple[str, str | None]] = {}
        added = [(keyword, value)]
        if own is not None and known_seconds is None and _is_none(call):
            rename, added = {"timeout": (keyword, value)}, []
        elif own is not None:
            rename = {"timeout": ("want", None)}
            added, constants = ([(keyword, value)], ()) if site.budget else ([], ())
        fixed = region.rewritten(node, function=f"{helper}.urlopen", rename=rename, add=added)
        return Fix(
            f"open it through `{helper}.urlopen`, with a limit on the whole",
            _urlopen_safety(site),
            (region.replace_call(site.module.source, call, fixed),),
            (wanted,),
            constants,
        )

    return make


def _urlopen_safety(site: Site) -> Safety:
    known = {"url", "data", "timeout", "context"}
    plain = (
        not _hidden(site)
        and site.target.partial is None
        and len({t.name for t in site.targets}) == 1
        and len(site.call.args) <= 2
        and all(keyword.arg in known for keyword in site.call.keywords)
        and "install_opener" not in site.module.source.text
    )
    return Safety.UNSAFE if plain else Safety.DISPLAY


def add_timeout(site: Site, call: ast.Call, *, hidden: bool = False) -> MakeFix:
    """`timeout=` for a constructor or a wrapper of the project, which has no other way to be bounded."""

    def make() -> Fix | None:
        there = _at(site, call)
        value, constants = seconds(there)
        node = region.parse_call(site.module.source, call)
        replaced = {"timeout": ("timeout", value)} if _is_none(call) else {}
        given = any(k.arg == "timeout" for k in call.keywords)
        fixed = region.rewritten(node, rename=replaced, add=[("timeout", value)])
        shown = hidden or _hidden(there) or (given and not replaced)
        edit = region.replace_call(site.module.source, call, fixed)
        return Fix(f"give it `timeout={value}`", Safety.DISPLAY if shown else Safety.UNSAFE, (edit,), (), constants)

    return make


def _at(site: Site, call: ast.Call) -> Site:
    """Another call of the module, for what is in scope there."""
    return Site(site.module, call, site.module.walker.scope_of.get(call, site.scope), site.targets, site.name)


def total_of(site: Site, timeout: ast.Call | None) -> MakeFix | None:
    """`total=` for the `aiohttp.ClientTimeout` of a session."""
    if timeout is None or timeout.args or any(k.arg is None for k in timeout.keywords):
        return None

    def make() -> Fix | None:
        there = _at(site, timeout)
        value, constants = seconds(there)
        source = site.module.source
        total = next((k.value for k in timeout.keywords if k.arg == "total"), None)
        if total is None:
            fixed = region.rewritten(region.parse_call(source, timeout), add=[("total", value)])
            edit = region.replace_call(source, timeout, fixed)
        else:
            edit = Edit(*source.extent(total), value)
        literal = total is None or isinstance(total, ast.Constant)
        safety = Safety.UNSAFE if literal else Safety.DISPLAY
        return Fix(f"give it `total={value}`", safety, (edit,), (), constants)

    return make
