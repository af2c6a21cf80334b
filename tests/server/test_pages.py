"""The set-up pages: what they give to paste is well formed, and runs where the editor is at hand."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import tomli

from tests.server.conftest import UNSAFE, write
from tests.server.test_neovim import current_neovim
from tests.services import need_program

PAGES = Path(__file__).parents[2] / "docs" / "editors"


def blocks(page: str, language: str) -> list[str]:
    """The blocks of a language in a page."""
    found = re.findall(rf"^```{language}\n(.*?)^```$", (PAGES / page).read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert found
    return found


def test_the_json_of_the_pages_names_the_command() -> None:
    (zed,) = map(json.loads, blocks("zed.md", "json"))
    assert zed["lsp"]["pylsp"]["binary"] == {"path": "deadlint", "arguments": ["server"]}
    (sublime,) = map(json.loads, blocks("sublime.md", "json"))
    assert sublime["clients"]["deadlint"]["command"] == ["deadlint", "server"]
    (vscode,) = map(json.loads, blocks("vscode.md", "json"))
    assert vscode["[python]"]["editor.codeActionsOnSave"] == {"source.fixAll.deadlint": "explicit"}


def test_the_toml_for_helix_names_the_command() -> None:
    (helix,) = map(tomli.loads, blocks("helix.md", "toml"))
    server = helix["language-server"]["deadlint"]
    assert [server["command"], *server["args"]] == ["deadlint", "server"]
    assert "deadlint" in helix["language"][0]["language-servers"]


def in_neovim(program: str, init: str, look: str, file: Path) -> str:
    """Run Neovim with a configuration and a file open, and then a script. Returns what it says on standard error."""
    folder = file.parent.parent
    beside = Path(sys.executable).parent
    kept = {name: value for name, value in os.environ.items() if name not in ("VIMRUNTIME", "VIM")}
    home = {"HOME": str(folder), "XDG_CACHE_HOME": str(folder), "PATH": f"{beside}:{os.environ['PATH']}"}
    start, script = write(folder, "init.lua", init), write(folder, "look.lua", f"{look}vim.cmd('qa!')\n")
    done = subprocess.run(
        [program, "--headless", "-u", start, file, "-c", f"luafile {script}"],
        cwd=file.parent,
        env={**kept, **home},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return done.stderr


FOUND = "vim.wait(30000, function() return #vim.diagnostic.get(0) > 0 end, 20)\n"


@pytest.mark.parametrize("block", [0, 1])
def test_the_lua_for_neovim_shows_findings(project: Path, block: int) -> None:
    """The first block in a current Neovim, the second in that of the system."""
    program = need_program("nvim", "neovim") if block else current_neovim()
    out = project.parent / "found"
    look = (
        f"{FOUND}local file = io.open([[{out}]], 'w')\n"
        "for _, one in ipairs(vim.diagnostic.get(0)) do file:write(one.code, ' ') end\nfile:close()\n"
    )
    said = in_neovim(program, blocks("neovim.md", "lua")[block], look, write(project, "fetch.py", UNSAFE))
    assert out.exists(), said
    assert out.read_text(encoding="utf-8").split() == ["DL201"], said


def test_the_lua_for_neovim_makes_the_safe_fixes_before_a_file_is_written(project: Path) -> None:
    file = write(project, "fetch.py", "import os  # deadlint: ignore[DL201]\n")
    lua = blocks("neovim.md", "lua")
    said = in_neovim(current_neovim(), lua[0] + lua[2], f"{FOUND}vim.cmd('write')\n", file)
    assert file.read_text(encoding="utf-8") == "import os\n", said
