"""How worst cases come about: what is added up, what the longest of is taken, what is claimed of nothing."""

from __future__ import annotations

import pytest

from tests.lint.tree.conftest import Grow

HEAD = "import subprocess, time, asyncio, requests\nfrom deadlint_budget import Budget, run, statement_timeout\n"


def body(text: str) -> str:
    lines = "\n".join(f"    {line}" for line in text.strip().splitlines())
    return f"{HEAD}\ndef main(flag=False, items=(), n=1):\n{lines}\n"


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("time.sleep(1)\ntime.sleep(2)", 3),
        ("if flag:\n    time.sleep(1)\nelse:\n    time.sleep(2)", 2),
        ("if flag:\n    time.sleep(1)\n    return\ntime.sleep(5)\ntime.sleep(2)", 7),
        ("if not flag:\n    time.sleep(9)\n    return\ntime.sleep(5)", 9),
        ("time.sleep(1) if flag else time.sleep(4)", 4),
        ("try:\n    time.sleep(1)\nexcept ValueError:\n    time.sleep(2)\nexcept OSError:\n    time.sleep(3)\nfinally:\n    time.sleep(10)", 14),
        ("match n:\n    case 1:\n        time.sleep(1)\n    case 2:\n        time.sleep(2)", 2),
        ("for x in range(4):\n    time.sleep(2)", 8),
        ("for x in range(0, 10, 5):\n    time.sleep(2)", 4),
        ("for x in ('a', 'b', 'c'):\n    time.sleep(2)", 6),
        ("[time.sleep(2) for x in (1, 2)]", 4),
        ("subprocess.run(['a'], timeout=60)", 60),
        ("subprocess.run(['a'], timeout=None)", None),
        ("subprocess.run(['a'])", None),
        ("requests.get('u', timeout=10)", None),
        ("for x in items:\n    time.sleep(2)", None),
        ("while flag:\n    time.sleep(2)", None),
        ("def later():\n    time.sleep(2)\ntime.sleep(1)", 1),
        ("class Later:\n    time.sleep(2)\ntime.sleep(1)", 1),
        ("f = lambda: time.sleep(2)\ntime.sleep(1)", 1),
        ("b = Budget.of(100)\nrun(['a'], budget=b, want=80)\nrun(['b'], budget=b, want=80)", 100),
        ("b = Budget.of(100)\nrun(['a'], budget=b, want=30)\nrun(['b'], budget=b, want=30)", 60),
        ("b = Budget.of(100)\nrun(['a'], budget=b)\ntime.sleep(5)", 105),
        ("b = Budget.of(100)\nsubprocess.run(['a'], timeout=b.slice(30))", 30),
        ("b = Budget.of(100)\nsubprocess.run(['a'], timeout=min(300, b.remaining()))", 100),
        ("with Budget.of(50) as b:\n    run(['a'])", 50),
        ("b = Budget.of(50)\nfor x in b.units(items):\n    run(['a'], budget=b)", 50),
        ("one = Budget.of(10)\ntwo = Budget.of(20)\nrun(['a'], budget=one)\nrun(['b'], budget=two)", 30),
    ],
)
def test_worst_case_of_a_function(grow: Grow, text: str, seconds: float | None) -> None:
    worst = grow(body(text)).roots[0]["worst"]
    assert (worst["seconds"], worst["exact"]) == (seconds, True)


def test_coroutines_that_run_together_take_as_long_as_the_longest(grow: Grow) -> None:
    text = HEAD + (
        "async def one():\n    await asyncio.sleep(3)\n\n"
        "async def two():\n    await asyncio.sleep(5)\n\n"
        "async def main():\n    await asyncio.gather(one(), two())\n"
    )
    assert grow(text).roots[0]["worst"]["seconds"] == 5


def test_wait_for_and_timeout_bound_what_is_inside(grow: Grow) -> None:
    text = HEAD + (
        "async def slow(x):\n    await asyncio.sleep(x)\n\n"
        "async def main():\n"
        "    await asyncio.wait_for(slow(100), 30)\n"
        "    async with asyncio.timeout(20):\n        await slow(1000)\n"
    )
    tree = grow(text)
    assert tree.roots[0]["worst"]["seconds"] == 50
    assert [n["limit"]["seconds"] for n in tree if n["layer"] == "scope"] == [30, 20]
    assert sum("inverted" in {m["kind"] for m in n["marks"]} for n in tree) == 2


def test_a_parameter_that_no_call_gives_is_bounded_by_what_is_not_known(grow: Grow) -> None:
    tree = grow(HEAD + "def main(timeout):\n    time.sleep(5)\n    subprocess.run(['a'], timeout=timeout)\n")
    assert tree.roots[0]["worst"] == {"seconds": 5, "bounded": True, "exact": False}
    assert tree.node("process", "a")["limit"] == {"seconds": None, "known": "unknown", "note": "parameter `timeout`"}


