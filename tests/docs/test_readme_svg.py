"""The picture in the README shows what the tool prints today."""

from __future__ import annotations

import html
import re
import runpy
from pathlib import Path
from xml.etree import ElementTree

DOCS = Path(__file__).parents[2] / "docs"
SVG = "{http://www.w3.org/2000/svg}"


def test_the_picture_is_up_to_date() -> None:
    script = runpy.run_path(str(DOCS / "readme_svg.py"))
    printed = re.sub(r"\x1b\[[0-9;]*m", "", script["printed"]())
    picture = ElementTree.parse(DOCS / "finding.svg")
    shown = "".join(html.unescape(text.text or "") for text in picture.iter(f"{SVG}text"))
    assert "".join(printed.split()) in "".join(shown.split()), "run `python docs/readme_svg.py`"


def test_the_picture_loads_nothing_from_elsewhere() -> None:
    text = (DOCS / "finding.svg").read_text(encoding="utf-8")
    assert "http" not in text.replace("http://www.w3.org/2000/svg", "").replace("https://www.textualize.io", "")
