"""Configuration: which file holds, what it means, and what is said about one that is wrong."""

from __future__ import annotations

import json
import math
from pathlib import Path

import jsonschema
import pytest
import tomli
from deadlint.config import Configurations, Overrides
from deadlint.config_schema import CONFIGURATION, json_schema
from deadlint.errors import UserError
from deadlint.model import Level
from deadlint.settings import EXCLUDE, LEAF, Settings
from hypothesis import given
from hypothesis import strategies as st

RULES = (("DL101", "subprocess-timeout-leaves-tree"), ("DL201", "request-without-timeout"))
DOCS = Path(__file__).parents[2] / "docs"


def settings_of(directory: Path, **options: object) -> Settings:
    options.setdefault("fallback", str(directory))
    return Configurations(lambda: RULES, **options).settings(str(directory))  # type: ignore[arg-type]


def refusal(directory: Path) -> str:
    with pytest.raises(UserError) as caught:
        settings_of(directory)
    return str(caught.value)


def write(directory: Path, name: str, text: str) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / name
    path.write_text(text, encoding="utf-8")
    return path


FULL = """
select = ["DL1", "request-without-timeout"]
extend-select = ["DL201"]
ignore = ["DL101"]
level = "strict"
exclude = ["vendor/", "!build/"]
src = ["libs", "!src"]
tests = ["checks/**"]
long-running = ["saga*"]
leaf = ["!ffmpeg"]
read-only = ["mdls"]
helpers = "pipeline.limits"
server-statement-timeout = true
notebooks = false
baseline = "known.txt"

[per-file-ignores]
"scripts/*.py" = ["DL2"]

[wrappers]
requests = ["pipeline.http.get"]
sessions = ["pipeline.http.Session"]
processes = ["pipeline.shell.run"]

[constants]
http = { name = "HTTP_TIMEOUT_S", value = 20 }
process = { value = 0.5 }
"""


def test_every_key_reaches_the_settings(tmp_path: Path) -> None:
    write(tmp_path, "deadlint.toml", FULL)
    found = settings_of(tmp_path)
    assert found.select == ("DL1", "request-without-timeout")
    assert found.extend_select == ("DL201",)
    assert found.ignore == ("DL101",)
    assert found.level is Level.STRICT
    assert "vendor/" in found.exclude
    assert "build/" not in found.exclude
    assert set(EXCLUDE) - {"build/"} < set(found.exclude)
    assert found.tests[-1] == "checks/**"
    assert len(found.tests) == len(Settings().tests) + 1
    assert found.long_running[-1] == "saga*"
    assert found.leaf == tuple(name for name in LEAF if name != "ffmpeg")
    assert "mdls" in found.read_only
    assert found.src == ("libs",)
    assert found.helpers == "pipeline.limits"
    assert found.helpers_are_own
    assert found.server_statement_timeout
    assert not found.notebooks
    assert found.baseline == str(tmp_path / "known.txt")
    assert found.per_file_ignores == (("scripts/*.py", ("DL2",)),)
    assert found.wrappers.requests == ("pipeline.http.get",)
    assert found.wrappers.sessions == ("pipeline.http.Session",)
    assert found.wrappers.processes == ("pipeline.shell.run",)
    assert found.constants.http == ("HTTP_TIMEOUT_S", "20")
    assert found.constants.process == ("PROCESS_LIMIT_S", "0.5")
    assert found.constants.statement == Settings().constants.statement
    assert found.root == str(tmp_path)


def test_the_full_example_sets_every_key() -> None:
    """So that the test above cannot fall behind the table."""
    assert set(tomli.loads(FULL)) == set(CONFIGURATION.keys)


def test_without_a_file_the_defaults_hold_and_the_fallback_is_the_root(tmp_path: Path) -> None:
    assert settings_of(tmp_path) == Settings(root=str(tmp_path))


def test_the_nearest_file_upward_holds_alone(tmp_path: Path) -> None:
    write(tmp_path, "deadlint.toml", 'level = "strict"\nignore = ["DL101"]')
    write(tmp_path / "a", "pyproject.toml", '[tool.deadlint]\nignore = ["DL201"]')
    (tmp_path / "a" / "b").mkdir()
    found = settings_of(tmp_path / "a" / "b")
    assert (found.ignore, found.level, found.root) == (("DL201",), Level.DEFAULT, str(tmp_path / "a"))


def test_a_pyproject_without_our_table_is_passed_over(tmp_path: Path) -> None:
    write(tmp_path, "deadlint.toml", 'level = "strict"')
    write(tmp_path / "a", "pyproject.toml", '[tool.other]\nnote = "deadlint"')
    assert settings_of(tmp_path / "a").level is Level.STRICT


def test_deadlint_toml_wins_over_pyproject_beside_it(tmp_path: Path) -> None:
    write(tmp_path, "pyproject.toml", '[tool.deadlint]\nlevel = "strict"')
    write(tmp_path, "deadlint.toml", "")
    assert settings_of(tmp_path).level is Level.DEFAULT


