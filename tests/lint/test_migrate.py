"""`deadlint migrate`: one budget from an entry down to what blocks; and what it leaves alone, with the reason."""

from __future__ import annotations

import ast
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

import deadlint_budget
import pytest
from click.testing import CliRunner
from deadlint import write
from deadlint.cli import cli
from deadlint.errors import UserError
from deadlint.migrate import written

ENTRY = ("--entry", "flows:build", "--deadline", "7200", "--reserve", "720")
RUN = 'subprocess.run(["gdalinfo", path], check=True, timeout=60)'
RUN_UNDER = 'run(["gdalinfo", path], check=True, budget=budget, want=60)'


@dataclass(frozen=True)
class Done:
    """How a migration ended, and what it printed."""

    status: int
    output: str


Migrate = Callable[..., Done]


@pytest.fixture
def migrate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Migrate:
    """Run `deadlint migrate` in an empty folder: `migrate(*options, **files)`, where `a__b` is `a/b.py`."""
    monkeypatch.chdir(tmp_path)

    def run(*options: str, **files: str) -> Done:
        for name, text in files.items():
            path = Path(f"{name.replace('__', '/')}.py")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(dedent(text).lstrip("\n"), encoding="utf-8")
        result = CliRunner().invoke(cli, ["migrate", *(options or (*ENTRY, "--write"))], standalone_mode=False)
        if result.exception is not None:
            raise result.exception
        return Done(int(result.return_value), result.output)

    return run


def text(name: str) -> str:
    """A file after the migration, which parses."""
    content = Path(name).read_text(encoding="utf-8")
    compile(content, name, "exec")
    return content


def head(name: str, function: str) -> str:
    """The first line of a function."""
    [found] = [
        n for n in ast.walk(ast.parse(text(name)))
        if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef) and n.name == function
    ]  # fmt: skip
    return f"def {function}({ast.unparse(found.args)})"


FLOWS = """
    from rasters import warp


    def build(paths: list[str]) -> None:
        \"""Build.\"""
        for path in paths:
            warp(path)
"""
RASTERS = f"""
    import subprocess


    def warp(path: str) -> None:
        {RUN}
"""


def test_a_budget_comes_from_the_entry_to_the_leaf_over_files(migrate: Migrate) -> None:
    migrate(flows=FLOWS, rasters=RASTERS)
    assert text("flows.py") == dedent('''\
        from deadlint_budget import Budget
        from rasters import warp

        DEADLINE_S = 7200
        RESERVE_S = 720


        def build(paths: list[str]) -> None:
            """Build."""
            budget = Budget.of(DEADLINE_S, "build", reserve=RESERVE_S)
            for path in paths:
                warp(path, budget=budget)
        ''')
    assert text("rasters.py") == dedent(f"""\
        from deadlint_budget import Budget, run


        def warp(path: str, *, budget: Budget) -> None:
            {RUN_UNDER}
        """)


def test_a_second_run_changes_nothing(migrate: Migrate) -> None:
    migrate(flows=FLOWS, rasters=RASTERS)
    first = text("flows.py"), text("rasters.py")
    assert "Nothing to change" in migrate(*ENTRY, "--write").output
    assert migrate(*ENTRY, "--diff").status == 0
    assert (text("flows.py"), text("rasters.py")) == first


def test_other_numbers_go_into_the_constants(migrate: Migrate) -> None:
    imports = "from prefect import flow\n\nfrom rasters import warp\n\n\n@flow\n"
    Path("flows.py").write_text(f"{imports}def build(path):\n    warp(path)\n")
    migrate(rasters=RASTERS)
    before = text("flows.py")
    migrate(*ENTRY[:2], "--deadline", "9000", "--reserve", "720", "--write")
    assert text("flows.py") == before.replace("DEADLINE_S = 7200", "DEADLINE_S = 9000")


def test_a_coroutine_ends_what_it_awaits(migrate: Migrate) -> None:
    flows = """
        import asyncio

        from rasters import warp


        async def build(path: str) -> None:
            \"""Build.\"""
            await asyncio.to_thread(warp, path)
    """
    migrate(flows=flows, rasters=RASTERS)
    assert text("flows.py").endswith(
        "    async with budget.scope():\n        await asyncio.to_thread(warp, path, budget=budget)\n"
    )
    assert "Nothing to change" in migrate(*ENTRY, "--write").output
    assert "Nothing to change" in migrate(*ENTRY, "--ambient", "--write").output