def test_the_same_function_is_as_long_as_each_call_says(grow: Grow) -> None:
    text = HEAD + (
        "def step(limit=7):\n    subprocess.run(['a'], timeout=limit)\n\n"
        "def main():\n    step(1)\n    step(limit=20)\n    step()\n"
    )
    tree = grow(text)
    assert [n["worst"]["seconds"] for n in tree if n["name"] == "step"] == [1, 20, 7]
    assert tree.roots[0]["worst"]["seconds"] == 28


def test_arguments_are_followed_through_threads_partials_and_keywords(grow: Grow) -> None:
    text = HEAD + (
        "from functools import partial\n\n"
        "def step(name, limit):\n    subprocess.run([name], timeout=limit)\n\n"
        "async def main():\n    await asyncio.to_thread(step, 'a', 40)\n    partial(step, 'b', limit=2)()\n"
    )
    assert grow(text).roots[0]["worst"]["seconds"] == 42


def test_a_retry_multiplies_what_it_is_around(grow: Grow) -> None:
    text = HEAD + (
        "from tenacity import retry, stop_after_attempt, wait_fixed\n\n"
        "@retry(stop=stop_after_attempt(3), wait=wait_fixed(10))\n"
        "def step():\n    subprocess.run(['a'], timeout=60)\n\n"
        "def main():\n    step()\n"
    )
    assert grow(text).worst("retry", "step") == 200


def test_a_call_that_cannot_be_resolved_is_not_in_the_tree(grow: Grow) -> None:
    tree = grow("def main(client, callback):\n    client.fetch()\n    callback()\n    unknown.run()\n")
    assert tree.roots == [] or not tree.roots[0]["children"]


def test_a_function_that_is_shown_twice_has_its_inside_once(grow: Grow) -> None:
    steps = "\n".join(f"    subprocess.run(['s{n}'], timeout={n})" for n in range(1, 7))
    tree = grow(f"{HEAD}\ndef step():\n{steps}\n\ndef main():\n    step()\n    step()\n")
    first, second = (n for n in tree if n["name"] == "step")
    assert len(first["children"]) == 6
    assert second["children"] == []
    assert {m["kind"] for m in second["marks"]} == {"above"}
    assert tree.roots[0]["worst"]["seconds"] == 42


def test_a_pool_runs_what_it_is_given_and_its_result_is_no_second_wait(grow: Grow) -> None:
    text = HEAD + (
        "from concurrent.futures import ThreadPoolExecutor\n\n"
        "def step(limit):\n    subprocess.run(['a'], timeout=limit)\n\n"
        "def main(items):\n"
        "    with ThreadPoolExecutor() as pool:\n"
        "        done = pool.submit(step, 30)\n        done.result()\n"
    )
    assert grow(text).roots[0]["worst"]["seconds"] == 30


def test_a_map_over_a_pool_goes_round_nobody_knows_how_often(grow: Grow) -> None:
    text = HEAD + (
        "from concurrent.futures import ThreadPoolExecutor\n\n"
        "def step(item):\n    subprocess.run(['a'], timeout=3)\n\n"
        "def main(items):\n"
        "    with ThreadPoolExecutor() as pool:\n        list(pool.map(step, items))\n"
    )
    tree = grow(text)
    assert not tree.roots[0]["worst"]["bounded"]
    assert tree.marks("loop", "pool.map") == {"uncounted"}


def test_a_setting_is_a_default_and_says_whose(grow: Grow) -> None:
    text = HEAD + "import os\n\nLIMIT = float(os.environ.get('GRID_LIMIT', '45'))\n\ndef main():\n    subprocess.run(['a'], timeout=LIMIT)\n"
    limit = grow(text).node("process", "a")["limit"]
    assert (limit["seconds"], limit["known"]) == (45, "default")
    assert "GRID_LIMIT" in limit["note"]


def test_a_child_may_have_its_limit_in_its_arguments(grow: Grow) -> None:
    tree = grow(HEAD + "def main():\n    subprocess.run(['timeout', '60', 'gdalwarp', 'a', 'b'])\n")
    assert tree.roots[0]["worst"]["seconds"] == 60


def test_limits_of_a_class_or_an_application_are_on_their_tasks(grow: Grow) -> None:
    celery = (
        HEAD + "from celery import Celery\n\napp = Celery('x')\napp.conf.task_time_limit = 90\n\n"
        "@app.task()\ndef job():\n    subprocess.run(['a'], timeout=600)\n"
    )
    luigi = (
        HEAD + "import luigi\n\nclass Build(luigi.Task):\n    worker_timeout = 100\n\n"
        "    def run(self):\n        subprocess.run(['b'], timeout=20)\n"
    )
    tree = grow(celery, other=luigi)
    assert tree.worst("task", "job") == 90
    assert tree.worst("task", "Build.run") == 100
    assert tree.marks("process", "a") == {"inverted"}


