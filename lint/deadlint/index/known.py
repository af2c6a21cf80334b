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
    "concurrent.futures.process.ProcessPoolExecutor": "concurrent.futures.ProcessPoolExecutor",
    "concurrent.futures._base.Future": "concurrent.futures.Future",
    "asyncio.events": "asyncio",
    "asyncio.threads": "asyncio",
    "psycopg.Connection.connect": "psycopg.connect",
    "psycopg.connection.Connection": "psycopg.Connection",
    "psycopg.connection_async.AsyncConnection": "psycopg.AsyncConnection",
    "psycopg.cursor.Cursor": "psycopg.Cursor",
    "psycopg.cursor_async.AsyncCursor": "psycopg.AsyncCursor",
    "psycopg.client_cursor": "psycopg",
    "psycopg_pool.pool": "psycopg_pool",
    "psycopg_pool.pool_async": "psycopg_pool",
    "psycopg2.extensions.connection": "psycopg2.connection",
    "psycopg2.extensions.cursor": "psycopg2.cursor",
    "psycopg2.extras.DictCursor": "psycopg2.cursor",
    "psycopg2.extras.RealDictCursor": "psycopg2.cursor",
    "asyncpg.connection": "asyncpg",
    "asyncpg.pool": "asyncpg",
    "asyncpg.pool.PoolConnectionProxy": "asyncpg.Connection",
    "sqlalchemy.engine.create_engine": "sqlalchemy.create_engine",
    "sqlalchemy.engine.create.create_engine": "sqlalchemy.create_engine",
    "sqlmodel.create_engine": "sqlalchemy.create_engine",
    "sqlmodel.Session": "sqlalchemy.orm.Session",
    "sqlmodel.text": "sqlalchemy.text",
    "sqlalchemy.engine.base": "sqlalchemy",
    "sqlalchemy.engine.Engine": "sqlalchemy.Engine",
    "sqlalchemy.engine.Connection": "sqlalchemy.Connection",
    "sqlalchemy.engine.url": "sqlalchemy",
    "sqlalchemy.engine.URL": "sqlalchemy.URL",
    "sqlalchemy.engine.make_url": "sqlalchemy.make_url",
    "sqlalchemy.orm.session": "sqlalchemy.orm",
    "sqlalchemy.orm.scoping.scoped_session": "sqlalchemy.orm.scoped_session",
    "sqlalchemy.ext.asyncio.engine": "sqlalchemy.ext.asyncio",
    "sqlalchemy.ext.asyncio.session": "sqlalchemy.ext.asyncio",
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
    "psycopg.Connection.cursor": "psycopg.Cursor",
    "psycopg.AsyncConnection.cursor": "psycopg.AsyncCursor",
    "psycopg_pool.ConnectionPool.connection": "psycopg.Connection",
    "psycopg_pool.ConnectionPool.getconn": "psycopg.Connection",
    "psycopg_pool.NullConnectionPool.connection": "psycopg.Connection",
    "psycopg_pool.NullConnectionPool.getconn": "psycopg.Connection",
    "psycopg_pool.AsyncConnectionPool.connection": "psycopg.AsyncConnection",
    "psycopg_pool.AsyncConnectionPool.getconn": "psycopg.AsyncConnection",
    "psycopg_pool.AsyncNullConnectionPool.connection": "psycopg.AsyncConnection",
    "psycopg_pool.AsyncNullConnectionPool.getconn": "psycopg.AsyncConnection",
    "psycopg2.connect": "psycopg2.connection",
    "psycopg2.connection.cursor": "psycopg2.cursor",
    "psycopg2.pool.SimpleConnectionPool.getconn": "psycopg2.connection",
    "psycopg2.pool.ThreadedConnectionPool.getconn": "psycopg2.connection",
    "asyncpg.connect": "asyncpg.Connection",
    "asyncpg.create_pool": "asyncpg.Pool",
    "asyncpg.Pool.acquire": "asyncpg.Connection",
    "sqlalchemy.create_engine": "sqlalchemy.Engine",
    "sqlalchemy.Engine.connect": "sqlalchemy.Connection",
    "sqlalchemy.Engine.begin": "sqlalchemy.Connection",
    "sqlalchemy.Engine.execution_options": "sqlalchemy.Engine",
    "sqlalchemy.Connection.execution_options": "sqlalchemy.Connection",
    "sqlalchemy.orm.scoped_session": "sqlalchemy.orm.Session",
    "sqlalchemy.orm.sessionmaker.__call__": "sqlalchemy.orm.Session",
    "sqlalchemy.orm.sessionmaker.begin": "sqlalchemy.orm.Session",
    "sqlalchemy.orm.Session.__call__": "sqlalchemy.orm.Session",  # of a scoped_session
    "sqlalchemy.orm.Session.connection": "sqlalchemy.Connection",
    "sqlalchemy.ext.asyncio.create_async_engine": "sqlalchemy.ext.asyncio.AsyncEngine",
    "sqlalchemy.ext.asyncio.AsyncEngine.connect": "sqlalchemy.ext.asyncio.AsyncConnection",
    "sqlalchemy.ext.asyncio.AsyncEngine.begin": "sqlalchemy.ext.asyncio.AsyncConnection",
    "sqlalchemy.ext.asyncio.AsyncEngine.execution_options": "sqlalchemy.ext.asyncio.AsyncEngine",
    "sqlalchemy.ext.asyncio.AsyncConnection.execution_options": "sqlalchemy.ext.asyncio.AsyncConnection",
    "sqlalchemy.ext.asyncio.async_sessionmaker.__call__": "sqlalchemy.ext.asyncio.AsyncSession",
    "sqlalchemy.ext.asyncio.async_sessionmaker.begin": "sqlalchemy.ext.asyncio.AsyncSession",
    "asyncio.create_subprocess_exec": "asyncio.Process",
    "asyncio.create_subprocess_shell": "asyncio.Process",
    "asyncio.get_event_loop": "asyncio.AbstractEventLoop",
    "asyncio.get_running_loop": "asyncio.AbstractEventLoop",
    "asyncio.new_event_loop": "asyncio.AbstractEventLoop",
    "concurrent.futures.ThreadPoolExecutor.submit": "concurrent.futures.Future",
    "concurrent.futures.ProcessPoolExecutor.submit": "concurrent.futures.Future",
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
# Calls that declare a field of a class, whose annotation says what it holds.
DECLARED_FIELDS = frozenset(
    {"attr.ib", "attr.attrib", "attr.field", "attrs.field", "dataclasses.field", "pydantic.Field"}
)  # fmt: skip
# Attributes that exist on every instance of these types and lead to the same object again.
SAME_OBJECT = frozenset({"__enter__", "__aenter__"})

# Libraries whose names rules and tables speak of.
LIBRARIES = frozenset(
    {
        "aiohttp", "airflow", "anyio", "asyncpg", "async_timeout", "boto3", "celery", "dagster", "deadlint_budget",
        "dramatiq", "eventlet", "fiona", "func_timeout", "geopandas", "gevent", "httpx", "httpx2", "huey", "luigi",
        "osgeo", "pandas", "prefect", "psutil", "psycopg", "psycopg2", "psycopg_pool", "pytest", "rasterio",
        "requests", "requests_cache", "requests_futures", "requests_oauthlib", "requests_toolbelt", "rq",
        "sqlalchemy", "sqlmodel", "stopit", "tenacity", "timeout_decorator", "trio", "urllib3",
        "wrapt_timeout_decorator",
    }
)  # fmt: skip


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
