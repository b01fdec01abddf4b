"""A role that the database keeps no tenants apart from is told of once a process and address, by who opens a store."""

from __future__ import annotations

import logging

from perdure import Store
from perdure.cli.streams import prepare
from perdure.databases import Lookout, migrate
from postgres_server import fresh_database, shared_server

FENCE = "second fence between tenants is off"


def test_a_store_with_its_audit_and_the_next_one_warn_once(tmp_path, caplog):
    address = shared_server().address(fresh_database())
    for tenant in ("ada", "bob"):
        with Store.open(address, keystore=tmp_path / "keys", tenant=tenant) as store:
            store.memory().remember("tea")
    with Lookout(address) as lookout:
        lookout.check()
    assert len([one for one in caplog.messages if FENCE in one]) == 1


def test_who_looks_whether_stores_can_be_used_warns_too(caplog):
    with Lookout(shared_server().address(fresh_database())) as lookout:
        lookout.check()
    assert len([one for one in caplog.messages if FENCE in one]) == 1


def test_who_makes_the_tables_is_warned_of_nothing(caplog):
    server = shared_server()
    migrate(server.address(server.new_database()))
    assert [one for one in caplog.messages if FENCE in one] == []


def test_on_the_command_line_a_warning_is_a_line_as_any_other(capsys, monkeypatch):
    monkeypatch.setattr(logging, "lastResort", None)
    prepare()
    record = logging.LogRecord("perdure.log", logging.WARNING, __file__, 1, "of %s", ("a role",), None)
    assert logging.lastResort is not None
    logging.lastResort.handle(record)
    assert capsys.readouterr().err == "perdure: of a role\n"
