"""Where calls, scopes and decorators take their limits: by keyword, position and unit, in tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from deadlint.index import amounts
from deadlint.index.amounts import Amount
from deadlint.index.values import Const
from deadlint.model import Span

if TYPE_CHECKING:
    from deadlint.site import Site


# What is in a file that puts a limit around something by a scope, a decorator or an option of an orchestrator.
WORDS: tuple[tuple[str, ...], ...] = (
    ("asyncio.timeout",),
    ("wait_for", "asyncio"),
    ("from asyncio import", "timeout"),
    ("async_timeout",),
    ("fail_after",),
    ("move_on_after",),
    ("timeout_seconds", "prefect"),
    ("time_limit",),
    ("dagrun_timeout", "airflow"),
    ("execution_timeout", "airflow"),
    ("dagster/max_runtime",),
    ("worker_timeout", "luigi"),
    ("timeout_decorator",),
    ("func_set_timeout",),
)


@dataclass(frozen=True, slots=True)
class Limit:
    """A limit: how long, what it is called in messages, and the place that imposes it."""

    seconds: float | None
    label: str
    layer: str  # "scope", "task", "flow", "operator", "dag", "request", "process", "statement", "wait", "budget"
    path: str
    span: Span
    name: str = ""  # the canonical name of what imposes it
    default: str = ""  # whose default the seconds are, where a setting or a caller may give others
    parameter: str = ""  # of its function, where that decides; each caller gives its own seconds then
    scale: float = 1.0  # seconds in one of what the parameter counts


@dataclass(frozen=True, slots=True)
class Form:
    """Where a call takes its limit, and how to read it."""

    keyword: str
    position: int | None
    layer: str
    scale: float = 1.0  # seconds in one
    key: str = ""  # of the mapping that the keyword gives
    texts: bool = False  # a text such as `1h` is read


def build(site: Site, form: Form, label: str) -> Limit | None:
    """The limit that a call takes in this form; None where it takes none."""
    argument = site.argument(form.keyword, form.position)
    values = amounts.under_key(argument.values, form.key) if form.key else argument.values
    if not values or values == (Const(None),):
        return None
    return made(site, form, label, amounts.of_values(values, form.scale, texts=form.texts))


def made(site: Site, form: Form, label: str, amount: Amount) -> Limit:
    """A limit of this amount that the call imposes."""
    where = site.module.source.path, site.module.span(site.call)
    return Limit(
        amount.seconds, label, form.layer, *where, site.name, amount.default, amount.parameter, form.scale
    )


# --- calls and scopes ----------------------------------------------------------------------------------------

SCOPES = {
    "asyncio.timeout": Form("delay", 0, "scope"),
    "asyncio.timeout_at": Form("when", 0, "scope"),  # a point in time: how long that is, is never known
    "async_timeout.timeout": Form("delay", 0, "scope"),
    "anyio.fail_after": Form("delay", 0, "scope"),
    "anyio.move_on_after": Form("delay", 0, "scope"),
    "trio.fail_after": Form("seconds", 0, "scope"),
    "trio.move_on_after": Form("seconds", 0, "scope"),
    "timeout_decorator.timeout": Form("seconds", 0, "scope"),
    "stopit.ThreadingTimeout": Form("seconds", 0, "scope"),
    "stopit.SignalTimeout": Form("seconds", 0, "scope"),
    "eventlet.Timeout": Form("seconds", 0, "scope"),
    "gevent.Timeout": Form("seconds", 0, "scope"),
}
WAITING = {"asyncio.wait_for": Form("timeout", 1, "scope")}
ALARMS = {"signal.alarm": Form("seconds", 0, "scope"), "signal.setitimer": Form("seconds", 1, "scope")}
PROCESSES = {
    f"subprocess.{name}": Form("timeout", None, "process")
    for name in ("run", "call", "check_call", "check_output")
} | {
    "subprocess.Popen.wait": Form("timeout", 0, "process"),
    "subprocess.Popen.communicate": Form("timeout", 1, "process"),
    "deadlint_budget.run": Form("want", None, "process"),
    "deadlint_budget.check_output": Form("want", None, "process"),
}
_VERBS = ("get", "post", "put", "patch", "delete", "head", "options")
_REQUESTS = {
    f"{base}.{verb}": Form("timeout", None, "request")
    for base in ("requests", "requests.Session", "httpx", "httpx.Client", "httpx.AsyncClient", "aiohttp.ClientSession")
    for verb in (*_VERBS, "request")
} | {"urllib.request.urlopen": Form("timeout", 2, "request")}
_HELPERS = {f"deadlint_budget.http.{verb}": Form("want", None, "request") for verb in (*_VERBS, "request", "urlopen")}
_BUDGETS = {"deadlint_budget.Budget.of": Form("seconds", 0, "budget")}
# Calls that carry a limit of their own: the inner ones of an inversion.
INNER = SCOPES | WAITING | PROCESSES | _REQUESTS | _BUDGETS
# Further ones, whose limit is a wait for other work, or is enforced elsewhere.
FURTHER = (
    _HELPERS
    | {
        "concurrent.futures.Future.result": Form("timeout", 0, "wait"),
        "concurrent.futures.Future.exception": Form("timeout", 0, "wait"),
        "concurrent.futures.as_completed": Form("timeout", 1, "wait"),
        "concurrent.futures.wait": Form("timeout", 1, "wait"),
        "asyncio.as_completed": Form("timeout", None, "wait"),
        "asyncio.wait": Form("timeout", None, "wait"),
        "threading.Thread.join": Form("timeout", 0, "wait"),
        "multiprocessing.Process.join": Form("timeout", 0, "wait"),
        "celery.result.AsyncResult.get": Form("timeout", 0, "wait"),
        "socket.create_connection": Form("timeout", 1, "request"),
        "socket.socket.settimeout": Form("value", 0, "request"),
        "http.client.HTTPConnection": Form("timeout", 2, "request"),
        "http.client.HTTPSConnection": Form("timeout", 2, "request"),
        "botocore.config.Config": Form("read_timeout", None, "request"),
        "asyncpg.connect": Form("command_timeout", None, "statement"),
        "asyncpg.create_pool": Form("command_timeout", None, "statement"),
    }
    | {
        f"asyncpg.{kind}.{name}": Form("timeout", None, "statement")
        for kind in ("Connection", "Pool")
        for name in ("execute", "fetch", "fetchrow", "fetchval", "executemany")
    }
    | ALARMS
)
# Where a server-side limit on statements is written: options of a connection, and SQL that sets it.
STATEMENTS = {
    "psycopg2.connect": ("options", None),
    "psycopg.connect": ("options", None),
    "psycopg.AsyncConnection.connect": ("options", None),
    "sqlalchemy.create_engine": ("connect_args", None),
    "psycopg2.cursor.execute": ("query", 0),
    "psycopg.Cursor.execute": ("query", 0),
    "psycopg.Connection.execute": ("query", 0),
    "sqlalchemy.Connection.execute": ("statement", 0),
    "sqlalchemy.orm.Session.execute": ("statement", 0),
}

# --- decorators ----------------------------------------------------------------------------------------------

CELERY_TASKS = ("celery.shared_task", "celery.Celery.task")
_RUNTIME = "dagster/max_runtime"
DECORATORS = {
    "prefect.task": Form("timeout_seconds", None, "task"),
    "prefect.flow": Form("timeout_seconds", None, "flow"),
    "celery.shared_task": Form("time_limit", None, "task"),
    "celery.Celery.task": Form("time_limit", None, "task"),
    "airflow.decorators.task": Form("execution_timeout", None, "task"),
    "airflow.decorators.dag": Form("dagrun_timeout", None, "dag"),
    "dagster.job": Form("tags", None, "job", 1.0, _RUNTIME, texts=True),
    "timeout_decorator.timeout": Form("seconds", 0, "scope"),
    "wrapt_timeout_decorator.timeout": Form("dec_timeout", 0, "scope"),
    "func_timeout.func_set_timeout": Form("timeout", 0, "scope"),
    "stopit.threading_timeoutable": Form("default_timeout", None, "scope"),
    "dramatiq.actor": Form("time_limit", None, "task", 0.001),
    "rq.decorators.job": Form("timeout", None, "task", texts=True),
    "rq.job": Form("timeout", None, "task", texts=True),
    "django_rq.job": Form("timeout", None, "task", texts=True),
}
_AIRFLOW_TASK = "airflow.decorators.task."


def of_decorator(name: str) -> Form | None:
    """How a decorator of this name takes its limit; None where it takes none."""
    return DECORATORS["airflow.decorators.task"] if name.startswith(_AIRFLOW_TASK) else DECORATORS.get(name)


# Methods of a task, or calls that are given a function, that put a limit on that one run of it.
ATTACHED = {
    "apply_async": (Form("time_limit", None, "task"), Form("soft_time_limit", None, "task")),
    "send_with_options": (Form("time_limit", None, "task", 0.001),),
    "to_job": (Form("tags", None, "job", 1.0, _RUNTIME, texts=True),),
    "with_options": (Form("timeout_seconds", None, "task"),),
}
HANDED = {
    "rq.Queue.enqueue": Form("job_timeout", None, "task", texts=True),
    "rq.Queue.enqueue_in": Form("job_timeout", None, "task", texts=True),
    "rq.Queue.enqueue_at": Form("job_timeout", None, "task", texts=True),
    "rq.Queue.enqueue_call": Form("timeout", None, "task", texts=True),
    "func_timeout.func_timeout": Form("timeout", 0, "scope"),
}
# Classes whose attribute bounds their `run`.
CLASSES = {
    "luigi.Task": Form("worker_timeout", None, "task"),
    "luigi.WrapperTask": Form("worker_timeout", None, "task"),
    "luigi.ExternalTask": Form("worker_timeout", None, "task"),
    "celery.Task": Form("time_limit", None, "task"),
}
# What a Celery application sets for all of its tasks.
APPLICATION = {"task_time_limit": "hard", "task_soft_time_limit": "soft"}
