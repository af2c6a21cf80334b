"""What the fixes of DL201 and DL202 make of a request: before and after, one behaviour a test."""

from __future__ import annotations

from textwrap import dedent

import pytest
from deadlint.check import check_source
from deadlint.fix import fix_file
from deadlint.model import Finding, Safety
from deadlint.rule import all_rules
from deadlint.settings import Constants, Settings, Wrappers
from deadlint.source import SourceFile

HTTP = tuple(rule for rule in all_rules() if rule.code in ("DL201", "DL202"))


def findings(text: str, settings: Settings | None = None, path: str = "m.py") -> list[Finding]:
    return check_source(SourceFile(path, dedent(text)), settings or Settings(), HTTP)


def fixed(text: str, settings: Settings | None = None) -> str:
    settings = settings or Settings()
    source = SourceFile("m.py", dedent(text))
    allowed = (Safety.SAFE, Safety.UNSAFE)
    return fix_file(source, lambda s: check_source(s, settings, HTTP), allowed).source.text


def body(text: str, settings: Settings | None = None) -> str:
    """The last line of the fixed text."""
    return fixed(text, settings).rstrip("\n").rpartition("\n")[2]


def test_a_request_goes_through_the_helper_with_a_named_limit() -> None:
    before = """\
        import requests

        print(requests.get("u", params={"a": 1}))  # why
    """
    after = """\
        from deadlint_budget import http

        HTTP_LIMIT_S = 30

        print(http.get("u", params={"a": 1}, want=HTTP_LIMIT_S))  # why
    """
    assert fixed(before) == dedent(after)


def test_the_configured_constant_is_used() -> None:
    settings = Settings(constants=Constants(http=("TOTAL", "12.5")))
    text = fixed("import requests\nrequests.get('u')\n", settings)
    assert "TOTAL = 12.5\n" in text
    assert "http.get('u', want=TOTAL)" in text


def test_a_budget_in_scope_is_passed_on() -> None:
    text = fixed("import requests\ndef f(budget):\n    return requests.get('u')\n")
    assert "http.get('u', budget=budget)" in text
    assert "HTTP_LIMIT_S" not in text


def test_the_budget_of_an_object_is_passed_on() -> None:
    text = fixed(
        "import requests\nfrom deadlint_budget import Budget\n"
        "class C:\n    def __init__(self, budget: Budget):\n        self.budget = budget\n"
        "    def f(self):\n        return requests.get('u')\n"
    )
    assert "http.get('u', budget=self.budget)" in text


@pytest.mark.parametrize(
    ("call", "after"),
    [
        ("requests.get(URL, timeout=None)", "http.get(URL, want=HTTP_LIMIT_S)"),
        ("requests.get(URL, timeout=NONE)", "http.get(URL, timeout=NONE, want=HTTP_LIMIT_S)"),
        ("requests.get(URL, timeout=(3, None))", "http.get(URL, timeout=(3, None), want=HTTP_LIMIT_S)"),
        ("requests.get(URL, timeout=5)", "http.get(URL, timeout=5, want=HTTP_LIMIT_S)"),
        ("requests.request('GET', URL)", "http.request('GET', URL, want=HTTP_LIMIT_S)"),
        ("requests.post(URL, b'x', {})", "http.post(URL, b'x', {}, want=HTTP_LIMIT_S)"),
        ("rq.put(URL)", "http.put(URL, want=HTTP_LIMIT_S)"),
        ("fetch(URL)", "http.get(URL, want=HTTP_LIMIT_S)"),
        ("session.get(URL)", "http.get(URL, session=session, want=HTTP_LIMIT_S)"),
        ("session.request('GET', URL)", "http.request('GET', URL, session=session, want=HTTP_LIMIT_S)"),
        ("session.get(URL, timeout=None)", "http.get(URL, want=HTTP_LIMIT_S, session=session)"),
        ("session.get(URL, timeout=5)", "http.get(URL, timeout=5, session=session, want=HTTP_LIMIT_S)"),
        ("requests.Session().get(URL)", "http.get(URL, session=requests.Session(), want=HTTP_LIMIT_S)"),
        ("requests.get(URL, **KNOWN)", "http.get(URL, want=HTTP_LIMIT_S, **KNOWN)"),
        ("requests.get(URL).json()", "http.get(URL, want=HTTP_LIMIT_S).json()"),
        ("requests.get(URL,)", "http.get(URL, want=HTTP_LIMIT_S)"),
        ("request.urlopen(URL)", "http.urlopen(URL, want=HTTP_LIMIT_S)"),
        ("request.urlopen(URL, timeout=None)", "http.urlopen(URL, want=HTTP_LIMIT_S)"),
        ("request.urlopen(URL, timeout=5)", "http.urlopen(URL, want=5)"),
        ("socket.create_connection(ADDRESS)", "socket.create_connection(ADDRESS, timeout=HTTP_LIMIT_S)"),
        ("HTTPConnection('h', timeout=None)", "HTTPConnection('h', timeout=HTTP_LIMIT_S)"),
    ],
)
def test_each_kind_of_call(call: str, after: str) -> None:
    head = (
        "import socket\nimport requests\nimport requests as rq\nfrom http.client import HTTPConnection\n"
        "from urllib import request\nURL = 'u'\nNONE = None\nADDRESS = ('h', 80)\nKNOWN = {'verify': True}\n"
        "fetch = requests.get\nsession = requests.Session()\n"
    )
    assert body(f"{head}{call}\n") == after


