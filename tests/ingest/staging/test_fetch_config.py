"""What a fetch may reach is a matter of configuration, and nonsense there stops the service."""

from ipaddress import ip_network

import pytest
from autopost_ingest.config import IngestConfig
from autopost_runtime.config.load import ConfigError, describe, load

URL = {"AUTOPOST_DATABASE_URL": "postgresql://a@b/c"}


def test_nothing_inside_is_allowed_unless_somebody_says_so() -> None:
    config = load(IngestConfig, URL)

    assert (config.fetch_allow, config.fetch_ports) == ((), {80, 443})
    assert describe(config)["AUTOPOST_FETCH_ALLOW"] == "(none)"


def test_networks_and_ports_are_read_from_lists() -> None:
    said = {"FETCH_ALLOW": "127.0.0.1, fd00::/8", "FETCH_DENY": "10.0.0.0/8", "FETCH_PORTS": "443,8443"}
    config = load(IngestConfig, URL | {f"AUTOPOST_{name}": value for name, value in said.items()})

    assert config.fetch_deny == (ip_network("10.0.0.0/8"),)
    assert config.fetch_allow == (ip_network("127.0.0.1/32"), ip_network("fd00::/8"))
    assert config.fetch_ports == {443, 8443}
    assert describe(config)["AUTOPOST_FETCH_PORTS"] == "443,8443"


@pytest.mark.parametrize(
    ("variable", "text"),
    [
        *(("FETCH_ALLOW", text) for text in ("all", "10.0.0.1/8", "127.0.0.1/33", "127.1", "")),
        ("FETCH_DENY", "everything"),
        *(("FETCH_PORTS", text) for text in ("http", "0", "65536", "80;443", "")),
        ("FETCH_TIMEOUT", "0"),
        ("FETCH_CONCURRENCY", "0"),
        ("UPLOAD_POLICY_IMAGE", "url"),
    ],
)
def test_nonsense_is_named(variable: str, text: str) -> None:
    with pytest.raises(ConfigError, match=f"AUTOPOST_{variable}: "):
        load(IngestConfig, URL | {f"AUTOPOST_{variable}": text})


def test_media_is_uploaded_unless_somebody_says_so() -> None:
    kinds = ("IMAGE", "VIDEO", "FILE", "AUDIO", "OTHER")
    every = {f"AUTOPOST_UPLOAD_POLICY_{kind}": "url_allowed" for kind in kinds}

    assert {describe(load(IngestConfig, URL))[name] for name in every} == {"upload_required"}
    assert load(IngestConfig, URL).upload_policy == {}
    assert load(IngestConfig, URL | every).upload_policy == {kind.lower(): "url_allowed" for kind in kinds}
