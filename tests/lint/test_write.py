"""A file is replaced as a whole or not at all, and keeps what is not its content."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from deadlint.write import CannotWrite, Snapshot, replace_file


def test_the_content_is_replaced_and_nothing_is_left_behind(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(b"old")
    replace_file(Snapshot.read(str(path)), b"new")
    assert path.read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["a.py"]


@pytest.mark.parametrize("mode", [0o600, 0o755, 0o444, 0o664, 0o2755])
def test_the_mode_stays(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(b"old")
    path.chmod(mode)
    replace_file(Snapshot.read(str(path)), b"new")
    assert stat.S_IMODE(path.stat().st_mode) == mode


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away; run as root to see it")
def test_the_owner_stays(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(b"old")
    os.chown(path, 12345, 23456)
    path.chmod(0o4750)
    replace_file(Snapshot.read(str(path)), b"new")
    status = path.stat()
    assert (status.st_uid, status.st_gid, stat.S_IMODE(status.st_mode)) == (12345, 23456, 0o4750)


def test_a_link_goes_on_leading_to_the_file(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "a.py").write_bytes(b"old")
    link = tmp_path / "b.py"
    link.symlink_to("real/a.py")
    replace_file(Snapshot.read(str(link)), b"new")
    assert link.is_symlink()
    assert (tmp_path / "real" / "a.py").read_bytes() == b"new"


def test_a_file_that_was_edited_meanwhile_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(b"old")
    before = Snapshot.read(str(path))
    path.write_bytes(b"mine")
    with pytest.raises(CannotWrite, match="changed since it was read"):
        replace_file(before, b"new")
    assert path.read_bytes() == b"mine"
    assert os.listdir(tmp_path) == ["a.py"]


def test_an_edit_that_its_times_and_size_do_not_show_is_seen(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(b"old")
    before = Snapshot.read(str(path))
    with path.open("r+b") as file:
        file.write(b"mix")
    os.utime(path, ns=(before.status.st_atime_ns, before.status.st_mtime_ns))
    with pytest.raises(CannotWrite, match="changed since it was read"):
        replace_file(before, b"new")
    assert path.read_bytes() == b"mix"


def test_a_file_that_was_replaced_by_an_equal_one_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(b"old")
    before = Snapshot.read(str(path))
    other = tmp_path / "other"
    other.write_bytes(b"old")
    os.replace(other, path)
    with pytest.raises(CannotWrite, match="changed since it was read"):
        replace_file(before, b"new")


def test_a_file_that_is_gone_is_not_made_anew(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(b"old")
    before = Snapshot.read(str(path))
    path.unlink()
    with pytest.raises(CannotWrite, match="No such file"):
        replace_file(before, b"new")
    assert os.listdir(tmp_path) == []


def test_a_file_whose_owner_cannot_be_kept_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(b"old")
    before = Snapshot.read(str(path))
    values = list(before.status)
    values[stat.ST_UID] += 1
    before = Snapshot(before.path, os.stat_result(values), before.data)

    def refused(descriptor: int, user: int, group: int) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "fchown", refused)
    with pytest.raises(CannotWrite, match="belongs to another user or group"):
        replace_file(before, b"new")
    assert path.read_bytes() == b"old"


def test_a_full_disk_leaves_the_old_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(b"old")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(CannotWrite, match="No space left on device; nothing was changed"):
        replace_file(Snapshot.read(str(path)), b"new")
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a.py"]
