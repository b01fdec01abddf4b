"""Which of the two files of TLS is at fault is told before anything is served."""

from __future__ import annotations

import pytest

from certificates import self_made
from perdure.errors import InvalidRequest
from perdure.server.serving import check_tls
from perdure.server.settings import Settings


def check(certificate, key):
    check_tls(Settings(":memory:", tls_cert=certificate, tls_key=key))


def refused(certificate, key):
    with pytest.raises(InvalidRequest) as error:
        check(certificate, key)
    assert str(certificate.parent) not in error.value.message
    option = f"--{error.value.field.replace('_', '-')}"
    assert option in error.value.message
    return error.value.field


def test_a_certificate_and_its_key_are_taken(tmp_path):
    check(*self_made(tmp_path))


def test_the_file_that_is_not_there_or_holds_something_else_is_named(tmp_path):
    certificate, key = self_made(tmp_path)
    empty = tmp_path / "empty.pem"
    empty.touch()
    for wrong in (tmp_path / "absent.pem", empty, tmp_path):
        assert refused(wrong, key) == "tls_cert"
        assert refused(certificate, wrong) == "tls_key"


def test_files_that_were_given_for_each_other_are_told_at_the_certificate(tmp_path):
    certificate, key = self_made(tmp_path)
    assert refused(key, certificate) == "tls_cert"


def test_a_key_of_another_certificate_or_with_a_passphrase_is_told_at_the_key(tmp_path):
    certificate, _ = self_made(tmp_path)
    for name, passphrase in (("other", None), ("locked", b"x")):
        (tmp_path / name).mkdir()
        own, key = self_made(tmp_path / name, passphrase)
        assert refused(own if passphrase else certificate, key) == "tls_key"