def test_a_copy_of_the_helpers_is_imported_where_the_project_has_one(migrate: Migrate) -> None:
    Path("deadlint.toml").write_text('helpers = "limits"\n')
    shutil.copytree(Path(deadlint_budget.__file__).parent, "limits", ignore=shutil.ignore_patterns("__pycache__"))
    migrate(flows=FLOWS, rasters=RASTERS)
    assert "from limits import Budget\n" in text("flows.py")
    assert "from limits import Budget, run\n" in text("rasters.py")
    assert RUN_UNDER in text("rasters.py")
    assert "Nothing to change" in migrate(*ENTRY, "--write").output


def test_a_name_that_is_taken_is_not_used(migrate: Migrate) -> None:
    migrate(flows=FLOWS, rasters=RASTERS.replace("path: str", "path: str, budget: float = 9.5"))
    assert "def warp(path: str, budget: float = 9.5, *, time_budget: Budget) -> None:" in text("rasters.py")
    assert "check=True, budget=time_budget, want=60" in text("rasters.py")
    assert "warp(path, time_budget=budget)" in text("flows.py")
    assert "Nothing to change" in migrate(*ENTRY, "--write").output


def test_nothing_is_written_unless_asked(migrate: Migrate) -> None:
    done = migrate(*ENTRY, flows=FLOWS, rasters=RASTERS)
    assert "warp  rasters.py:4, called in line 7: gets `budget: Budget`" in done.output
    assert done.status == 0
    assert migrate(*ENTRY, "--diff").status == 1
    assert "budget" not in text("flows.py") + text("rasters.py")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("def warp(path):", "def warp(path, *, budget):"),
        ("def warp(path) -> None:", "def warp(path, *, budget: Budget) -> None:"),
        ("def warp(path='x', /):", "def warp(path='x', /, *, budget):"),
        ("def warp(path=('x')):", "def warp(path=('x'), *, budget):"),
        ("def warp(path: str, *more: str):", "def warp(path: str, *more: str, budget: Budget):"),
        ("def warp(path, *, fast=True):", "def warp(path, *, fast=True, budget):"),
        ("def warp(path, **options):", "def warp(path, *, budget, **options):"),
        ("def warp(path, *, fast=True, ** options):", "def warp(path, *, fast=True, budget, ** options):"),
        ("def warp(path, ): # how", "def warp(path, *, budget, ): # how"),
        (
            "def warp(\n    path: str,  # where\n    fast=(1, 2),\n):",
            "def warp(\n    path: str,  # where\n    fast=(1, 2),\n    *,\n    budget: Budget,\n):",
        ),
        (
            "def warp(\n    path: str,\n    fast: bool = True  # or not\n):",
            "def warp(\n    path: str,\n    fast: bool = True,  # or not\n    *,\n    budget: Budget,\n):",
        ),
        (
            "def warp(\n    path: str,\n    **options: int,\n):",
            "def warp(\n    path: str,\n    *,\n    budget: Budget,\n    **options: int,\n):",
        ),
        ("def warp(path,\n         fast=1):", "def warp(path,\n         fast=1, *, budget):"),
    ],
)
def test_the_parameter_is_keyword_only_and_laid_out_as_the_others(migrate: Migrate, before: str, after: str) -> None:
    migrate(flows=FLOWS)
    Path("rasters.py").write_text(f"import subprocess\n\n\n{before}\n    {RUN}\n")
    migrate(*ENTRY, "--write")
    assert after in text("rasters.py")
    assert RUN_UNDER in text("rasters.py")


@pytest.mark.parametrize(
    ("before", "added"),
    [
        (
            "Args:\n        path: where\n            it is\n\n    Returns:\n        Nothing.\n    ",
            "            it is\n        budget: The time that is left for this.\n\n    Returns",
        ),
        ("Args:\n        path (str): where\n    ", "budget (Budget): The time that is left for this.\n    \"\"\""),
        (
            "Parameters\n    ----------\n    path : str\n        Where.\n\n    Returns\n    -------\n    None\n    ",
            "        Where.\n    budget : Budget\n        The time that is left for this.\n\n    Returns",
        ),
        (
            ":param path: where\n      it is\n    :returns: nothing\n    ",
            "      it is\n    :param budget: The time that is left for this.\n    :returns",
        ),
    ],
    ids=["google", "google with types", "numpy", "sphinx"],
)
def test_a_docstring_with_entries_gets_one(migrate: Migrate, before: str, added: str) -> None:
    migrate(flows=FLOWS)
    Path("rasters.py").write_text(
        f'import subprocess\n\n\ndef warp(path: str) -> None:\n    """Warp.\n\n    {before}"""\n    {RUN}\n'
    )
    migrate(*ENTRY, "--write")
    assert added in text("rasters.py")


