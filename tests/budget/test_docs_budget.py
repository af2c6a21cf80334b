"""The examples of `docs/budget.md` run as they stand, and every public name is in it."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import deadlint_budget
import pytest
from budget_witness import Cluster, Server, need_module
from test_http import fine

PAGE = Path(__file__).parents[2] / "docs" / "budget.md"
TEXT = PAGE.read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^```python\n(.*?)^```", TEXT, re.M | re.S)


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_example(
    number: int,
    serve: Callable[..., Server],
    request: pytest.FixtureRequest,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    code = EXAMPLES[number]
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    if "URL" in code:
        need_module("requests")
        names["URL"] = serve(fine).url
    if "conn." in code:
        cluster: Cluster = request.getfixturevalue("cluster")
        names["conn"] = need_module("psycopg2").connect(cluster.dsn)
    exec(compile(code, f"{PAGE.name}, example {number + 1}", "exec"), names)
    if "conn" in names:
        names["conn"].close()


def test_every_public_function_is_told_of() -> None:
    told = set(re.findall(r"\w+", TEXT))
    names = {name for name in deadlint_budget.__all__ if name.islower()} | set(deadlint_budget.http.__all__)
    verbs = {"get", "post", "put", "patch", "delete", "head", "options", "request"}
    errors = {name for name in names if name.endswith(("Exceeded", "Cancelled"))}
    assert names - told - verbs - errors == set()
