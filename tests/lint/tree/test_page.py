"""The page of `--output-format html`, in a real Chromium."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.lint.tree.browser import chromium
from tests.lint.tree.conftest import FIXTURES, run

BAR = "[role=treeitem]"


@pytest.fixture(scope="module")
def flood(tmp_path_factory: pytest.TempPathFactory) -> Path:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(FIXTURES / "flood")
        text = run("--output-format", "html", "--source-url", "https://code.example/{relative}#L{line}").stdout
    page = tmp_path_factory.mktemp("page") / "limits.html"
    page.write_text(text, "utf-8")
    return page


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as driver:
        yield driver


@pytest.fixture
def page(browser: Any, flood: Path) -> Any:
    browser.get(flood.as_uri())
    return browser


def bar(page: Any, label: str) -> Any:
    """The only bar whose accessible name begins so."""
    (found,) = page.find_elements("css selector", f'{BAR}[aria-label^="{label}"]')
    return found


def width(element: Any) -> float:
    return float(element.rect["width"])


def press(page: Any, *keys: str) -> None:
    for key in keys:
        page.switch_to.active_element.send_keys(key)


def selected(page: Any) -> str:
    return str(page.switch_to.active_element.get_attribute("aria-label")).partition(",")[0]


def test_bars_are_to_scale(page: Any) -> None:
    flow = width(bar(page, "flow map_flood"))
    assert width(bar(page, "task classify")) == pytest.approx(flow * 900 / 3600, rel=0.02)
    assert width(bar(page, "process gdalbuildvrt")) == pytest.approx(flow * 300 / 3600, rel=0.02)


def test_an_overrun_begins_where_the_limit_ends_and_is_as_long_as_it_lasts(page: Any) -> None:
    ogr, task = bar(page, "process ogr2ogr, limit 900 s"), bar(page, "task vectorise")
    index = ogr.get_attribute("data-index")
    (over,) = page.find_elements("css selector", f'.over[data-index="{index}"]')
    assert over.text == "+300 s"
    assert over.rect["x"] == pytest.approx(task.rect["x"] + width(task), abs=2)
    assert width(over) == pytest.approx(width(task) / 2, rel=0.03)


def test_nothing_is_asked_of_the_network_and_nothing_is_logged(page: Any) -> None:
    page.get_log("performance")
    page.refresh()
    sent = [json.loads(entry["message"])["message"] for entry in page.get_log("performance")]
    urls = {m["params"]["request"]["url"] for m in sent if m["method"] == "Network.requestWillBeSent"}
    assert {url for url in urls if not url.startswith("file:")} == set()
    assert len(urls) == 1
    assert page.get_log("browser") == []


def test_the_tree_is_walked_by_keyboard(page: Any) -> None:
    bar(page, "flow map_flood").send_keys("\ue015")  # down: the first thing inside, which is the budget
    press(page, "\ue014")  # right
    assert selected(page) == "task fetch_scenes"
    press(page, "\ue014", "\ue014", "\ue015", "\ue015", "\ue015")
    assert selected(page) == "process ogr2ogr"
    press(page, "\ue013")  # up
    assert selected(page) == "function convert"
    press(page, "\ue011")  # home
    assert selected(page) == "flow map_flood"


def test_enter_zooms_into_a_bar_and_escape_out_again(page: Any) -> None:
    task = bar(page, "task fetch_scenes")
    before, chart = width(task), width(page.find_element("css selector", ".rows"))
    task.send_keys("\ue007")
    page.execute_async_script("setTimeout(arguments[0], 300)")
    assert width(task) == pytest.approx(chart, rel=0.02)
    assert page.find_element("css selector", ".zoom").is_displayed()
    press(page, "\ue00c")
    page.execute_async_script("setTimeout(arguments[0], 300)")
    assert width(task) == pytest.approx(before, rel=0.02)


def test_a_click_shows_what_is_known_and_where_it_stands(page: Any) -> None:
    bar(page, "process ogr2ogr, limit 900 s").click()
    details = page.find_element("id", "details")
    assert "passed by the call on this path (parameter timeout)" in details.text
    assert "May run 900 s inside task vectorise, which ends at 600 s" in details.text
    links = {a.text: a.get_attribute("href") for a in details.find_elements("css selector", "a")}
    assert links["src/flood/vectors.py:26"] == "https://code.example/src/flood/vectors.py#L26"


def test_search_dims_the_rest_and_enter_goes_from_hit_to_hit(page: Any) -> None:
    page.find_element("css selector", "body").send_keys("/")
    press(page, "ogr2ogr")
    assert page.find_element("id", "found").text == "2 found"
    clear = page.find_elements("css selector", f"{BAR}:not(.dim)")
    assert {one.get_attribute("aria-label").partition(",")[0] for one in clear} == {"process ogr2ogr"}
    press(page, "\ue007", "\ue007")
    assert page.find_element("id", "found").text == "2 of 2"
    press(page, "\ue00c")
    assert page.find_elements("css selector", f"{BAR}.dim") == []


def test_a_filter_shows_what_nothing_bounds(page: Any) -> None:
    page.find_element("css selector", '[data-filter="unbounded"]').click()
    assert page.find_element("id", "found").text == "5 found"
    rows = page.find_elements("css selector", "tbody tr:not(.dim)")
    assert all("∞" in row.text for row in rows)


def test_marks_do_not_depend_on_colour(page: Any) -> None:
    looks = {}
    for label in ("process ogr2ogr, limit 900 s", "statement conn.execute", "process rsync", "function mosaic"):
        element = page.find_elements("css selector", f'{BAR}[aria-label^="{label}"]')[0]
        style = page.execute_script(
            "const s = getComputedStyle(arguments[0]);"
            "return [s.borderTopWidth, s.borderTopStyle, s.backgroundImage !== 'none', s.borderLeftWidth].join()",
            element,
        )
        sign = page.execute_script("return arguments[0].querySelector('.sign')?.textContent ?? ''", element)
        looks[label] = (style, sign)
    assert len({style for style, _ in looks.values()}) == 4
    assert [sign for _, sign in looks.values()] == ["!", "∞", "b", ""]


def contrast(page: Any, element: Any) -> float:
    """The contrast of an element's text with its background, as WCAG has it."""
    return float(
        page.execute_script(
            """
            const value = (text) => text.match(/[\\d.]+/g).slice(0, 3).map(Number).map((c) => {
              const part = c / 255;
              return part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
            });
            const light = (text) => { const [r, g, b] = value(text); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
            let back = arguments[0];
            while (getComputedStyle(back).backgroundColor === "rgba(0, 0, 0, 0)") back = back.parentElement;
            const pair = [light(getComputedStyle(arguments[0]).color), light(getComputedStyle(back).backgroundColor)];
            return (Math.max(...pair) + 0.05) / (Math.min(...pair) + 0.05);
            """,
            element,
        )
    )


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_is_readable_in_light_and_dark(page: Any, theme: str) -> None:
    page.execute_cdp_cmd(
        "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": theme}]}
    )
    page.refresh()
    assert page.execute_script("return document.documentElement.dataset.theme") == theme
    texts = page.find_elements("css selector", "h1, .summary, .bar .label b, .bar .layer, td, td a, .why, .over span")
    low = [(element.text, contrast(page, element)) for element in texts if element.is_displayed()]
    assert [(text, ratio) for text, ratio in low if ratio < 4.5] == []
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def test_print_shows_all_and_no_controls(page: Any) -> None:
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        assert not page.find_element("css selector", ".controls").is_displayed()
        assert page.find_element("css selector", "table").is_displayed()
        adjust = "return getComputedStyle(document.querySelector('.bar')).printColorAdjust"
        assert page.execute_script(adjust) == "exact"
    finally:
        page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


