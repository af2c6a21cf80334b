"""The entry point, from `pkg.flows:build_mosaic` to the function."""

from __future__ import annotations

import os

from deadlint.errors import UserError
from deadlint.index.scopes import Scope
from deadlint.migrate.names import dotted_module
from deadlint.migrate.sources import Sources
from deadlint.shape import nearest


def find_entry(entry: str, sources: Sources) -> Scope:
    """The function that `module:function` (or `module:Class.method`) names. Raises `UserError` where there is none."""
    module_name, colon, name = entry.partition(":")
    if not colon or not module_name or not name:
        raise UserError(f"--entry {entry}: write it as `package.module:function`")
    path = _file_of(module_name, sources)
    module = sources.module(path)
    if module is None:
        raise UserError(f"--entry {entry}: {path} does not parse; `deadlint check {path}` says where")
    module.walker.walk_all(module.scope)
    found = [function for function in _functions(module.scope) if function.qualified_name == name]
    if not found:
        names = [function.qualified_name for function in _functions(module.scope)]
        raise UserError(f"--entry {entry}: {path} has no function `{name}`; {nearest(name, names)}")
    if len(found) > 1:
        raise UserError(f"--entry {entry}: {path} defines `{name}` {len(found)} times; keep one of them first")
    if found[0].name == "__init__" or found[0].kind != "function":
        raise UserError(f"--entry {entry}: name a function or a method that does the work")
    return found[0]


def _file_of(module_name: str, sources: Sources) -> str:
    """The file of a module: by its dotted name as its package has it, else by a path that ends so."""
    names = {path: dotted_module(path) or os.path.basename(os.path.dirname(path)) for path in sources.files.by_path}
    exact = [path for path, name in names.items() if name == module_name]
    # A package needs no `__init__.py`: then only the folders say what it is called.
    end = f".{module_name}"
    found = exact or [path for path in names if path.replace(os.sep, ".").removesuffix(".py").endswith(end)]
    if not found and module_name.endswith(".py"):
        found = [path for path in names if path == os.path.abspath(module_name)]
    if not found:
        raise UserError(f"no module `{module_name}` below the given paths; {nearest(module_name, names.values())}")
    if len(found) > 1:
        shown = ", ".join(sources.files.by_path[path].shown for path in found)
        many = f"`{module_name}` is {len(found)} files: {shown}"
        raise UserError(f"{many}; write more of its dotted name, or give the path of one project")
    return found[0]


def _functions(scope: Scope) -> list[Scope]:
    """The functions and methods of a module that stand in no other function."""
    return [*scope.functions, *(f for cls in scope.classes for f in _functions(cls))]
