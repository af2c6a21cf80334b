"""Which calls run a function where they stand, and which hand it to a thread or a task of its own."""

from __future__ import annotations

import pytest
from deadlint.graph import Around
from deadlint.index.module import Module
from deadlint.settings import Settings
from deadlint.source import SourceFile


def around(body: str, work: str = "async def work():\n    pass\n") -> tuple[Around, ...]:
    """The limits around a function `work` that a coroutine with this body calls."""
    indented = body.replace("\n", "\n    ")
    text = f"import asyncio\nfrom functools import partial\n\n{work}\nasync def outer():\n    {indented}\n"
    module = Module(SourceFile("x.py", text), Settings())
    function = next(f for f in module.scope.functions if f.name == "work")
    return module.graph.around_function(function)


@pytest.mark.parametrize(
    "body",
    [
        "await asyncio.wait_for(work(), 5)",
        "async with asyncio.timeout(5):\n    await work()",
        "async with asyncio.timeout(5):\n    await asyncio.gather(work(), work())",
        "await asyncio.wait_for(asyncio.gather(*[work() for _ in range(3)]), 5)",
    ],
)
def test_an_awaited_coroutine_runs_where_it_is_awaited(body: str) -> None:
    found = around(body)
    assert found
    assert all(step.direct for one in found for step in one.path)


def test_a_task_of_its_own_does_not() -> None:
    (found,) = around("async with asyncio.timeout(5):\n    asyncio.create_task(work())")
    assert [step.direct for step in found.path] == [False]


@pytest.mark.parametrize(
    "body",
    [
        "await asyncio.wait_for(asyncio.to_thread(work), 5)",
        "loop = asyncio.get_running_loop()\nasync with asyncio.timeout(5):\n    await loop.run_in_executor(None, work)",
        "async with asyncio.timeout(5):\n    await asyncio.get_event_loop().run_in_executor(None, partial(work, 1))",
    ],
)
def test_a_thread_does_not(body: str) -> None:
    found = around(body, "def work():\n    pass\n")
    assert found
    assert [step.direct for one in found for step in one.path] == [False]


def test_a_plain_call_does() -> None:
    (found,) = around("async with asyncio.timeout(5):\n    work()", "def work():\n    pass\n")
    assert [step.direct for step in found.path] == [True]


def test_a_limit_knows_what_imposes_it() -> None:
    (found,) = around("async with asyncio.timeout(5):\n    await work()")
    assert found.limit.name == "asyncio.timeout"