def test_a_call_on_several_lines_keeps_its_layout() -> None:
    before = """\
        import requests

        requests.get(
            "u",  # where
            headers={},
            timeout=None,  # for ever
        )
    """
    after = """\
        http.get(
            "u",  # where
            headers={},
            want=HTTP_LIMIT_S,  # for ever
        )
    """
    assert fixed(before).endswith(dedent(after))


def test_a_taken_name_gets_an_alias() -> None:
    text = fixed("import http.client\nimport requests\nrequests.get('u')\n")
    assert "from deadlint_budget import http as budget_http" in text
    assert text.endswith("budget_http.get('u', want=HTTP_LIMIT_S)\n")


def test_a_budget_bounds_urlopen_beside_its_own_number() -> None:
    text = fixed("from urllib.request import urlopen\ndef f(budget):\n    return urlopen('u', timeout=5)\n")
    assert "http.urlopen('u', want=5, budget=budget)" in text


def test_a_client_session_gets_a_total() -> None:
    head = "import aiohttp\n"
    assert body(f"{head}aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None))\n") == (
        "aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=HTTP_LIMIT_S))"
    )
    assert body(f"{head}aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(connect=3))\n") == (
        "aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(connect=3, total=HTTP_LIMIT_S))"
    )


def test_a_caller_of_a_wrapper_gives_a_timeout() -> None:
    text = "import requests\ndef fetch(url, **kwargs):\n    return requests.get(url, **kwargs)\nfetch('u')\n"
    assert body(text) == "fetch('u', timeout=HTTP_LIMIT_S)"


@pytest.mark.parametrize(
    "call",
    [
        "requests.get(*args)",
        "requests.get(URL, **{**options(), 'timeout': None})",
        "functools.partial(requests.get, URL)()",
        "getattr(requests, verb)(URL)",
        "session.send(prepared)",
        "requests.request('GET', URL, None)",
        "requests.get(URL, timeout=600)",
        "urllib.request.urlopen(URL, None, None)",
        "urllib.request.urlopen(URL, cafile='c')",
        "urllib.request.build_opener().open(URL)",
        "httpx.get(URL, timeout=None)",
        "httpx.Client(timeout=None)",
        "urllib3.PoolManager().request('GET', URL)",
        "urllib.request.urlretrieve(URL)",
        "aiohttp.ClientSession(timeout=OFF)",
        "thread.submit(fetch, URL)",
    ],
)
def test_what_cannot_be_known_is_not_changed(call: str) -> None:
    text = (
        "import functools, urllib.request, aiohttp, httpx, requests, urllib3\nURL = 'u'\n"
        "session = requests.Session()\ntotal = None\nOFF = aiohttp.ClientTimeout(total=total)\n"
        f"def fetch(url, **kwargs):\n    return requests.get(url, **kwargs)\n{call}\n"
    )
    if not call.startswith("thread"):
        assert findings(text)
    assert fixed(text) == text


def test_a_total_shorter_than_the_timeout_is_only_shown() -> None:
    (finding,) = findings("import requests\nrequests.get('u', timeout=600)\n")
    assert finding.fix is not None
    assert finding.fix.safety is Safety.DISPLAY


def test_a_configured_wrapper_and_session_set_their_default() -> None:
    text = """\
        import requests

        def fetch(url, **kwargs):
            return requests.get(url, **kwargs)

        def session():
            return requests.Session()

        fetch("u")
        session().get("u")
    """
    wrappers = Wrappers(requests=("pkg.web.fetch",), sessions=("pkg.web.session",))
    assert len(findings(text, path="src/pkg/web.py")) == 2
    assert not findings(text, Settings(wrappers=wrappers), path="src/pkg/web.py")


def test_a_request_is_reported_by_one_of_the_two_rules() -> None:
    calls = ("", ", timeout=None", ", timeout=5", ", timeout=(1, 2)", ", timeout=(1, None)", ", stream=True")
    for arguments in calls:
        assert len(findings(f"import requests\nrequests.get('u'{arguments})\n")) == 1


def test_messages_name_what_is_missing() -> None:
    (part,) = findings("import requests\nrequests.get('u', timeout=(3, None))\n")
    assert "read" in part.message
    (parameter,) = findings("import requests\ndef f(limit=None):\n    requests.get('u', timeout=limit)\n")
    assert "`limit` is None" in parameter.message
    (number,) = findings("import requests\nrequests.get('u', timeout=7.5)\n")
    assert "7.5 s" in number.message
