"""The SQLite log keeps the contract of all logs; what only it promises is in tests/crash."""

import pytest

from perdure.log.sqlite import SqliteLog
from perdure.testing.log_suite import LogSpec


class TestSqliteLog(LogSpec):
    @pytest.fixture
    def reopen(self, tmp_path):
        return lambda: SqliteLog.open(tmp_path / "store")

    def open_copy(self, directory, log):
        return SqliteLog.open(directory)


class TestSqliteLogWithSecretFromOutside(LogSpec):
    @pytest.fixture
    def reopen(self, tmp_path):
        return lambda: SqliteLog.open(tmp_path / "store", secret=b"s" * 32, durability="normal")

    def open_copy(self, directory, log):
        return SqliteLog.open(directory, secret=log.secret)


class TestEncryptedSqliteLog(LogSpec):
    @pytest.fixture
    def reopen(self, tmp_path):
        return lambda: SqliteLog.open(tmp_path / "store", key=b"k" * 32)

    def open_copy(self, directory, log):
        return SqliteLog.open(directory, key=b"k" * 32)
