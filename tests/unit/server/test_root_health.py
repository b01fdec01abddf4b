"""A server with a root of tenants is ready only while the root takes writes; it tells of tenants that fail."""

from __future__ import annotations

import asyncio
import os
import shutil

import httpx
import pytest

from perdure.server.app import create_app
from perdure.server.roots import MARK_FILE, admit
from perdure.server.settings import Settings


@pytest.fixture
def root(tmp_path):
    admit(tmp_path / "root", "acme")
    return tmp_path / "root"


@pytest.fixture
def app(root):
    made = create_app(Settings(store=str(root), auth=False))
    yield made
    made.close()


def ready(app):
    async def ask():
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            return await client.get("/health/ready")

    told = asyncio.run(ask())
    return told.status_code, told.json()["status"]


def remember(app, tenant):
    async def ask():
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            place = {"Perdure-Tenant": tenant}
            return await client.post("/api/v1/memory/remember", json={"text": "it stays"}, headers=place)

    return asyncio.run(ask()).status_code


def files_of(root, tenant):
    return root / "tenants" / tenant.encode().hex()


def break_store(root, tenant):
    for path in files_of(root, tenant).glob("*.db"):
        path.write_bytes(b"no database at all" * 500)


def test_a_root_with_room_is_ready(app):
    assert ready(app) == (200, "ok")


@pytest.mark.skipif(not hasattr(os, "statvfs"), reason="what is free is asked as POSIX does")
def test_a_root_on_a_full_disk_is_not_ready_until_there_is_room_again(app, root, monkeypatch):
    asked = []
    full = os.statvfs_result((4096, 4096, 1000, 10, 10, 0, 0, 0, 0, 255))
    with monkeypatch.context() as patched:
        patched.setattr(os, "statvfs", lambda path: asked.append(path) or full)
        assert ready(app) == (503, "storage_full")
    assert set(asked) == {root}
    assert ready(app) == (200, "ok")


@pytest.mark.parametrize("place", ["", "tenants"])
def test_a_root_that_may_only_be_read_is_not_ready(app, root, monkeypatch, place):
    closed = root / place
    asked = os.access  # the tests may run as a user whom no mode stops

    def access(path, mode, **options):
        return False if path == closed and mode == os.W_OK else asked(path, mode, **options)

    monkeypatch.setattr(os, "access", access)
    monkeypatch.setattr(os, "supports_effective_ids", {access})
    assert ready(app) == (503, "unavailable")


@pytest.mark.parametrize("gone", ["", MARK_FILE])
def test_a_root_that_is_gone_is_not_ready(app, root, gone):
    lost = root / gone
    shutil.rmtree(lost) if lost.is_dir() else lost.unlink()
    assert ready(app) == (503, "unavailable")


def test_a_store_whose_folder_is_gone_is_not_ready(tmp_path):
    (tmp_path / "store").mkdir()
    made = create_app(Settings(store=str(tmp_path / "store"), auth=False))
    try:
        assert ready(made) == (200, "ok")
        (tmp_path / "store").rmdir()
        assert ready(made) == (503, "unavailable")
    finally:
        made.close()


def test_a_broken_store_of_a_tenant_shows_and_the_server_stays_for_the_others(app, root):
    assert (remember(app, "acme"), remember(app, "beta")) == (200, 200)
    app.close()
    break_store(root, "acme")
    again = create_app(Settings(store=str(root), auth=False))
    try:
        assert ready(again) == (200, "ok")  # nobody has asked for it
        assert remember(again, "acme") == 500
        assert ready(again) == (200, "degraded")
        assert again.engine.sizes()["failing"] == 1
        assert remember(again, "beta") == 200
        shutil.rmtree(files_of(root, "acme"))
        assert ready(again) == (200, "ok")
    finally:
        again.close()


def test_an_open_store_of_a_tenant_that_takes_no_writes_shows(app, root, monkeypatch):
    assert (remember(app, "acme"), remember(app, "beta")) == (200, 200)
    closed = files_of(root, "acme")
    asked = os.access  # the tests may run as a user whom no mode stops

    def access(path, mode, **options):
        return False if closed in (path, *path.parents) and mode == os.W_OK else asked(path, mode, **options)

    monkeypatch.setattr(os, "access", access)
    monkeypatch.setattr(os, "supports_effective_ids", {access})
    assert ready(app) == (200, "degraded")
    assert app.engine.sizes()["failing"] == 1
