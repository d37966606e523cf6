"""Certificates made for a test: an authority, and leaves it signed or did not sign."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

USAGES = (
    "digital_signature", "content_commitment", "key_encipherment", "data_encipherment",
    "key_agreement", "key_cert_sign", "crl_sign", "encipher_only", "decipher_only",
)  # fmt: skip


class Authority:
    """A certificate authority that only the contexts made here know."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name("Test Authority")
        self._certificate = _certificate(self._name, self._name, self._key, self._key, None)

    def client_context(self) -> ssl.SSLContext:
        """Trusts only this authority."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(cadata=_pem(self._certificate))
        return context

    def trusted_file(self) -> Path:
        """A file with the certificate of this authority."""
        path = self._folder / "authority.pem"
        path.write_text(_pem(self._certificate))
        return path

    def server_context(self, host: str) -> ssl.SSLContext:
        """A server's context with a certificate for `host`."""
        key = ec.generate_private_key(ec.SECP256R1())
        leaf = _certificate(_name(host), self._name, key, self._key, host)
        path = self._folder / f"{host}.pem"
        path.write_text(_pem(leaf) + _key_pem(key))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(path)
        return context


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _certificate(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    signer: ec.EllipticCurvePrivateKey,
    host: str | None,
) -> x509.Certificate:
    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=host is None, path_length=None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False
        )
    )
    if host is None:
        usage = dict.fromkeys(USAGES, False) | {"key_cert_sign": True}
        builder = builder.add_extension(x509.KeyUsage(**usage), critical=True)
    else:
        names = x509.SubjectAlternativeName([x509.DNSName(host)])
        builder = builder.add_extension(names, critical=False)
    return builder.sign(signer, hashes.SHA256())


def _pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(serialization.Encoding.PEM).decode()


def _key_pem(key: ec.EllipticCurvePrivateKey) -> str:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()
