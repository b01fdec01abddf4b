"""The journal keeps the contract of all logs; what only it promises is in tests/crash."""

import pytest

from perdure.log.journal import JournalLog
from perdure.testing.log_suite import LogSpec


class TestJournalLog(LogSpec):
    @pytest.fixture
    def reopen(self, tmp_path):
        return lambda: JournalLog.open(tmp_path / "store")


class TestJournalLogWithSecretFromOutside(LogSpec):
    @pytest.fixture
    def reopen(self, tmp_path):
        return lambda: JournalLog.open(tmp_path / "store", secret=b"s" * 32, durability="normal")
