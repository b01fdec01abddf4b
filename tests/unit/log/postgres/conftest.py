"""A database of its own for each test, and its address for the role that stores connect as."""

from __future__ import annotations

import pytest

from postgres_server import ROLE, fresh_database, shared_server


@pytest.fixture
def database():
    return fresh_database()


@pytest.fixture
def address(database):
    return shared_server().address(database, ROLE)
