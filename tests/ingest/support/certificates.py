"""A certificate authority of a test's own, with one certificate for one name."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

PEM = serialization.Encoding.PEM


class Authority:
    def __init__(self, folder: Path, host: str) -> None:
        self.bundle, self.chain = folder / "authority.pem", folder / "chain.pem"
        root_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
        root = _signed("Authority", root_key, root_key, x509.BasicConstraints(ca=True, path_length=None))
        leaf = _signed(host, key, root_key, x509.SubjectAlternativeName([x509.DNSName(host)]))
        secret = key.private_bytes(PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        self.bundle.write_bytes(root.public_bytes(PEM))
        self.chain.write_bytes(leaf.public_bytes(PEM) + secret)


def _signed(
    name: str, key: ec.EllipticCurvePrivateKey, by: ec.EllipticCurvePrivateKey, extension: x509.ExtensionType
) -> x509.Certificate:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(_name(name))
        .issuer_name(_name("Authority"))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(extension, critical=isinstance(extension, x509.BasicConstraints))
        .sign(by, hashes.SHA256())
    )


def _name(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
