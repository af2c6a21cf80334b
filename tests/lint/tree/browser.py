"""A real Chromium, without a window. Skips, with how to get it, where it or selenium is missing."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

REQUIRED = bool(os.environ.get("DEADLINT_REQUIRE_SERVICES"))


def _missing(what: str) -> None:
    text = f"{what} is missing; install chromium and chromium-driver (Debian) and deadlint[test]"
    if REQUIRED:
        pytest.fail(text)
    pytest.skip(text)


@contextmanager
def chromium(width: int = 1280, height: int = 1000) -> Iterator[Any]:
    """A driver of a Chromium with that window."""
    try:
        from selenium import webdriver  # noqa: PLC0415 - a skip says so where it is missing
        from selenium.webdriver.chrome.service import Service  # noqa: PLC0415
    except ImportError:
        _missing("selenium")
    browser, driver = shutil.which("chromium") or shutil.which("google-chrome"), shutil.which("chromedriver")
    if browser is None or driver is None:
        _missing("chromium" if browser is None else "chromedriver")
    options = webdriver.ChromeOptions()
    options.binary_location = browser
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", f"--window-size={width},{height}"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    made = webdriver.Chrome(options=options, service=Service(driver))
    try:
        made.implicitly_wait(5)
        yield made
    finally:
        made.quit()
