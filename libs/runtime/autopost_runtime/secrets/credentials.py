"""Look up the token of an ``auth_ref``: in the environment, in a file, or encrypted in the database.

Tokens are cached for a few seconds, so that a rotation needs no restart. A token that a provider refused is dropped
from the cache at once, see ``forget``.
"""

import asyncio
import os
import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Protocol

from autopost_contracts.ids import WorkspaceId
from msgspec import Struct

from autopost_runtime.config.load import Secret
from autopost_runtime.secrets.sealing import Label, SealingKeys, Unopenable, read_keys
from autopost_runtime.telemetry.logs import get_logger

REMEMBERED = timedelta(seconds=10)
NEVER = datetime.min.replace(tzinfo=UTC)

Key = tuple[WorkspaceId, str, str]


class Credential(Struct, frozen=True, kw_only=True):
    """Where a secret is stored; never the secret itself. A row of ``read_credentials``."""

    auth_ref: str
    secret_ref: str
    sealed: bytes | None
    bot_id: str | None
    rotated_at: datetime


class CredentialBindings(Protocol):
    async def read_credential(self, workspace: WorkspaceId, platform: str, auth_ref: str) -> Credential | None: ...


class Identity(Struct, frozen=True, kw_only=True, eq=False, weakref=True):
    """The token and the bot for calls to a provider."""

    token: Secret
    bot_id: str | None = None
    """The provider's id of the bot, the same for all its tokens; ``None`` when the binding does not have it."""
    is_sealed: bool = False
    """Then the bot is that of this token. Variables and files can change without their binding."""
    rotated_at: datetime = NEVER
    """When the binding was last changed."""


_UNKNOWN = (0.0, None)


class Credentials:
    """Raises ``ConfigError`` for an invalid sealing key."""

    def __init__(self, bindings: CredentialBindings, environment: Mapping[str, str] = os.environ) -> None:
        self._bindings = bindings
        self._environment = environment
        self._keys = read_keys(environment)
        self._known: dict[Key, tuple[float, Identity | None]] = {}
        self._reads: dict[Key, asyncio.Task[Identity | None]] = {}

    async def token(self, workspace: WorkspaceId, platform: str, auth_ref: str) -> Secret | None:
        found = await self.identity(workspace, platform, auth_ref)
        return found.token if found else None

    def known(self, workspace: WorkspaceId, platform: str, auth_ref: str) -> Identity | None:
        """From the cache only, without waiting."""
        until, found = self._known.get((workspace, platform, auth_ref), _UNKNOWN)
        return found if time.monotonic() < until else None

    async def identity(self, workspace: WorkspaceId, platform: str, auth_ref: str) -> Identity | None:
        """``None`` when there is no such credential or its secret is missing. Concurrent calls share one read."""
        if found := self.known(workspace, platform, auth_ref):
            return found
        key = (workspace, platform, auth_ref)
        read = self._reads.get(key)
        if read is None:
            read = self._reads[key] = asyncio.create_task(self._read(key))
            read.add_done_callback(lambda ended: self._remember(key, ended))
        return await asyncio.shield(read)

    def forget(self, workspace: WorkspaceId, platform: str, auth_ref: str) -> None:
        """A provider refused the token: the next call reads it again, and a read in progress is not cached."""
        key = (workspace, platform, auth_ref)
        self._known.pop(key, None)
        self._reads.pop(key, None)

    def _remember(self, key: Key, read: asyncio.Task[Identity | None]) -> None:
        if self._reads.get(key) is not read:
            return
        del self._reads[key]
        if not read.cancelled() and read.exception() is None and (found := read.result()):
            lasts = REMEMBERED.total_seconds()
            known = self._known[key] = (time.monotonic() + lasts, found)
            asyncio.get_running_loop().call_later(lasts, self._expire, key, known)

    def _expire(self, key: Key, known: tuple[float, Identity | None]) -> None:
        """So that no token stays in memory when its tenant has nothing to send."""
        if self._known.get(key) is known:
            del self._known[key]

    async def _read(self, key: Key) -> Identity | None:
        workspace, platform, auth_ref = key
        binding = await self._bindings.read_credential(workspace, platform, auth_ref)
        try:
            if binding is None:
                raise Unopenable("no credential is bound to this name")
            token = reveal(binding, Label(str(workspace), platform, auth_ref), self._environment, self._keys)
        except Unopenable as exc:
            get_logger().warning(
                "credential.missing",
                workspace_id=str(workspace),
                platform=platform,
                auth_ref=auth_ref,
                reason=str(exc),
            )
            return None
        return Identity(
            token=token,
            bot_id=binding.bot_id,
            is_sealed=binding.sealed is not None,
            rotated_at=binding.rotated_at,
        )


def reveal(bound: Credential, label: Label, environment: Mapping[str, str], keys: SealingKeys | None) -> Secret:
    """Raises ``Unopenable`` with the reason, never with the secret."""
    kind, _, place = bound.secret_ref.partition(":")
    match kind:
        case "env":
            return _given(environment.get(place, ""), f"the environment variable {place} is not set")
        case "file":
            return _given(_content(place), f"the file {place} is empty")
        case _ if keys is None:
            raise Unopenable("the token is encrypted and AUTOPOST_SECRETS_KEY is not set")
        case _:
            return keys.open(bound.sealed or b"", label)


def _content(place: str) -> str:
    try:
        return Path(place).read_text(encoding="utf-8").strip()
    except (OSError, ValueError) as exc:
        reason = exc.strerror if isinstance(exc, OSError) else "not a text file"
        raise Unopenable(f"the file {place} cannot be read ({reason})") from None


def _given(value: str, otherwise: str) -> Secret:
    if not value:
        raise Unopenable(otherwise)
    return Secret(value)
