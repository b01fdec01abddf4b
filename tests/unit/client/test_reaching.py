"""Why a server is not reached: each reason has its words, and what nobody can have carried out is told as such."""

from __future__ import annotations

import httpx
import pytest

from certificates import self_made
from perdure import InvalidRequest, Unavailable
from perdure.client import Client
from unit.client.stub import BREAK, RECALLED, REMEMBERED, SILENCE, answer, serving
from unit.client.waiting import WaitingClient

BOTH = pytest.mark.parametrize("make", [Client, WaitingClient])
NOTHING = "nothing was carried out"
MAYBE = "it may still be carried out"


@pytest.fixture(autouse=True)
def no_certificates_of_the_environment(monkeypatch):
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    monkeypatch.delenv("SSL_CERT_DIR", raising=False)


def remember(make, url, **options):
    with make(url, **{"retries": 1, **options}) as client:
        return client.memory("alice").remember("The kettle is blue")


def refusal(make, url, **options):
    with pytest.raises(Unavailable) as refused:
        remember(make, url, **options)
    return refused.value


def https(stub, host="localhost"):
    return f"https://{host}:{stub.url.rpartition(':')[2]}"


@BOTH
def test_a_connection_that_is_refused_carried_nothing_out(make):
    with serving(answer(REMEMBERED)) as stub:
        pass
    told = refusal(make, stub.url)
    assert "refused" in told.message
    assert NOTHING in told.message
    assert MAYBE not in told.message
    assert told.details["idempotency_key"]  # asking again under it is safe all the same


@BOTH
def test_a_host_without_an_address_is_told(make):
    told = refusal(make, "http://perdure.invalid:8420", retries=0)
    assert "has no address" in told.message
    assert NOTHING in told.message


@BOTH
def test_a_certificate_that_is_not_trusted_is_told_with_what_to_do_and_asked_once(make, tmp_path):
    with serving(answer(REMEMBERED), tls=self_made(tmp_path)) as stub:
        told = refusal(make, https(stub), retries=10)
        assert stub.asked == []
    assert "certificate is not trusted" in told.message
    assert "ca_file" in told.message
    assert NOTHING in told.message


@BOTH
@pytest.mark.parametrize("as_text", [True, False])
def test_a_certificate_that_a_file_names_is_trusted(make, tmp_path, as_text):
    certificate, key = self_made(tmp_path)
    with serving(answer(REMEMBERED), tls=(certificate, key)) as stub:
        told = str(certificate) if as_text else certificate
        for host in ("localhost", "127.0.0.1"):
            assert remember(make, https(stub, host), ca_file=told).created


@BOTH
def test_the_certificates_of_the_environment_are_trusted_and_a_file_goes_before_them(
    make, tmp_path, monkeypatch
):
    (tmp_path / "other").mkdir()
    other, _ = self_made(tmp_path / "other")
    certificate, key = self_made(tmp_path)
    with serving(answer(REMEMBERED), tls=(certificate, key)) as stub:
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        assert remember(make, https(stub)).created
        assert "not trusted" in refusal(make, https(stub), ca_file=other).message


@BOTH
@pytest.mark.parametrize(("name", "days"), [("elsewhere.example", 1), ("localhost", -1)])
def test_a_certificate_of_another_host_or_whose_time_is_over_is_not_trusted(make, tmp_path, name, days):
    certificate, key = self_made(tmp_path, name=name, days=days)
    with serving(answer(REMEMBERED), tls=(certificate, key)) as stub:
        assert "not trusted" in refusal(make, https(stub), ca_file=certificate).message


@BOTH
def test_https_to_a_server_that_speaks_no_tls_is_told(make, tmp_path):
    with serving(answer(REMEMBERED)) as stub:
        told = refusal(make, https(stub), retries=10)
        assert stub.asked == []
    assert "speaks no TLS" in told.message
    assert NOTHING in told.message


@BOTH
def test_http_to_a_server_that_speaks_tls_is_told(make, tmp_path):
    with serving(answer(REMEMBERED), tls=self_made(tmp_path)) as stub:
        told = refusal(make, stub.url)
        assert stub.asked == []
    assert "if it speaks TLS, url must begin with https://" in told.message


@BOTH
def test_http_to_a_server_that_speaks_tls_is_told_of_a_request_that_is_cut_off_while_it_is_sent(
    make, tmp_path
):
    with serving(answer(REMEMBERED), tls=self_made(tmp_path)) as stub, make(stub.url, retries=0) as client:
        with pytest.raises(Unavailable) as refused:
            client.memory("alice").remember_many(["The kettle is blue " * 1_000] * 500)
        assert stub.asked == []
    assert "if it speaks TLS, url must begin with https://" in refused.value.message


@BOTH
def test_https_that_breaks_off_is_not_advised_to_use_https(make, tmp_path):
    certificate, key = self_made(tmp_path)
    with serving(BREAK, tls=(certificate, key)) as stub:
        told = refusal(make, https(stub), ca_file=certificate, retries=0)
    assert "without an answer" in told.message
    assert "TLS" not in told.message


@BOTH
@pytest.mark.parametrize("failure", [BREAK, SILENCE])
def test_what_may_have_arrived_may_still_be_carried_out(make, failure):
    with serving(failure) as stub:
        told = refusal(make, stub.url, timeout_s=0.2)
    assert MAYBE in told.message
    assert NOTHING not in told.message


def test_a_refusal_after_an_attempt_that_may_have_arrived_promises_nothing():
    class Dying(httpx.BaseTransport):
        def __init__(self):
            self.ends = [httpx.ReadError("broken"), httpx.ConnectError("refused")]

        def handle_request(self, request):
            raise self.ends.pop(0)

    told = refusal(Client, "http://localhost", transport=Dying())
    assert MAYBE in told.message
    assert NOTHING not in told.message


def test_a_connection_that_takes_too_long_carried_nothing_out():
    class Slow(httpx.BaseTransport):
        def handle_request(self, request):
            raise httpx.ConnectTimeout("slow")

    told = refusal(Client, "http://localhost", transport=Slow(), timeout_s=7.5)
    assert "no connection to the server within 7.5 s" in told.message
    assert NOTHING in told.message


@BOTH
@pytest.mark.parametrize(
    ("told", "options"),
    [
        ("absent.pem", {}),
        ("empty.pem", {}),
        ("", {}),
        (5, {}),
        ("cert.pem", {"url": "http://localhost"}),
        ("cert.pem", {"app": object()}),
        ("cert.pem", {"transport": object()}),
    ],
)
def test_a_file_of_certificates_that_is_of_no_use_is_refused_at_once(make, tmp_path, told, options):
    self_made(tmp_path)
    (tmp_path / "empty.pem").touch()
    path = tmp_path / told if isinstance(told, str) else told
    with pytest.raises(InvalidRequest, match="ca_file") as refused:
        make(**{"url": "https://localhost", "ca_file": path, **options})
    assert refused.value.field == "ca_file"
    assert str(tmp_path) not in str(refused.value)


@BOTH
def test_certificates_of_the_environment_that_cannot_be_read_are_told(make, tmp_path, monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "absent.pem"))
    with pytest.raises(InvalidRequest, match="SSL_CERT_FILE"):
        make("https://localhost")
    with serving(answer(RECALLED)) as stub, make(stub.url) as client:  # nothing of it is asked for there
        assert client.memory().recall("kettle") == []
