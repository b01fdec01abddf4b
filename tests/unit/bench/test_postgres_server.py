"""The server of tests and measurements keeps few databases, and waits for nobody to let one go."""

from __future__ import annotations

import psycopg
import pytest
from bench import postgres_server
from bench.postgres_server import Server


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setattr(postgres_server, "DATABASES_MAX", 2)
    server = Server()
    yield server
    server.stop()


def there(server):
    """Return which of the databases that were made are there."""
    return [
        name for (name,) in server.execute("SELECT datname FROM pg_database ORDER BY 1") if name[0] == "d"
    ]


def test_the_oldest_database_that_nobody_is_connected_to_goes(server):
    first, second = server.new_database(), server.new_database()
    with psycopg.connect(server.address(first)):
        third = server.new_database()
        assert there(server) == [first, third]
    assert second not in there(server)


def test_a_database_that_others_are_made_like_stays(server):
    first = server.new_database()
    made = [server.new_database(first) for _ in range(3)]
    assert there(server) == [first, *made[1:]]


def test_where_somebody_is_connected_to_each_none_goes(server):
    first, second = server.new_database(), server.new_database()
    with psycopg.connect(server.address(first)), psycopg.connect(server.address(second)):
        third = server.new_database()
        assert there(server) == [first, second, third]
