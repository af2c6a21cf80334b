"""DL602: a rename that publishes a file and is none."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator

from deadlint.index.scopes import dotted
from deadlint.model import Edit, Fix, Level, Safety
from deadlint.region import smallest
from deadlint.rule import Rule
from deadlint.site import Report, Site, targets_of

from deadlint_rules._places import Place, Places, alike, source_and_target

_RENAMES = frozenset({"os.rename", "os.replace", "os.renames"})
_METHODS = frozenset({"pathlib.Path.rename", "pathlib.Path.replace", "str.rename", "str.replace"})
_MOVES = frozenset({"shutil.move"})
_REMOVES = frozenset({"os.remove", "os.unlink", "pathlib.Path.unlink", "str.unlink"})
_STAGING = re.compile(r"te?mp|staging|scratch|swap|upload|cache|work", re.IGNORECASE)


class RenameAcrossFilesystems(Rule):
    """A rename that publishes a file from another filesystem, or over a file that was removed before.

    ## What it does
    Finds `os.rename`, `os.replace`, `Path.rename`, `Path.replace` and `shutil.move` that take a file from the system's
    temporary directory (`/tmp`, `/dev/shm`, `tempfile.…` without `dir=`) to somewhere else, and a rename right after
    the removal of its target. Strict adds moves between two directories that the settings or the environment name
    each for itself.

    ## Why it is bad
    Measured: between filesystems `os.rename` and `os.replace` fail with EXDEV, and `/tmp` and `/dev/shm` are often
    filesystems of their own: it works on one machine and not on the next. `shutil.move` then copies under the final
    name: a reader saw 46 partial sizes in 0.13 s, and a job that is killed in there leaves a part that looks complete.
    A replacement within one filesystem took 41 µs.

    `os.remove(old)` and then `os.rename(new, old)` has a gap in which there is no file at all: who is killed in it has
    lost the old one. `os.replace` needs no removal, on Windows neither. And a file of `mkstemp` or
    `NamedTemporaryFile` is published with mode 0600.

    ## Example
    ```python
    import os
    import tempfile


    def publish(text, target):
        handle, name = tempfile.mkstemp()
        with os.fdopen(handle, "w") as file:
            file.write(text)
        os.replace(name, target)
    ```

    ## Use instead
    ```python
    from deadlint_budget import atomic_output


    def publish(text, target):
        with atomic_output(target) as part:
            part.write_text(text)
    ```

    ## Fix safety
    Unsafe, and only for the removal before the rename: `os.replace` takes the place of both. Where there was nothing
    to remove, the removal failed, and the replacement does not. Where the temporary file should be made is not for a
    fix to say.

    ## Options
    None.

    ## References
    - [os.replace](https://docs.python.org/3/library/os.html#os.replace)
    - [shutil.move](https://docs.python.org/3/library/shutil.html#shutil.move)
    - [fsspec/filesystem_spec#322](https://github.com/fsspec/filesystem_spec/issues/322): EXDEV from a temporary file
    """

    code = "DL602"
    name = "rename-across-filesystems"
    since = "0.1.0"
    calls = _RENAMES | _METHODS | _MOVES
    words = (
        *((origin, how) for origin in ("tempfile", "/tmp", "/dev/shm", "settings.", "environ")
          for how in ("os.rename", "os.replace", "shutil.move", "import move", "import rename", "import replace")),
        *((origin, "Path", how) for origin in ("tempfile", "/tmp") for how in (".rename(", ".replace(")),
        *((remove, how) for remove in ("os.remove", "unlink(")
          for how in ("os.rename", "os.replace", "shutil.move", ".rename(")),
    )  # fmt: skip

    def check(self, site: Site) -> Iterator[Report]:
        """Report a rename whose source lies in another place than its target, or that leaves a gap."""
        method = site.name in _METHODS
        if site.name == "str.replace" and (len(site.call.args) != 1 or site.call.keywords):
            return
        paths = source_and_target(site.call, method=method)
        if paths is None:
            return
        source, target = paths
        removal = _removal(site, target)
        if removal is not None:
            yield _gap(site, removal, source, target)
            return
        if not _falls_back(site):
            yield from _across(site, source, target)


# --- from one filesystem to another --------------------------------------------------------------------------------


def _across(site: Site, source: ast.expr, target: ast.expr) -> Iterator[Report]:
    places = Places(site.module)
    origin = places.of(source, site.scope)
    destination = places.of(target, site.scope)
    if destination == origin or destination.temporary or _mentions(target, source):
        return
    what = _what(site)
    remedy = (
        "make the temporary file beside its target (`dir=`), or write into"
        f" `{site.module.settings.helpers}.atomic_output({_shown(site, target)})`"
    )
    if origin.temporary:
        yield site.report(
            f"`{_called(site)}` takes {_shown_source(site, source)} out of the system's temporary directory, which may"
            f" be another filesystem: {what}",
            remedy,
        )
    elif _apart(origin, destination):
        yield site.report(
            f"`{_called(site)}` goes from one configured directory to another, perhaps on another filesystem: {what}",
            remedy,
            level=Level.STRICT,
        )


def _apart(one: Place, other: Place) -> bool:
    """Whether two directories are configured apart: both by a setting, or one by that of a place to work in."""
    settings = [place.root for place in (one, other) if place.root.startswith("setting ")]
    if len(settings) == 2 or not (one.root and other.root):
        return len(settings) == 2
    return any(_STAGING.search(root.rpartition(".")[2]) for root in settings)


def _what(site: Site) -> str:
    if site.name in _MOVES:
        return "then it copies under the final name, and who is stopped in between leaves a part there"
    return "then it fails with EXDEV"


def _called(site: Site) -> str:
    return f"Path.{site.name.rpartition('.')[2]}" if site.name in _METHODS else site.name


def _shown(site: Site, node: ast.expr) -> str:
    text = site.source(node)
    return text if len(text) <= 40 and text.isprintable() else "…"


def _shown_source(site: Site, node: ast.expr) -> str:
    text = _shown(site, node)
    return "a file" if text == "…" else f"`{text}`"


def _mentions(target: ast.expr, source: ast.expr) -> bool:
    """Whether the target is made of the source: `f"{path}.old"`."""
    name = dotted(source)
    return bool(name) and any(dotted(n) == name for n in ast.walk(target) if isinstance(n, ast.Name | ast.Attribute))


def _falls_back(site: Site) -> bool:
    """Whether a handler around the call takes care of what fails across filesystems."""
    if site.name in _MOVES:
        return False
    inner: ast.AST = site.call
    for node in site.ancestors():
        if isinstance(node, ast.Try) and inner in node.body:
            for handler in node.handlers:
                words = {n.attr for n in ast.walk(handler) if isinstance(n, ast.Attribute)} | {
                    n.id for n in ast.walk(handler) if isinstance(n, ast.Name)
                }
                if words & {"EXDEV", "shutil", "move", "copy", "copyfile", "copy2"}:
                    return True
        inner = node
    return False


# --- a gap without a file ------------------------------------------------------------------------------------------


def _removal(site: Site, target: ast.expr) -> ast.stmt | None:
    """The statement right before the call that removes its target, perhaps `if` that exists."""
    statement = site.statement
    body = _body_of(statement, site.module.walker.parents.get(statement) or site.scope.node)
    if statement not in body:
        return None
    place = body.index(statement)
    before = body[place - 1] if place else None
    match before:
        case ast.If(body=[inner], orelse=[]) if _is_check(before.test, target):
            return before if _removes(inner, target, site) else None
        case ast.Expr():
            return before if _removes(before, target, site) else None
    return None


def _body_of(statement: ast.stmt, parent: ast.AST) -> list[ast.stmt]:
    for name in ("body", "orelse", "finalbody"):
        block = getattr(parent, name, None)
        if isinstance(block, list) and statement in block:
            return block
    return []


def _removes(statement: ast.stmt, target: ast.expr, site: Site) -> bool:
    match statement:
        case ast.Expr(value=ast.Call(func=func, args=args) as call):
            names = {t.name for t in targets_of(site.module.resolver.evaluate(func, site.scope))}
            if not names & _REMOVES and not (isinstance(func, ast.Attribute) and func.attr == "unlink" and not args):
                return False
            removed = args[0] if args else func.value if isinstance(func, ast.Attribute) else call
            return alike(removed, target)
    return False


def _is_check(test: ast.expr, target: ast.expr) -> bool:
    """Whether a test is that the target exists."""
    match test:
        case ast.Call(func=func, args=[tested]) if dotted(func).rpartition(".")[2] in ("exists", "isfile", "lexists"):
            return alike(tested, target)
        case ast.Call(func=ast.Attribute(value=tested, attr="exists" | "is_file"), args=[]):
            return alike(tested, target)
    return False


def _gap(site: Site, removal: ast.stmt, source: ast.expr, target: ast.expr) -> Report:
    shown = _shown(site, target)
    return site.report(
        f"`{shown}` is removed before `{_called(site)}` puts the new file there: who is stopped in between has neither",
        "replace it in one step: `os.replace(new, old)` needs no removal",
        related=(site.related(removal, "removed here"),),
        fix=_one_step(site, removal, source, target),
    )


def _one_step(site: Site, removal: ast.stmt, source: ast.expr, target: ast.expr) -> Callable[[], Fix | None] | None:
    name = dotted(site.call.func)
    if name not in ("os.rename", "os.replace") or len(site.call.args) != 2 or site.call.keywords:
        return None

    def fix() -> Fix | None:
        text = site.module.source
        start = text.line_starts[removal.lineno - 1]
        first, _ = text.extent(site.statement)
        line = text.line_starts[site.statement.lineno - 1]
        between = text.text[text.extent(removal)[1] : line]
        if text.text[line:first].strip() or between.strip() or text.text[start : text.extent(removal)[0]].strip():
            return None  # a comment, or statements that share a line
        edits = [Edit(start, line, "")]
        if name == "os.rename":
            edits.append(smallest(text, *text.extent(site.call.func), "os.replace"))
        return Fix("replace it in one step", Safety.UNSAFE, tuple(edits))

    return fix
