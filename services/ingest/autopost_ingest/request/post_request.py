"""Parse the body of a post: strict JSON, then the fields of ``PostRequest`` and no others."""

from datetime import UTC

import msgspec
from autopost_contracts.payload import EARLIEST, LATEST, MediaItem, PostButton, PostRequest, Routing
from autopost_runtime.http.strict_json import HINT, MAX_HINT_LENGTH, check_json
from autopost_runtime.secrets.redaction import quoted
from msgspec.structs import replace

from autopost_ingest.errors import InvalidPost
from autopost_ingest.request.unreadable import UNREADABLE, unreadable


class _WithHint(PostRequest, frozen=True, kw_only=True):
    """A number in the hint may be of any size."""

    workspace_id: msgspec.Raw = msgspec.Raw(b"null")


_decode = msgspec.json.Decoder(PostRequest).decode
_decode_with_hint = msgspec.json.Decoder(_WithHint).decode
_HINT_KEY = f'"{HINT}"'.encode()
_OBJECTS: dict[str, type[msgspec.Struct]] = {
    "": PostRequest,
    "media": MediaItem,
    "buttons": PostButton,
    "routing": Routing,
}


def read_post(body: bytes) -> PostRequest:
    """Raises ``HttpProblem`` 400 or ``InvalidPost``, naming the field."""
    try:
        check_json(body)
        return _in_utc(_decode(body) if _HINT_KEY not in body else _with_hint(_decode_with_hint(body)))
    except UNREADABLE as exc:
        raise unreadable(exc, _OBJECTS) from None


def _in_utc(post: PostRequest) -> PostRequest:
    """In UTC, so that one moment in two time zones is the same payload."""
    if post.scheduled_for is None:
        return post
    if not EARLIEST <= post.scheduled_for < LATEST:
        raise InvalidPost("scheduled_for", f"must be in the years {EARLIEST.year} to {LATEST.year - 1}")
    return replace(post, scheduled_for=post.scheduled_for.astimezone(UTC))


def _with_hint(post: _WithHint) -> PostRequest:
    """The workspace hint as short text without secrets, whatever the sender put there."""
    fields = {name: getattr(post, name) for name in PostRequest.__struct_fields__}
    return PostRequest(**fields | {HINT: _hint(post.workspace_id)})


def _hint(raw: msgspec.Raw) -> str | None:
    try:
        named = msgspec.json.decode(raw)
    except msgspec.DecodeError:  # a number beyond all types: others were refused before
        return quoted(bytes(raw).decode(), MAX_HINT_LENGTH)
    if named is None:
        return None
    is_long = type(named) is int  # beyond 64 bits it cannot be encoded
    text = named if isinstance(named, str) else str(named) if is_long else msgspec.json.encode(named).decode()
    return quoted(text, MAX_HINT_LENGTH)
