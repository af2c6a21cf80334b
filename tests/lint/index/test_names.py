"""What a call is resolved to: each pattern by which code hides what it calls."""

from __future__ import annotations

from textwrap import dedent

import pytest
from deadlint.index.module import Module
from deadlint.settings import Settings
from deadlint.source import SourceFile


def names(code: str, line: str) -> set[str]:
    """The external names that the last call on the line that contains `line` may reach."""
    text = dedent(code)
    module = Module(SourceFile("m.py", text), Settings())
    number = next(n for n, one in enumerate(text.split("\n"), 1) if line in one)
    sites = [s for s in module.sites if s.call.lineno == number]
    assert sites, f"no site on line {number}"
    return {target.name for target in sites[-1].targets}


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("import requests as r\nr.get(1)  # <", "requests.get"),
        ("from requests import get as g\ng(1)  # <", "requests.get"),
        ("import requests.api\nrequests.api.get(1)  # <", "requests.get"),
        ("import requests\nf = requests.get\nf(1)  # <", "requests.get"),
        ("import requests\nfrom functools import partial\npartial(requests.get, 1)()  # <", "requests.get"),
        ("import requests\ngetattr(requests, 'get')(1)  # <", "requests.get"),
        ("import requests\nverb = input()\ngetattr(requests, verb)(1)  # <", "requests.*"),
        ("import pytest\nr = pytest.importorskip('requests')\nr.get(1)  # <", "requests.get"),
        ("import requests\ns = requests.session()\ns.get(1)  # <", "requests.Session.get"),
        ("import requests\nwith requests.Session() as s:\n    s.get(1)  # <", "requests.Session.get"),
        ("import requests\nif (s := requests.Session()):\n    s.get(1)  # <", "requests.Session.get"),
        ("import requests\na, b = 1, requests.Session()\nb.get(1)  # <", "requests.Session.get"),
        ("import requests\nfor s in [requests.Session()]:\n    s.get(1)  # <", "requests.Session.get"),
        ("import requests\ndef f(s: 'requests.Session | None'):\n    s.get(1)  # <", "requests.Session.get"),
        (
            "from typing import Optional\nfrom requests import Session\n"
            "def f(s: Optional[Session] = None):\n    s.get(1)  # <",
            "requests.Session.get",
        ),
        (
            "import threading, requests\nlocal = threading.local()\ndef init():\n    local.s = requests.Session()\n"
            "def use():\n    local.s.get(1)  # <",
            "requests.Session.get",
        ),
        (
            "import requests\nclass Own(requests.Session):\n    pass\nOwn().get(1)  # <",
            "requests.Session.get",
        ),
        (
            "import requests\nclass C:\n    s: requests.Session\n    def f(self):\n        self.s.get(1)  # <",
            "requests.Session.get",
        ),
        (
            "import requests\nclass C:\n    @property\n    def s(self):\n        return requests.Session()\n"
            "    def f(self):\n        self.s.get(1)  # <",
            "requests.Session.get",
        ),
        (
            "import requests\nclass A:\n    def __init__(self):\n        self.s = requests.Session()\n"
            "class B(A):\n    def f(self):\n        self.s.get(1)  # <",
            "requests.Session.get",
        ),
        (
            "import requests\ndef make():\n    s = requests.Session()\n    return s\nmake().get(1)  # <",
            "requests.Session.get",
        ),
        (
            "import contextlib, requests\n@contextlib.contextmanager\ndef make():\n    yield requests.Session()\n"
            "with make() as s:\n    s.get(1)  # <",
            "requests.Session.get",
        ),
        (
            "import contextlib, requests\nwith contextlib.ExitStack() as stack:\n"
            "    s = stack.enter_context(requests.Session())\n    s.get(1)  # <",
            "requests.Session.get",
        ),
        (
            "import requests\ndef use(s):\n    s.get(1)  # <\nuse(requests.Session())",
            "requests.Session.get",
        ),
        ("import asyncio, httpx\nasync def f():\n    c = httpx.AsyncClient()\n    await c.get(1)  # <",
         "httpx.AsyncClient.get"),
        ("import requests\ns = None\ns = s or requests.Session()\ns.get(1)  # <", "requests.Session.get"),
        ("try:\n    import requests\nexcept ImportError:\n    requests = None\nrequests.get(1)  # <", "requests.get"),
        ("def f():\n    import requests\n    requests.get(1)  # <", "requests.get"),
    ],
)  # fmt: skip
def test_follows(code: str, expected: str) -> None:
    assert expected in names(code, "# <")


@pytest.mark.parametrize(
    "code",
    [
        "requests = {}\nprint(requests.get(1))  # <",
        "def f(requests):\n    print(requests.get(1))  # <",
        "import requests\ndef f():\n    requests = {}\n    print(requests.get(1))  # <",
        "import requests\nrequests = {}\nprint(requests.get(1))  # <",
        "class C:\n    requests = {}\n    def f(self):\n        print(self.requests.get(1))  # <",
        "from .requests import get\nprint(get(1))  # <",
        "import my_requests as requests\nprint(requests.get(1))  # <",
        "import requests\nclass C:\n    get = requests.get\ndef f(self):\n    print(self.get(1))  # <",
    ],
)
def test_does_not_follow(code: str) -> None:
    assert not {name for name in names(code, "# <") if name.startswith("requests.")}
