"""Certificates that are made for a test, signed by themselves."""

from __future__ import annotations

import ipaddress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from perdure.base.clock import SystemClock


def self_made(
    folder: Path, passphrase: bytes | None = None, *, name: str = "localhost", days: int = 1
) -> tuple[Path, Path]:
    """Return the files of a certificate of localhost (or another name) and 127.0.0.1, and of its key.

    It holds from two days ago until so many days from now.
    """
    key = ec.generate_private_key(ec.SECP256R1())
    who = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    now = datetime.fromtimestamp(SystemClock().now() / 1000, UTC)
    hosts = [x509.DNSName(name)]
    if name == "localhost":
        hosts.append(x509.IPAddress(ipaddress.ip_address("127.0.0.1")))
    made = (
        x509.CertificateBuilder()
        .subject_name(who)
        .issuer_name(who)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=2))
        .not_valid_after(now + timedelta(days=days))
        .add_extension(x509.SubjectAlternativeName(hosts), critical=False)
        .sign(key, hashes.SHA256())
    )
    kept = serialization.BestAvailableEncryption(passphrase) if passphrase else serialization.NoEncryption()
    certificate, secret = folder / "cert.pem", folder / "key.pem"
    certificate.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    secret.write_bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, kept))
    return certificate, secret
