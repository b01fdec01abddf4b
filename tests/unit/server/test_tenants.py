"""The stores behind a server: made at a first write, opened once, closed when idle, bounded in number."""

from __future__ import annotations

import logging
import stat
import threading
import time

import pytest

from perdure.errors import InvalidRequest, InvalidTenant, TenantLimit, Unavailable, WrongKey
from perdure.server.keys import Grant, Keyring
from perdure.server.places import places_of
from perdure.server.roots import admit, find_directory, is_root, make_root
from perdure.server.settings import Settings
from perdure.server.tenants import Tenants
from perdure.store import Store

PATIENCE_S = 20


class Opening:
    """Opens stores, and remembers which."""

    def __init__(self) -> None:
        self.places: list[str] = []
        self.stores: list[Store] = []
        self.gate: threading.Event | None = None
        self.error: Exception | None = None

    def __call__(self, place: str) -> Store:
        self.places.append(place)
        if self.gate is not None:
            assert self.gate.wait(PATIENCE_S)
        if self.error is not None:
            raise self.error
        self.stores.append(Store.open(place))
        return self.stores[-1]


@pytest.fixture
def opening():
    return Opening()


@pytest.fixture
def root(tmp_path):
    make_root(tmp_path / "root")
    return tmp_path / "root"


@pytest.fixture
def tenants(root, opening):
    with_ = Tenants(places_of(Settings(root)), opening, open_max=2, closing_s=PATIENCE_S)
    yield with_
    with_.close()


def tell(tenants, tenant, text="The kettle is blue"):
    with tenants.writing(tenant) as store:
        return store.memory().remember(text).id


def texts(tenants, tenant):
    with tenants.reading(tenant) as store:
        return [fact.text for fact in store.memory().list().items]


def start(*works):
    threads = [threading.Thread(target=work) for work in works]
    for thread in threads:
        thread.start()
    return threads


def finish(threads):
    for thread in threads:
        thread.join(PATIENCE_S)
        assert not thread.is_alive()


def until(true):
    deadline = time.monotonic() + PATIENCE_S
    while not true():
        assert time.monotonic() < deadline
        threading.Event().wait(0.005)


def test_each_tenant_has_a_store_of_its_own_under_the_hex_of_its_name(tenants, root):
    tell(tenants, "acme", "of acme")
    tell(tenants, "ACME", "of ACME")
    assert (texts(tenants, "acme"), texts(tenants, "ACME")) == (["of acme"], ["of ACME"])
    assert {path.name for path in (root / "tenants").iterdir()} == {b"acme".hex(), b"ACME".hex()}


def test_reading_an_absent_tenant_is_reading_an_empty_store_and_makes_none(tenants, root, opening, tmp_path):
    with tenants.reading("acme") as absent, Store.open(tmp_path / "empty") as empty:
        for store in (absent, empty):
            assert store.spaces() == []
            assert store.memory().list().items == ()
            assert store.memory().recall("kettle") == []
            assert store.memory().get("x") is None
            assert store.documents().has("x") is False
            assert (store.stats().spaces, store.stats().facts) == (0, 0)
        assert absent.memory("a").capabilities() == empty.memory("a").capabilities()
    assert opening.places == []
    assert [path.name for path in root.iterdir() if path.is_dir()] == []


def test_a_tenant_is_there_from_its_first_write_on(tenants, root):
    assert texts(tenants, "acme") == []
    tell(tenants, "acme")
    assert texts(tenants, "acme") == ["The kettle is blue"]
    directory = find_directory(root, "acme")
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700


def test_a_tenant_that_another_process_makes_is_seen(tenants, root):
    assert texts(tenants, "acme") == []
    with Store.open(find_directory(root, "acme")) as store:
        store.memory().remember("told elsewhere")
    assert texts(tenants, "acme") == ["told elsewhere"]


def test_a_store_is_opened_once_and_stays_open(tenants, opening):
    for _ in range(3):
        tell(tenants, "acme")
        texts(tenants, "acme")
    assert len(opening.places) == 1
    assert tenants.open_count == 1


