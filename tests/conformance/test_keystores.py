"""Keystores keep the shipped contract: the one in files, and one of a service that confirms late."""

import pytest

from key_service import Service, ServiceKeystore
from perdure.keystore import FileKeystore
from perdure.testing.keystore_suite import KeystoreSpec


class TestFileKeystore(KeystoreSpec):
    @pytest.fixture
    def reopen(self, tmp_path):
        return lambda: FileKeystore(tmp_path / "keys")


class TestServiceKeystore(KeystoreSpec):
    @pytest.fixture
    def reopen(self, tmp_path):
        self.service = Service(f"{tmp_path}/s", slow=True)
        yield lambda: ServiceKeystore(self.service.place)
        self.service.stop()

    def confirm(self, keystore):
        self.service.confirm()
