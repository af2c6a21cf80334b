"""Code actions: what can be done about a finding, or about all of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import pairwise, takewhile

from lsprotocol import types

from deadlint.add_ignore import NOT_IGNORED, CannotIgnore, with_comments
from deadlint.fix import FixError, all_edits, fix_file
from deadlint.model import Edit, Finding, Safety
from deadlint.rule import Rule
from deadlint.server.analysis import Checked, source_of
from deadlint.server.buffers import Buffer
from deadlint.server.places import Places
from deadlint.server.positions import Positions, overlaps
from deadlint.source import SourceFile

FIX_ALL = "source.fixAll.deadlint"
# Not below `source.fixAll`, which editors apply unasked when a file is saved.
FIX_ALL_UNSAFE = "source.fixAllUnsafe.deadlint"
KINDS = (types.CodeActionKind.QuickFix, FIX_ALL, FIX_ALL_UNSAFE)
OPEN_RULE = "deadlint.openRule"

_SAFE = frozenset({Safety.SAFE})
_BOTH = frozenset({Safety.SAFE, Safety.UNSAFE})
_NOTE = " (may change behaviour)"


class CannotDo(Exception):
    """An action cannot be taken; the text says why."""


@dataclass(frozen=True, slots=True)
class Deferred:
    """An action whose edit is made when it is chosen: several fixes at once, or a comment.

    `code` is that of the rule, empty for all; `line`, if there is one, that of the finding that a comment is to ignore.
    """

    uri: str
    version: int
    code: str = ""
    unsafe: bool = False
    line: int = 0

    @property
    def data(self) -> dict[str, object]:
        """As a client carries it until it asks for the edit."""
        return {
            "uri": self.uri, "version": self.version, "code": self.code, "unsafe": self.unsafe, "line": self.line
        }  # fmt: skip

    @classmethod
    def of(cls, data: object) -> Deferred | None:
        """What `data` gave; None where it is none."""
        match data:
            case {
                "uri": str(uri), "version": int(version), "code": str(code), "unsafe": bool(unsafe), "line": int(line)
            }:  # fmt: skip
                return cls(uri, version, code, unsafe, line)
        return None


@dataclass(frozen=True, slots=True)
class Asked:
    """What a client asks for: a range, the kinds of actions that it wants, and how it takes edits."""

    range: types.Range
    only: tuple[str, ...] | None
    versioned: bool  # whether it takes edits with the version of the document
    resolves: bool  # whether it asks for an edit when the action is chosen

    def wants(self, kind: str) -> bool:
        """Whether actions of a kind are wanted."""
        return self.only is None or any(kind == one or kind.startswith(f"{one}.") for one in self.only)


def offered(
    checked: Checked, asked: Asked, places: Places, diagnose: Callable[[Finding], types.Diagnostic]
) -> Iterator[types.CodeAction]:
    """The actions, those for the findings in the range first. Edits of batches are left to be resolved."""
    buffer = checked.buffer
    here = [one for one in checked.findings if overlaps(buffer.positions.of_span(one.span), asked.range)]
    if asked.wants(types.CodeActionKind.QuickFix):
        for finding in here:
            yield from _for_one(finding, checked, asked, diagnose(finding))
        yield from _for_kinds(here, checked)
        yield from _to_read(here)
    fixable = Counter(one.fix.safety for one in checked.findings if one.fix is not None)
    if fixable[Safety.SAFE] and asked.wants(FIX_ALL):
        safe = Deferred(buffer.uri, buffer.version)
        yield types.CodeAction("deadlint: apply all safe fixes", kind=FIX_ALL, data=safe.data)
    if fixable[Safety.UNSAFE] and asked.wants(FIX_ALL_UNSAFE):
        both = Deferred(buffer.uri, buffer.version, unsafe=True)
        yield types.CodeAction(f"deadlint: apply all fixes{_NOTE}", kind=FIX_ALL_UNSAFE, data=both.data)


def _for_one(
    finding: Finding, checked: Checked, asked: Asked, diagnostic: types.Diagnostic
) -> Iterator[types.CodeAction]:
    source = source_of(checked.buffer)
    fix = finding.fix
    if fix is not None and fix.safety is not Safety.DISPLAY:
        is_safe = fix.safety is Safety.SAFE
        yield types.CodeAction(
            f"{finding.code}: {fix.title}{'' if is_safe else _NOTE}",
            kind=types.CodeActionKind.QuickFix,
            diagnostics=[diagnostic],
            is_preferred=is_safe or None,
            edit=workspace_edit(checked.buffer, all_edits(source, finding), versioned=asked.versioned),
        )
    if finding.code not in NOT_IGNORED:
        comment = Deferred(checked.buffer.uri, checked.buffer.version, finding.code, line=finding.span.line)
        yield types.CodeAction(
            f"{finding.code}: ignore with a comment",
            kind=types.CodeActionKind.QuickFix,
            diagnostics=[diagnostic],
            data=comment.data,
        )


def _for_kinds(here: Sequence[Finding], checked: Checked) -> Iterator[types.CodeAction]:
    """For each rule that finds something here and more elsewhere: all its fixes in the file."""
    for code in dict.fromkeys(one.code for one in here):
        safeties = [one.fix.safety for one in checked.findings if one.code == code and one.fix is not None]
        safe, unsafe = safeties.count(Safety.SAFE), safeties.count(Safety.UNSAFE)
        if safe > 1 or (safe and unsafe):
            yield _batch(f"{code}: apply its {safe} safe fixes in this file", checked.buffer, code, unsafe=False)
        if unsafe and safe + unsafe > 1:
            title = f"{code}: apply all its {safe + unsafe} fixes in this file{_NOTE}"
            yield _batch(title, checked.buffer, code, unsafe=True)


def _batch(title: str, buffer: Buffer, code: str, *, unsafe: bool) -> types.CodeAction:
    batch = Deferred(buffer.uri, buffer.version, code, unsafe)
    return types.CodeAction(title, kind=types.CodeActionKind.QuickFix, data=batch.data)


def _to_read(here: Sequence[Finding]) -> Iterator[types.CodeAction]:
    for code, name in dict.fromkeys((one.code, one.name) for one in here):
        command = types.Command(f"Open the page of {code}", OPEN_RULE, arguments=[code])
        yield types.CodeAction(
            f"{code}: open the page of {name}", kind=types.CodeActionKind.QuickFix, command=command
        )


def deferred_edit(
    deferred: Deferred, buffer: Buffer, findings: Callable[[SourceFile], Sequence[Finding]], rules: Sequence[Rule]
) -> Sequence[Edit]:
    """The edits of an action. `findings` are those of a text, with fixes. Raises `CannotDo`."""
    source = source_of(buffer)
    try:
        after = _ignored(source, deferred, findings, rules) if deferred.line else _fixed(source, deferred, findings)
    except (FixError, CannotIgnore) as error:
        raise CannotDo(str(error)) from error
    return _difference(source.text, after.text)


def _fixed(
    source: SourceFile, deferred: Deferred, findings: Callable[[SourceFile], Sequence[Finding]]
) -> SourceFile:
    def chosen(text: SourceFile) -> list[Finding]:
        return [one for one in findings(text) if deferred.code in ("", one.code)]

    return fix_file(source, chosen, _BOTH if deferred.unsafe else _SAFE).source


def _ignored(
    source: SourceFile,
    deferred: Deferred,
    findings: Callable[[SourceFile], Sequence[Finding]],
    rules: Sequence[Rule],
) -> SourceFile:
    here = [one for one in findings(source) if (one.code, one.span.line) == (deferred.code, deferred.line)]
    return with_comments(source, here, "", [(rule.code, rule.name) for rule in rules]).source


def workspace_edit(buffer: Buffer, edits: Sequence[Edit], *, versioned: bool) -> types.WorkspaceEdit:
    """Edits of a buffer; a client that takes versions refuses them once the document has another one."""
    changes = [
        types.TextEdit(buffer.positions.range(edit.start, edit.end), edit.text) for edit in dict.fromkeys(edits)
    ]
    if not versioned:
        return types.WorkspaceEdit(changes={buffer.uri: changes})
    document = types.OptionalVersionedTextDocumentIdentifier(buffer.uri, buffer.version)
    return types.WorkspaceEdit(document_changes=[types.TextDocumentEdit(document, [*changes])])


def _difference(before: str, after: str) -> list[Edit]:
    """The lines that differ, so that marks and folds elsewhere in the document stay."""
    old, new = _lines(before), _lines(after)
    starts = [0]
    for line in old:
        starts.append(starts[-1] + len(line))
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    return [
        _trimmed(starts[first], "".join(old[first:last]), "".join(new[begin:end]))
        for tag, first, last, begin, end in matcher.get_opcodes()
        if tag != "equal"
    ]


def _trimmed(start: int, old: str, new: str) -> Edit:
    """The edit from one text to another, without what both begin and end with."""
    lead = _alike(old, new)
    old, new = old[lead:], new[lead:]
    trail = _alike(old[::-1], new[::-1])
    return Edit(start + lead, start + lead + len(old) - trail, new[: len(new) - trail])


def _alike(one: str, other: str) -> int:
    """How many characters two texts begin with alike."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def _lines(text: str) -> list[str]:
    starts = [*Positions(text).line_starts, len(text)]
    return [text[start:end] for start, end in pairwise(starts)]