def test_all_who_ask_at_once_wait_for_one_opening(tenants, opening):
    opening.gate = threading.Event()
    seen = []

    def work():
        with tenants.writing("acme") as store:
            seen.append(store)

    threads = start(*[work] * 6)
    until(lambda: opening.places)
    assert seen == []
    opening.gate.set()
    finish(threads)
    assert len(seen) == 6
    assert len({id(store) for store in seen}) == len(opening.places) == 1


def test_an_opening_that_fails_fails_for_all_who_wait_and_is_tried_again_by_the_next(tenants, opening):
    opening.gate, opening.error = threading.Event(), WrongKey("the store is encrypted with another key")
    failed = []

    def work():
        try:
            with tenants.writing("acme"):
                pass
        except WrongKey:
            failed.append(1)

    threads = start(*[work] * 3)
    until(lambda: opening.places)
    opening.gate.set()
    finish(threads)
    assert len(failed) == 3
    assert tenants.open_count == 0
    opening.gate = opening.error = None
    tell(tenants, "acme")


def test_the_one_that_was_idle_longest_makes_room(tenants, opening):
    tell(tenants, "a")
    tell(tenants, "b")
    texts(tenants, "a")
    tell(tenants, "c")
    assert tenants.open_count == 2
    first, second, _ = opening.stores
    first.spaces()
    with pytest.raises(Unavailable):
        second.spaces()
    assert texts(tenants, "b") == ["The kettle is blue"]


def test_a_store_that_somebody_is_in_stays_open_and_who_comes_too_many_is_refused(tenants):
    tell(tenants, "c")
    with tenants.writing("a") as a, tenants.writing("b") as b:
        for use in (tenants.writing, tenants.reading):
            with pytest.raises(TenantLimit), use("c"):
                pass
        with tenants.reading("a") as again:
            assert again is a
        with tenants.reading("absent") as nothing:  # takes no room
            assert nothing.spaces() == []
        b.spaces()
    assert texts(tenants, "c") == ["The kettle is blue"]


def test_many_threads_with_more_tenants_than_room_lose_nothing(tenants):
    names, refused = ["a", "b", "c", "d", "e"], []

    def work(number):
        for turn in range(6):
            name = names[(number + turn) % len(names)]
            while True:
                try:
                    tell(tenants, name, f"fact {number} {turn}")
                    break
                except TenantLimit:
                    refused.append(name)

    finish(start(*[lambda number=number: work(number) for number in range(4)]))
    told = [text for name in names for text in texts(tenants, name)]
    assert sorted(told) == sorted(f"fact {number} {turn}" for number in range(4) for turn in range(6))
    assert tenants.open_count <= 2


def test_closing_waits_for_who_is_within_and_lets_nobody_in(tenants):
    inside, leave, closed = threading.Event(), threading.Event(), []

    def work():
        with tenants.writing("acme") as store:
            inside.set()
            assert leave.wait(PATIENCE_S)
            store.memory().remember("the last one")

    def end():
        tenants.close()
        closed.append(1)

    threads = start(work)
    assert inside.wait(PATIENCE_S)
    threads += start(end)

    def is_refused():
        try:
            with tenants.reading("acme"):
                return False
        except Unavailable:
            return True

    until(is_refused)
    assert closed == []
    leave.set()
    finish(threads)
    assert closed == [1]
    tenants.close()


def test_what_was_acknowledged_is_there_after_closing(root, opening):
    tenants = Tenants(places_of(Settings(root)), opening)
    tell(tenants, "acme")
    tenants.close()
    for store in opening.stores:
        with pytest.raises(Unavailable):
            store.spaces()
    again = Tenants(places_of(Settings(root)), opening)
    assert texts(again, "acme") == ["The kettle is blue"]
    again.close()


@pytest.mark.parametrize("name", ["", "a" * 65, "a/b", "..", "a.b", "a\0", "ä", "a b", "a\n"])
def test_a_malformed_tenant_is_refused_before_any_file_is_looked_at(tenants, root, name):
    before = sorted(root.rglob("*"))
    for use in (tenants.reading, tenants.writing):
        with pytest.raises(InvalidTenant), use(name):
            pass
    with pytest.raises(InvalidTenant):
        admit(root, name)
    assert sorted(root.rglob("*")) == before


