"""Request server-side encryption with every object.

Some stores refuse the header, others ignore it. ``auto`` detects this with the first object, logs it once and continues
without; ``required`` stores no unencrypted object.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal, TypeVar

from autopost_runtime.telemetry.logs import get_logger

Mode = Literal["auto", "required", "off"]
Asked = dict[str, Any]
Answer = TypeVar("Answer", bound=Mapping[str, Any])

ASKED: Asked = {"ServerSideEncryption": "AES256"}
REFUSALS = frozenset(
    {"NotImplemented", "InvalidArgument", "InvalidRequest", "InvalidEncryptionAlgorithmError", "KMSNotConfigured"}
)
"""Error codes of stores without encryption; any other error has another cause."""


class NotEncrypted(Exception):  # noqa: N818  named for what happened
    """The store does not encrypt, and AUTOPOST_S3_ENCRYPTION requires it."""


class Encryption:
    def __init__(self, mode: Mode) -> None:
        self._is_asked = mode != "off"
        self._is_required = mode == "required"
        self._is_known = False
        """The store is known to encrypt, so a refusal has another cause."""

    async def ask(
        self, begin: Callable[[Asked], Awaitable[Answer]], undo: Callable[[Answer], Awaitable[object]]
    ) -> Answer:
        """``begin`` starts a write with these additional arguments; ``undo`` reverts it."""
        from botocore.exceptions import ClientError

        if not self._is_asked:
            return await begin({})
        try:
            answer = await begin(ASKED)
        except ClientError as exc:
            code = str(exc.response.get("Error", {}).get("Code", ""))
            if self._is_known or code not in REFUSALS:
                raise
            return await self._without(begin, code)
        if answer.get("ServerSideEncryption"):
            self._is_known = True
        elif self._is_required:
            await undo(answer)
            raise NotEncrypted("the object store ignores the encryption request")
        else:
            self._give_up("the object store ignores the encryption request")
        return answer

    async def _without(self, begin: Callable[[Asked], Awaitable[Answer]], code: str) -> Answer:
        """Retry without encryption. Only if that succeeds was encryption the cause of the refusal."""
        if self._is_required:
            raise NotEncrypted(f"the object store refuses to encrypt: {code}")
        answer = await begin({})
        self._give_up(f"the object store refuses to encrypt: {code}")
        return answer

    def _give_up(self, reason: str) -> None:
        self._is_asked = False
        get_logger().warning(
            "objects.not_encrypted",
            reason=reason,
            advice="enable default encryption of the bucket, or set AUTOPOST_S3_ENCRYPTION",
        )