def test_a_docstring_without_entries_stays(migrate: Migrate) -> None:
    migrate(flows=FLOWS, rasters=RASTERS.replace("-> None:", '-> None:\n        """Warp, with arguments."""'))
    assert '"""Warp, with arguments."""\n' in text("rasters.py")


def test_other_callers_go_on_as_before(migrate: Migrate) -> None:
    """The budget is optional where some caller has none, a test or another program."""
    test = "from rasters import warp\n\n\ndef test_warp():\n    warp('x')\n"
    migrate(flows=FLOWS, rasters=RASTERS, tests__test_rasters=test)
    assert head("rasters.py", "warp") == "def warp(path: str, *, budget: Budget | None=None)"
    assert text("tests/test_rasters.py") == test


def test_who_may_be_called_without_one_may_hand_on_none(migrate: Migrate) -> None:
    """A helper below an optional budget has an optional one too: its methods are not called."""
    flows = """
        import subprocess
        import time


        def build(path: str) -> None:
            publish(path)


        def other() -> None:
            publish("x")


        def publish(path: str) -> None:
            upload(path)


        def upload(path: str) -> None:
            subprocess.run(["rsync", path, "x:"], check=True, timeout=60)
            time.sleep(1)
    """
    migrate(flows=flows)
    assert head("flows.py", "upload") == "def upload(path: str, *, budget: Budget | None=None)"
    assert "budget.sleep" not in text("flows.py")


def test_what_is_exported_gets_an_optional_one_where_that_is_asked_for(migrate: Migrate) -> None:
    Path("pkg").mkdir()
    Path("pkg/__init__.py").write_text("from pkg import rasters\n\nwarp = rasters.warp\n")
    said = migrate(*ENTRY, "--write", "--plan", flows=FLOWS.replace("rasters", "pkg"), pkg__rasters=RASTERS)
    assert "it is exported" in said.output
    assert head("pkg/rasters.py", "warp") == "def warp(path: str)"
    migrate(*ENTRY, "--exported", "--write")
    assert head("pkg/rasters.py", "warp") == "def warp(path: str, *, budget: Budget | None=None)"


def test_a_comment_stays_with_its_statement(migrate: Migrate) -> None:
    comment = "# each of them"
    migrate(flows=FLOWS.replace("        for path", f"        {comment}\n        for path"), rasters=RASTERS)
    assert f"    {comment}\n    for path in paths:" in text("flows.py")


def test_a_method_that_something_unknown_may_call_gets_an_optional_one(migrate: Migrate) -> None:
    """Such as a test, on a fixture of pytest."""
    flows = f"""
        import subprocess


        class Loader:
            def load(self, path: str) -> None:
                {RUN}


        def build() -> None:
            Loader().load("x")
    """
    test = "def test_load(loader):\n    loader.load('x')\n"
    migrate(flows=flows, tests__test_flows=test)
    assert head("flows.py", "load") == "def load(self, path: str, *, budget: Budget | None=None)"


def test_an_entry_in_folders_without_an_init_is_found(migrate: Migrate) -> None:
    body = f"import subprocess\n\n\ndef build(path):\n    {RUN}\n"
    migrate("--entry", "jobs.night.flows:build", "--deadline", "60", "--write", src__jobs__night__flows=body)
    assert RUN_UNDER in text("src/jobs/night/flows.py")


def test_what_has_no_leaf_below_it_gets_no_budget(migrate: Migrate) -> None:
    flows = """
        def build(path):
            scale(path)


        def scale(path):
            return path * 2
    """
    assert "Nothing to change" in migrate(flows=flows).output
    assert "udget" not in text("flows.py")


def test_methods_and_constructors_take_it(migrate: Migrate) -> None:
    flows = f"""
        import subprocess


        class Loader:
            def __init__(self, path: str) -> None:
                {RUN}

            def load(self, path: str) -> None:
                {RUN}


        def build() -> None:
            Loader("a").load("b")
    """
    migrate(flows=flows)
    assert 'Loader("a", budget=budget).load("b", budget=budget)' in text("flows.py")
    assert text("flows.py").count(RUN_UNDER) == 2


