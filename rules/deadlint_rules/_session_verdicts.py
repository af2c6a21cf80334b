"""Whether the statements of a file bound its sessions: which limits are set, and whether these last."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from itertools import groupby
from typing import Literal

from deadlint.index.scopes import Scope
from deadlint.index.values import NONE, Result
from deadlint.site import Site

from deadlint_rules import _sql
from deadlint_rules._postgres import MAKERS
from deadlint_rules._sessions import ASYNCPG, CHECKOUTS, Sessions, Use, chain_of, sessions


class Verdict(Enum):
    """What the uses of a session say about a limit on its statements."""

    NONE = "no limit is set"
    HOLDS = "a limit holds"
    UNDONE = "a limit is set, and a rollback undoes it"
    ENDED = "a limit is set, and it ends with a transaction before the last statement"
    LATE = "a limit is set, after the last statement"


@dataclass(frozen=True, slots=True)
class Judged:
    """A verdict, and the place that it rests on."""

    verdict: Verdict
    node: ast.Call | None = None


_NO_LIMIT = Judged(Verdict.NONE)


def judge(opening: Site) -> Judged:
    """Whether the statements of the file bound the session that `opening` opens."""
    return _Judge(sessions(opening.module)).judge(opening)


class _Judge:
    """Judges the sessions of one module."""

    def __init__(self, known: Sessions) -> None:
        self._sessions = known

    def judge(self, opening: Site) -> Judged:
        """Whether the statements of the file bound the session that `opening` opens."""
        uses = self._sessions.of(opening)
        if MAKERS[opening.name].holds in ("pool", "engine"):
            return self._each(self._checkouts(opening.call, uses))
        users = self._users(opening, uses)
        if users is not None:
            return self._each(users)
        return self._any(self._scopes(uses))

    def _scopes(self, uses: Iterable[Use]) -> list[list[Use]]:
        found: dict[Scope, list[Use]] = defaultdict(list)
        for use in uses:
            found[use.scope].append(use)
        return list(found.values())

    def _checkouts(self, opening: ast.Call, uses: list[Use]) -> list[Judged]:
        """The verdict for each connection that is taken from a pool or an engine in the file."""
        found: dict[ast.Call, list[Use]] = {call: [] for call in self._taken(opening)}
        for use in uses:
            checkout = use.checkout
            if checkout is not None:
                found.setdefault(use.site.call if checkout is opening else checkout, []).append(use)
        return [self._any(self._scopes(group)) for group in found.values()]

    def _taken(self, opening: ast.Call) -> Iterator[ast.Call]:
        """The calls that take a connection from what `opening` made, also those on which nothing is called."""
        for site in self._sessions.module.sites:
            for value in self._sessions.resolver.evaluate(site.call, site.scope):
                if isinstance(value, Result) and value.call is site.call and value.name in CHECKOUTS:
                    chain = chain_of(value, self._sessions.resolver)
                    outermost = [r for r in chain if r.name in CHECKOUTS][-1]
                    if len(chain) > 1 and chain[-1].call is opening and outermost.call is site.call:
                        yield site.call

    def _users(self, opening: Site, uses: list[Use]) -> list[Judged] | None:
        """The verdict for each caller of the function that makes the connection and returns it.

        None where it is not returned, or where the function sets the limit itself.
        """
        function = opening.function
        if function is None or not self._returns(function, opening.call):
            return None
        own = self._any(self._scopes(u for u in uses if u.scope is function))
        if own.verdict is not Verdict.NONE:
            return None
        callers = self._sessions.module.callers(function)
        by_scope = {id(group[0].scope): group for group in self._scopes(uses)}
        found = []
        for _, scope in callers:
            where = scope.enclosing_function() or scope.module
            group = by_scope.get(id(where))
            found.append(self._in_scope(group) if group else _NO_LIMIT)
        return found or [_NO_LIMIT]

    def _returns(self, function: Scope, opening: ast.Call) -> bool:
        handed = [*function.returns, *(y for y in function.yields if y is not None)]
        values = (v for node in handed for v in self._sessions.resolver.evaluate(node, function))
        return any(opening is r.call for v in values for r in chain_of(v, self._sessions.resolver))

    def _each(self, judged: list[Judged]) -> Judged:
        """One verdict for all: a limit holds only where it holds for each."""
        if not judged:
            return _NO_LIMIT
        return next((j for j in judged if j.verdict is not Verdict.HOLDS), judged[0])

    def _any(self, groups: list[list[Use]]) -> Judged:
        """One verdict for the functions that use a connection: it is enough that one of them sets a limit."""
        judged = [self._in_scope(group) for group in groups]
        for wanted in (Verdict.HOLDS, Verdict.ENDED, Verdict.UNDONE, Verdict.LATE):
            for one in judged:
                if one.verdict is wanted:
                    return one
        return _NO_LIMIT

    def _in_scope(self, uses: list[Use]) -> Judged:
        """Walk through the uses in one function in the order of the source, loops twice."""
        for use in uses:
            if use.kind == "helper":
                return Judged(Verdict.HOLDS, use.site.call)
        statements = [u for u in uses if u.kind == "statement"]
        if statements and all(_has_timeout(u) for u in statements):
            return Judged(Verdict.HOLDS, statements[0].site.call)
        walk = _Walk(self._sessions)
        for use in _in_order([u for u in uses if not self._handles_error(u)], 0):
            walk.step(use)
        return walk.judged(self._sessions.closes(uses))

    def _handles_error(self, use: Use) -> bool:
        """Whether it ends a transaction in an `except` that leaves the function: what follows is another way."""
        if use.kind == "statement":
            return False
        block = use.site.scope.blocks.get(use.site.call)
        handlers = [b.node for b in block.chain() if b.kind == "handler"] if block is not None else []
        leaving = (h.body[-1] for h in handlers if isinstance(h, ast.ExceptHandler))
        return any(isinstance(last, ast.Raise | ast.Return) for last in leaving)


class _Walk:
    """The state of one connection from statement to statement."""

    def __init__(self, known: Sessions) -> None:
        self._sessions = known
        self._state: Literal["none", "local", "pending", "session"] = "none"
        self._set: Use | None = None
        self._block: ast.AST | None = None  # the transaction that a local limit ends with
        self._before = False  # whether something ran before the first limit
        self._after = False
        self._how = Verdict.ENDED  # how the last limit was lost
        self._lost: Judged | None = None

    def step(self, use: Use) -> None:
        """Go on to the next use."""
        blocks = self._sessions.blocks(use)
        if self._block is not None and self._block not in blocks:
            self._end(commit=True)
        if use.kind in ("commit", "rollback"):
            self._end(commit=use.kind == "commit")
            return
        if use.kind != "statement":
            return
        limits = use.limits
        for setting in limits:
            self._sets(setting, use, blocks)
        if not limits and use.works:
            self._before = self._before or self._set is None
            self._after = self._set is not None
        if not limits and use.works and self._state == "none" and self._set is not None and self._lost is None:
            self._lost = Judged(self._how, self._set.site.call)
        for text in use.texts:
            if ended := _sql.ends(text):
                self._end(commit=ended == "commit")

    def _sets(self, setting: _sql.Setting, use: Use, blocks: list[ast.With | ast.AsyncWith]) -> None:
        self._set = use
        autocommit = self._sessions.autocommit(use)
        if setting.local is True:
            self._state = "local"
        elif autocommit is not False and not blocks:
            self._state = "session"
        elif self._state != "session":
            self._state = "pending"
        self._block = blocks[-1] if blocks and self._state != "session" else None

    def _end(self, *, commit: bool) -> None:
        """A transaction ends."""
        if self._state == "pending" and commit:
            self._state = "session"
        elif self._state in ("local", "pending"):
            self._how = Verdict.ENDED if self._state == "local" else Verdict.UNDONE
            self._state = "none"
        self._block = None

    def judged(self, closes: bool) -> Judged:
        """The verdict after the last use; `closes` where nothing can roll back and go on."""
        if self._set is None:
            return _NO_LIMIT
        if self._lost is not None:
            return self._lost
        if self._state == "pending" and self._block is None and not closes:
            return Judged(Verdict.UNDONE, self._set.site.call)
        if closes and self._before and not self._after:
            return Judged(Verdict.LATE, self._set.site.call)
        return Judged(Verdict.HOLDS, self._set.site.call)


def _in_order(uses: list[Use], depth: int) -> list[Use]:
    """The uses as they run: those in a loop twice, so that what its end does is seen at its start."""
    found: list[Use] = []
    for loop, group in groupby(uses, key=lambda u: _loop(u, depth)):
        inner = list(group)
        found += inner if loop is None else _in_order(inner, depth + 1) * 2
    return found


def _loop(use: Use, depth: int) -> ast.AST | None:
    """The loop around a use, the outermost at depth 0; a loop that takes a new connection each time is none."""
    block = use.site.scope.blocks.get(use.site.call)
    loops = [b.node for b in block.chain() if b.kind == "loop"][::-1] if block else []
    checkout = use.checkout
    around = use.site.scope.blocks.get(checkout) if checkout is not None else None
    new = {b.node for b in around.chain()} if around else set()
    loops = [loop for loop in loops if loop not in new]
    return loops[depth] if depth < len(loops) else None


def _has_timeout(use: Use) -> bool:
    """Whether asyncpg is told to cancel this statement on the server: `fetch(…, timeout=5)`."""
    if use.type not in ASYNCPG:
        return False
    argument = use.site.argument("timeout")
    return not argument.absent and argument.values != (NONE,)
