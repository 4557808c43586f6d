"""Read the body of a post: JSON without traps, then the fields of ``PostRequest`` and no others."""

import re
from datetime import UTC

import msgspec
from autopost_contracts.payload import EARLIEST, LATEST, PostRequest
from autopost_runtime.web import Problem
from msgspec.structs import replace

from autopost_ingest.normalize import Refused
from autopost_ingest.strict_json import LONGEST_PLACE, Trap, refuse_traps

LONGEST_DETAIL = 300

_decode = msgspec.json.Decoder(PostRequest).decode
_WHERE = re.compile(r" - at `\$\.?(?P<path>[^`]*)`$")
_UNKNOWN = re.compile(r"Object contains unknown field `(?P<name>[^`]*)`")


def read_post(body: bytes) -> PostRequest:
    """Raises ``Problem`` 400 or ``Refused``, naming the field."""
    try:
        refuse_traps(body)
        return _in_utc(_decode(body))
    except Trap as trap:
        raise Problem(400, "Bad Request", trap.reason, field=trap.place or None) from None
    except msgspec.ValidationError as exc:
        detail, field = _located(str(exc))
        raise Problem(400, "Bad Request", detail[:LONGEST_DETAIL], field=field) from None
    except (msgspec.DecodeError, RecursionError) as exc:
        raise Problem(400, "Bad Request", f"the body is not JSON: {exc}"[:LONGEST_DETAIL]) from None


def _in_utc(post: PostRequest) -> PostRequest:
    """The same moment told in two zones is the same payload."""
    if post.scheduled_for is None:
        return post
    if not EARLIEST <= post.scheduled_for < LATEST:
        raise Refused("scheduled_for", f"expected a moment from {EARLIEST.year} on and before {LATEST.year}")
    return replace(post, scheduled_for=post.scheduled_for.astimezone(UTC))


def _located(message: str) -> tuple[str, str | None]:
    """msgspec's words, with the path taken out of them."""
    where = _WHERE.search(message)
    path = where["path"] if where else ""
    detail = _WHERE.sub("", message)
    if unknown := _UNKNOWN.search(detail):
        path = f"{path}.{unknown['name']}".lstrip(".")
        detail = "there is no such field"
    return detail, path[:LONGEST_PLACE] or None