def test_a_named_file_holds_everywhere_and_is_its_own_root(tmp_path: Path) -> None:
    write(tmp_path / "a", "deadlint.toml", "no TOML at all")
    named = write(tmp_path / "conf", "strict.toml", 'level = "strict"')
    found = settings_of(tmp_path / "a", file=str(named))
    assert (found.level, found.root) == (Level.STRICT, str(tmp_path / "conf"))


def test_isolated_reads_no_file(tmp_path: Path) -> None:
    write(tmp_path, "deadlint.toml", "no TOML at all")
    assert settings_of(tmp_path, isolated=True) == Settings(root=str(tmp_path))


def test_select_on_the_command_line_sets_aside_the_files_choice(tmp_path: Path) -> None:
    write(tmp_path, "deadlint.toml", 'select = ["DL1"]\nignore = ["DL201"]\nextend-select = ["DL101"]')
    found = settings_of(tmp_path, overrides=Overrides(select=("DL201",), level=Level.STRICT))
    assert (found.select, found.extend_select, found.ignore) == (("DL201",), (), ())
    assert found.level is Level.STRICT


def test_extend_select_and_ignore_on_the_command_line_add_to_the_file(tmp_path: Path) -> None:
    write(tmp_path, "deadlint.toml", 'select = ["DL1"]\nignore = ["DL201"]')
    found = settings_of(tmp_path, overrides=Overrides(extend_select=("DL2",), ignore=("DL101",)))
    assert (found.select, found.extend_select, found.ignore) == (("DL1",), ("DL2",), ("DL201", "DL101"))


@pytest.mark.parametrize(
    ("text", "own"),
    [
        ('[project]\ndependencies = ["requests", "Deadlint[x]>=0.1; python_version > \'3\'"]', True),
        ('[project]\ndependencies = ["deadlint-extras"]', False),
        ('[project]\nname = "deadlint"\ndependencies = []', False),
        ('[project.optional-dependencies]\nall = ["deadlint"]', False),
        ('[dependency-groups]\nworker = ["deadlint"]', True),
        ('[dependency-groups]\ndev = ["deadlint", {include-group = "x"}]', False),
        ('[tool.poetry.dependencies]\ndeadlint = "^0.1"', True),
        ('[tool.poetry.group.worker.dependencies]\ndeadlint = "^0.1"', True),
        ('[tool.poetry.group.dev.dependencies]\ndeadlint = "^0.1"', False),
        ("[tool.deadlint]", False),
        ('project = "deadlint"', False),
    ],
)
def test_helpers_are_own_where_the_project_needs_deadlint_to_run(tmp_path: Path, text: str, own: bool) -> None:
    write(tmp_path, "pyproject.toml", text)
    (tmp_path / "src").mkdir()
    assert settings_of(tmp_path / "src").helpers_are_own is own


def test_the_nearest_pyproject_decides_whose_the_helpers_are(tmp_path: Path) -> None:
    write(
        tmp_path,
        "pyproject.toml",
        '[project]\ndependencies = ["deadlint"]\n[tool.deadlint]\nlevel = "strict"',
    )
    write(tmp_path / "inner", "pyproject.toml", "[project]\ndependencies = []")
    found = settings_of(tmp_path / "inner")
    assert (found.helpers_are_own, found.level) == (False, Level.STRICT)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('selct = ["DL1"]', "deadlint.toml: selct is no key that deadlint knows; did you mean 'select'?"),
        ("per_file_ignores = {}", "did you mean 'per-file-ignores'?"),
        (
            '[wrappers]\nrequest = ["a.b"]',
            "wrappers.request is no key that deadlint knows; did you mean 'requests'?",
        ),
        ("[constants.http]\nseconds = 3", "constants.http.seconds is no key"),
        ("zzz = 1", "there are select, extend-select, ignore"),
        ('level = "loud"', "level must be 'default' or 'strict', not 'loud'"),
        ("level = 3", "level must be 'default' or 'strict', not the number 3"),
        ('ignore = "DL101"', "ignore must be a list, not the string 'DL101'"),
        ('ignore = ["DL101", 7]', "ignore entry 2 must be a rule's code"),
        ('ignore = ["DL20"]\nselect = ["DL301"]', "select: no rule has the code or name 'DL301'"),
        ('ignore = ["request-without-timeuot"]', "did you mean 'request-without-timeout'?"),
        ('[per-file-ignores]\n"a/*.py" = ["nothing-of-ours"]', 'per-file-ignores."a/*.py": no rule has'),
        ("server-statement-timeout = 1", "must be true or false, not the number 1"),
        ("constants.http.value = 0", "must be above 0"),
        ("constants.http.value = nan", "must be above 0"),
        ("constants.http.value = inf", "must be above 0"),
        ("constants.http.value = true", "must be a number of seconds, not true"),
        ('constants.http.name = "class"', "a word of Python's own"),
        ('constants.http.name = "A B"', "must be a Python identifier, not 'A B'"),
        ('helpers = "a.import"', "a word of Python's own"),
        ('helpers = "a-b"', "helpers must be a module"),
        ('leaf = ["!gdalwrap"]', "leaf removes 'gdalwrap', which is no default; did you mean 'gdal*'?"),
        ("select = [", "deadlint.toml: is no valid TOML"),
        ("a = 1\nb = = 2", "line 2"),
        ("x = " + "[" * 5000, "deadlint.toml: "),
    ],
)
def test_a_wrong_file_is_refused_by_file_key_and_remedy(tmp_path: Path, text: str, said: str) -> None:
    write(tmp_path, "deadlint.toml", text)
    assert said in refusal(tmp_path)