def test_nested_functions_have_it_from_around_them(migrate: Migrate) -> None:
    flows = f"""
        import subprocess


        def build(register) -> None:
            def info(path: str) -> None:
                {RUN}

            register(info)
    """
    migrate(flows=flows)
    assert head("flows.py", "info") == "def info(path: str)"
    assert RUN_UNDER in text("flows.py")


def test_threads_pools_and_partials_pass_it(migrate: Migrate) -> None:
    flows = f"""
        import asyncio
        import functools
        import subprocess
        import threading
        from concurrent.futures import ThreadPoolExecutor


        def info(path):
            {RUN}


        async def build(paths):
            with ThreadPoolExecutor() as pool:
                pool.submit(info, "a")
                list(pool.map(info, paths))
                list(map(lambda path: info(path), paths))
            await asyncio.to_thread(info, "b")
            threading.Thread(target=info, args=("c",)).start()
            later = functools.partial(info, "d")
            later()
    """
    migrate(flows=flows)
    after = text("flows.py")
    for call in (
        'pool.submit(info, "a", budget=budget)',
        "pool.map(partial(info, budget=budget), paths)",
        "lambda path: info(path, budget=budget)",
        'asyncio.to_thread(info, "b", budget=budget)',
        'threading.Thread(target=partial(info, budget=budget), args=("c",))',
        'functools.partial(info, "d", budget=budget)',
    ):
        assert call in after
    assert head("flows.py", "info") == "def info(path, *, budget)"


@pytest.mark.parametrize(
    ("definition", "use", "why"),
    [
        (f"def info(path):\n    {RUN}", "register(info)", "handed to something that calls it"),
        (f"def info(path):\n    {RUN}\nSTEPS = [info]", "info('x')", "kept as a value"),
        (f"@functools.cache\ndef info(path):\n    {RUN}", "info('x')", "a result for each budget"),
        (
            f"def fixed(f):\n    def inner(path):\n        return f(path)\n    return inner\n@fixed\ndef info(path):\n    {RUN}",
            "info('x')",
            "`@fixed` may not hand the budget on",
        ),
        (f"def kept(f):\n    KEPT.append(f)\n    return f\n@kept\ndef info(path):\n    {RUN}", "info('x')", "have others call it"),
        (
            f"class A:\n    def info(self, path): ...\nclass B(A):\n    def info(self, path):\n        {RUN}",
            "B().info('x')",
            "it overrides `A.info`",
        ),
        (
            f"class A:\n    def info(self, path):\n        {RUN}\nclass B(A):\n    def info(self, path): ...",
            "A().info('x')",
            "`B.info` overrides it",
        ),
        (
            f"class A(http.server.BaseHTTPRequestHandler):\n    def do_GET(self, path='x'):\n        {RUN}",
            "A().do_GET()",
            "it may override a method of `http.server.BaseHTTPRequestHandler`",
        ),
        (
            f"class A:\n    @property\n    def info(self, path='x'):\n        {RUN}",
            "A().info",
            "it is a property",
        ),
        (
            f"class A:\n    def __enter__(self, path='x'):\n        {RUN}",
            "A().__enter__()",
            "Python itself calls it",
        ),
        (f"__all__ = ['info']\ndef info(path):\n    {RUN}", "info('x')", "it is exported, so others call it"),
    ],
    ids=["callback", "table", "cache", "decorator", "registered", "overrides", "overridden", "foreign base", "property", "dunder", "exported"],
)
def test_what_others_call_is_left_with_the_reason(migrate: Migrate, definition: str, use: str, why: str) -> None:
    program = f"import functools\nimport http.server\nimport subprocess\n{definition}\ndef build(register):\n    {use}\n"
    Path("flows.py").write_text(program)
    done = migrate(*ENTRY, "--plan", "--write")
    assert why in done.output
    assert "Left as it is:" in done.output
    assert RUN in text("flows.py")


