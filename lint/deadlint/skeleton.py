"""The skeleton of a new rule: a module with all headings, and cases that pass before it is made to find more."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import tomli

from deadlint.errors import UserError
from deadlint.rule import CODE, ENTRY_POINT, NAME, all_rules

_RULE = '''\
"""{code}: say in a line what the rule finds."""

from __future__ import annotations

from collections.abc import Iterator

from deadlint.rule import Rule
from deadlint.site import Report, Site


class {class_name}(Rule):
    """Say in one sentence what is wrong with the code that this rule finds.

    ## What it does
    Reports `{library}.fetch` without `timeout=`.

    ## Why it is bad
    Say what happens, with the number that was measured.

    ## Example
    ```python
    import {library}

    {library}.fetch("tiles")
    ```

    ## Use instead
    ```python
    import {library}

    {library}.fetch("tiles", timeout=30)
    ```

    ## Fix safety
    There is no fix.

    ## Options
    None.

    ## References
    - [The manual of the library](https://example.org/)
    """

    code = "{code}"
    name = "{name}"
    since = "{since}"
    # The calls that it looks at, and the words that a file must hold to be worth parsing for it.
    calls = frozenset({{"{library}.fetch"}})
    words = (("{library}", "fetch"),)

    def check(self, site: Site) -> Iterator[Report]:
        """Yield what is wrong at a call of one of `calls`."""
        if site.argument("timeout").absent:
            yield site.report("nothing bounds this fetch", "give it a `timeout` in seconds")
'''

_CASES = """\
# rules: {code}
import {library}
from {library} import fetch as get

{library}.fetch("tiles")  # error: {code}
get("tiles")  # error: {code}

{library}.fetch("tiles", timeout=30)


def harvest(name, timeout_s=30):
    return get(name, timeout=timeout_s)


def other(fetch):
    return fetch("tiles")
"""


def write_rule(code: str, name: str, package: str | None, cases: str | None) -> list[str]:
    """Write the module and the cases of a rule; returns their paths as one would type them.

    Raises `UserError` where the code or name is taken or none, a file is there already, or no package is found.
    """
    _check_names(code, name)
    project = _project(Path.cwd())
    folder = Path(package) if package is not None else _package(project)
    if not (folder / "__init__.py").is_file():
        raise UserError(f"{folder}: is no package, for it has no __init__.py; name the one that holds the rules")
    case_folder = Path(cases) if cases is not None else _case_folder(project)
    module = name.replace("-", "_")
    values = {
        "code": code,
        "name": name,
        "class_name": "".join(word.capitalize() for word in name.split("-")),
        "library": f"{code.lower()}_library",  # none that exists, so that no real code is found before it is edited
        "since": _version(project),
    }
    texts = {
        folder / f"{module}.py": _RULE.format_map(values),
        case_folder / code / f"{module}.py": _CASES.format_map(values),
    }
    for path in texts:
        if path.exists():
            raise UserError(f"{path}: is there already; give the rule another name, or remove the file")
    for path, text in texts.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")
    return [os.path.relpath(path) for path in texts]


def _check_names(code: str, name: str) -> None:
    if not CODE.fullmatch(code):
        raise UserError(f"CODE: {code!r} is no code; write capital letters and a number, such as ACM102")
    if not NAME.fullmatch(name):
        raise UserError(f"NAME: {name!r} is no name; write small words joined by `-`, such as job-without-limit")
    for rule in all_rules():
        if rule.code == code or rule.name == name:
            raise UserError(f"there is a rule {rule.code} {rule.name} already; choose another code and name")


def _project(here: Path) -> Path:
    """The directory of the nearest pyproject.toml upward, else `here`."""
    return next((place for place in (here, *here.parents) if (place / "pyproject.toml").is_file()), here)


def _pyproject(project: Path) -> Mapping[str, Any]:
    path = project / "pyproject.toml"
    try:
        table = tomli.loads(path.read_text(encoding="utf-8")).get("project", {})
    except OSError:
        return {}
    except ValueError as error:
        raise UserError(f"{path}: is no valid TOML: {error}") from error
    return table if isinstance(table, Mapping) else {}


def _package(project: Path) -> Path:
    """The package of the rules, as `pyproject.toml` names it; looked for beside it and one folder below."""
    points = _pyproject(project).get("entry-points", {})
    named = points.get(ENTRY_POINT, {}) if isinstance(points, Mapping) else {}
    modules = [str(value) for value in named.values()] if isinstance(named, Mapping) else []
    for module in modules:
        for start in _starts(project):
            folder = start.joinpath(*module.split("."))
            if (folder / "__init__.py").is_file():
                return folder
    raise UserError(
        f"{project / 'pyproject.toml'}: names no package of rules under"
        f' [project.entry-points."{ENTRY_POINT}"]; add it, or give --package DIR'
    )


def _starts(project: Path) -> Iterator[Path]:
    yield project
    yield from sorted(entry for entry in project.iterdir() if entry.is_dir() and not entry.name.startswith("."))


def _case_folder(project: Path) -> Path:
    known = (project / "fixtures" / "cases", project / "tests" / "cases")
    return next((folder for folder in known if folder.is_dir()), known[-1])


def _version(project: Path) -> str:
    """The version that is said to be the first with the rule."""
    version = _pyproject(project).get("version")
    return version if isinstance(version, str) and re.fullmatch(r"[\w.+!-]+", version) else "0.1.0"
