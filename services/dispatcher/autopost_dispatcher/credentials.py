"""From ``auth_ref`` to a token. Where it lies is asked of the database: the environment, a file, or sealed in the row.

Remembered for a moment only, so that a rotation is heard without a restart, and not even that long once a
provider has refused the token: see ``forget``.
"""

import asyncio
import os
import time
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Protocol

from autopost_contracts.ids import WorkspaceId
from autopost_runtime.config import Secret
from autopost_runtime.logs import get_logger
from autopost_runtime.sealing import Label, Unopenable, read_keys
from msgspec import Struct

from autopost_dispatcher.gateway import Credential

REMEMBERED = timedelta(seconds=10)

Key = tuple[WorkspaceId, str, str]


class Bindings(Protocol):
    async def read_credential(self, workspace: WorkspaceId, platform: str, auth_ref: str) -> Credential | None: ...


class Identity(Struct, frozen=True, kw_only=True):
    """As whom to call a provider."""

    token: Secret
    bot_id: str | None = None
    """The provider's own name for the bot, the same for all its tokens; ``None`` when the binding does not know it."""


_UNKNOWN = (0.0, None)


class Credentials:
    """Raises ``ConfigError`` for a sealing key that is none."""

    def __init__(self, bindings: Bindings, environment: Mapping[str, str] = os.environ) -> None:
        self._bindings = bindings
        self._environment = environment
        self._keys = read_keys(environment)
        self._known: dict[Key, tuple[float, Identity | None]] = {}
        self._reads: dict[Key, asyncio.Task[Identity | None]] = {}

    async def token(self, workspace: WorkspaceId, platform: str, auth_ref: str) -> Secret | None:
        found = await self.identity(workspace, platform, auth_ref)
        return found.token if found else None

    def known(self, workspace: WorkspaceId, platform: str, auth_ref: str) -> Identity | None:
        """What was read a moment ago: for whoever need not wait then."""
        until, found = self._known.get((workspace, platform, auth_ref), _UNKNOWN)
        return found if time.monotonic() < until else None

    async def identity(self, workspace: WorkspaceId, platform: str, auth_ref: str) -> Identity | None:
        """``None`` when there is no such credential or nothing where it should lie. Who asks together reads once."""
        if found := self.known(workspace, platform, auth_ref):
            return found
        key = (workspace, platform, auth_ref)
        read = self._reads.get(key)
        if read is None:
            read = self._reads[key] = asyncio.create_task(self._read(key))
            read.add_done_callback(lambda ended: self._remember(key, ended))
        return await asyncio.shield(read)

    def forget(self, workspace: WorkspaceId, platform: str, auth_ref: str) -> None:
        """A provider refused the token: who asks next gets what is bound now, not what a read under way will find."""
        key = (workspace, platform, auth_ref)
        self._known.pop(key, None)
        self._reads.pop(key, None)

    def _remember(self, key: Key, read: asyncio.Task[Identity | None]) -> None:
        if self._reads.get(key) is not read:
            return
        del self._reads[key]
        if not read.cancelled() and read.exception() is None and (found := read.result()):
            self._known[key] = (time.monotonic() + REMEMBERED.total_seconds(), found)

    async def _read(self, key: Key) -> Identity | None:
        workspace, platform, auth_ref = key
        binding = await self._bindings.read_credential(workspace, platform, auth_ref)
        try:
            token = self._reveal(binding, Label(str(workspace), platform, auth_ref))
        except Unopenable as exc:
            get_logger().warning(
                "credential.missing",
                workspace_id=str(workspace),
                platform=platform,
                auth_ref=auth_ref,
                reason=str(exc),
            )
            return None
        return Identity(token=token, bot_id=binding.bot_id if binding else None)

    def _reveal(self, binding: Credential | None, label: Label) -> Secret:
        if binding is None:
            raise Unopenable("nothing is bound to this name")
        kind, _, place = binding.secret_ref.partition(":")
        match kind:
            case "env":
                return _given(self._environment.get(place, ""), f"the variable {place} is not set")
            case "file":
                return _given(_content(place), f"the file {place} is empty")
            case _:
                return self._open(binding.sealed or b"", label)

    def _open(self, sealed: bytes, label: Label) -> Secret:
        if self._keys is None:
            raise Unopenable("it is sealed and AUTOPOST_SECRETS_KEY is not set")
        return self._keys.open(sealed, label)


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
