"""The page on PostgreSQL does what it says: its statements, commands, settings and Python, on a server of the tests' own."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
import types

import pytest

from markdown_page import blocks, run_page
from perdure.server.keys import Grant, Keyring
from postgres_server import Server, shared_server
from source_tree import ROOT

PAGE = ROOT / "docs" / "howto" / "scale-out.md"
MAIN = "import sys; from perdure.cli.main import main; sys.exit(main())"
STARTED_S = 60


def texts(language, needs=""):
    return [block.text for block in blocks(PAGE) if (block.language, block.needs) == (language, needs)]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A database, roles and a folder for the page's names."""
    server, folder = shared_server(), tmp_path_factory.mktemp("page")
    binaries = folder / "bin"
    binaries.mkdir()
    for program, line in (("perdure", f"-c {shlex.quote(MAIN)}"), ("python", "")):
        shim = binaries / program
        shim.write_text(f'#!/bin/sh\nexec {sys.executable} {line} "$@"\n')
        shim.chmod(0o755)
    os.symlink(ROOT / "scripts", folder / "scripts")
    names = {
        "db.example/postgres": f"/postgres?host={server.root}",
        "db.example/memory": f"/page_memory?host={server.root}",
        "standby.example/memory": f"/page_memory?host={server.root}",
        "db.example/restored": f"/page_restored?host={server.root}",
        "--owner=memory_owner restored": "--owner=page_owner page_restored",
        "memory_owner": "page_owner",
        "perdure@": "page_role@",
        "--role perdure": "--role page_role",
        "ROLE perdure": "ROLE page_role",
        "DATABASE memory": "DATABASE page_memory",
        "/srv/perdure": str(folder),
        "/srv/restored": str(folder / "restored"),
        "10.0.0.11": "127.0.0.1",
        "10.0.0.12": "127.0.0.1",
        "--port 8420": "--port 0",
    }
    path = os.pathsep.join([str(binaries), str(server.binaries), os.environ["PATH"]])
    source = os.pathsep.join(filter(None, [str(ROOT / "src"), os.environ.get("PYTHONPATH")]))
    told = types.SimpleNamespace(
        folder=folder, names=names, env={**os.environ, "PATH": path, "PYTHONPATH": source}
    )
    for statement in " ".join(named(told, text) for text in texts("sql")).split(";"):
        if statement.strip():
            server.execute(statement)
    return told


def named(place, text):
    for old, new in place.names.items():
        text = text.replace(old, new)
    return text


def run_shell(place, text):
    done = subprocess.run(
        ["bash", "-euc", named(place, text)],
        cwd=place.folder,
        env=place.env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{text}\n{done.stdout}{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def shown_at_first(place):
    """What the page's first commands show, which make the tables and a tenant."""
    return run_shell(place, texts("sh")[0])


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="the page's commands are those of a POSIX shell")
def test_the_commands_of_the_page_set_up_check_back_up_and_restore(place, shown_at_first):
    _, checked, saved, restored = texts("sh")
    shown = shown_at_first
    assert "The tables are made" in shown
    assert "Alice lives in Lyon" in shown
    assert "node 2" in run_shell(place, checked)
    run_shell(place, saved)
    shown = run_shell(place, restored)
    assert "all is whole" in shown
    assert not list(place.folder.rglob("keystore.hold"))  # neither where it was made nor in the copy


@pytest.mark.slow
def test_the_python_of_the_page_gives_what_it_says(place, shown_at_first):
    names = dict(place.names)
    plain = [block.text for block in blocks(PAGE) if block.language == "python" and not block.needs]
    namespace = {}
    exec("\n".join(plain), namespace)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("builtins.DictKeystore", namespace["DictKeystore"], raising=False)
        assert run_page(PAGE, needs="postgres", names=names) == 3


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="signals as on POSIX")
def test_the_servers_of_the_page_start_side_by_side(place, shown_at_first):
    keys = place.folder / "keys"
    with Keyring(keys) as ring:
        ring.create(Grant(principal="alice"))
    [text] = texts("sh", "serve")
    lines = named(place, text).splitlines()
    started = [
        subprocess.Popen(
            ["bash", "-c", f"exec {line}"], cwd=place.folder, env=place.env, stderr=subprocess.PIPE, text=True
        )
        for line in lines
    ]
    try:
        assert len(started) == 2
        for process in started:
            told = next((line for line in process.stderr if " serving " in line or "Error" in line), "")
            assert "serving" in told
    finally:
        for process in started:
            process.send_signal(signal.SIGTERM)
        for process in started:
            process.communicate(timeout=STARTED_S)
    assert [process.returncode for process in started] == [0, 0]


@pytest.mark.slow
def test_what_is_measured_is_what_the_page_names(place, shown_at_first):
    [text] = texts("sh", "measure")
    shown = run_shell(place, text.replace("--facts 100000", "--facts 1000"))
    assert [re.match(r"[a-z_]+", line)[0] for line in shown.splitlines()[1:]] == [
        "record",
        "cache_part",
        "of",
        "keystore",
        "memory",
    ]


@pytest.mark.slow
def test_the_settings_of_the_page_are_ones_that_a_server_starts_with():
    [text] = texts("ini")
    settings = dict(line.split(" = ", 1) for line in text.splitlines())
    server = Server({name: value.strip("'") for name, value in settings.items()})
    try:
        for name, value in settings.items():
            assert server.execute(f"SHOW {name}") == [(value.strip("'"),)]
    finally:
        server.stop()


def load_suite():
    """Return the page's own test of its keystore, as a reader would copy it."""
    module = types.ModuleType("scale_out_page")
    for block in blocks(PAGE):
        if block.language == "python" and block.needs in ("", "suite"):
            exec(compile("\n" * (block.line - 1) + block.text, str(PAGE), "exec"), module.__dict__)
    return module


class TestDictKeystore(load_suite().TestDictKeystore):
    """The whole suite, on the page's own keystore."""
