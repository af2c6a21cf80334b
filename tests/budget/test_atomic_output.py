"""`atomic_output`: the old output or the new one, whatever happens."""

# ruff: noqa: PT012 - a block under test is more than one line

from __future__ import annotations

import errno
import glob
import os
import random
import signal
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from budget_witness import WoundClock, eventually, need_program
from deadlint_budget import Budget, DeadlineExceeded, OutputError, atomic_output, run_gdal
from deadlint_budget._outputs import split_name


def names(folder: Path) -> list[str]:
    return sorted(os.listdir(folder))


def test_the_name_appears_when_the_block_has_ended(tmp_path: Path) -> None:
    with atomic_output(tmp_path / "tile.tif") as part:
        assert part.parent == tmp_path
        assert part.suffix == ".tif"
        assert part.name.startswith(".tile.part-")
        part.write_text("new")
        assert not (tmp_path / "tile.tif").exists()
    assert (tmp_path / "tile.tif").read_text() == "new"
    assert names(tmp_path) == ["tile.tif"]


@pytest.mark.parametrize("error", [KeyError, KeyboardInterrupt, SystemExit])
def test_a_failure_leaves_the_old_one(error: type[BaseException], tmp_path: Path) -> None:
    target = tmp_path / "tile.tif"
    target.write_text("old")
    with pytest.raises(error), atomic_output(target) as part:
        part.write_text("half")
        Path(f"{part}.aux.xml").write_text("half")
        raise error
    assert target.read_text() == "old"
    assert names(tmp_path) == ["tile.tif"]


def test_a_spent_budget_publishes_nothing(tmp_path: Path, clock: WoundClock) -> None:
    budget = Budget.of(10, "flow", clock=clock)
    with (
        pytest.raises(DeadlineExceeded, match=r"publishing tile\.tif"),
        atomic_output(tmp_path / "tile.tif", budget) as part,
    ):
        part.write_text("late")
        clock.advance(11)
    with budget, pytest.raises(DeadlineExceeded), atomic_output(tmp_path / "tile.tif") as part:
        part.write_text("late, says the ambient one")
    assert names(tmp_path) == []


def test_nothing_to_publish_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="without an output"), atomic_output(tmp_path / "x.csv"):
        pass
    with pytest.raises(OutputError, match="empty"), atomic_output(tmp_path / "x.csv") as part:
        part.touch()
    with (
        pytest.raises(OutputError, match="looks_right"),
        atomic_output(tmp_path / "x.csv", validate=looks_right) as part,
    ):
        part.write_text("wrong")
    with atomic_output(tmp_path / "x.csv", allow_empty=True) as part:
        part.touch()
    assert names(tmp_path) == ["x.csv"]


def looks_right(path: Path) -> bool:
    return path.read_text() == "right"


def test_files_beside_it_go_along_and_outdated_ones_go(tmp_path: Path) -> None:
    for name in ("tile.tif", "tile.tif.ovr", "tile.tif.aux.xml", "tile.tif.bak", "tile2.tif"):
        (tmp_path / name).write_text("old")
    with atomic_output(tmp_path / "tile.tif") as part:
        part.write_text("new")
        Path(f"{part}.aux.xml").write_text("new")
        part.with_suffix(".tfw").write_text("new")
    assert names(tmp_path) == ["tile.tfw", "tile.tif", "tile.tif.aux.xml", "tile.tif.bak", "tile2.tif"]
    assert (tmp_path / "tile.tif.aux.xml").read_text() == "new"
    assert (tmp_path / "tile.tif.bak").read_text() == "old"


def test_a_shapefile(tmp_path: Path) -> None:
    with atomic_output(tmp_path / "roads.shp") as part:
        for ending in (".shp", ".shx", ".dbf", ".prj", ".cpg"):
            part.with_suffix(ending).write_text(ending)
    assert names(tmp_path) == ["roads.cpg", "roads.dbf", "roads.prj", "roads.shp", "roads.shx"]


@pytest.mark.parametrize(
    ("name", "stem", "ending"),
    [
        ("tile.tif", "tile", ".tif"),
        ("a.2024.tif", "a.2024", ".tif"),
        ("x.gpkg.zip", "x", ".gpkg.zip"),
        ("x.tar.gz", "x", ".tar.gz"),
        ("README", "README", ""),
        (".hidden", ".hidden", ""),
        ("x.gz", "x", ".gz"),
    ],
)
def test_endings(name: str, stem: str, ending: str) -> None:
    assert split_name(name) == (stem, ending)


