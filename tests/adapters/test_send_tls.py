"""A certificate authority that the configuration names is believed of every host of a platform, and no other is."""

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address
from pathlib import Path

import pytest
from aiohttp import web
from autopost_adapters.base import AcceptedPart, Held, Target
from autopost_adapters.registry import adapters
from autopost_contracts.outcomes import Failed
from autopost_contracts.plan import PlannedMedia, TextPart
from autopost_runtime.config.load import Secret
from autopost_runtime.http.client import HttpClient
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from adapters.conftest import PATIENT
from adapters.media_sources import Bytes

TARGET = Target(chat="-70", token=Secret("1:canary"))
LOCALHOST = IPv4Address("127.0.0.1")
Key = ec.EllipticCurvePrivateKey


class Authority:
    """An authority of its own, with one certificate for this machine."""

    def __init__(self, folder: Path) -> None:
        self.bundle = folder / "authority.pem"
        self._chain = folder / "chain.pem"
        key, name = _key(), _name(f"Authority of {folder.name}")
        root = _certificate(name, name, key, key, x509.BasicConstraints(ca=True, path_length=None))
        self.bundle.write_bytes(root.public_bytes(serialization.Encoding.PEM))
        own = _key()
        leaf = _certificate(_name("Host"), name, own, key, x509.SubjectAlternativeName([x509.IPAddress(LOCALHOST)]))
        self._chain.write_bytes(
            leaf.public_bytes(serialization.Encoding.PEM)
            + own.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )

    def server(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self._chain)
        return context


def _key() -> Key:
    return ec.generate_private_key(ec.SECP256R1())


def _name(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])


def _certificate(
    subject: x509.Name, issuer: x509.Name, key: Key, signed_with: Key, extension: x509.ExtensionType
) -> x509.Certificate:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(extension, critical=isinstance(extension, x509.BasicConstraints))
        .sign(signed_with, hashes.SHA256())
    )


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@asynccontextmanager
async def hosts(authority: Authority) -> AsyncIterator[str]:
    """Both platforms' APIs at one address, and the host for uploads at another; all speak TLS alone."""

    async def on_api(request: web.Request) -> web.Response:
        if request.path == "/uploads":
            return web.json_response({"url": f"{upload_url}/put"})
        return web.json_response({"ok": True, "result": {"message_id": 1}, "message": {"body": {"mid": "1"}}})

    async def on_upload(request: web.Request) -> web.Response:
        await request.read()
        return web.json_response({"photos": {"k": {"token": "t"}}})

    async with serving(authority, on_upload) as upload_url, serving(authority, on_api) as url:
        yield url


@asynccontextmanager
async def serving(authority: Authority, handle: object) -> AsyncIterator[str]:
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handle)  # type: ignore[arg-type]
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=authority.server()).start()
        yield f"https://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


@pytest.mark.parametrize("platform", ["telegram", "max"])
async def test_the_configured_authority_is_believed(authority: Authority, platform: str) -> None:
    async with hosts(authority) as url, HttpClient(ca_bundle=authority.bundle) as client:
        adapter = adapters(client, telegram_url=url, max_url=url, timeout=PATIENT)[platform]

        assert isinstance(await adapter.send(TextPart(text="hello"), TARGET), AcceptedPart)


async def test_it_is_believed_of_the_host_that_takes_uploads_as_well(authority: Authority) -> None:
    async with hosts(authority) as url, HttpClient(ca_bundle=authority.bundle) as client:
        adapter = adapters(client, telegram_url=url, max_url=url, timeout=PATIENT)["max"]

        held = await adapter.upload(PlannedMedia(type="image", blob_ref="sha256:x"), Bytes(), TARGET)

    assert isinstance(held, Held)


async def test_the_authorities_of_the_system_are_believed_beside_it(
    authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = Authority(tmp_path)
    unread = tmp_path / "unread.pem"  # certificates are read once per process and bundle
    unread.write_bytes(authority.bundle.read_bytes())
    monkeypatch.setenv("SSL_CERT_FILE", str(other.bundle))

    async with (
        hosts(authority) as max_url,
        hosts(other) as telegram_url,
        HttpClient(ca_bundle=unread) as client,
    ):
        both = adapters(client, telegram_url=telegram_url, max_url=max_url, timeout=PATIENT)
        answers = [await adapter.send(TextPart(text="hello"), TARGET) for adapter in both.values()]

    assert all(isinstance(answer, AcceptedPart) for answer in answers), answers


@pytest.mark.parametrize("platform", ["telegram", "max"])
async def test_an_authority_that_nobody_configured_is_told_nothing(authority: Authority, platform: str) -> None:
    async with hosts(authority) as url, HttpClient() as client:
        adapter = adapters(client, telegram_url=url, max_url=url, timeout=PATIENT)[platform]
        answer = await adapter.send(TextPart(text="hello"), TARGET)

    assert isinstance(answer, Failed)
    assert (answer.category, answer.code, answer.ambiguous) == ("TRANSIENT", "tls", False)
