"""What counts as an entry, and which entries are roots."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lint.tree.conftest import Found, Grow, run

WAIT = "import time\n\n\ndef wait():\n    time.sleep(3)\n"


def roots(tree: Found) -> list[tuple[str, str]]:
    return [(root["layer"], root["name"]) for root in tree.roots]


@pytest.mark.parametrize(
    ("text", "layer"),
    [
        ("from prefect import flow\n\n@flow\ndef entry():\n    wait()\n", "flow"),
        ("from prefect import task\n\n@task(retries=2)\ndef entry():\n    wait()\n", "task"),
        ("from airflow.decorators import dag\n\n@dag()\ndef entry():\n    wait()\n", "dag"),
        ("from airflow.sdk import task\n\n@task.sensor()\ndef entry():\n    wait()\n", "task"),
        ("from celery import Celery\n\napp = Celery()\n\n@app.task\ndef entry():\n    wait()\n", "task"),
        ("from dagster import op\n\n@op\ndef entry():\n    wait()\n", "op"),
        ("from dagster import asset\n\n@asset\ndef entry():\n    wait()\n", "asset"),
        ("import dramatiq\n\n@dramatiq.actor\ndef entry():\n    wait()\n", "actor"),
        ("from rq.decorators import job\n\n@job('low')\ndef entry():\n    wait()\n", "job"),
        ("import click\n\n@click.command()\ndef entry():\n    wait()\n", "command"),
        ("import click\n\n@click.group()\ndef cli():\n    pass\n\n@cli.command()\ndef entry():\n    wait()\n", "command"),
        ("import typer\n\napp = typer.Typer()\n\n@app.command()\ndef entry():\n    wait()\n", "command"),
    ],
)
def test_decorators_make_entries(grow: Grow, text: str, layer: str) -> None:
    tree = grow(WAIT + text)
    assert roots(tree) == [(layer, "entry")]
    assert tree.worst("function", "wait") == 3


def test_an_airflow_dag_is_an_entry_with_its_operators(grow: Grow) -> None:
    text = WAIT + (
        "from airflow import DAG\nfrom airflow.operators.empty import EmptyOperator\n"
        "from airflow.operators.python import PythonOperator\n\n"
        "with DAG('night') as dag:\n"
        "    start = EmptyOperator(task_id='start')\n"
        "    work = PythonOperator(task_id='work', python_callable=wait)\n"
    )
    tree = grow(text)
    assert roots(tree) == [("dag", "night")]
    assert tree.marks("operator", "start") == set()
    assert tree.worst("operator", "work") == 3


def test_a_script_that_only_starts_an_entry_is_none(grow: Grow) -> None:
    tree = grow(WAIT + "def main():\n    wait()\n\nif __name__ == '__main__':\n    main()\n")
    assert roots(tree) == [("script", "app.py")]
    flow = "from prefect import flow\n\n@flow\ndef night():\n    wait()\n\nif __name__ == '__main__':\n    night()\n"
    assert roots(grow(WAIT + flow)) == [("flow", "night")]


def test_scripts_of_the_project_are_entries(grow: Grow, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "x"\n\n[project.scripts]\nload-tiles = "pkg.tool:run"\n')
    tree = grow("", pkg__tool=WAIT + "\n\ndef run():\n    wait()\n")
    assert roots(tree) == [("script", "load-tiles")]


def test_entries_of_which_nothing_is_known_are_only_named(grow: Grow) -> None:
    grow("from prefect import flow\n\n@flow\ndef empty():\n    pass\n")
    text = run("--isolated").stdout
    assert "in flow `empty`" in text
    assert "worst case" not in text


def test_two_entries_that_call_each_other_have_one_root(grow: Grow) -> None:
    text = WAIT + (
        "from prefect import flow\n\n@flow\ndef one(n):\n    wait()\n    two(n)\n\n@flow\ndef two(n):\n    one(n)\n"
    )
    assert roots(grow(text)) == [("flow", "one")]
