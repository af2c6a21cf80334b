"""Runs one call of a pipeline in a process of its own, and says how it went.

    driver.py PROJECT FD CODE CALL

`CODE` is run first; then the expression `CALL` is timed. One line on the descriptor says that it begins, the next
one, in JSON, how it ended.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any


def main() -> None:
    project, descriptor, code, call = sys.argv[1:]
    sys.path.insert(0, project)
    os.set_inheritable(int(descriptor), False)
    space: dict[str, Any] = {"Path": Path}
    exec(code, space)
    with open(int(descriptor), "w", buffering=1) as report:
        print("begin", file=report)
        began = time.monotonic()
        value, error = None, None
        try:
            value = eval(call, space)
        except BaseException as raised:
            error = raised
        seconds = time.monotonic() - began
        kinds = [kind.__name__ for kind in type(error).__mro__] if error is not None else []
        words = "" if error is None else str(error)
        outcome = {"seconds": seconds, "value": repr(value), "raised": kinds, "words": words}
        print(json.dumps(outcome), file=report)


if __name__ == "__main__":
    main()