def test_with_ambient_what_is_left_takes_the_budget_of_the_entry(migrate: Migrate) -> None:
    flows = f'''
        import subprocess

        __all__ = ["info"]
        SQL = "x"


        def info(path):
            {RUN}


        def build():
            """Build."""
            info(
                "x"
            )
            return """
        a
            b
        """
    '''
    before: dict[str, object] = {"print": print}
    migrate(*ENTRY, "--ambient", "--write", flows=flows)
    after = text("flows.py")
    assert 'run(["gdalinfo", path], check=True, want=60)' in after
    assert (
        '    budget = Budget.of(DEADLINE_S, "build", reserve=RESERVE_S)\n    with budget:\n        info(\n            "x"\n'
    ) in after
    exec(after.replace("check=True, want=60", "").replace('run(["gdalinfo", path], )', "None"), before)
    assert before["build"]() == "\na\n    b\n"  # type: ignore[operator]
    assert "Nothing to change" in migrate(*ENTRY, "--ambient", "--write").output


def test_hand_made_deadlines_and_pauses_become_layers(migrate: Migrate) -> None:
    flows = """
        import time
        from pathlib import Path


        def build(path: Path) -> bool:
            return wait_for(path)


        def wait_for(path: Path) -> bool:
            deadline = time.monotonic() + 60
            while time.monotonic() < deadline:
                if path.exists():
                    return True
                time.sleep(min(1, deadline - time.monotonic()))
            return False
    """
    migrate(flows=flows)
    assert text("flows.py").endswith(
        dedent("""\
        def wait_for(path: Path, *, budget: Budget) -> bool:
            deadline = budget.limit("wait_for", 60)
            while not deadline.expired:
                if path.exists():
                    return True
                budget.sleep(min(1, deadline.remaining()))
            return False
        """)
    )
    assert "import time" not in text("flows.py")


def test_a_limit_of_statements_set_by_hand_ends_with_the_budget_too(migrate: Migrate) -> None:
    """It stays: without it the limit of the role would hold, which may be narrower."""
    flows = """
        import psycopg


        def build(dsn):
            with psycopg.connect(dsn) as conn, conn.cursor() as cur:
                cur.execute("SET LOCAL statement_timeout = '15min'")
                # All of them.
                cur.execute('''
        SELECT 1
                ''')
                return cur.fetchone()
    """
    migrate(flows=flows)
    assert text("flows.py").endswith(
        dedent("""\
                cur.execute("SET LOCAL statement_timeout = '15min'")
                with statement_timeout(conn, budget):
                    # All of them.
                    cur.execute('''
        SELECT 1
                ''')
                    return cur.fetchone()
        """)
    )
    assert "Nothing to change" in migrate(*ENTRY, "--write").output


def test_what_is_installed_as_a_program_is_called_by_others(migrate: Migrate) -> None:
    Path("pyproject.toml").write_text('[project]\nname = "x"\n[project.scripts]\nwarp = "rasters:warp"\n')
    assert "it is exported" in migrate(*ENTRY, flows=FLOWS, rasters=RASTERS).output


def test_a_limit_on_the_time_that_has_passed_becomes_a_layer(migrate: Migrate) -> None:
    flows = """
        import time

        LIMIT_S = 60


        def build(path, log):
            start = time.time()
            while time.time() - start < LIMIT_S:
                if path.exists():
                    log(time.time() - start)
                    return True
            return False


        def unrelated():
            return time.time()
    """
    migrate(flows=flows)
    assert (
        "    start = time.time()\n"
        '    deadline = budget.limit("build", LIMIT_S)\n'
        "    while not deadline.expired:\n"
        "        if path.exists():\n"
        "            log(time.time() - start)\n"
    ) in text("flows.py")
    assert "Nothing to change" in migrate(*ENTRY, "--write").output


def test_a_start_that_is_only_for_its_limit_goes(migrate: Migrate) -> None:
    flows = """
        import time


        def build(path, limit):
            start = time.monotonic()
            while not path.exists():
                if time.monotonic() - start >= limit:
                    raise TimeoutError
    """
    migrate(flows=flows)
    assert '    deadline = budget.limit("build", limit)\n    while' in text("flows.py")
    assert "        if deadline.expired:\n" in text("flows.py")
    assert "import time" not in text("flows.py")


def test_a_limit_that_changes_on_the_way_stays(migrate: Migrate) -> None:
    flows = """
        import subprocess
        import time


        def build(path, limit):
            start = time.monotonic()
            while time.monotonic() - start < limit:
                limit = limit * 2
            subprocess.run(["gdalinfo", path], check=True, timeout=60)
    """
    assert "limit is a limit on the time that has passed" in migrate(*ENTRY, "--plan", "--write", flows=flows).output
    assert "while time.monotonic() - start < limit:" in text("flows.py")


