"""The engine with rules made for the test: what they are given, and what becomes of what they say."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from pathlib import Path

from deadlint.check import check_source
from deadlint.index.module import Module
from deadlint.model import Level
from deadlint.project import Project
from deadlint.rule import Rule, all_rules
from deadlint.settings import Settings
from deadlint.site import PROJECT, Report, Site
from deadlint.source import SourceFile


class Calls(Rule):
    """Reports every call of `lib.go`, strictly where it has an argument."""

    code, name, since, words = "XX1", "calls", "0", (("lib",),)
    calls = frozenset({"lib.go", "lib.Thing.go"})

    def check(self, site: Site) -> Iterable[Report]:
        yield site.report(f"calls {site.name}", "do not", level=Level.STRICT if site.call.args else Level.DEFAULT)


class Own(Calls):
    """Reports calls of the file's own functions."""

    code, name, calls, words = "XX2", "own", frozenset({PROJECT}), (("def ",),)


class Assignments(Calls):
    """Reports assignments to an attribute, which no call shows."""

    code, name, calls, words = "XX3", "assignments", frozenset(), ((" = ",),)

    def check_module(self, module: Module) -> Iterable[Report]:
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Attribute):
                yield Report(node, "assigns", "do not")


def found(text: str, *rules: Rule) -> list[tuple[int, str, str]]:
    findings = check_source(SourceFile("m.py", text), Settings(), rules)
    return [(f.span.line, f.code, f.level.value) for f in findings]


def test_a_rule_sees_the_calls_that_it_asked_for() -> None:
    text = "import lib\nlib.go()\nlib.stop()\nlib.Thing().go(1)\ngo = lib.go\ngo()\nself.go()\n"
    assert found(text, Calls()) == [(2, "XX1", "default"), (4, "XX1", "strict"), (6, "XX1", "default")]


def test_a_rule_sees_calls_of_the_files_own_functions() -> None:
    assert found("def f(): ...\nf()\nlen([])\n", Own()) == [(2, "XX2", "default")]


def test_a_rule_sees_what_no_call_shows() -> None:
    assert found("a.b = 1\nc = 2\n", Assignments()) == [(1, "XX3", "default")]


def test_one_finding_for_a_place_and_rule() -> None:
    text = "import lib\nx = lib.go if a else lib.Thing().go\nx()\n"
    assert found(text, Calls()) == [(3, "XX1", "default")]


def test_findings_come_in_the_order_of_the_source() -> None:
    text = "import lib\ndef g():\n    lib.go()\ng()\nlib.go()\n"
    assert [line for line, _, _ in found(text, Own(), Calls())] == [3, 4, 5]


def test_a_file_that_does_not_parse_is_a_finding() -> None:
    (finding,) = check_source(SourceFile("m.py", "def f(:\n"), Settings(), [Calls()])
    assert (finding.code, finding.span.line) == ("DL001", 1)
    assert "cannot parse" in finding.message


def test_a_socket_of_a_base_class_in_a_longer_file_does_no_harm(tmp_path: Path) -> None:
    """The place where it is made is in another file, and so are its lines."""
    (tmp_path / "base.py").write_text(
        "import socket\n" + "\n" * 60 + "class Base:\n    def __init__(self):\n        self.socket = socket.socket()\n"
    )
    path = tmp_path / "port.py"
    text = "from base import Base\n\n\nclass Port(Base):\n    def go(self, where):\n        self.socket.connect(where)\n"
    path.write_text(text + "# socket.socket\n")
    settings = Settings(root=str(tmp_path))
    source = SourceFile(str(path), path.read_text())
    found = check_source(source, settings, all_rules(), project=Project(settings))
    assert [(one.code, one.span.line, one.related) for one in found] == [("DL201", 6, ())]
