"""The bytes of the stream. ``event:`` is never sent: with it, ``onmessage`` of an EventSource does not fire."""

from datetime import timedelta

import msgspec

from autopost_bot.gateway import Change

RETRY = timedelta(seconds=2)
"""Until a browser comes back after an end of the stream."""

KEEP_ALIVE = b": keep-alive\n\n"

_FIELD = {"message": "message", "bot_action": "action"}


def opening(seq: int) -> bytes:
    """An id without data fires no event, but a browser that reconnects sends it. The comment makes proxies flush."""
    return b"retry: %d\nid: %d\n\n: connected\n\n" % (_milliseconds(RETRY), seq)


def retry(after: timedelta) -> bytes:
    return b"retry: %d\n\n" % _milliseconds(after)


def event(change: Change) -> bytes:
    data: dict[str, object] = {"type": change.kind}
    if change.body is not None:
        data[_FIELD[change.kind]] = change.body
    return b"id: %d\ndata: %b\n\n" % (change.seq, msgspec.json.encode(data))


def _milliseconds(time: timedelta) -> int:
    return time // timedelta(milliseconds=1)
