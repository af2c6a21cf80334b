"""From a keystroke to its diagnostics, as an editor sees it: milliseconds, in a file of 1,000 lines.

    python benchmarks/keystrokes.py [--keys 200] [--lines 1000]

A client types into a document over standard input and output, one character at a time, and waits for what is published
of that version. Two files: `dense` is the fixtures' pipelines over and over, so that nearly every function has a limit
and one line of twelve a finding; `mixed` has them once, among modules of deadlint's own. `burst` types ten keys a
second without waiting, as people do, and looks at the last key of each second.
"""

from __future__ import annotations

import argparse
import ast
import json
import queue
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from deadlint_budget import wait

ROOT = Path(__file__).parents[1]
AIM_MS = 50.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--keys", type=int, default=200)
    parser.add_argument("--lines", type=int, default=1000)
    options = parser.parse_args()
    print(f"{'':16}{'findings':>9}{'median':>10}{'p95':>10}{'worst':>10}")
    worst = 0.0
    for name, text in (("dense", dense(options.lines)), ("mixed", mixed(options.lines))):
        for way in ("waiting", "burst"):
            found, times = measure(text, options.keys, burst=way == "burst")
            p95 = statistics.quantiles(times, n=20)[-1]
            worst = max(worst, p95)
            print(f"{name + ', ' + way:16}{found:9}{statistics.median(times):7.1f} ms{p95:7.1f} ms{max(times):7.1f} ms")
    print(f"p95 {worst:.1f} ms at the worst; the aim is {AIM_MS:.0f} ms")
    return 0 if worst <= AIM_MS else 1


def dense(lines: int) -> str:
    """The pipelines of the fixtures, under other names each time."""
    return _cut(_pipelines(times=1 + lines // 200), lines)


def mixed(lines: int) -> str:
    """The pipelines once, and modules without a finding."""
    own = [path.read_text() for path in sorted((ROOT / "lint/deadlint").glob("*.py"))]
    return _cut([*_pipelines(times=1), *own], lines)


def _pipelines(times: int) -> list[str]:
    files = [path.read_text() for path in sorted((ROOT / "fixtures/pipelines").rglob("*.py"))]
    return [
        re.sub(r"^((?:async )?def|class) (\w+)", rf"\1 \2_{number}", text, flags=re.MULTILINE)
        for number in range(times)
        for text in files
    ]


def _cut(texts: list[str], lines: int) -> str:
    """As many lines as are wanted, or a few less where that ends within a statement."""
    future = "from __future__ import annotations\n"
    kept = (future + "".join(text.replace(future, "") for text in texts)).splitlines(keepends=True)[:lines]
    while True:
        try:
            compile("".join(kept), "", "exec")
        except SyntaxError:
            kept.pop()
        else:
            return "".join(kept)


def _inside_a_function(text: str) -> tuple[int, int]:
    """The line, counted from 0, and the column of a statement in the body of a function in the middle of the text."""
    middle = text.count("\n") // 2
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef) and node.lineno > middle and len(node.body) > 2:
            return node.body[1].lineno - 1, node.body[1].col_offset
    raise ValueError("no function in the second half")


class Client:
    """Just enough of an editor. It always reads, or the server would wait for it."""

    def __init__(self, folder: Path) -> None:
        command = [sys.executable, "-m", "deadlint", "server"]
        self._server = subprocess.Popen(
            command, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
        )
        self._id = 0
        self._heard: queue.SimpleQueue[Any] = queue.SimpleQueue()
        threading.Thread(target=self._listen, daemon=True).start()
        self.request("initialize", {"processId": None, "rootUri": folder.as_uri(), "capabilities": {}})
        self.notify("initialized", {})

    def notify(self, method: str, params: Any) -> None:
        self._send({"method": method, "params": params})

    def request(self, method: str, params: Any) -> Any:
        self._id += 1
        self._send({"id": self._id, "method": method, "params": params})
        while True:
            message = self._heard.get(timeout=60)
            if message.get("id") == self._id and "method" not in message:
                return message.get("result")

    def published(self, version: int) -> list[Any]:
        """The diagnostics of a version, once they are there."""
        while True:
            message = self._heard.get(timeout=60)
            if message.get("method") == "textDocument/publishDiagnostics":
                params = message["params"]
                if params.get("version") == version:
                    return list(params["diagnostics"])

    def stop(self) -> None:
        self.request("shutdown", None)
        self.notify("exit", None)
        wait(self._server, want=30)

    def _listen(self) -> None:
        stream = self._server.stdout
        assert stream is not None
        length = 0
        while line := stream.readline():
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])
            elif not line.strip():
                self._heard.put(json.loads(stream.read(length)))

    def _send(self, message: dict[str, Any]) -> None:
        assert self._server.stdin is not None
        data = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self._server.stdin.write(b"Content-Length: %d\r\n\r\n%b" % (len(data), data))
        self._server.stdin.flush()


def measure(text: str, keys: int, *, burst: bool) -> tuple[int, list[float]]:
    """How much is found, and the milliseconds of each key that was waited for."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "pipeline.py")
        path.write_text(text)
        client = Client(Path(folder))
        uri = path.as_uri()
        document = {"uri": uri, "languageId": "python", "version": 0, "text": text}
        client.notify("textDocument/didOpen", {"textDocument": document})
        found = len(client.published(0))
        line, column = _inside_a_function(text)
        times = []
        for key in range(1, keys + 1):
            at = {"line": line, "character": 0}
            new = f"{' ' * column}typed = 1\n" if key % 12 == 1 else "a"
            change = {"range": {"start": at, "end": at}, "text": new}
            if key % 12 != 1:
                at["character"] = column + len("typed")
            began = time.perf_counter()
            client.notify(
                "textDocument/didChange",
                {"textDocument": {"uri": uri, "version": key}, "contentChanges": [change]},
            )
            if burst and key % 10:
                time.sleep(0.1)
                continue
            client.published(key)
            times.append((time.perf_counter() - began) * 1000)
            time.sleep(0.02)
        client.stop()
        return found, times


if __name__ == "__main__":
    sys.exit(main())
