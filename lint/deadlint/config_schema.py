"""The table of configuration keys, which both the check of a file and its JSON schema come from.

`python -m deadlint.config_schema` prints the schema that `docs/config.schema.json` holds.
"""

from __future__ import annotations

from typing import Any

from deadlint.model import Level
from deadlint.shape import Choice, Flag, Key, ListOf, MapOf, Seconds, Table, Text

# A limit of more than a year bounds nothing that anyone waits for.
LONGEST_LIMIT_S = 366 * 24 * 3600

# Patterns are written so that Python and the JavaScript dialect of JSON schema read them alike.
_NAME = "[A-Za-z_][A-Za-z0-9_]*"
_selector = Text("ALL|[A-Z]+[0-9]*|[a-z][a-z0-9]*(?:-[a-z0-9]+)*", "a rule's code, a prefix of codes, or a name")
_pattern = Text("!?[^\\n!#][^\\n]*", "a pattern like those of .gitignore")
_directory = Text("!?[^\\n!]+", "a directory, from the one of this file")
_program = Text("!?[^\\n!/][^\\n/]*", "the name of a program, without a directory, wildcards allowed")
_dotted = Text(rf"{_NAME}(?:\.{_NAME})+", "a dotted name such as 'package.module.function'")
_module = Text(rf"{_NAME}(?:\.{_NAME})*", "a module that can be imported, such as 'pipeline.limits'")
_file = Text("[^\\n]+", "the path of a file")
_identifier = Text(_NAME, "a Python identifier")


def _constant(what: str) -> Table:
    return Table(
        {
            "name": Key(_identifier, f"the name of the constant that limits {what}"),
            "value": Key(Seconds(LONGEST_LIMIT_S), "its value in seconds"),
        }
    )


CONFIGURATION = Table(
    {
        "select": Key(ListOf(_selector), "the rules to check; all where absent"),
        "extend-select": Key(ListOf(_selector), "rules to check beside those of `select`"),
        "ignore": Key(ListOf(_selector), "rules not to check"),
        "level": Key(
            Choice(tuple(level.value for level in Level)),
            "`strict` adds what depends on taste or on unknown facts",
        ),
        "exclude": Key(ListOf(_pattern), "files and directories not to check; `!` removes a default"),
        "notebooks": Key(Flag(), "whether notebooks (*.ipynb) are looked for; true where absent"),
        "per-file-ignores": Key(MapOf(ListOf(_selector)), "rules not to check in the files of a pattern"),
        "src": Key(ListOf(_directory), "where the project's packages are imported from; `!` removes a default"),
        "tests": Key(ListOf(_pattern), "files that are tests, reported at strict only; `!` removes a default"),
        "long-running": Key(ListOf(_program), "programs that run for long; `!` removes a default"),
        "leaf": Key(ListOf(_program), "programs without children of their own; `!` removes a default"),
        "read-only": Key(ListOf(_program), "programs that only read; `!` removes a default"),
        "wrappers": Key(
            Table(
                {
                    "requests": Key(ListOf(_dotted), "request functions that set a default timeout"),
                    "sessions": Key(ListOf(_dotted), "classes or factories whose sessions set one"),
                    "processes": Key(ListOf(_dotted), "functions that stop the whole process group on expiry"),
                }
            ),
            "the project's own functions that take care of a limit",
        ),
        "constants": Key(
            Table(
                {
                    "http": Key(_constant("HTTP requests"), "for HTTP requests"),
                    "process": Key(_constant("child processes"), "for child processes"),
                    "statement": Key(_constant("database statements"), "for database statements"),
                    "cleanup": Key(_constant("clean-up after an expiry"), "for clean-up after an expiry"),
                }
            ),
            "the named constants that fixes use where a number is needed",
        ),
        "helpers": Key(_module, "the module that fixed code imports the helpers from"),
        "baseline": Key(_file, "the file that lists the findings which are known, from the directory of this file"),
        "server-statement-timeout": Key(Flag(), "the role or the database sets statement_timeout already"),
    }
)


def json_schema() -> dict[str, Any]:
    """The schema of `deadlint.toml`, and of the table `[tool.deadlint]` in `pyproject.toml`."""
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Configuration of deadlint",
        "description": "deadlint.toml, or the table [tool.deadlint] of pyproject.toml",
    } | CONFIGURATION.schema()


if __name__ == "__main__":
    import json

    print(json.dumps(json_schema(), indent=2))
