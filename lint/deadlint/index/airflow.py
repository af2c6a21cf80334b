"""Limits and options of Airflow's operators, with what their DAG gives to all of its tasks."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from deadlint.index import amounts
from deadlint.index.limit_forms import Form, Limit, build, made
from deadlint.index.values import Const, Mapping, Result, Values
from deadlint.site import Site, Target

_DAG = "airflow.DAG"
EXECUTION = Form("execution_timeout", None, "operator")
_RUN = Form("dagrun_timeout", None, "dag")
_SENSOR = Form("timeout", None, "operator")


def is_operator(name: str) -> bool:
    """Whether a canonical name is an Airflow operator or sensor."""
    return name.startswith("airflow.") and name.rpartition(".")[2].endswith(("Operator", "Sensor", "SensorAsync"))


def operator_limit(site: Site) -> Limit | None:
    """The `execution_timeout` of an operator, its own or from the `default_args` of its DAG."""
    values = option(site, EXECUTION.keyword)
    if not values or values == (Const(None),):
        return None
    return made(site, EXECUTION, label(site), amounts.of_values(values))


def by_default(site: Site, form: Form, label: str) -> Limit | None:
    """The limit that the `default_args` of a DAG put on a TaskFlow task which has none of its own."""
    if form.keyword != EXECUTION.keyword or not site.argument(form.keyword).absent:
        return None
    values = option(site, form.keyword)
    return made(site, form, label, amounts.of_values(values)) if values and values != (Const(None),) else None


def sensor_limit(site: Site) -> Limit | None:
    """The `timeout` of a sensor: how long it waits for its condition, in all."""
    if not site.name.rpartition(".")[2].endswith(("Sensor", "SensorAsync")):
        return None
    return build(site, _SENSOR, f"the timeout of sensor {task_id(site)}".strip())


def dag_limit(site: Site) -> Limit | None:
    """The `dagrun_timeout` of the DAG that an operator is given as `dag=`."""
    for value in site.argument("dag").values:
        match value:
            case Result(name="airflow.DAG", call=ast.Call() as call, scope=scope):
                return of_dag(Site(site.module, call, scope or site.scope, (Target(_DAG),), _DAG))
    return None


def of_dag(dag: Site) -> Limit | None:
    """The `dagrun_timeout` of a DAG."""
    match dag.argument("dag_id", 0).constant:
        case Const(value=str() as name):
            return build(dag, _RUN, f"DAG `{name}`")
    return build(dag, _RUN, "DAG")


def option(site: Site, name: str) -> Values:
    """An option of a task: its own, else from the `default_args` of the DAG around it; empty if neither."""
    own = site.argument(name)
    if not own.absent:
        return own.values
    for dag in _dags(site):
        match dag.argument("default_args").values:
            case (Mapping() as defaults,):
                return defaults.get(name) or ()
    return ()


def _dags(site: Site) -> Iterator[Site]:
    """The DAG that a task belongs to: its `dag=`, the `with DAG(…)` around it, the `@dag` on its function."""
    for value in site.argument("dag").values:
        match value:
            case Result(name="airflow.DAG", call=ast.Call() as call, scope=scope):
                yield Site(site.module, call, scope or site.scope, (Target(_DAG),), _DAG)
    for around in site.ancestors():
        if isinstance(around, ast.With):
            for item in around.items:
                for value in site.values(item.context_expr):
                    match value:
                        case Result(name="airflow.DAG", call=ast.Call() as call, scope=scope):
                            yield Site(site.module, call, scope or site.scope, (Target(_DAG),), _DAG)
    function = site.function
    definition = function.definition if function is not None else None
    if function is not None and isinstance(definition, ast.FunctionDef):
        for decorator in definition.decorator_list:
            if isinstance(decorator, ast.Call):
                for target in site.module.targets(decorator):
                    if target.name == "airflow.decorators.dag":
                        yield Site(site.module, decorator, function.parent or function, (target,), target.name)


def label(site: Site) -> str:
    """How messages call an operator."""
    return f"operator {task_id(site)}".strip()


def task_id(site: Site) -> str:
    match site.argument("task_id").constant:
        case Const(value=str() as name):
            return f"`{name}`"
    return ""