def test_a_deadline_that_goes_elsewhere_stays(migrate: Migrate) -> None:
    flows = """
        import subprocess
        import time


        def build(path, wait):
            deadline = time.monotonic() + 60
            wait(deadline)
    """
    done = migrate(*ENTRY, "--plan", "--write", flows=flows)
    assert "`deadline` is a deadline made by hand" in done.output
    assert "deadline = time.monotonic() + 60" in text("flows.py")


def test_a_second_budget_becomes_a_layer_of_the_first(migrate: Migrate) -> None:
    flows = """
        from deadlint_budget import Budget, run


        def build(path: str) -> None:
            publish(path)


        def publish(path: str) -> None:
            budget = Budget.of(60, "publish")
            run(["rsync", path, "x:"], budget=budget)
    """
    migrate(flows=flows)
    assert 'budget = budget.limit("publish", 60)' in text("flows.py")
    assert head("flows.py", "publish") == "def publish(path: str, *, budget: Budget)"


def test_a_budget_that_may_be_none_is_not_asked(migrate: Migrate) -> None:
    flows = """
        import asyncio


        async def build(get):
            await fetch(get)


        async def fetch(get):
            async with asyncio.timeout(30):
                await get()


        async def other(get):
            await fetch(get)
    """
    migrate(flows=flows)
    assert "asyncio.timeout(budget.slice(30) if budget else 30)" in text("flows.py")
    assert "Nothing to change" in migrate(*ENTRY, "--write").output


@pytest.mark.parametrize(
    ("decorator", "after"),
    [
        ("@flow", "@flow(timeout_seconds=DEADLINE_S)"),
        ('@flow(name="x")', '@flow(name="x", timeout_seconds=DEADLINE_S)'),
        ("@flow(timeout_seconds=9000)", "@flow(timeout_seconds=9000)"),
        ("@shared_task", "@shared_task(soft_time_limit=DEADLINE_S, time_limit=DEADLINE_S + RESERVE_S)"),
        ("@airflow_task()", "@airflow_task(execution_timeout=timedelta(seconds=DEADLINE_S))"),
    ],
)
def test_an_orchestrated_entry_gets_a_limit_of_its_own(migrate: Migrate, decorator: str, after: str) -> None:
    imports = "from airflow.decorators import task as airflow_task\nfrom celery import shared_task\nfrom prefect import flow\n"
    Path("flows.py").write_text(f"import subprocess\n\n{imports}\n\n{decorator}\ndef build(path):\n    {RUN}\n")
    migrate(*ENTRY, "--write")
    assert f"\n{after}\ndef build" in text("flows.py")


@pytest.mark.parametrize(
    ("flows", "options", "says"),
    [
        ("def build(budget): ...", ENTRY, "takes a budget from its callers"),
        ("def other(): ...", ENTRY, "has no function `build`"),
        ("def build(): return 1", ("--entry", "flows:build"), "give --deadline"),
        ("def build(): return 1", ("--entry", "build", "--deadline", "5"), "package.module:function"),
        ("def build(): return 1", ("--entry", "x:build", "--deadline", "5"), "no module `x`"),
        ("def build(): return 1", (*ENTRY[:4], "--reserve", "7200"), "leaves nothing"),
        ("def build(): return 1", (*ENTRY[:2], "--deadline", "nan"), "--deadline nan: is no number of seconds"),
        ("def build(): return 1", (*ENTRY[:4], "--reserve", "inf"), "--reserve inf: is no number of seconds"),
        ("def build(): return 1", ENTRY, "lines of its own"),
        ("def build(:", ENTRY, "does not parse"),
        (
            "from prefect import flow\n@flow(timeout_seconds=60)\ndef build():\n    return 1",
            ENTRY,
            "is ended after 60 s by its decorator",
        ),
        ("from airflow.decorators import dag\n@dag()\ndef build():\n    return 1", ENTRY, "is a DAG"),
        ("DEADLINE_S = 1\nBUILD_DEADLINE_S = 2\ndef build():\n    return 1", ENTRY, "rename it first"),
    ],
)
def test_what_cannot_be_an_entry_is_refused(migrate: Migrate, flows: str, options: tuple[str, ...], says: str) -> None:
    with pytest.raises(UserError, match=says):
        migrate(*options, "--write", flows=flows)
    assert text("flows.py") == flows if "(:" not in flows else True


