"""`SET statement_timeout` by hand at the start of a session's block: what follows it ends with the budget as well.

The statement stays: without it the limit of the role, which may be narrower, would hold.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from deadlint import header
from deadlint.index.scopes import Scope, dotted
from deadlint.index.values import Result
from deadlint.migrate.indentation import under_head
from deadlint.model import Fix, Safety

if TYPE_CHECKING:
    from deadlint.index.module import Module

_SET = re.compile(
    r"\s*SET\s+(?:LOCAL\s+|SESSION\s+)?\"?statement_timeout\"?\s*(?:=|\bTO\b)\s*('[^']*'|%s|[\w.]+)\s*;?\s*", re.I
)
_CONNECTIONS = frozenset(
    {
        "psycopg.Connection", "psycopg.AsyncConnection", "psycopg2.connection", "sqlalchemy.Connection",
        "sqlalchemy.orm.Session", "sqlalchemy.ext.asyncio.AsyncConnection", "sqlalchemy.ext.asyncio.AsyncSession",
    }
)  # fmt: skip
_HELPER = "deadlint_budget.statement_timeout"

Block = ast.With | ast.AsyncWith


def set_by_hand(module: Module, function: Scope, budget: str) -> Iterator[tuple[ast.expr, Fix]]:
    """Each call that sets the limit at the start of a block, with the fix that bounds the rest of that block."""
    for call in function.calls:
        statement = module.statement(call)
        block = module.walker.parents.get(statement)
        if not _sets(call) or not isinstance(block, Block) or block.body[0] is not statement or len(block.body) == 1:
            continue
        connection = _connection(module, function, call, block)
        if connection and not any(_is_helper(module, item) for item in _entered(block)):
            yield call, _bounded(module, block, connection, budget)


def _sets(call: ast.Call) -> bool:
    """Whether a call executes `SET statement_timeout`, alone."""
    if not isinstance(call.func, ast.Attribute) or call.func.attr != "execute" or not call.args:
        return False
    match call.args[0]:
        case ast.Constant(value=str() as sql) | ast.Call(args=[ast.Constant(value=str() as sql)], keywords=[]):
            return _SET.fullmatch(sql) is not None
    return False


def _connection(module: Module, function: Scope, call: ast.Call, block: Block) -> str | None:
    """The name of the connection, opened by a block, that a call is on, itself or by a cursor."""
    assert isinstance(call.func, ast.Attribute)
    name = dotted(call.func.value)
    for item in reversed(block.items):
        opened = item.context_expr
        if not isinstance(item.optional_vars, ast.Name) or item.optional_vars.id != name:
            continue
        match opened:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=above), attr="cursor")):
                name = above
                continue
        values = module.resolver.evaluate(opened, function)
        plain = all(isinstance(value, Result) and value.name in _CONNECTIONS for value in values)
        # An autocommit connection would get a transaction for the block.
        alone = isinstance(opened, ast.Call) and all(k.arg not in ("autocommit", None) for k in opened.keywords)
        return name if plain and alone else None
    return None


def _entered(block: Block) -> Iterator[ast.expr]:
    """What a block enters, and what the statement behind its first does."""
    yield from (item.context_expr for item in block.items)
    match block.body[1]:
        case ast.With(items=items) | ast.AsyncWith(items=items):
            yield from (item.context_expr for item in items)


def _is_helper(module: Module, node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and any(target.name == _HELPER for target in module.targets(node))


def _bounded(module: Module, block: Block, connection: str, budget: str) -> Fix:
    """What follows the first statement under `statement_timeout`, which keeps a narrower limit that is set."""
    source = module.source
    helper = header.free_import(module.tree, module.bound_names, module.settings.helpers, "statement_timeout")
    start = "async with" if isinstance(block, ast.AsyncWith) else "with"
    head = f"{start} {helper.alias or helper.name}({connection}, {budget}):"
    edit = under_head(source, block.body[1], block.body[-1], head)
    return Fix("bound the block by the budget too, on the server", Safety.UNSAFE, (edit,), (helper,))
