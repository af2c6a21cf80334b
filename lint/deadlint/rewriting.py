"""Changing a call with LibCST: another function, renamed and added arguments, laid out as their neighbours are."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

import libcst as cst

from deadlint.source import SourceFile


def parse_call(source: SourceFile, call: ast.Call) -> cst.Call:
    """The LibCST node of a call, cut from the source."""
    config = cst.PartialParserConfig(default_newline=source.newline)
    # The parentheses let the call span lines, as it may where it stands.
    node = cst.parse_expression(f"({source.segment(call)})", config)
    assert isinstance(node, cst.Call)
    return node.with_changes(lpar=node.lpar[1:], rpar=node.rpar[:-1])


def code(source: SourceFile, node: cst.CSTNode) -> str:
    """The source text of a LibCST node, with the file's newlines."""
    return cst.Module([], default_newline=source.newline).code_for_node(node)


def expression(text: str) -> cst.BaseExpression:
    """A LibCST expression of its source text."""
    return cst.parse_expression(text)


def rewritten(
    node: cst.Call,
    *,
    function: str | None = None,
    rename: Mapping[str, tuple[str, str | None]] | None = None,
    add: Sequence[tuple[str, str]] = (),
    prepend: Sequence[str] = (),
) -> cst.Call:
    """`node` with another function, keywords renamed in place, keywords added, and arguments put in front.

    `rename` maps a keyword to its new name and, where that changes too, its new value. A keyword that is there
    already is never added.
    """
    args = [_renamed(arg, rename or {}) for arg in node.args]
    present = {arg.keyword.value for arg in args if arg.keyword is not None}
    node = node.with_changes(args=args)
    for name, value in add:
        if name not in present:
            node = _with_keyword(node, name, value)
    for value in reversed(prepend):
        node = _with_first(node, value)
    if function is not None:
        node = node.with_changes(func=expression(function))
    return node


def with_keyword_name(arg: cst.Arg, name: str) -> cst.Arg:
    """A positional argument given by keyword."""
    nothing = cst.SimpleWhitespace("")
    return arg.with_changes(keyword=cst.Name(name), equal=cst.AssignEqual(nothing, nothing))


def _renamed(arg: cst.Arg, rename: Mapping[str, tuple[str, str | None]]) -> cst.Arg:
    if arg.keyword is None or arg.keyword.value not in rename:
        return arg
    name, value = rename[arg.keyword.value]
    changed = arg.with_changes(keyword=arg.keyword.with_changes(value=name))
    return changed if value is None else changed.with_changes(value=expression(value))


def _with_first(node: cst.Call, value: str) -> cst.Call:
    comma = cst.Comma(whitespace_after=cst.SimpleWhitespace(" ")) if node.args else cst.MaybeSentinel.DEFAULT
    return node.with_changes(args=[cst.Arg(expression(value), comma=comma), *_parenthesised(node.args)])


def _parenthesised(args: Sequence[cst.Arg]) -> list[cst.Arg]:
    """Arguments with a bare generator put in parentheses, as it must be beside another argument."""
    found = []
    for arg in args:
        if isinstance(arg.value, cst.GeneratorExp) and not arg.value.lpar:
            arg = arg.with_changes(  # noqa: PLW2901 - the changed argument takes its place
                value=arg.value.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
            )
        found.append(arg)
    return found


def _with_keyword(node: cst.Call, name: str, value: str) -> cst.Call:
    """`node` with a keyword argument at its end, but in front of `**mapping`, laid out as its neighbours are."""
    nothing = cst.SimpleWhitespace("")
    new = cst.Arg(expression(value), keyword=cst.Name(name), equal=cst.AssignEqual(nothing, nothing))
    args = _parenthesised(node.args)
    if not args:
        return node.with_changes(args=[new])
    place = len(args)
    while place and args[place - 1].star == "**":
        place -= 1
    if place < len(args):
        return node.with_changes(args=_inserted(node, args, place, new))
    return node.with_changes(args=_appended(node, args, new))


def _inserted(node: cst.Call, args: list[cst.Arg], place: int, new: cst.Arg) -> list[cst.Arg]:
    separator = args[place - 1].comma if place else cst.Comma(whitespace_after=node.whitespace_before_args)
    if not place and isinstance(node.whitespace_before_args, cst.SimpleWhitespace):
        separator = cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
    assert isinstance(separator, cst.Comma)
    # A comment behind the neighbour stays behind it.
    plain = cst.Comma(whitespace_after=_without_comment(separator.whitespace_after))
    return [*args[:place], new.with_changes(comma=plain), *args[place:]]


def _appended(node: cst.Call, args: list[cst.Arg], new: cst.Arg) -> list[cst.Arg]:
    last = args[-1]
    trailing = isinstance(last.comma, cst.Comma)
    closing = last.comma.whitespace_after if isinstance(last.comma, cst.Comma) else last.whitespace_after_arg
    if not isinstance(closing, cst.ParenthesizedWhitespace):
        before = last.with_changes(
            comma=cst.Comma(whitespace_after=_separator(node, args)), whitespace_after_arg=cst.SimpleWhitespace("")
        )
        return [*args[:-1], before, new.with_changes(whitespace_after_arg=closing)]
    indentation = _separator(node, args)
    if len(args) > 1 and not isinstance(indentation, cst.ParenthesizedWhitespace):
        # The arguments share a line, whose end is that of the parentheses: the new one stands there too.
        before = last.with_changes(
            comma=cst.Comma(whitespace_after=indentation), whitespace_after_arg=cst.SimpleWhitespace("")
        )
        end_comma = cst.Comma(whitespace_after=closing) if trailing else cst.MaybeSentinel.DEFAULT
        behind = cst.SimpleWhitespace("") if trailing else closing
        return [*args[:-1], before, new.with_changes(comma=end_comma, whitespace_after_arg=behind)]
    last_line = indentation.last_line if isinstance(indentation, cst.ParenthesizedWhitespace) else closing.last_line
    before = last.with_changes(
        comma=cst.Comma(whitespace_after=closing.with_changes(last_line=last_line)),
        whitespace_after_arg=cst.SimpleWhitespace(""),
    )
    end = _without_comment(closing)
    if trailing:
        return [*args[:-1], before, new.with_changes(comma=cst.Comma(whitespace_after=end))]
    return [*args[:-1], before, new.with_changes(whitespace_after_arg=end)]


def _separator(node: cst.Call, args: Sequence[cst.Arg]) -> cst.BaseParenthesizableWhitespace:
    """What stands between two arguments: as between the last two, else as before the first."""
    if len(args) > 1 and isinstance(args[-2].comma, cst.Comma):
        return _without_comment(args[-2].comma.whitespace_after)
    if isinstance(node.whitespace_before_args, cst.ParenthesizedWhitespace):
        return _without_comment(node.whitespace_before_args)
    return cst.SimpleWhitespace(" ")


def _without_comment(space: cst.BaseParenthesizableWhitespace) -> cst.BaseParenthesizableWhitespace:
    if isinstance(space, cst.ParenthesizedWhitespace):
        return space.with_changes(first_line=cst.TrailingWhitespace(), empty_lines=[])
    return space
