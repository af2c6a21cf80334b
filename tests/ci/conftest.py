"""A checkout of a toy project, and the machine of a CI service around it."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
WAIT_S = 300
FAULT = 'import requests\n\n\ndef catalogue(url):\n    return requests.get(f"{url}/catalogue").json()\n'

# Stands in for `python3 -m venv DIR`: what that makes has the deadlint of this machine, and a pip that only says
# what it is to install. The real installation is a test of its own.
STANDIN = """\
#!/bin/sh
if [ "$1 $2" != "-m venv" ]; then echo "python3 $*" >&2; exit 64; fi
mkdir -p "$3/bin"
ln -sf "{bin}/deadlint" "$3/bin/deadlint"
printf '#!/bin/sh\\necho "$*" >> "{log}"\\n' > "$3/bin/python"
chmod +x "$3/bin/python"
"""


@dataclass(frozen=True, slots=True)
class Runner:
    """Runs the shell steps of one job."""

    checkout: Path
    temporary: Path
    log: Path
    environment: dict[str, str] = field(default_factory=dict)

    def __call__(self, script: str, *, directory: str = ".", **environment: str) -> subprocess.CompletedProcess[str]:
        """Run a script as GitHub's `shell: bash` does, which the other services' shells do not fall behind."""
        path = self.temporary / "step.sh"
        path.write_text(script, encoding="utf-8")
        return subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(path)],
            cwd=self.checkout / directory,
            env={**self.environment, **environment},
            check=False,
            capture_output=True,
            text=True,
            timeout=WAIT_S,
        )

    @property
    def installed(self) -> list[str]:
        """What pip was to install, a call each."""
        return self.log.read_text(encoding="utf-8").splitlines() if self.log.exists() else []


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    """A job on a checkout with one finding, where `python3 -m venv` takes no time."""
    checkout, temporary, log, tools = (tmp_path / name for name in ("a checkout", "temporary", "pip.log", "tools"))
    for directory in (checkout / ".git", checkout / "services" / "tiler", temporary, tools):
        directory.mkdir(parents=True)
    (checkout / "services" / "tiler" / "fetch.py").write_text(FAULT, encoding="utf-8")
    (tools / "python3").write_text(STANDIN.format(bin=BIN, log=log), encoding="utf-8")
    (tools / "python3").chmod(0o755)
    environment = {"PATH": os.pathsep.join([str(tools), os.environ["PATH"]]), "HOME": str(tmp_path)}
    return Runner(checkout, temporary, log, environment)
