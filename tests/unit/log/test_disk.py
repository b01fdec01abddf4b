"""Where a store lies, and what happens to files that hold what must be gone."""

import logging
import os

import pytest

from perdure.base.disk import erase, find_filesystem, overwrite, warn_of_network
from perdure.log.sqlite import SqliteLog

posix = pytest.mark.skipif(os.name != "posix", reason="devices have numbers on POSIX only")


def mounted(directory, kind):
    """Write a mount table in which the directory's device has this filesystem; return its path."""
    device = directory.stat().st_dev
    table = directory / "mounts"
    table.write_text(
        "21 1 0:1 / /proc rw,nosuid shared:5 - proc proc rw\n"
        f"36 21 {os.major(device)}:{os.minor(device)} / /home\\040of rw shared:1 - {kind} server:/x rw\n"
    )
    return table


@posix
@pytest.mark.parametrize("kind", ["nfs4", "cifs", "fuse.sshfs", "9p"])
def test_a_directory_on_a_network_is_warned_of(tmp_path, caplog, kind):
    with caplog.at_level(logging.WARNING, logger="perdure.log"):
        warn_of_network(tmp_path, mounted(tmp_path, kind))
    assert [record.name for record in caplog.records] == ["perdure.log"]
    assert kind in caplog.text
    assert "local disk" in caplog.text


@posix
@pytest.mark.parametrize("kind", ["ext4", "xfs", "btrfs", "tmpfs", "overlay"])
def test_a_directory_on_a_local_disk_is_not(tmp_path, caplog, kind):
    assert find_filesystem(tmp_path, mounted(tmp_path, kind)) == kind
    warn_of_network(tmp_path, mounted(tmp_path, kind))
    assert caplog.records == []


def test_where_the_mounts_cannot_be_read_or_do_not_name_the_device_nothing_is_said(tmp_path, caplog):
    table = tmp_path / "mounts"
    assert find_filesystem(tmp_path, table) is None
    table.write_text("nonsense\n\n - nfs\n1 2 3:x / / rw - nfs a b\n")
    assert find_filesystem(tmp_path, table) is None
    warn_of_network(tmp_path, table)
    assert caplog.records == []


def test_opening_a_store_asks_where_it_lies(tmp_path, caplog, monkeypatch):
    monkeypatch.setattr("perdure.base.disk.find_filesystem", lambda *_: "nfs")
    SqliteLog.open(tmp_path / "store").close()
    assert "network filesystem (nfs)" in caplog.text


def test_an_overwritten_file_keeps_its_length_and_nothing_else(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"text" * 600_000)
    assert overwrite(path)
    assert path.read_bytes() == bytes(2_400_000)
    assert not overwrite(tmp_path / "absent")


def test_an_erased_file_is_gone(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"text")
    erase(path)
    erase(path)
    assert not path.exists()
