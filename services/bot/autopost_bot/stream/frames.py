"""The bytes of the stream. ``event:`` is never sent: with it, ``onmessage`` of an EventSource does not fire."""

import msgspec

from autopost_bot.gateway import Change

RETRY = 2000
"""Milliseconds until a browser comes back after an end of the stream."""
RETRY_WHEN_BUSY = 15_000

KEEP_ALIVE = b": keep-alive\n\n"
COME_BACK = b"retry: %d\n\n" % RETRY_WHEN_BUSY

_FIELD = {"message": "message", "bot_action": "action"}


def opening(seq: int) -> bytes:
    """An id without data fires no event, but a browser that reconnects sends it. The comment makes proxies flush."""
    return b"retry: %d\nid: %d\n\n: connected\n\n" % (RETRY, seq)


def event(change: Change) -> bytes:
    data: dict[str, object] = {"type": change.kind}
    if change.body is not None:
        data[_FIELD[change.kind]] = change.body
    return b"id: %d\ndata: %b\n\n" % (change.seq, msgspec.json.encode(data))
