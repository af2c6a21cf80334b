"""What well-known libraries call the same thing, and what their functions return."""

from __future__ import annotations

from functools import lru_cache

# Another name for the same thing. A prefix counts for what lies below it.
ALIASES = {
    "requests.api": "requests",
    "requests.sessions": "requests",
    "requests.session": "requests.Session",
    "requests.adapters.HTTPAdapter": "requests.HTTPAdapter",
    "requests.packages.urllib3": "urllib3",
    # Sessions of other packages, which send as requests does and set no timeout.
    "requests_cache.CachedSession": "requests.Session",
    "requests_cache.session.CachedSession": "requests.Session",
    "requests_oauthlib.OAuth1Session": "requests.Session",
    "requests_oauthlib.OAuth2Session": "requests.Session",
    "requests_toolbelt.sessions.BaseUrlSession": "requests.Session",
    "requests_html.HTMLSession": "requests.Session",
    "urllib3.poolmanager.PoolManager": "urllib3.PoolManager",
    "urllib3.poolmanager.ProxyManager": "urllib3.ProxyManager",
    "urllib3.connectionpool": "urllib3",
    "urllib3.util.timeout.Timeout": "urllib3.Timeout",
    "urllib3.util.Timeout": "urllib3.Timeout",
    "urllib3.util.retry.Retry": "urllib3.Retry",
    "urllib3.util.Retry": "urllib3.Retry",
    "urllib2": "urllib.request",
    "six.moves.urllib": "urllib",
    "future.moves.urllib": "urllib",
    "httplib": "http.client",
    "six.moves.http_client": "http.client",
    "aiohttp.client": "aiohttp",
    "aiohttp.client_reqrep": "aiohttp",
    "httpx._client": "httpx",
    "httpx2": "httpx",
    "subprocess32": "subprocess",
    "asyncio.timeouts.timeout": "asyncio.timeout",
    "asyncio.tasks.wait_for": "asyncio.wait_for",
    "asyncio.subprocess.Process": "asyncio.Process",
    "asyncio.subprocess.create_subprocess_exec": "asyncio.create_subprocess_exec",
    "asyncio.subprocess.create_subprocess_shell": "asyncio.create_subprocess_shell",
    "concurrent.futures.thread.ThreadPoolExecutor": "concurrent.futures.ThreadPoolExecutor",
    "psycopg.Connection.connect": "psycopg.connect",
    "psycopg2.extensions.connection": "psycopg2.connection",
    "asyncpg.connection.connect": "asyncpg.connect",
    "asyncpg.pool.create_pool": "asyncpg.create_pool",
    "sqlalchemy.engine.create_engine": "sqlalchemy.create_engine",
    "sqlalchemy.engine.create.create_engine": "sqlalchemy.create_engine",
    "sqlalchemy.ext.asyncio.engine.create_async_engine": "sqlalchemy.ext.asyncio.create_async_engine",
    "sqlalchemy.sql.text": "sqlalchemy.text",
    "sqlalchemy.sql.expression.text": "sqlalchemy.text",
    "prefect.flows.flow": "prefect.flow",
    "prefect.tasks.task": "prefect.task",
    "celery.app.task.Task": "celery.Task",
    "airflow.models.DAG": "airflow.DAG",
    "airflow.models.dag.DAG": "airflow.DAG",
    "airflow.sdk.DAG": "airflow.DAG",
    "airflow.sdk.dag": "airflow.decorators.dag",
    "airflow.sdk.task": "airflow.decorators.task",
    "deadlint_budget.budget.Budget": "deadlint_budget.Budget",
}
# What a call returns, where that has a name of its own.
RETURNS = {
    "urllib.request.build_opener": "urllib.request.OpenerDirector",
    "urllib3.connection_from_url": "urllib3.HTTPConnectionPool",
    "psycopg.connect": "psycopg.Connection",
    "psycopg.AsyncConnection.connect": "psycopg.AsyncConnection",
    "psycopg2.connect": "psycopg2.connection",
    "asyncpg.connect": "asyncpg.Connection",
    "asyncpg.create_pool": "asyncpg.Pool",
    "sqlalchemy.create_engine": "sqlalchemy.Engine",
    "sqlalchemy.ext.asyncio.create_async_engine": "sqlalchemy.ext.asyncio.AsyncEngine",
    "asyncio.create_subprocess_exec": "asyncio.Process",
    "asyncio.create_subprocess_shell": "asyncio.Process",
    "deadlint_budget.Budget.of": "deadlint_budget.Budget",
    "deadlint_budget.Budget.until": "deadlint_budget.Budget",
    "deadlint_budget.Budget.limit": "deadlint_budget.Budget",
    "deadlint_budget.Budget.from_env": "deadlint_budget.Budget",
    "deadlint_budget.current_budget": "deadlint_budget.Budget",
}
# Calls whose value is their first argument, as far as limits go.
TRANSPARENT = frozenset(
    {
        "contextlib.closing", "contextlib.aclosing", "contextlib.nullcontext", "contextlib.ExitStack.enter_context",
        "contextlib.AsyncExitStack.enter_context", "contextlib.AsyncExitStack.enter_async_context",
        "cachecontrol.CacheControl",
        "copy.copy", "copy.deepcopy", "asyncio.run", "asyncio.shield", "asyncio.ensure_future",
        "typing.final", "functools.wraps", "asyncio.create_task",
    }
)  # fmt: skip
# Attributes that exist on every instance of these types and lead to the same object again.
SAME_OBJECT = frozenset({"__enter__", "__aenter__"})


@lru_cache(maxsize=4096)
def canonical(name: str) -> str:
    """The one name for a thing that goes by several."""
    if name in ALIASES:
        return ALIASES[name]
    head = name
    while "." in head:
        head = head.rpartition(".")[0]
        if head in ALIASES:
            return canonical(ALIASES[head] + name[len(head) :])
    return name
