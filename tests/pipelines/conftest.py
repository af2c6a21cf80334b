"""The pipelines before and after, the world around them, and calls into them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.pipelines.project import Project
from tests.pipelines.running import HERE, Running
from tests.pipelines.server import Server

PROGRAMS = (
    "curl", "gdal_rasterize", "gdal_translate", "gdaladdo", "gdalbuildvrt", "gdalwarp", "ogr2ogr", "rio", "rsync",
    "ssh",
)  # fmt: skip

Start = Callable[..., list[Running]]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What a call leaves behind is looked for in /proc."""
    if not sys.platform.startswith("linux"):
        for item in items:
            if HERE in item.path.parents:
                item.add_marker(pytest.mark.skip(reason="looks for processes in Linux's /proc"))


@pytest.fixture(scope="session")
def before(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """The pipelines as they are."""
    return Project(tmp_path_factory.mktemp("before") / "basemap")


@pytest.fixture(scope="session")
def after(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """The pipelines with every fix that deadlint applies."""
    project = Project(tmp_path_factory.mktemp("after") / "basemap")
    fixed = project.check("--fix", "--unsafe-fixes")
    assert fixed.status in (0, 1), fixed.errors
    return project


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """An HTTP server on loopback."""
    made = Server()
    yield made
    made.close()


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with programs that stand for GDAL's and others."""
    folder = tmp_path_factory.mktemp("bin")
    script = (HERE / "standins" / "program.sh").read_text()
    for name in PROGRAMS:
        (folder / name).write_text(script)
        (folder / name).chmod(0o755)
    return folder


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Begin a call in each of some projects: `start(code, call, *projects, **environment)`.

    All of it is ended with the test.
    """
    begun: list[Running] = []

    def begin(code: str, call: str, *projects: Project, **environment: str) -> list[Running]:
        for project in projects:
            folder = tmp_path / f"{len(begun)}"
            folder.mkdir()
            begun.append(Running(project.folder, folder, code, call, environment))
        now = begun[-len(projects) :]
        for running in now:
            running.begun()
        return now

    yield begin
    for running in begun:
        running.close()


@pytest.fixture
def with_programs(programs: Path) -> dict[str, str]:
    """The environment in which only programs that stand for others are found, beside the shell's own."""
    return {"PATH": f"{programs}:/usr/bin:/bin", "STANDIN_STUCK": "", "STANDIN_FAILS": ""}
