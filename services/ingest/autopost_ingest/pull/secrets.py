"""The secrets of sources, by their name under the platform ``pull``."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from autopost_contracts.ids import WorkspaceId
from autopost_runtime.config.load import Secret
from autopost_runtime.secrets.sealing import Label, Unopenable, read_keys

from autopost_ingest.pull.gateway import PullCredential
from autopost_ingest.pull.source_config import Misconfigured

PLATFORM = "pull"


class CredentialReader(Protocol):
    async def read_credential(self, workspace: WorkspaceId, name: str) -> PullCredential | None: ...


class PullSecrets:
    """Reads the secret for each pull, so that a rotation takes effect. Raises ``ConfigError`` for an invalid key."""

    def __init__(self, bindings: CredentialReader, environment: Mapping[str, str] = os.environ) -> None:
        self._bindings = bindings
        self._environment = environment
        self._keys = read_keys(environment)

    async def reveal(self, workspace: WorkspaceId, name: str) -> Secret:
        """Raises ``Misconfigured`` when no secret has this name."""
        bound = await self._bindings.read_credential(workspace, name)
        if bound is None:
            raise Misconfigured(f"no secret is bound to {name!r} under the platform {PLATFORM}", "secret_missing")
        try:
            return self._open(bound, Label(str(workspace), PLATFORM, name))
        except (Unopenable, OSError, ValueError) as exc:
            reason = str(exc) if isinstance(exc, Unopenable) else "its environment variable or file cannot be read"
            raise Misconfigured(f"the secret {name!r}: {reason}", "secret_missing") from None

    def _open(self, bound: PullCredential, label: Label) -> Secret:
        kind, _, place = bound.secret_ref.partition(":")
        match kind:
            case "env":
                return Secret(self._environment.get(place, ""))
            case "file":
                return Secret(Path(place).read_text(encoding="utf-8").strip())
            case _ if self._keys is None:
                raise Unopenable("sealed, but AUTOPOST_SECRETS_KEY is not set")
            case _:
                return self._keys.open(bound.sealed or b"", label)
