"""How often a function is tried again, with which pauses: the retry options of orchestrators and of retry libraries."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from deadlint.index import airflow, limits
from deadlint.index.values import Mapping, Result, Sequence, Values, number
from deadlint.site import Site, Target

if TYPE_CHECKING:
    from deadlint.index.module import Module
    from deadlint.index.scopes import Scope

_N = TypeVar("_N", int, float)
_MOST = 1_000  # attempts whose pauses are added up one by one


@dataclass(frozen=True, slots=True)
class Retries:
    """Attempts, and the pauses between them, in seconds. None where a bound is not known or not there."""

    attempts: int | None
    pauses: float = 0.0  # all of them together, as far as they are known
    begins_until: float | None = None  # no attempt begins later than this

    def lasting(self, attempt: float) -> float | None:
        """The longest that it may take where one attempt takes `attempt`; None where that is not known."""
        counted = None if self.attempts is None else self.attempts * attempt + self.pauses
        timed = None if self.begins_until is None else self.begins_until + attempt
        known = [n for n in (counted, timed) if n is not None]
        return min(known, default=None)


def of_decorator(site: Site) -> Retries | None:
    """What a decorator says about trying again; None where it says nothing, or nothing that is known."""
    reader = _DECORATORS.get(site.name)
    if reader is None and site.name.startswith("airflow.decorators.task."):
        reader = _airflow
    return reader(site) if reader is not None else None


def of_queue(site: Site) -> Retries | None:
    """What a decorator of a task queue says about a message that fails; None where it says nothing."""
    reader = _QUEUES.get(site.name)
    return reader(site) if reader is not None else None


def of_operator(site: Site) -> Retries | None:
    """What an Airflow operator says about trying again, with the `default_args` of its DAG."""
    return _airflow(site)


def decorator_sites(function: Scope, module: Module) -> Iterator[Site]:
    """The decorators of a function, of whichever module, that limit it or try it again, from the top down."""
    node = function.definition
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or not node.decorator_list:
        return
    module = limits.home_of(function, module)
    module.walker.walk(function.parent or function)
    for decorator in node.decorator_list:
        if isinstance(decorator, ast.Call):
            for target in module.targets(decorator):
                site = Site(module, decorator, function.parent or function, (target,), target.name)
                if of_decorator(site) is not None or limits.decorator_limit(site, function.name) is not None:
                    yield site
                    break


def _count(values: Values) -> int | None:
    """The least number that the values can be; None where one of them is not known."""
    found = [number(value) for value in values]
    plain = [n for n in found if n is not None and abs(n) < _MOST]  # no NaN either
    return int(min(plain)) if plain and len(plain) == len(found) else None


def _seconds(values: Values, scale: float = 1.0) -> float | None:
    found = [number(value) for value in values]
    plain = [n * scale for n in found if n is not None]
    return min(plain) if plain and len(plain) == len(found) else None


# --- orchestrators -------------------------------------------------------------------------------------------


def _prefect(site: Site) -> Retries | None:
    retries = _count(site.argument("retries").values)
    if retries is None or retries < 1:
        return None
    delay = site.argument("retry_delay_seconds")
    match delay.values:
        case (Sequence(items=items, open=False),) if items:
            each = [_seconds(item) or 0.0 for item in items]
            pauses = sum(each[min(i, len(each) - 1)] for i in range(retries))
        case _:
            pauses = retries * (_seconds(delay.values) or 0.0)
    return Retries(retries + 1, pauses)


_AIRFLOW_DELAY = 300.0  # what Airflow waits where `retry_delay` is not given


def _airflow(site: Site) -> Retries | None:
    retries = _count(airflow.option(site, "retries"))
    if retries is None or retries < 1:
        return None
    delay = airflow.option(site, "retry_delay")
    pause = (_seconds(delay) or 0.0) if delay else _AIRFLOW_DELAY
    return Retries(retries + 1, retries * pause)


_DAGSTER_STEPS = {"dagster.Backoff.LINEAR": lambda i: i, "dagster.Backoff.EXPONENTIAL": lambda i: 2**i - 1}


def _dagster(site: Site) -> Retries | None:
    """`retry_policy=RetryPolicy(max_retries=3, delay=60, backoff=Backoff.EXPONENTIAL)`; jitter is left out."""
    for keyword in ("retry_policy", "op_retry_policy"):
        for value in site.argument(keyword).values:
            match value:
                case Result(name="dagster.RetryPolicy", call=ast.Call() as call, scope=scope):
                    policy = Site(site.module, call, scope or site.scope, (Target(""),))
                    given = policy.argument("max_retries", 0)
                    retries = 1 if given.absent else _count(given.values)
                    if retries is None or retries < 1:
                        return None
                    delay = _seconds(policy.argument("delay", 1).values) or 0.0
                    names = {getattr(v, "name", "") for v in policy.argument("backoff", 2).values}
                    step = next((_DAGSTER_STEPS[n] for n in names if n in _DAGSTER_STEPS), lambda _: 1)
                    return Retries(retries + 1, sum(delay * step(min(i, 60)) for i in range(1, retries + 1)))
    return None


# --- task queues: a direct call of the function is no task and is not repeated -----------------------------------

_CELERY_DELAY = 180.0  # what Celery waits where `default_retry_delay` is not given
_CELERY_LONGEST = 600.0
_CELERY_RETRIES = 3


def _celery(site: Site) -> Retries | None:
    """`autoretry_for=…` with `max_retries` or `retry_kwargs`; without it only what the task says it may do."""
    most = site.argument("max_retries")
    inner = next((v.get("max_retries") for v in site.argument("retry_kwargs").values if isinstance(v, Mapping)), None)
    if most.absent and inner is None and site.argument("autoretry_for").absent:
        return None
    retries = _count(inner) if inner else _CELERY_RETRIES if most.absent else _count(most.values)
    if retries is None or retries < 1:
        return None
    backoff = site.argument("retry_backoff")
    if not backoff.absent and backoff.constant is not None and backoff.constant.value:
        factor = 1.0 if backoff.constant.value is True else _seconds(backoff.values) or 1.0
        given = site.argument("retry_backoff_max")
        longest = _CELERY_LONGEST if given.absent else _seconds(given.values) or _CELERY_LONGEST
        return Retries(retries + 1, sum(min(factor * 2.0 ** min(i, 60), longest) for i in range(retries)))
    delay = site.argument("default_retry_delay")
    pause = _CELERY_DELAY if delay.absent else _seconds(delay.values) or 0.0
    return Retries(retries + 1, retries * pause)


def _rq(site: Site) -> Retries | None:
    """`retry=Retry(max=3, interval=[10, 30])`."""
    for value in site.argument("retry").values:
        match value:
            case Result(name="rq.Retry", call=ast.Call() as call, scope=scope):
                inner = Site(site.module, call, scope or site.scope, (Target(""),))
                retries = _count(inner.argument("max", 0).values)
                if retries is None or retries < 1:
                    return None
                match inner.argument("interval", 1).values:
                    case (Sequence(items=items, open=False),) if items:
                        each = [_seconds(item) or 0.0 for item in items]
                        return Retries(retries + 1, sum(each[min(i, len(each) - 1)] for i in range(retries)))
                    case values:
                        return Retries(retries + 1, retries * (_seconds(values) or 0.0))
    return None


def _huey(site: Site) -> Retries | None:
    retries = _count(site.argument("retries", 0).values)
    if retries is None or retries < 1:
        return None
    return Retries(retries + 1, retries * (_seconds(site.argument("retry_delay", 1).values) or 0.0))


def _dramatiq(site: Site) -> Retries | None:
    """`max_retries=3, min_backoff=15_000`; all in milliseconds, the pauses doubling."""
    retries = _count(site.argument("max_retries").values)
    if retries is None or retries < 1:
        return None
    given = site.argument("min_backoff")
    first = 15.0 if given.absent else _seconds(given.values, 0.001) or 0.0
    longest = _seconds(site.argument("max_backoff").values, 0.001) or 7 * 86_400.0
    return Retries(retries + 1, sum(min(first * 2.0 ** min(i, 60), longest) for i in range(retries)))


# --- libraries -----------------------------------------------------------------------------------------------


def _tenacity(site: Site) -> Retries | None:
    stop = site.argument("stop").node
    if stop is None:
        return None
    attempts, until = _stop(stop, site)
    if attempts is None and until is None:
        return None
    wait = site.argument("wait").node
    pauses = 0.0
    if wait is not None and attempts is not None:
        pauses = sum(_wait(wait, i, site) for i in range(1, attempts))
    return Retries(attempts, pauses, until)


def _stop(node: ast.expr, site: Site) -> tuple[int | None, float | None]:
    """How many attempts a tenacity `stop` allows, and until when one may begin."""
    match node:
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            one, two = _stop(left, site), _stop(right, site)
            return _least(one[0], two[0]), _least(one[1], two[1])
        case ast.Call(args=args):
            inner = _inner(node, site)
            match _tail(site, node):
                case "stop_after_attempt":
                    return _count(inner.argument("max_attempt_number", 0).values), None
                case "stop_after_delay" | "stop_before_delay":
                    return None, _seconds(inner.argument("max_delay", 0).values)
                case "stop_any":
                    found = [_stop(arg, site) for arg in args]
                    return _least(*(f[0] for f in found)), _least(*(f[1] for f in found))
    return None, None


def _least(*found: _N | None) -> _N | None:
    return min((n for n in found if n is not None), default=None)


def _wait(node: ast.expr, attempt: int, site: Site) -> float:
    """How long tenacity may wait after the attempt of this number (from 1), as far as that is known."""
    match node:
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _wait(left, attempt, site) + _wait(right, attempt, site)
        case ast.Call(args=args):
            inner = _inner(node, site)

            def given(name: str, position: int, default: float) -> float:
                argument = inner.argument(name, position)
                return default if argument.absent else _seconds(argument.values) or 0.0

            match _tail(site, node):
                case "wait_fixed":
                    return given("wait", 0, 0.0)
                case "wait_random":
                    return given("max", 1, 1.0)
                case "wait_incrementing":
                    pause = given("start", 0, 0.0) + (attempt - 1) * given("increment", 1, 100.0)
                    return min(pause, given("max", 2, float("inf")))
                case "wait_exponential" | "wait_random_exponential" | "wait_full_jitter":
                    power = given("exp_base", 2, 2.0) ** min(attempt - 1, 60)
                    pause = min(given("multiplier", 0, 1.0) * power, given("max", 1, float("inf")))
                    return max(pause, given("min", 3, 0.0))
                case "wait_combine":
                    return sum(_wait(arg, attempt, site) for arg in args)
    return 0.0


def _inner(call: ast.Call, site: Site) -> Site:
    """A call that stands in the arguments of `site`, as a site."""
    return Site(site.module, call, site.scope, (Target(""),), "")


def _tail(site: Site, call: ast.Call) -> str:
    """The last part of the name of what tenacity has for a stop or a wait; empty for anything else."""
    for target in site.module.targets(call):
        if target.name.startswith("tenacity."):
            return target.name.rpartition(".")[2]
    return ""


def _backoff(site: Site) -> Retries | None:
    tries = site.argument("max_tries")
    attempts = None if tries.absent else _count(tries.values)
    until = site.argument("max_time")
    seconds = None if until.absent else _seconds(until.values)
    if attempts is None and seconds is None:
        return None
    pauses = 0.0
    names = {getattr(value, "name", "") for value in site.argument("wait_gen", 0).values}
    if attempts is not None and names <= {"backoff.constant"}:
        interval = site.argument("interval")
        pauses = (attempts - 1) * (1.0 if interval.absent else _seconds(interval.values) or 0.0)
    elif attempts is not None and names <= {"backoff.expo"}:
        pauses = _exponential(site, attempts)
    return Retries(attempts, pauses, seconds)


def _exponential(site: Site, attempts: int) -> float:
    """The longest pauses of `backoff.expo`, whose jitter only shortens them."""

    def given(name: str, default: float) -> float:
        argument = site.argument(name)
        return default if argument.absent else _seconds(argument.values) or 0.0

    base, factor, most = given("base", 2.0), given("factor", 1.0), given("max_value", float("inf"))
    return sum(min(factor * base ** min(i, 60), most) for i in range(attempts - 1))


def _stamina(site: Site) -> Retries | None:
    attempts, until = site.argument("attempts"), site.argument("timeout")
    tries = 10 if attempts.absent else _count(attempts.values)
    seconds = 45.0 if until.absent else _seconds(until.values)
    return Retries(tries, 0.0, seconds) if tries is not None or seconds is not None else None


def _retrying(site: Site) -> Retries | None:
    tries, until = site.argument("stop_max_attempt_number"), site.argument("stop_max_delay")
    attempts = None if tries.absent else _count(tries.values)
    seconds = None if until.absent else _seconds(until.values, 0.001)
    if attempts is None and seconds is None:
        return None
    pause = _seconds(site.argument("wait_fixed").values, 0.001) or 0.0
    return Retries(attempts, (attempts - 1) * pause if attempts else 0.0, seconds)


def of_config(site: Site) -> Retries | None:
    """What botocore's `Config(retries={"max_attempts": 3})` says about sending a request again; 5 attempts if nothing.

    `max_attempts` counts what comes after the first, `total_max_attempts` all of them.
    """
    for value in site.argument("retries").values:
        match value:
            case Mapping():
                total, further = value.get("total_max_attempts"), value.get("max_attempts")
                attempts = _count(total) if total else None
                again = _count(further) if further else None
                if attempts is None and again is not None:
                    attempts = again + 1
                return Retries(attempts) if attempts is not None and attempts > 1 else None
    return None


# --- sessions ------------------------------------------------------------------------------------------------

_REPEATED = frozenset({"get", "head", "options", "put", "delete"})  # what urllib3 sends again after a read timeout
_LONGEST_BACKOFF = 120.0  # of urllib3


def of_session(site: Site) -> Retries | None:
    """What urllib3's `Retry`, mounted on the session of a request, says about sending it again."""
    session = site.target.receiver
    if not isinstance(session, Result) or session.call is None or site.name.rpartition(".")[2] not in _REPEATED:
        return None
    for call in site.module.calls:
        if not (isinstance(call.func, ast.Attribute) and call.func.attr == "mount"):
            continue
        for target in site.module.targets(call):
            if target.name == "requests.Session.mount" and target.receiver == session:
                return _mounted(Site(site.module, call, site.module.walker.scope_of[call], (target,), target.name))
    return None


