"""Secrets sealed in the database: AES-256-GCM, bound to their workspace, platform and name.

Sealed text is a version byte, a random nonce of 96 bits, and ciphertext with its tag. The label is part of the tag (as
associated data) and is not stored: a row that is copied to another workspace, platform or name cannot be opened.
"""

import base64
import os
from collections.abc import Mapping

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from autopost_runtime.config.load import ConfigError, Secret, load

VERSION = 1
KEY_SIZE = 32
NONCE_SIZE = 12
TAG_SIZE = 16


class Unopenable(Exception):  # noqa: N818  named for what happened
    """The sealed text cannot be opened; the message contains nothing of it."""


class Label(msgspec.Struct, frozen=True, array_like=True):
    """The owner and the name of a secret; encoded as a list, so that two labels cannot have the same encoding."""

    workspace_id: str
    platform: str
    auth_ref: str


class SealingKeys:
    """Seals with the first key and opens with any, so that a key can be replaced while both are in use."""

    def __init__(self, *keys: bytes) -> None:
        self._ciphers = [AESGCM(key) for key in keys]

    def seal(self, secret: Secret, label: Label) -> bytes:
        nonce = os.urandom(NONCE_SIZE)
        sealed = self._ciphers[0].encrypt(nonce, secret.reveal().encode(), _tagged(label))
        return bytes([VERSION]) + nonce + sealed

    def open(self, sealed: bytes, label: Label) -> Secret:
        """Raises ``Unopenable``."""
        version, nonce, text = sealed[:1], sealed[1 : 1 + NONCE_SIZE], sealed[1 + NONCE_SIZE :]
        if version != bytes([VERSION]) or len(text) <= TAG_SIZE:
            raise Unopenable(f"not a sealed secret of version {VERSION}")
        for cipher in self._ciphers:
            try:
                return Secret(cipher.decrypt(nonce, text, _tagged(label)).decode())
            except InvalidTag:
                continue
        raise Unopenable("sealed with another key or for another workspace or name, or damaged")


class _Variables(msgspec.Struct, frozen=True, kw_only=True):
    secrets_key: Secret | None = None
    secrets_key_old: Secret | None = None


def read_keys(env: Mapping[str, str] | None = None) -> SealingKeys | None:
    """``None`` when no key is set. Raises ``ConfigError`` with the name of the variable, never its value."""
    given = load(_Variables, env)
    if given.secrets_key is None:
        if given.secrets_key_old is not None:
            raise ConfigError(["AUTOPOST_SECRETS_KEY is not set; it is required with AUTOPOST_SECRETS_KEY_OLD"])
        return None
    keys = [_key("AUTOPOST_SECRETS_KEY", given.secrets_key)]
    if given.secrets_key_old is not None:
        keys.append(_key("AUTOPOST_SECRETS_KEY_OLD", given.secrets_key_old))
    return SealingKeys(*keys)


def new_key() -> Secret:
    return Secret(base64.b64encode(os.urandom(KEY_SIZE)).decode())


def _key(variable: str, text: Secret) -> bytes:
    try:
        key = base64.b64decode(text.reveal(), validate=True)
    except ValueError:
        key = b""
    if len(key) != KEY_SIZE:
        raise ConfigError(
            [f"{variable}: expected the base64 of {KEY_SIZE} bytes, generate one with `autopost auth key`"]
        )
    return key


def _tagged(label: Label) -> bytes:
    return bytes([VERSION]) + msgspec.json.encode(label)