def test_directories(tmp_path: Path) -> None:
    target = tmp_path / "cube.zarr"
    for round_ in ("one", "two"):
        with atomic_output(target) as part:
            part.mkdir()
            (part / round_).write_text("x")
    assert names(tmp_path) == ["cube.zarr"]
    assert names(target) == ["two"]
    with pytest.raises(OutputError, match="directory"), atomic_output(target) as part:
        part.write_text("a file")
    assert names(target) == ["two"]


def test_a_directory_is_never_missing(tmp_path: Path) -> None:
    target = tmp_path / "cube.zarr"
    target.mkdir()
    (target / "0").write_text("x")
    seen_missing = 0
    stop = threading.Event()

    def look() -> None:
        nonlocal seen_missing
        while not stop.is_set():
            seen_missing += not target.exists()

    reader = threading.Thread(target=look)
    reader.start()
    for number in range(100):
        with atomic_output(target, durable=False) as part:
            part.mkdir()
            (part / str(number)).write_text("x")
    stop.set()
    reader.join()
    assert seen_missing == 0


def test_mode_and_symlink_are_kept(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    real = tmp_path / "data" / "tile.tif"
    real.write_text("old")
    real.chmod(0o640)
    link = tmp_path / "tile.tif"
    link.symlink_to(real)
    with atomic_output(link) as part:
        assert part.parent == real.parent
        part.write_text("new")
    assert link.is_symlink()
    assert real.read_text() == "new"
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    before = os.umask(0o022)
    try:
        with atomic_output(tmp_path / "fresh.txt") as part:
            part.write_text("x")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "fresh.txt").stat().st_mode) == 0o644  # mkstemp would publish 0600


def test_leftovers_of_the_dead_are_swept_and_others_are_not(tmp_path: Path) -> None:
    code = (
        "import os, sys\nfrom deadlint_budget import atomic_output\n"
        "with atomic_output(sys.argv[1]) as part:\n part.write_text('half'); print(part.name, flush=True); "
        "os.kill(os.getpid(), 9)"
    )
    target = tmp_path / "tile.tif"
    dead = subprocess.run([sys.executable, "-c", code, target], capture_output=True, text=True, check=False)
    assert names(tmp_path) == [dead.stdout.strip()]
    stranger = tmp_path / ".tile.part-00000000-1-1-1.tif"  # of another host, as far as its name says
    stranger.write_text("x")
    with atomic_output(target) as part:
        part.write_text("new")
        with atomic_output(target) as other:  # a live one of our own is left alone too
            other.write_text("other")
        assert part.exists()
    assert names(tmp_path) == [stranger.name, "tile.tif"]


def test_another_filesystem_is_refused(tmp_path: Path) -> None:
    if os.getuid() != 0:
        pytest.skip("needs root to mount a file")
    target = tmp_path / "tile.tif"
    target.write_text("old")
    elsewhere = Path("/dev/shm") / f"deadlint-{os.getpid()}"
    elsewhere.write_text("mounted")
    try:
        if subprocess.run(["mount", "--bind", elsewhere, target], check=False).returncode:
            pytest.skip("mount --bind is not allowed here")
        try:
            with pytest.raises(OSError, match="another filesystem") as caught, atomic_output(target):
                raise AssertionError("entered")
            assert caught.value.errno == errno.EXDEV
        finally:
            subprocess.run(["umount", target], check=True)
    finally:
        elsewhere.unlink()


def test_what_cannot_be_renamed_is_refused(tmp_path: Path) -> None:
    for path in ("/vsis3/bucket/tile.tif", "s3://bucket/tile.tif"):
        with pytest.raises(ValueError, match="local files"), atomic_output(path):
            pass
    with pytest.raises(FileNotFoundError), atomic_output(tmp_path / "no" / "such" / "dir.tif"):
        raise AssertionError("entered")


FORKING_WRITERS = """
import os, sys
from deadlint_budget import atomic_output
target = sys.argv[1]
for line in sys.stdin:
    pid = os.fork()
    if pid:
        print(pid, flush=True)
        os.waitpid(pid, 0)
        print("ended", flush=True)
        continue
    number = int(line) * 1000
    while True:
        number += 1
        text = f"{number:09d}" * 20_000
        with atomic_output(target, durable=False) as part:
            with open(part, "w") as file:
                for start in range(0, len(text), 9_000):
                    file.write(text[start:start + 9_000])
                    file.flush()
"""


