"""What a rule is, and how rules are found: through the entry point `deadlint.rules`, never by name."""

from __future__ import annotations

import inspect
import pkgutil
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, ClassVar

from deadlint.errors import UserError

if TYPE_CHECKING:
    from deadlint.index.module import Module
    from deadlint.index.scopes import Scope
    from deadlint.site import Report, Site

HEADINGS = (
    "What it does", "Why it is bad", "Example", "Use instead", "Fix safety", "Options", "References",
)  # fmt: skip


ENTRY_POINT = "deadlint.rules"
CODE = re.compile(r"[A-Z]+[0-9]+")
NAME = re.compile(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)*")


class Rule(ABC):
    """One kind of fault. Stateless: `check` looks at one call site and says what is wrong with it.

    The docstring of a rule is its documentation; `HEADINGS` are its headings, in that order.
    """

    code: ClassVar[str]
    name: ClassVar[str]
    since: ClassVar[str]
    # The calls that the rule looks at, by canonical dotted name. `airflow.**` stands for everything below, `requests.*`
    # for something below whose name is only known at run time: `getattr(requests, verb)`.
    calls: ClassVar[frozenset[str]]
    # A file is worth parsing for this rule if it holds every word of one of these groups.
    words: ClassVar[tuple[tuple[str, ...], ...]]

    # Where a file is parsed for another rule, these groups do as well: what is too common to parse a file for.
    also: ClassVar[tuple[tuple[str, ...], ...]] = ()

    @abstractmethod
    def check(self, site: Site) -> Iterable[Report]:
        """Yield what is wrong at `site`, a call to one of `calls`."""

    def concerns(self, function: Scope) -> bool:
        """Whether calls that run `function`, one of the project, may be at fault, as far as its header tells.

        Only asked where `calls` holds the name for functions of the project.
        """
        return True

    def check_module(self, module: Module) -> Iterable[Report]:
        """Yield what is wrong in a file that no single call shows, such as an assignment or a handler."""
        return ()

    @classmethod
    def documentation(cls) -> str:
        """The docstring, without its indentation."""
        return inspect.cleandoc(cls.__doc__ or "")

    @classmethod
    def summary(cls) -> str:
        """The first line of the docstring."""
        return cls.documentation().partition("\n")[0]


def rules_in(package: str, path: Iterable[str]) -> tuple[Rule, ...]:
    """The rules in the public modules of a package, by code: `RULES = rules_in(__name__, __path__)` in its `__init__`.

    A module whose name begins with `_` holds what several rules share.
    """
    found: list[Rule] = []
    for info in pkgutil.iter_modules(path):
        if info.name.startswith("_"):
            continue
        module = import_module(f"{package}.{info.name}")
        for _, cls in inspect.getmembers(module, inspect.isclass):
            if issubclass(cls, Rule) and cls.__module__ == module.__name__ and not inspect.isabstract(cls):
                found.append(cls())
    return tuple(sorted(found, key=lambda rule: rule.code))


@cache
def all_rules() -> tuple[Rule, ...]:
    """Every installed rule, by code.

    Raises `UserError` where the rules of a package cannot be loaded, or two rules share a code or a name.
    """
    found: dict[str, Rule] = {}
    for point in entry_points(group=ENTRY_POINT):
        for rule in _rules_at(point):
            other = next((r for r in found.values() if rule.code == r.code or rule.name == r.name), None)
            if other is not None and type(other) is not type(rule):
                raise UserError(
                    f"two rules share the code or name {rule.code} {rule.name}: {type(other).__module__} and"
                    f" {type(rule).__module__}; uninstall one of the packages"
                )
            found[rule.code] = rule
    return tuple(found[code] for code in sorted(found))


def _rules_at(point: EntryPoint) -> Sequence[Rule]:
    """The rules that an entry point leads to. Raises `UserError` where it leads to none."""
    package = f"{point.dist.name} {point.dist.version}" if point.dist is not None else point.module
    try:
        rules = tuple(import_module(point.module).RULES)
    except Exception as error:
        raise UserError(
            f"the rules of {package} cannot be loaded: {type(error).__name__}: {error}; mend or uninstall that package"
        ) from error
    for rule in rules:
        if not isinstance(rule, Rule) or not CODE.fullmatch(rule.code) or not NAME.fullmatch(rule.name):
            raise UserError(
                f"{package}: {rule!r} in {point.module}.RULES is no rule with a code such as ACM101 and a name such as"
                " job-without-limit; mend or uninstall that package"
            )
    return rules


def matches(rule_code: str, rule_name: str, selector: str) -> bool:
    """Whether `selector` (a code, a prefix of codes such as `DL1`, `ALL`, or a name) covers the rule."""
    if selector == "ALL":
        return True
    if re.fullmatch(r"[A-Z]+[0-9]*", selector):
        return rule_code.startswith(selector)
    return rule_name == selector


def selected(rules: Sequence[Rule], select: Iterable[str], ignore: Iterable[str]) -> tuple[Rule, ...]:
    """The rules that `select` covers (all where it is empty) and `ignore` does not.

    The longer selector wins, so `--select DL101 --ignore DL1` keeps DL101; on a tie `ignore` wins.
    """
    chosen = tuple(select) or ("ALL",)
    ignored = tuple(ignore)

    def strength(rule: Rule, selectors: Iterable[str]) -> int:
        return max((_specificity(s) for s in selectors if matches(rule.code, rule.name, s)), default=-1)

    return tuple(r for r in rules if strength(r, chosen) > strength(r, ignored))


def _specificity(selector: str) -> int:
    if selector == "ALL":
        return 0
    return len(selector) if re.fullmatch(r"[A-Z]+[0-9]*", selector) else 100