def test_one_store_is_of_the_default_tenant_and_every_other_is_refused(tmp_path, opening):
    tenants = Tenants(places_of(Settings(tmp_path / "store")), opening)
    assert texts(tenants, "default") == []
    assert not (tmp_path / "store").exists()
    tell(tenants, "default")
    assert opening.places == [str(tmp_path / "store")]
    for use in (tenants.reading, tenants.writing):
        with pytest.raises(InvalidTenant) as refused, use("acme"):
            pass
        assert (refused.value.field, "leave the tenant out" in refused.value.message) == ("tenant", True)
    tenants.close()
    with Store.open(tmp_path / "store") as store:  # as the command line opens it
        assert store.stats().facts == 1


def test_an_ephemeral_store_is_one_store(opening):
    tenants = Tenants(places_of(Settings(":memory:")), opening)
    tell(tenants, "default")
    assert texts(tenants, "default") == ["The kettle is blue"]
    assert opening.places == [":memory:"]
    for use in (tenants.reading, tenants.writing):
        with pytest.raises(InvalidTenant) as refused, use("acme"):
            pass
        assert (refused.value.field, "leave the tenant out" in refused.value.message) == ("tenant", True)
    tenants.close()


def break_root(root):
    """Put a store where no store belongs, as an older build would have let somebody do."""
    mark = root / "perdure.tenants"
    told = mark.read_bytes()
    mark.unlink()
    with Store.open(root):
        pass
    mark.write_bytes(told)


def test_a_store_is_no_root_and_a_root_no_store(tmp_path, root, opening):
    with Store.open(tmp_path / "store"):
        pass
    with pytest.raises(InvalidRequest) as refused:
        make_root(tmp_path / "store")
    assert refused.value.field == "tenant"
    break_root(root)
    for use in (lambda: is_root(root), lambda: Tenants(places_of(Settings(root)), opening)):
        with pytest.raises(InvalidRequest, match="root of tenants"):
            use()


def test_a_root_that_breaks_while_the_server_runs_is_no_fault_of_the_request(tenants, root, caplog):
    break_root(root)
    with caplog.at_level(logging.ERROR), pytest.raises(Unavailable), tenants.writing("acme"):
        pass
    assert "root of tenants" in caplog.text
    with pytest.raises(Unavailable), tenants.reading("acme"):
        pass


def test_settings_that_do_not_fit_the_store_are_no_fault_of_the_request(tenants, opening, caplog):
    opening.error = InvalidRequest("a journal is not encrypted: leave key out", field="key")
    with caplog.at_level(logging.ERROR), pytest.raises(Unavailable), tenants.writing("acme"):
        pass
    assert "leave key out" in caplog.text


def test_the_mark_of_another_version_is_refused(root):
    (root / "perdure.tenants").write_text('{"version":2}')
    with pytest.raises(InvalidRequest, match="version 1"):
        is_root(root)
    (root / "perdure.tenants").write_text("x")
    with pytest.raises(InvalidRequest, match="version 1"):
        is_root(root)


def test_the_first_tenant_of_another_name_makes_a_new_place_a_root(tmp_path):
    admit(tmp_path / "root", "acme")
    assert is_root(tmp_path / "root")
    assert find_directory(tmp_path / "root", "acme").is_dir()
    admit(tmp_path / "root", "default")
    assert find_directory(tmp_path / "root", "default") == tmp_path / "root" / "tenants" / b"default".hex()
    for path in (tmp_path / "root", *(path for path in (tmp_path / "root").rglob("*") if path.is_dir())):
        assert stat.S_IMODE(path.stat().st_mode) == 0o700


def test_keys_of_one_store_keep_it_one_store(tmp_path):
    admit(tmp_path / "store", "default")
    with Keyring(tmp_path / "store") as keyring:
        keyring.create(Grant())
    assert not is_root(tmp_path / "store")
    with pytest.raises(InvalidRequest) as refused:
        admit(tmp_path / "store", "acme")
    assert refused.value.field == "tenant"


@pytest.mark.parametrize("open_max", [0, -1, 65_537, True, 1.5])
def test_how_many_may_be_open_is_a_number_of_at_least_one(root, opening, open_max):
    with pytest.raises(InvalidRequest, match="open_max"):
        Tenants(places_of(Settings(root)), opening, open_max=open_max)
