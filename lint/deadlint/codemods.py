"""The fixes as LibCST codemods, one command for each family of rules: `python -m libcst.tool codemod -x …`.

A thin layer: each file goes through the engine as `deadlint check --fix` takes it, with the project's configuration,
the imports that names lead to, and the comments that suppress.
"""

from __future__ import annotations

import argparse
from typing import ClassVar

import libcst as cst
from libcst.codemod import CodemodCommand, CodemodContext, SkipFile

from deadlint.config import Overrides
from deadlint.model import Level, Safety
from deadlint.run import Request, fixed_bytes, run_text


class _Fix(CodemodCommand):
    """The fixes of the rules whose codes begin with `FAMILY`."""

    FAMILY: ClassVar[str]

    @staticmethod
    def add_args(arg_parser: argparse.ArgumentParser) -> None:
        """Add the options that `deadlint check` has for fixes."""
        arg_parser.add_argument(
            "--unsafe-fixes", action="store_true", help="Apply those as well that may change behaviour."
        )
        arg_parser.add_argument("--strict", action="store_true", help="Fix what --level strict reports, too.")

    def __init__(self, context: CodemodContext, unsafe_fixes: bool = False, strict: bool = False) -> None:
        super().__init__(context)
        safeties = {Safety.SAFE, Safety.UNSAFE} if unsafe_fixes else {Safety.SAFE}
        level = Level.STRICT if strict else None
        self._request = Request(
            overrides=Overrides(select=(self.FAMILY,), level=level),
            fix=frozenset(safeties),
            write=True,
            use_cache=False,
        )

    def transform_module_impl(self, tree: cst.Module) -> cst.Module:
        """The module after its fixes; the same object where there are none. Raises `SkipFile`."""
        data = tree.bytes
        result = run_text(data, self.context.filename, self._request)
        if result.problems:
            raise SkipFile(result.problems[0].message)
        fixed = fixed_bytes(result, data)
        return tree if fixed == data else cst.parse_module(fixed, tree.config_for_parsing)


class FixProcesses(_Fix):
    """Child processes (DL1)."""

    DESCRIPTION: str = "Have child processes stopped with all that they started (deadlint, DL1)."
    FAMILY = "DL1"


class FixHttp(_Fix):
    """HTTP and remote rasters (DL2)."""

    DESCRIPTION: str = "Bound requests and remote rasters as a whole (deadlint, DL2)."
    FAMILY = "DL2"


class FixPostgres(_Fix):
    """PostgreSQL and PostGIS (DL3)."""

    DESCRIPTION: str = "Bound statements on the PostgreSQL server (deadlint, DL3)."
    FAMILY = "DL3"


class FixLimits(_Fix):
    """Limits inside limits (DL4)."""

    DESCRIPTION: str = "Derive limits from the budget around them (deadlint, DL4)."
    FAMILY = "DL4"


class FixCancellation(_Fix):
    """Cancellation (DL5)."""

    DESCRIPTION: str = "Let work stop when it is cancelled (deadlint, DL5)."
    FAMILY = "DL5"


class FixOutputs(_Fix):
    """Outputs (DL6)."""

    DESCRIPTION: str = "Let outputs appear when they are complete (deadlint, DL6)."
    FAMILY = "DL6"
