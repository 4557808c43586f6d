"""Detect the bot of a token that this command can read; otherwise the dispatcher detects it at first use."""

import os
import re
from pathlib import Path

import click
import httpx
import msgspec
from autopost_adapters.max.api import PUBLIC_URL
from autopost_runtime.config.load import Secret

TELEGRAM_TOKEN = re.compile(r"([0-9]+):.+")
PATIENCE = 5.0


class MaxBot(msgspec.Struct, frozen=True):
    user_id: int


def secret_at(variable: str | None, path: Path | None) -> Secret | None:
    """``None`` when only the services can read it."""
    if variable is not None:
        text = os.environ.get(variable, "")
    else:
        try:
            text = path.read_text(encoding="utf-8") if path else ""
        except (OSError, ValueError):
            text = ""
    return Secret(text.strip()) if text.strip() else None


def bot_of(platform: str, secret: Secret | None, said: str | None) -> str | None:
    """``said``: the id given by the operator; it is only compared, since anybody can say the id of another bot.

    Raises ``click.UsageError`` when it is not the bot of the token.
    """
    found = None if secret is None else _identify(platform, secret)
    if found and said not in (None, found):
        raise click.UsageError("--bot-id does not match the bot of this token; omit --bot-id or use the right token")
    return found


def _identify(platform: str, secret: Secret) -> str | None:
    match platform:
        case "telegram":
            token = TELEGRAM_TOKEN.fullmatch(secret.reveal())
            return token[1] if token else None
        case "max":
            return _ask_max(secret)
        case _:
            return None


def _ask_max(secret: Secret) -> str | None:
    url = os.environ.get("AUTOPOST_MAX_API_URL") or PUBLIC_URL
    try:
        answer = httpx.get(f"{url.rstrip('/')}/me", headers={"Authorization": secret.reveal()}, timeout=PATIENCE)
        return (
            str(msgspec.json.decode(answer.content, type=MaxBot).user_id)
            if answer.status_code == httpx.codes.OK
            else None
        )
    except (httpx.HTTPError, httpx.InvalidURL, ValueError):
        click.echo("MAX did not answer, so the bot was not detected. The dispatcher detects it at first use.", err=True)
        return None
