"""The journal keeps the contract of all logs; what only it promises is in tests/crash."""

import pytest

from perdure.log.journal import JournalLog
from perdure.testing.log_suite import LogSpec


class TestJournalLog(LogSpec):
    @pytest.fixture
    def reopen(self, tmp_path):
        return lambda: JournalLog.open(tmp_path / "store")

    def open_copy(self, directory, log):
        return JournalLog.open(directory)


class TestJournalLogWithSecretFromOutside(LogSpec):
    @pytest.fixture
    def reopen(self, tmp_path):
        return lambda: JournalLog.open(tmp_path / "store", secret=b"s" * 32, durability="normal")

    def open_copy(self, directory, log):
        return JournalLog.open(directory, secret=log.secret)
