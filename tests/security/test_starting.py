"""A server starts for no more people than somebody said, and trusts no file that others can read or change."""

from __future__ import annotations

import os
import socket
import stat
import sys
from pathlib import Path

import pytest

import forked
from forked import COMMAND
from perdure.errors import InvalidRequest, PerdureError
from perdure.server.app import create_app
from perdure.server.keys import Keyring
from perdure.server.settings import Settings

from .asking import code
from .site import Site

FOREIGN = ["0.0.0.0", "::", "192.0.2.1", "example.com", "127.1", "0", "localhost.", "::ffff:192.0.2.1"]


@pytest.mark.parametrize("host", FOREIGN)
@pytest.mark.parametrize("auth", [True, False])
def test_without_keys_no_server_listens_to_other_machines(tmp_path, host, auth):
    with pytest.raises(InvalidRequest) as caught:
        create_app(Settings(store=tmp_path / "store", host=host, auth=auth))
    assert caught.value.field == "host"
    assert not (tmp_path / "store").exists()


def test_no_auth_is_refused_where_there_are_keys_wherever_the_server_listens(tmp_path):
    with Site(tmp_path / "store") as site:
        site.key()
    for host in ("127.0.0.1", *FOREIGN):
        with pytest.raises(InvalidRequest):
            create_app(Settings(store=tmp_path / "store", host=host, auth=False))


def test_the_command_refuses_no_auth_for_other_machines_with_one_line_and_exit_code_2(tmp_path):
    told = ["serve", "--store", str(tmp_path / "store"), "--no-auth", "--host", "0.0.0.0", "--port", "0"]
    ended = forked.run(COMMAND, *told, text=True, timeout=60)
    assert ended.returncode == 2
    assert "keys create" in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize(
    "told", [("serve",), ("serve", "--workers", "2"), ("mcp", "--transport", "http")], ids=" ".join
)
def test_where_another_program_has_the_port_the_command_says_so_and_makes_nothing(tmp_path, told):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}  # for workers
        options = ("--store", tmp_path / "store", "--port", port)
        ended = forked.run(COMMAND, *told, *options, text=True, timeout=60, env=environment)
    assert ended.returncode == 1
    assert f"port {port} is taken by another program" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o777 & ~0o700])
def test_keys_and_token_are_their_owner_s_alone_whatever_the_umask(tmp_path, umask):
    before = os.umask(umask)
    try:
        with Site(tmp_path / "keyed") as site:
            site.key()
        with Site(tmp_path / "store"):
            pass
    finally:
        os.umask(before)
    for path in (tmp_path / "keyed" / "keys.json", tmp_path / "store" / "server.token"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o660, 0o666, 0o601])
def test_a_file_of_keys_that_others_reach_lets_nobody_in(tmp_path, mode):
    with Site(tmp_path / "store") as site:
        key = site.key(principal="u1")
        assert site.call("list", {}, key).status_code == 200
        (site.directory / "keys.json").chmod(mode)
        reply = site.call("list", {}, key)
        assert (reply.status_code, code(reply)) == (503, "unavailable")
        with pytest.raises(InvalidRequest):
            create_app(Settings(store=site.directory))
        (site.directory / "keys.json").chmod(0o600)
        assert site.call("list", {}, key).status_code == 200


@pytest.mark.parametrize("mode", [0o644, 0o660, 0o604])
def test_a_token_file_that_others_reach_starts_no_server(tmp_path, mode):
    with Site(tmp_path / "store") as site:
        (site.directory / "server.token").chmod(mode)
    with pytest.raises(InvalidRequest):
        create_app(Settings(store=tmp_path / "store"))


@pytest.mark.parametrize("name", ["keys.json", "server.token"])
def test_a_link_to_a_file_that_others_reach_is_no_private_file(tmp_path, name):
    with Site(tmp_path / "store") as site:
        if name == "keys.json":
            site.key()
        path = site.directory / name
    elsewhere = tmp_path / "elsewhere"
    path.rename(elsewhere)
    elsewhere.chmod(0o644)
    path.symlink_to(elsewhere)
    with pytest.raises(InvalidRequest):
        create_app(Settings(store=tmp_path / "store"))


def test_a_token_is_never_written_through_a_link(tmp_path):
    (tmp_path / "store").mkdir(mode=0o700)
    victim = tmp_path / "victim"
    (tmp_path / "store" / "server.token").symlink_to(victim)  # it leads to nothing yet
    (tmp_path / "store" / "server.token.new").symlink_to(victim)
    with Site(tmp_path / "store") as site:
        assert not victim.exists()
        assert not (site.directory / "server.token").is_symlink()
        assert site.call("list", {}, site.token()).status_code == 200


def test_keys_are_never_written_through_a_link(tmp_path):
    (tmp_path / "store").mkdir(mode=0o700)
    victim = tmp_path / "victim"
    victim.write_text("it stays")
    victim.chmod(0o600)
    (tmp_path / "store" / "keys.json.new").symlink_to(victim)
    with Keyring(tmp_path / "store") as keyring:
        keyring.all_keys()
    with Site(tmp_path / "store") as site:
        site.key()
        assert victim.read_text() == "it stays"
        assert not (site.directory / "keys.json").is_symlink()


def test_a_file_of_keys_that_is_taken_away_or_spoilt_lets_nobody_in(tmp_path):
    with Site(tmp_path / "store") as site:
        key = site.key(principal="u1")
        site.restart()  # with keys now, so without a token that counts
        path = site.directory / "keys.json"
        content = path.read_bytes()
        for spoilt in (
            b"",
            b"{}",
            content[:-20],
            content.replace(b'"write"', b'"admin "'),
            b"\x00" * 100,
            content * 2,
        ):
            path.write_bytes(spoilt)
            assert site.call("list", {}, key).status_code in (401, 503), spoilt[:20]
        path.unlink()
        for asked in (key, None):  # a disk that is not mounted looks so: nobody's key is called wrong
            assert site.call("list", {}, asked).status_code == 503
        path.mkdir()
        assert site.call("list", {}, key).status_code in (401, 503)


def test_a_directory_in_place_of_a_private_file_is_told_and_not_entered(tmp_path):
    for name in ("keys.json", "server.token"):
        directory = tmp_path / name / "store"
        (directory / name).mkdir(parents=True)
        with pytest.raises(PerdureError):
            create_app(Settings(store=directory))


def test_the_runtime_directory_of_an_ephemeral_store_is_no_link_of_somebody_else(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    theirs = tmp_path / "theirs"
    theirs.mkdir(mode=0o777)
    (tmp_path / "perdure").symlink_to(theirs)
    with pytest.raises(InvalidRequest):
        create_app(Settings(store=":memory:"))
    assert list(Path(theirs).iterdir()) == []