def test_names_from_the_source_are_text_and_never_markup(browser: Any, tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(
        'import subprocess\n\n\ndef main(x):\n    for x in "</script><b id=injected>", "<img src=y onerror=alert(1)>":\n'
        "        subprocess.run(['a'], timeout=1)\n"
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path)
        (tmp_path / "page.html").write_text(run("--isolated", "--output-format", "html").stdout, "utf-8")
    browser.get((tmp_path / "page.html").as_uri())
    assert browser.find_elements("css selector", "#injected, img") == []
    assert bar(browser, "loop for x in ('</script>")


def test_every_bar_is_also_in_the_list(page: Any) -> None:
    bars = [one.get_attribute("aria-label").partition(",")[0] for one in page.find_elements("css selector", BAR)]
    rows = [
        f"{row.find_element('css selector', '.layer').text} {row.find_element('css selector', '.name').text}".strip()
        for row in page.find_elements("css selector", "tbody tr")
    ]
    assert bars == [row.partition(",")[0] for row in rows]


def test_hidden_deep_levels_are_named(browser: Any, tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(FIXTURES / "flood")
        (tmp_path / "page.html").write_text(run("--output-format", "html", "--depth", "1").stdout, "utf-8")
    browser.get((tmp_path / "page.html").as_uri())
    assert len(browser.find_elements("css selector", BAR)) == 8
    bar(browser, "task load").click()
    assert "2 more below" in browser.find_element("id", "details").text


def test_search_leaves_out_the_entries_that_have_no_hit(browser: Any, tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(FIXTURES.parent / "pipelines")
        (tmp_path / "page.html").write_text(run("--output-format", "html").stdout, "utf-8")
    browser.get((tmp_path / "page.html").as_uri())
    browser.find_element("id", "search").send_keys("gdalbuildvrt")
    shown = [one.get_attribute("id") for one in browser.find_elements("css selector", "section") if one.is_displayed()]
    assert shown == ["entry-0"]
    entries = [one.text for one in browser.find_elements("css selector", "nav a") if one.is_displayed()]
    assert entries == ["flow build_mosaic"]
