"""JUnit XML, which most CI services show as tests: a suite for each file, a case for each finding."""

from __future__ import annotations

import re
from itertools import groupby
from typing import TYPE_CHECKING, TextIO
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

from deadlint.model import Finding
from deadlint.report import PLAIN, Options
from deadlint.report.printable import printable

if TYPE_CHECKING:
    from deadlint.result import RunResult

_NO_XML = re.compile("[\ufffe\uffff]")  # what XML forbids beyond what `printable` escapes


def print_report(result: RunResult, out: TextIO, options: Options = PLAIN) -> None:
    """Print the findings as failures, suppressed ones as skipped, problems as errors."""
    root = document(result)
    ElementTree.indent(root)
    # In ASCII with character references, so that it is right in whatever encoding `out` has.
    body = ElementTree.tostring(root, encoding="us-ascii", xml_declaration=False).decode("ascii")
    out.write(f'<?xml version="1.0" encoding="utf-8"?>\n{body}\n')


def document(result: RunResult) -> Element:
    """The tree of the report."""
    root = Element("testsuites", name="deadlint")
    for path, group in groupby(result.findings, key=lambda finding: finding.path):
        suite = SubElement(root, "testsuite", name=_text(path))
        for finding in group:
            _case(suite, finding)
        _count(suite)
    if result.problems:
        suite = SubElement(root, "testsuite", name="files that could not be checked")
        for problem in result.problems:
            case = SubElement(suite, "testcase", name=_text(problem.path), classname="deadlint")
            SubElement(case, "error", type="error", message=_text(problem.message))
        _count(suite)
    if not len(root):
        # Services take a report without a single case for a job that went wrong.
        suite = SubElement(root, "testsuite", name="deadlint")
        SubElement(suite, "testcase", name=f"no findings in {result.files} files", classname="deadlint")
        _count(suite)
    for name in ("tests", "failures", "errors", "skipped"):
        root.set(name, str(sum(int(suite.get(name, "0")) for suite in root)))
    root.set("time", f"{result.seconds:.3f}")
    return root


def _case(suite: Element, finding: Finding) -> None:
    span = finding.span
    case = SubElement(
        suite,
        "testcase",
        name=f"{finding.code} {finding.name} (line {span.line}, column {span.column})",
        classname=_class_name(finding.path),
        file=_text(finding.path),
        line=str(span.line),
    )
    if finding.suppressed is not None:
        SubElement(case, "skipped", message=_text(finding.suppressed.reason or finding.suppressed.text))
        return
    failure = SubElement(case, "failure", type=finding.level.value, message=_text(finding.message))
    lines = [f"{finding.path}:{span.line}:{span.column}: {finding.code} {finding.message}", finding.remedy]
    lines += [f"{place.path}:{place.span.line}:{place.span.column}: {place.message}" for place in finding.related]
    failure.text = "\n".join(_text(line) for line in lines)


def _class_name(path: str) -> str:
    """What services group cases by: the path as a dotted name."""
    return _text(path.removesuffix(".py").replace("\\", "/").replace("/", ".").strip("."))


def _count(suite: Element) -> None:
    suite.set("tests", str(len(suite)))
    for name, child in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        suite.set(name, str(len(suite.findall(f"testcase/{child}"))))


def _text(text: str) -> str:
    return _NO_XML.sub("\ufffd", printable(text))
