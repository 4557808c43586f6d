"""``setWebhook``: its parameters, and the addresses that Telegram accepts."""

import ipaddress
import re
from dataclasses import dataclass

from autopost_simulator.telegram.markup.links import LinkError, Url, parse_url
from autopost_simulator.telegram.refusal import TelegramError
from autopost_simulator.telegram.request.params import MultipartFile, Params

PORTS = (80, 88, 443, 8443)
MOST_CONNECTIONS = 100
USUAL_CONNECTIONS = 40
LONGEST_SECRET = 256

_SECRET = re.compile(r"[A-Za-z0-9_-]*")


@dataclass(slots=True, frozen=True, kw_only=True)
class WebhookSettings:
    """``certificate`` is the self-signed one that the bot uploaded."""

    url: str
    secret_token: str = ""
    max_connections: int = USUAL_CONNECTIONS
    ip_address: str = ""
    certificate: str | None = None


def read_settings(params: Params) -> WebhookSettings:
    secret = params.text("secret_token")
    if len(secret) > LONGEST_SECRET:
        raise TelegramError(400, "Bad Request: secret token is too long")
    if not _SECRET.fullmatch(secret):
        raise TelegramError(400, "Bad Request: secret token contains unallowed characters")
    certificate = _certificate(params)
    return WebhookSettings(
        url=params.text("url"),
        secret_token=secret,
        max_connections=min(max(params.integer("max_connections") or USUAL_CONNECTIONS, 1), MOST_CONNECTIONS),
        ip_address=params.text("ip_address"),
        certificate=certificate.content.decode(errors="replace") if certificate else None,
    )


def refuse_address(url: str) -> None:
    """For loopback addresses everything is allowed, as by a self-hosted server for its own machine."""
    try:
        parsed = parse_url(url, "https")
    except LinkError:
        raise TelegramError(400, "Bad Request: invalid webhook URL specified") from None
    if is_loopback(parsed):
        return
    if parsed.protocol != "https":
        raise _bad_webhook("An HTTPS URL must be provided for webhook")
    if parsed.port is not None and parsed.port not in PORTS:
        raise _bad_webhook("Webhook can be set up only on ports 80, 88, 443 or 8443")


def is_loopback(url: Url) -> bool:
    try:
        return ipaddress.ip_address(url.host.strip("[]")).is_loopback
    except ValueError:
        return url.host == "localhost"


def _certificate(params: Params) -> MultipartFile | None:
    named = params.text("certificate").removeprefix("attach://")
    return params.uploads.get("certificate") or params.uploads.get(named)


def _bad_webhook(reason: str) -> TelegramError:
    return TelegramError(400, f"Bad Request: bad webhook: {reason}")