def test_a_limit_of_the_scheduler_is_the_deadline(migrate: Migrate) -> None:
    flows = f"""
        import subprocess

        from celery import shared_task


        @shared_task(time_limit=600, soft_time_limit=540)
        def build(path):
            {RUN}
    """
    migrate("--entry", "flows:build", "--write", flows=flows)
    assert "DEADLINE_S = 540\nRESERVE_S = 54\n" in text("flows.py")


def test_a_suppressed_leaf_stays(migrate: Migrate) -> None:
    migrate(flows=FLOWS, rasters=RASTERS.replace(RUN, f"{RUN}  # deadlint: ignore[DL101, DL404]: short"))
    assert "subprocess.run" in text("rasters.py")


def git(*arguments: str) -> None:
    command = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org", *arguments]
    subprocess.run(command, check=True, capture_output=True, timeout=30)


def test_a_dirty_tree_is_refused(migrate: Migrate) -> None:
    migrate(*ENTRY, flows=FLOWS, rasters=RASTERS)
    git("init")
    git("add", ".")
    git("commit", "-m", "a")
    Path("flows.py").write_text(text("flows.py") + "\nX = 1\n")
    with pytest.raises(UserError, match="not committed"):
        migrate(*ENTRY, "--write")
    assert "budget" not in text("flows.py") + text("rasters.py")
    migrate(*ENTRY, "--write", "--allow-dirty")
    assert "budget" in text("flows.py")


def test_one_file_that_cannot_be_written_keeps_all_as_they_were(
    migrate: Migrate, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse_rasters(before: write.Snapshot, data: bytes) -> None:
        if before.path.endswith("rasters.py"):
            raise write.CannotWrite("belongs to another user")
        write.replace_file(before, data)

    monkeypatch.setattr(written, "replace_file", refuse_rasters)
    with pytest.raises(UserError, match=r"rasters\.py: belongs to another user"):
        migrate(flows=FLOWS, rasters=RASTERS)
    assert text("flows.py") == dedent(FLOWS).lstrip("\n")


def test_crlf_and_encoding_stay(migrate: Migrate) -> None:
    migrate(flows=FLOWS)
    before = f"# -*- coding: latin-1 -*-\r\nimport subprocess\r\n\r\n\r\ndef warp(path):  # \xfc\r\n    {RUN}\r\n"
    Path("rasters.py").write_bytes(before.encode("latin-1"))
    migrate(*ENTRY, "--write")
    after = Path("rasters.py").read_bytes()
    assert b"def warp(path, *, budget):  # \xfc\r\n" in after
    assert after.count(b"\n") == after.count(b"\r\n")


def test_dynamic_calls_and_patches_in_tests_are_told(migrate: Migrate) -> None:
    flows = f"""
        import subprocess


        def build(path, steps, loader):
            steps["a"](path)
            loader.info(path)
            info(path)


        def info(path):
            {RUN}
    """
    test = """
        from unittest.mock import patch

        import flows


        @patch("flows.subprocess.run")
        def test_info(run, monkeypatch):
            monkeypatch.setattr(flows, "info", print)
            monkeypatch.setattr(flows.subprocess, "run", print)
            monkeypatch.setattr("os.path", "exists", print)
    """
    said = migrate(*ENTRY, flows=flows, tests__test_flows=test).output
    assert "`steps['a'](…)` in `build` is not followed" in said
    assert "`loader.info(…)` in `build` is not followed" in said
    assert "tests/test_flows.py:6: it replaces `flows.subprocess.run`" in said
    assert "tests/test_flows.py:8: it replaces `flows.info`" in said
    assert "tests/test_flows.py:9: it replaces `flows.subprocess.run`" in said
    assert "os.path" not in said


def test_the_documentation_shows_the_plan_of_the_example(monkeypatch: pytest.MonkeyPatch) -> None:
    root = Path(__file__).parents[2]
    monkeypatch.chdir(root / "fixtures" / "migrate")
    options = ["migrate", "--entry", "mosaic.flows:build_mosaic", "--deadline", "7200", "--reserve", "720"]
    plan = CliRunner().invoke(cli, options).output
    assert plan.count("gets `budget") == 6
    assert f"```\n{plan}```\n" in (root / "docs" / "migrate.md").read_text(encoding="utf-8")