def _mounted(mount: Site) -> Retries | None:
    for adapter in mount.argument("adapter", 1).values:
        match adapter:
            case Result(name="requests.HTTPAdapter", call=ast.Call() as call, scope=scope):
                inner = Site(mount.module, call, scope or mount.scope, (Target(""),))
                for retry in inner.argument("max_retries", 2).values:
                    match retry:
                        case Result(name="urllib3.Retry", call=ast.Call() as made, scope=home):
                            return _urllib3(Site(mount.module, made, home or mount.scope, (Target(""),)))
    return None


def _urllib3(site: Site) -> Retries | None:
    total = site.argument("total", 0)
    retries = 10 if total.absent else _count(total.values)
    if retries is None or retries < 1:
        return None
    given = site.argument("backoff_factor")
    factor = 0.0 if given.absent else _seconds(given.values) or 0.0
    # There is no pause in front of the first repetition.
    pauses = sum(min(factor * 2.0 ** min(i, 60), _LONGEST_BACKOFF) for i in range(1, retries))
    return Retries(retries + 1, pauses)


_DECORATORS: dict[str, Callable[[Site], Retries | None]] = {
    "prefect.task": _prefect,
    "prefect.flow": _prefect,
    "dagster.op": _dagster,
    "dagster.asset": _dagster,
    "dagster.multi_asset": _dagster,
    "dagster.graph_asset": _dagster,
    "airflow.decorators.task": _airflow,
    "tenacity.retry": _tenacity,
    "backoff.on_exception": _backoff,
    "backoff.on_predicate": _backoff,
    "stamina.retry": _stamina,
    "retrying.retry": _retrying,
}
LIBRARIES = frozenset(name for name in _DECORATORS if not name.startswith(("prefect.", "airflow.", "dagster.")))
# What these say holds for a message in a queue, and not for a call of the function.
_QUEUES: dict[str, Callable[[Site], Retries | None]] = {
    "celery.shared_task": _celery,
    "celery.Celery.task": _celery,
    "rq.decorators.job": _rq,
    "django_rq.job": _rq,
    "dramatiq.actor": _dramatiq,
    **{f"huey.{kind}.{name}": _huey for kind in ("Huey", "RedisHuey", "SqliteHuey", "MemoryHuey", "FileHuey",
                                                "PriorityRedisHuey") for name in ("task", "periodic_task")},
    **{f"huey.contrib.djhuey.{name}": _huey for name in ("task", "db_task", "periodic_task", "db_periodic_task")},
}
