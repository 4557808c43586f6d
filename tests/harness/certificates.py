"""A certificate authority of a test's own, and certificates that it signs."""

from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

PEM = serialization.Encoding.PEM


class Authority:
    def __init__(self, folder: Path, name: str = "Authority") -> None:
        self._folder, self._name, self._key = folder, name, ec.generate_private_key(ec.SECP256R1())
        self.bundle = folder / f"{name}.pem"
        root = self._signed(name, self._key, x509.BasicConstraints(ca=True, path_length=None))
        self.bundle.write_bytes(root.public_bytes(PEM))

    def issue(self, name: str, address: str = "127.0.0.1") -> tuple[Path, Path]:
        """Certificate and key, good for this address."""
        key = ec.generate_private_key(ec.SECP256R1())
        cert = self._signed(name, key, x509.SubjectAlternativeName([x509.IPAddress(ip_address(address))]))
        paths = self._folder / f"{name}.crt", self._folder / f"{name}.key"
        paths[0].write_bytes(cert.public_bytes(PEM))
        secret = key.private_bytes(PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        paths[1].write_bytes(secret)
        return paths

    def _signed(self, name: str, key: ec.EllipticCurvePrivateKey, extension: x509.ExtensionType) -> x509.Certificate:
        now = datetime.now(UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(_name(name))
            .issuer_name(_name(self._name))
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=1))
            .not_valid_after(now + timedelta(days=1))
            .add_extension(extension, critical=isinstance(extension, x509.BasicConstraints))
            .sign(self._key, hashes.SHA256())
        )


def _name(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
