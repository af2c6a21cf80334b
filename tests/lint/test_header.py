"""Where fixes put their imports and constants."""

from __future__ import annotations

import ast

import pytest
from deadlint import header
from deadlint.fix import apply_edits
from deadlint.model import Constant, Import
from deadlint.source import SourceFile

RUN = Import("deadlint_budget", "run")
LIMIT = Constant("LIMIT_S", "30")

CASES = {
    "no imports": ("x = 1\n", "from deadlint_budget import run\n\nLIMIT_S = 30\n\nx = 1\n"),
    "docstring": ('"""Doc."""\nx = 1\n', '"""Doc."""\n\nfrom deadlint_budget import run\n\nLIMIT_S = 30\n\nx = 1\n'),
    "docstring and blank": (
        '"""Doc."""\n\nx = 1\n',
        '"""Doc."""\n\nfrom deadlint_budget import run\n\nLIMIT_S = 30\n\nx = 1\n',
    ),
    "code behind an import in its line": (
        "import os; os.fork()\n",
        "import os; from deadlint_budget import run; LIMIT_S = 30; os.fork()\n",
    ),
    "code behind the last of two imports in its line": (
        "from __future__ import annotations\nimport os; import sys; sys.exit()\nx = 1\n",
        "from __future__ import annotations\n"
        "import os; import sys; from deadlint_budget import run; LIMIT_S = 30; sys.exit()\nx = 1\n",
    ),
    "import behind a future one in its line": (
        "from __future__ import annotations; import os\nx = 1\n",
        "from __future__ import annotations; from deadlint_budget import run; LIMIT_S = 30; import os\nx = 1\n",
    ),
    "code behind the docstring in its line": (
        '"""Doc."""; print(__doc__)\n',
        '"""Doc."""; from deadlint_budget import run; LIMIT_S = 30; print(__doc__)\n',
    ),
    "comments first": (
        "#!/usr/bin/env python\n# note\nx = 1\n",
        "#!/usr/bin/env python\n# note\nfrom deadlint_budget import run\n\nLIMIT_S = 30\n\nx = 1\n",
    ),
    "future": (
        "from __future__ import annotations\n\nx = 1\n",
        "from __future__ import annotations\n\nfrom deadlint_budget import run\n\nLIMIT_S = 30\n\nx = 1\n",
    ),
    "standard library only": (
        "import os\nimport sys\n\n\ndef f(): ...\n",
        "import os\nimport sys\n\nfrom deadlint_budget import run\n\nLIMIT_S = 30\n\n\ndef f(): ...\n",
    ),
    "sorted among others": (
        "import os\n\nimport click\nfrom attrs import define\nfrom rich import print\n\nx = 1\n",
        "import os\n\nimport click\nfrom attrs import define\nfrom deadlint_budget import run\nfrom rich import print\n\n"
        "LIMIT_S = 30\n\nx = 1\n",
    ),
    "before the only other": (
        "import os\n\nfrom rich import print\n\nx = 1\n",
        "import os\n\nfrom deadlint_budget import run\nfrom rich import print\n\nLIMIT_S = 30\n\nx = 1\n",
    ),
    "relative ones last": (
        "import os\n\nfrom . import a\n\nx = 1\n",
        "import os\n\nfrom deadlint_budget import run\n\nfrom . import a\n\nLIMIT_S = 30\n\nx = 1\n",
    ),
    "merged": (
        "from deadlint_budget import Budget\n\nx = 1\n",
        "from deadlint_budget import Budget, run\n\nLIMIT_S = 30\n\nx = 1\n",
    ),
    "merged in front": (
        "from deadlint_budget import statement_timeout\n\nx = 1\n",
        "from deadlint_budget import run, statement_timeout\n\nLIMIT_S = 30\n\nx = 1\n",
    ),
    "merged over lines": (
        "from deadlint_budget import (\n    Budget,  # one\n    wait,\n)\n\nx = 1\n",
        "from deadlint_budget import (\n    Budget,  # one\n    run,\n    wait,\n)\n\nLIMIT_S = 30\n\nx = 1\n",
    ),
    "there already": (
        "from deadlint_budget import run\n\nLIMIT_S = 60\n",
        "from deadlint_budget import run\n\nLIMIT_S = 60\n",
    ),
    "beside constants": (
        "from deadlint_budget import run\n\nURL = 'x'\n\nx = 1\n",
        "from deadlint_budget import run\n\nURL = 'x'\nLIMIT_S = 30\n\nx = 1\n",
    ),
    "no newline at the end": ("import os", "import os\n\nfrom deadlint_budget import run\n\nLIMIT_S = 30"),
    "code at once": ("import os\nx = 1\n", "import os\n\nfrom deadlint_budget import run\n\nLIMIT_S = 30\n\nx = 1\n"),
    "aliased": (
        "from deadlint_budget import run as start\n\nx = 1\n",
        "from deadlint_budget import run as start, run\n\nLIMIT_S = 30\n\nx = 1\n",
    ),
}


@pytest.mark.parametrize("newline", ["\n", "\r\n"], ids=["LF", "CRLF"])
@pytest.mark.parametrize("name", CASES)
def test_place(name: str, newline: str) -> None:
    before, after = CASES[name]
    if "\n" in before:  # a file without any newline gets the usual one
        before, after = before.replace("\n", newline), after.replace("\n", newline)
    source = SourceFile("m.py", before)
    edits = header.edits(source, ast.parse(before), [RUN], [LIMIT])
    assert apply_edits(before, edits) == after


def test_a_taken_name_gets_an_alias() -> None:
    tree = ast.parse("def run(): ...\n")
    assert header.free_import(tree, {"run"}, "deadlint_budget", "run").alias == "budget_run"
    assert header.free_import(tree, {"run", "budget_run"}, "deadlint_budget", "run").alias == "_budget_run"
    assert header.free_import(tree, {"x"}, "deadlint_budget", "run").alias is None


def test_the_name_that_the_file_has_is_used() -> None:
    tree = ast.parse("from deadlint_budget import run as start\n")
    assert header.free_import(tree, {"start"}, "deadlint_budget", "run") == Import("deadlint_budget", "run", "start")
