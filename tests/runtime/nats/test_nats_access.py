"""With which servers nothing is said without TLS."""

from pathlib import Path

import pytest
from autopost_runtime.config.load import NatsAccess
from autopost_runtime.nats.access import SecureClient, client_for

NOBODY = NatsAccess()
BY_CA = NatsAccess(nats_tls_ca=Path("/etc/ssl/nats-ca.pem"))


@pytest.mark.parametrize(
    ("url", "access", "secure"),
    [
        ("nats://a:4222", NOBODY, False),
        ("tls://a:4222", NOBODY, True),
        ("tls://a:4222,tls://b:4222", NOBODY, True),
        ("nats://a:4222, tls://b:4222", NOBODY, True),
        ("nats://a:4222", BY_CA, True),
    ],
)
async def test_one_server_by_tls_or_an_authority_is_enough(url: str, access: NatsAccess, secure: bool) -> None:
    assert isinstance(client_for(url, access), SecureClient) == secure