def test_killed_at_200_moments_the_output_is_whole(tmp_path: Path) -> None:
    target = tmp_path / "tile.tif"
    target.write_text(f"{0:09d}" * 20_000)
    rng = random.Random(7)
    seen = set()
    left_parts = 0
    command = [sys.executable, "-c", FORKING_WRITERS, target]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as writers:
        assert writers.stdin is not None
        assert writers.stdout is not None
        # At least 200; more where the machine is so busy that few got as far as publishing, or few were hit in the middle.
        for number in range(1, 2001):
            writers.stdin.write(f"{number}\n")
            writers.stdin.flush()
            pid = int(writers.stdout.readline())
            time.sleep(rng.uniform(0, 0.006 * (1 + number // 200)))
            os.kill(pid, signal.SIGKILL)
            assert writers.stdout.readline() == "ended\n"
            text = target.read_text()
            assert text == text[:9] * 20_000
            seen.add(text[:9])
            assert len(names(tmp_path)) <= 2  # what the last one left: the next one sweeps it
            left_parts += len(names(tmp_path)) == 2
            if number >= 200 and len(seen) > 50 and left_parts > 50:
                break
    assert len(seen) > 50  # many of them got as far as publishing
    assert left_parts > 50  # and many were hit in the middle


def test_two_writers_and_a_reader(tmp_path: Path) -> None:
    target = tmp_path / "tile.tif"
    target.write_text("0" * 50_000)
    stop = threading.Event()

    def write(letter: str) -> None:
        for _ in range(100):
            with atomic_output(target, durable=False) as part:
                part.write_text(letter * 50_000)
        stop.set()

    threads = [threading.Thread(target=write, args=(letter,)) for letter in "ab"]
    for thread in threads:
        thread.start()
    while not stop.is_set():
        text = target.read_text()
        assert text == text[0] * 50_000
    for thread in threads:
        thread.join()
    assert names(tmp_path) == ["tile.tif"]


# --- with GDAL's programs ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def big(tmp_path_factory: pytest.TempPathFactory) -> Path:
    need_program("gdal_create", "gdal-bin")
    path = tmp_path_factory.mktemp("gdal") / "in.tif"
    options = ["-outsize", "4000", "4000", "-ot", "Float32", "-bands", "3", "-burn", "7", "-a_srs", "EPSG:32633"]
    run_gdal(["gdal_create", *options, "-a_ullr", "500000", "5600000", "540000", "5560000", str(path)], want=60)
    return path


def test_a_stopped_gdalwarp_leaves_the_old_output(big: Path, tmp_path: Path) -> None:
    target = tmp_path / "out.tif"
    target.write_text("old")
    command = [
        "gdalwarp",
        "-q",
        "-t_srs",
        "EPSG:3857",
        "-r",
        "lanczos",
        "-tr",
        "3",
        "3",
        "-co",
        "COMPRESS=DEFLATE",
        str(big),
    ]
    with pytest.raises(DeadlineExceeded), Budget.of(1, "flow"), atomic_output(target) as part:
        run_gdal([*command, str(part)])
    assert target.read_text() == "old"
    assert names(tmp_path) == ["out.tif"]


def test_gdal_formats_by_their_temporary_names(big: Path, tmp_path: Path) -> None:
    for name in ("o.tif", "o.png", "o.img", "o.vrt"):
        with atomic_output(tmp_path / name) as part:
            run_gdal(["gdal_translate", "-q", "-outsize", "100", "100", "-ot", "Byte", str(big), str(part)], want=60)
        run_gdal(["gdalinfo", str(tmp_path / name)], want=30)
    assert "o.png.aux.xml" in names(tmp_path)
    source = tmp_path / "in.csv"
    source.write_text("x,y,name\n1,2,a\n")
    vector = ["ogr2ogr", "-oo", "X_POSSIBLE_NAMES=x", "-oo", "Y_POSSIBLE_NAMES=y"]
    for name in ("v.shp", "v.gpkg", "v.geojson", "v.fgb"):
        with atomic_output(tmp_path / name) as part:
            run_gdal([*vector, str(part), str(source)], want=30)
        out = run_gdal(["ogrinfo", "-al", "-so", str(tmp_path / name)], want=30).stdout
        assert "Feature Count: 1" in out
    assert not [name for name in names(tmp_path) if name.startswith(".")]


def test_a_killed_job_s_part_is_hidden_from_globs(big: Path, tmp_path: Path) -> None:
    code = f"""
from deadlint_budget import atomic_output, run_gdal
with atomic_output({str(tmp_path / "out.tif")!r}) as part:
    run_gdal(["gdalwarp", "-q", "-t_srs", "EPSG:3857", "-tr", "2", "2", {str(big)!r}, part])
"""
    job = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.DEVNULL)
    assert eventually(lambda: names(tmp_path) != [], 10)
    job.send_signal(signal.SIGKILL)
    job.wait()
    assert glob.glob(str(tmp_path / "*.tif")) == []