def test_the_keys_of_a_pyproject_are_named_in_full(tmp_path: Path) -> None:
    write(tmp_path, "pyproject.toml", "[tool.deadlint]\nlevl = 3")
    assert "pyproject.toml: tool.deadlint.levl is no key" in refusal(tmp_path)


def test_a_table_that_is_none_is_refused(tmp_path: Path) -> None:
    write(tmp_path, "pyproject.toml", "[tool]\ndeadlint = 3")
    assert "pyproject.toml: tool.deadlint must be a table, not the number 3" in refusal(tmp_path)


def test_all_faults_of_a_file_are_said_at_once(tmp_path: Path) -> None:
    write(tmp_path, "deadlint.toml", "levl = 3\nselect = 1")
    assert len(refusal(tmp_path).splitlines()) == 2


def test_bytes_that_are_no_utf8_are_refused_with_the_line(tmp_path: Path) -> None:
    (tmp_path / "deadlint.toml").write_bytes(b"# ok\n# \xff\n")
    assert "line 2 is not UTF-8" in refusal(tmp_path)


def test_a_named_file_that_is_missing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"nowhere\.toml: cannot be read"):
        settings_of(tmp_path, file=str(tmp_path / "nowhere.toml"))


def test_an_option_that_names_no_rule_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="--ignore: no rule has the code or name 'DL9'"):
        settings_of(tmp_path, overrides=Overrides(ignore=("DL9",)))


# Values that reach both sides of every border: near the keys, the types and the patterns.
_selectors = st.sampled_from(["ALL", "DL101", "DL", "a-name", "", "dl101", "A-b", "DL101\n", "-x", "a--b"])
_words = st.one_of(
    st.sampled_from(["default", "strict", "a.b", "a", "a.b\n", "1a", "!gdal*", "!", "a/b", "#x", "src/**", "!a/"]),
    st.text(max_size=4),
)
_numbers = st.one_of(st.integers(-1, 40_000_000), st.floats(allow_nan=False), st.booleans())
_leaves = st.one_of(_selectors, _words, _numbers)
_lists = st.lists(st.one_of(_selectors, _words, st.integers()), max_size=3)
_constants = st.dictionaries(
    st.sampled_from(["http", "process", "statement", "htttp"]),
    st.one_of(st.dictionaries(st.sampled_from(["name", "value", "x"]), _leaves, max_size=2), _leaves),
    max_size=2,
)
_tables = st.dictionaries(st.sampled_from(["requests", "sessions", "processes", "x/*.py", "y"]), _lists, max_size=2)
_documents = st.dictionaries(
    st.one_of(st.sampled_from([*CONFIGURATION.keys, "selct"]), st.text(max_size=3)),
    st.one_of(_leaves, _lists, _tables, _constants),
    max_size=3,
)


@given(_documents)
def test_the_check_and_the_schema_agree(document: dict[str, object]) -> None:
    accepted = not list(CONFIGURATION.faults(document))
    assert accepted is jsonschema.Draft7Validator(json_schema()).is_valid(document)


@pytest.mark.parametrize("key", list(CONFIGURATION.keys))
def test_each_key_is_accepted_with_a_fitting_value_and_refused_with_another(key: str) -> None:
    """Guards the property above: it would hold as well if both refused everything."""
    validator = jsonschema.Draft7Validator(json_schema())
    fitting = {key: tomli.loads(FULL)[key]}
    assert validator.is_valid(fitting)
    assert not list(CONFIGURATION.faults(fitting))
    assert not validator.is_valid({key: math.pi})
    assert list(CONFIGURATION.faults({key: math.pi}))


def test_the_published_schema_is_the_one_of_the_table() -> None:
    """`python -m deadlint.config_schema > docs/config.schema.json` brings it up to date."""
    assert json.loads((DOCS / "config.schema.json").read_text(encoding="utf-8")) == json_schema()


def test_the_documentation_names_every_key() -> None:
    text = (DOCS / "configuration.md").read_text(encoding="utf-8")
    assert not [key for key in CONFIGURATION.keys if f"`{key}`" not in text and f"`{key}." not in text]