def test_options_of_a_call_take_the_place_of_the_decorators(grow: Grow) -> None:
    text = HEAD + (
        "from prefect import flow, task\n\n"
        "@task(timeout_seconds=10, retries=1)\ndef step():\n    subprocess.run(['a'], timeout=5)\n\n"
        "@flow\ndef night():\n"
        "    step.with_options(timeout_seconds=100, retries=0)()\n"
        "    step.with_options(timeout_seconds=200).submit()\n"
        "    step()\n"
    )
    assert [n["worst"]["seconds"] for n in grow(text) if n["name"] == "step"] == [100, 400, 20]


def test_a_list_that_grows_has_no_known_length(grow: Grow) -> None:
    text = "urls = []\nfor x in items:\n    urls.append(x)\nfor url in urls:\n    time.sleep(1)"
    tree = grow(body(text))
    assert not tree.roots[0]["worst"]["bounded"]


def test_turns_may_come_from_a_parameter(grow: Grow) -> None:
    text = HEAD + (
        "def step(tries=3):\n    for _ in range(1, tries + 1):\n        time.sleep(2)\n\n"
        "def main():\n    step()\n    step(5)\n"
    )
    assert [n["worst"]["seconds"] for n in grow(text) if n["name"] == "step"] == [6, 10]


def test_what_is_sent_to_a_queue_is_shown_and_not_counted(grow: Grow) -> None:
    text = HEAD + (
        "from celery import shared_task\n\n"
        "@shared_task(time_limit=600)\ndef job():\n    subprocess.run(['a'], timeout=5)\n\n"
        "@shared_task(time_limit=10)\ndef beat():\n    job.delay()\n"
    )
    tree = grow(text)
    assert [root["name"] for root in tree.roots] == ["beat"]
    assert tree.marks("task", "job") == {"elsewhere"}
    assert tree.node("task", "beat")["inside"]["seconds"] == 0


def test_an_alarm_bounds_what_stands_between_it_and_where_it_is_taken_back(grow: Grow) -> None:
    text = HEAD + (
        "import signal\n\n"
        "def main():\n"
        "    time.sleep(1)\n"
        "    signal.alarm(20)\n"
        "    try:\n        time.sleep(60)\n    finally:\n        signal.alarm(0)\n"
        "    time.sleep(3)\n"
    )
    tree = grow(text)
    assert tree.roots[0]["worst"]["seconds"] == 24
    assert tree.marks("scope", "signal.alarm") == set()
    assert [n["limit"]["seconds"] for n in tree if {"kind": "inverted"}.items() <= (n["marks"] or [{}])[0].items()] == [60]


def test_a_session_that_sends_again_shows_its_attempts(grow: Grow) -> None:
    text = HEAD + (
        "from requests.adapters import HTTPAdapter\nfrom urllib3.util.retry import Retry\n\n"
        "def main():\n    session = requests.Session()\n"
        "    session.mount('https://', HTTPAdapter(max_retries=Retry(total=3, backoff_factor=1)))\n"
        "    session.get('https://x', timeout=10)\n"
    )
    node = grow(text).node("request", "session.get")
    assert (node["attempts"], node["limit"]["seconds"], node["worst"]["bounded"]) == (4, 10, False)


@pytest.mark.parametrize(
    ("loop", "seconds"),
    [
        ("while tries < 4:\n    time.sleep(2)\n    tries += 1", 8),
        ("while tries <= 4:\n    time.sleep(2)\n    tries += 2", 6),
        ("while tries < 3:\n    try:\n        time.sleep(2)\n        break\n    except OSError:\n        tries += 1", 6),
        ("while tries < 3:\n    try:\n        time.sleep(2)\n    except OSError:\n        tries += 1", None),
        ("while tries < 3:\n    time.sleep(2)\n    if flag:\n        continue\n    tries += 1", None),
        ("while tries < 3:\n    time.sleep(2)\n    if flag:\n        tries += 1", None),
        ("while tries < 3:\n    time.sleep(2)\n    tries += 1\n    tries = n", None),
        ("while tries < n:\n    time.sleep(2)\n    tries += 1", 2),
    ],
)
def test_a_loop_that_counts_up_has_known_turns(grow: Grow, loop: str, seconds: float | None) -> None:
    assert grow(body(f"tries = 0\n{loop}")).roots[0]["worst"]["seconds"] == seconds
